"""Requests that are repeated with an Idempotency-Key: every POST of the table, and what is kept of them."""

from __future__ import annotations

import asyncio
import secrets
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.admin.api.operation import Operation
from msmq_fast.admin.api.operations import OPERATIONS
from msmq_fast.admin.api.repeats import MOST, MOST_BYTES, Repeats
from tests.support.http.api import Answer, call, ok
from tests.support.processes.servers import Server

REPEATABLE = {operation.name: operation for operation in OPERATIONS if operation.method == "POST"}
FAR = r"DIRECT=TCP:127.0.0.77\private$\repeated"
NONE = "00112233-4455-6677-8899-aabbccddeeff"
SITE = {"msmq_fast_directory": 1, "objects": [{"object": "Site", "Name": "imported"}]}
DEFINED = {"msmq_fast_definitions": 1, "queues": [{"name": "imported"}]}
REQUESTS: dict[str, tuple[tuple[str, ...], Any]] = {
    "server.reload": ((), None),
    "server.snapshot": ((), {"directory": "{folder}/copy"}),
    "queues.create": ((), {"name": "made"}),
    "queues.purge": (("source",), None),
    "messages.move": (("source",), {"target": "target", "limit": 1}),
    "messages.copy": (("source",), {"target": "target", "limit": 1}),
    "messages.resubmit": ((r".\system$;deadletter",), {"limit": 1}),
    "messages.remove_selected": (("source",), {"priority": 3, "limit": 1}),
    "messages.send": (("source",), {"body": "x"}),
    "outgoing.remove_selected": ((FAR,), {"priority": 3, "limit": 1}),
    "outgoing.pause": ((FAR,), None),
    "outgoing.resume": ((FAR,), None),
    "outgoing.kick": ((FAR,), None),
    "outgoing.purge": ((FAR,), None),
    "transactions.commit": ((NONE,), None),
    "transactions.abort": ((NONE,), None),
    "certificates.create": ((), None),
    "certificates.add": ((), {"certificate_b64": b64encode(b"none").decode()}),
    "keys.add": ((), {"guid": NONE, "blob_b64": b64encode(b"none").decode()}),
    "directory.import": ((), SITE),
    "directory.create": (("Site",), {"Name": "made"}),
    "definitions.import": ((), DEFINED),
    "config.check": ((), {"text": ""}),
}
"""A request for each operation that is repeatable: names of its path, and its body."""
FAIL = {"transactions.commit", "transactions.abort", "certificates.add", "keys.add"}
"""Those that fail here: nothing is kept of them, and the second attempt gets the same error."""


def ask(server: Server, operation: Operation, folder: Path, key: str) -> Answer:
    names, body = REQUESTS[operation.name]
    if operation.name == "server.snapshot":
        body = {"directory": str(folder / "copy")}
    path = operation.path
    for parameter in operation.path_parameters:
        path = path.replace(f"{{{parameter.name}}}", "{}")
    return call(server, "POST", path, *names, body=body, headers={"Idempotency-Key": key})


def numbers(server: Server) -> list[Any]:
    """What the requests change: messages of each queue, objects, and certificates."""
    queues = ok(server, "GET", "/queues", kind="user", limit=1000)["items"]
    return [
        {one["name"]: (one["messages"], one["arrived"], one["removed"]) for one in queues},
        {one["name"]: one["messages"] for one in ok(server, "GET", "/outgoing")["items"]},
        ok(server, "GET", "/directory/Site")["items"],
        ok(server, "GET", "/certificates"),
    ]


def test_every_post_is_in_the_table() -> None:
    assert set(REQUESTS) == set(REPEATABLE)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_repeated_request_gets_the_first_answer_and_does_nothing(
    server: Server, tmp_path: Path, name: str
) -> None:
    for queue in ("source", "target", "purged"):
        server.run("queue", "create", queue)
    for _ in range(2):
        server.ok("send", "source", "--body", "x", "--count", "2")
    server.ok("send", FAR, "--body", "x", "--recoverable")
    server.ok("send", "purged", "--body", "x", "--dead-letter")
    server.ok("queue", "purge", "purged", "--yes")  # its message becomes a dead letter, at once
    for queue in ("made", "imported"):
        call(server, "DELETE", "/queues/{}", queue)
        call(server, "DELETE", "/directory/Site/{}", queue)
    operation, key = REPEATABLE[name], secrets.token_hex(8)
    before = numbers(server)
    first = ask(server, operation, tmp_path, key)
    after = numbers(server)
    second = ask(server, operation, tmp_path, key)
    assert (second.status, second.content) == (first.status, first.content)
    assert numbers(server) == after
    if name in FAIL:
        assert first.status >= 400
    else:
        assert first.status == operation.status, first.content
        third = ask(server, operation, tmp_path, secrets.token_hex(8))
        made = ("queues.create", "directory.create", "server.snapshot")
        assert (third.status >= 400) == (name in made), third.content
    if name in ("messages.send", "messages.copy", "queues.create", "directory.import", "definitions.import"):
        assert after != before


def test_what_is_kept_is_bounded() -> None:
    async def run() -> tuple[int, int]:
        repeats, performed = Repeats(lambda: 0.0), 0

        async def perform() -> str:
            nonlocal performed
            performed += 1
            return "x" * size

        size = 10
        for number in range(MOST + 10):
            await repeats.run("alice", str(number), None, perform)
        await repeats.run("alice", str(MOST), None, perform)  # kept
        few = performed
        size = MOST_BYTES // 4
        for number in range(5):
            await repeats.run("bob", str(number), None, perform)
        await repeats.run("bob", "4", None, perform)  # kept
        await repeats.run("bob", "0", None, perform)  # forgotten for the others
        return few, performed - few

    assert asyncio.run(run()) == (MOST + 10, 6)
