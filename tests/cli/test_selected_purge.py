"""`queue purge` with a selection: deletes what it selects, and tells what stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msmq_fast.client import sync
from msmq_fast.protocol.exits import Exit
from tests.cli.operators import count, fill, running
from tests.support.processes.servers import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as running_server:
        yield running_server


def test_a_label_selects_over_many_batches(server: Server) -> None:
    fill(server, "labelled", 2500)
    (planned,) = server.ok("queue", "purge", "labelled", "--label", "label [0-4]", "--dry-run")
    assert (planned["purged"], planned["dry_run"]) == (1250, True)
    assert count(server, "labelled") == 2500
    (done,) = server.ok("queue", "purge", "labelled", "--label", "label [0-4]")
    assert (done["purged"], done["bytes"], "dry_run" in done) == (1250, planned["bytes"], False)
    assert count(server, "labelled") == 1250
    (few,) = server.ok("queue", "purge", "labelled", "--limit", "5")
    assert (few["purged"], count(server, "labelled")) == (5, 1245)


def test_lookup_ids_and_what_stays(server: Server) -> None:
    server.ok("queue", "create", "some", "--transactional")
    server.ok("send", "some", "--body", "x", "--count", "3", "--transaction")
    ids = [one["lookup_id"] for one in server.ok("peek", "some", "--count", "3")]
    with (
        sync.connect(server.endpoint) as connection,
        connection.open("some") as queue,
        connection.transaction() as open_one,
    ):
        held = queue.receive(transaction=open_one).lookup_id
        chosen = [word for one in ids for word in ("--lookup-id", str(one))]
        done = server.run("queue", "purge", "some", *chosen)
        open_one.abort()
    assert done.returncode == Exit.REFUSED
    assert b"1 stay: MQ_ERROR_MESSAGE_LOCKED" in done.stderr
    assert f"(lookup id {held})".encode() in done.stderr
    assert count(server, "some") == 1


def test_a_move_selects_by_lookup_id_and_priority(server: Server) -> None:
    fill(server, "picked", 8)
    server.ok("queue", "create", "picked-target")
    first = server.ok("peek", "picked")[0]["lookup_id"]
    (done,) = server.ok("queue", "move", "picked", "picked-target", "--lookup-id", str(first))
    assert done["moved"] == 1
    (done,) = server.ok("queue", "move", "picked", "picked-target", "--priority", "3")
    assert done["moved"] == 1
    assert count(server, "picked") == 6


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_a_time_selects_and_does_not_purge_all(server: Server, option: str) -> None:
    queue = f"timed{option}"
    fill(server, queue, 3)
    none, all_of_them = ("2200-01-31", "2026-01-31") if option == "--since" else ("2026-01-31", "2200-01-31")
    (done,) = server.ok("queue", "purge", queue, option, none)
    assert (done["purged"], count(server, queue)) == (0, 3)
    (done,) = server.ok("queue", "purge", queue, option, all_of_them)
    assert (done["purged"], count(server, queue)) == (3, 0)
