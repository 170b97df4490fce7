"""`queue find`: public queues of all computers, by what programs know of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory

TYPE = "00112233-4455-6677-8899-aabbccddeeff"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """HERE with a queue of its own, and a directory with queues of THERE."""
    with data_directory() as data:
        server = Server(data, "--name", "HERE").start()
        server.ok("queue", "create", r".\orders", "--label", "Order entry")
        for name, label in (("orders", "order ENTRY"), ("prices", "Prices"), ("orders-old", "")):
            words = [rf"Pathname=THERE\{name}", f"Label={label}", f"Type={TYPE}", "Transactional=true"]
            server.ok("directory", "create", "Queue", *words)
        yield server
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), ["here\\orders", "there\\orders", "there\\orders-old", "there\\prices"]),
        (("--label", "order entry"), ["here\\orders", "there\\orders"]),
        (("--computer", "there"), ["there\\orders", "there\\orders-old", "there\\prices"]),
        (("--computer", "the"), []),
        (("ORDERS*", "--computer", "THERE"), ["there\\orders", "there\\orders-old"]),
        (("--type", TYPE, "p?ices"), ["there\\prices"]),
        (("--transactional", "--label", "prices"), ["there\\prices"]),
        (("--label", "none"), []),
    ],
)
def test_what_is_found(server: Server, words: tuple[str, ...], wanted: list[str]) -> None:
    done = server.run("queue", "find", *words, "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["name"].casefold() for one in found] == wanted
    assert done.returncode == 0, done
    for one in found:
        assert one["format_name"] == f"PUBLIC={one['guid']}"
        assert one["computer"].casefold() == one["name"].casefold().partition("\\")[0]


def test_a_page_has_no_more_than_what_meets_the_conditions(server: Server) -> None:
    """Conditions that do not fit are named in one line."""
    from msmq_fast.client import sync
    from msmq_fast.protocol.errors import InvalidParameter

    with sync.connect(server.endpoint) as here:
        found = here.admin.directory.all("Queue", limit=1, where=[("Type", "=", TYPE)])
        assert len(found) == 1
        rest = here.admin.directory.all("Queue", found[0]["Identifier"], where=[("Type", "=", TYPE)])
        assert len(rest) == 2
        for wrong, words in {
            ("Colour", "=", "red"): "Colour",
            ("Label", "~", "red"): "'~' is not a valid Operator",
            ("Type", "=", "red"): "expected a GUID",
            ("Quota", "<", "many"): "expected",
            ("Label", "="): "must be",
        }.items():
            with pytest.raises(InvalidParameter, match=words):
                here.admin.directory.all("Queue", where=[wrong])
        with pytest.raises(InvalidParameter, match="at most 8"):
            here.admin.directory.all("Queue", where=[("Label", "=", "x")] * 9)
    done = server.run("queue", "find", "--type", "red")
    assert (done.returncode, b"'red' is not a GUID" in done.stderr) == (2, True), done
