"""Calls about many queues: only those with something new are listed, and one call is enough for all."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast._native.columnrows import changed, span
from msmq_fast.client.bulk.client import (
    Acked,
    BadRequest,
    BulkClient,
    Lease,
    LeaseLost,
    Plan,
    PlanRequest,
    QueueNotFound,
    Truncated,
)
from tests.support.http import bulk as api
from tests.support.processes.servers import Server
from tests.support.worlds.queue_manager import World

SEQUENCE = (1 << 56) - 1


def sent(server: Server, queue: str, count: int, **flags: str) -> None:
    more = [text for name, value in flags.items() for text in (f"--{name}", value)]
    server.ok("send", queue, "--body", "x", "--recoverable", "--count", str(count), *more)


def names(found: Any) -> list[str]:
    return [queue.name.split("\\")[-1] for queue in found.queues]


@pytest.fixture(scope="module")
def many(bulk_server: Server) -> Server:
    for number in range(6):
        bulk_server.ok("queue", "create", f"many{number}")
    sent(bulk_server, "many1", 3)
    sent(bulk_server, "many4", 2, priority="7")
    return bulk_server


def test_only_queues_with_something_new_are_listed(many: Server, bulk: BulkClient) -> None:
    pattern = r".*\\many\d"
    everything = bulk.bounds(pattern=pattern)
    assert len(everything.queues) == everything.known == everything.selected == 6
    assert names(bulk.bounds(pattern=pattern, since=0)) == ["many1", "many4"]
    assert names(bulk.bounds(pattern=pattern, since=everything.next)) == []
    sent(many, "many2", 1, priority="0")
    after = bulk.bounds(pattern=pattern, since=everything.next)
    assert names(after) == ["many2"]
    assert after.known == 6
    listed = [f"many{number}" for number in range(6)]
    assert names(bulk.bounds(listed, since=everything.next)) == ["many2"]


def test_queues_that_go_are_missing_in_the_count_and_named(many: Server, bulk: BulkClient) -> None:
    pattern = r".*\\going\d"
    for number in range(3):
        many.ok("queue", "create", f"going{number}")
    before = bulk.bounds(pattern=pattern)
    ordinals = [queue.ordinal for queue in before.queues]
    assert ordinals == sorted(ordinals)
    assert ordinals[-1] <= before.ordinal
    many.ok("queue", "delete", "going1")
    many.ok("queue", "create", "going1")
    many.ok("queue", "delete", "going2")
    after = bulk.bounds(pattern=pattern, since=before.next, seen=before.ordinal, removals=before.removals)
    assert (after.known, after.selected) == (1, 2)  # the new going1 is not the old one
    guids = {queue.guid: queue.name for queue in before.queues}
    assert [(guids[gone.guid] == gone.name, gone.name[-6:], gone.again) for gone in after.removed] == [
        (True, "going1", True),
        (True, "going2", False),
    ]
    assert bulk.bounds(pattern=pattern, removals=after.removals).removed == ()
    assert bulk.bounds(pattern=pattern).removed == ()


def test_names_that_are_not_there_can_be_skipped(many: Server, bulk: BulkClient) -> None:
    with pytest.raises(QueueNotFound):
        bulk.bounds(["many1", "absent"])
    assert names(bulk.bounds(["many1", "absent"], skip_missing=True)) == ["many1"]


def test_one_call_plans_many_queues(many: Server, bulk: BulkClient) -> None:
    stop = bulk.bounds().next
    asked = [
        PlanRequest("many1", 0, stop, max_rows=2),
        PlanRequest("absent", 0, stop),
        PlanRequest("many4", 0, stop, parts=2),
    ]
    first, missing, last = bulk.plans(asked)
    assert isinstance(first, Plan)
    assert (first.rows, first.waiting) == (2, 3)
    assert isinstance(missing, QueueNotFound)
    assert isinstance(last, Plan)
    assert [part.rows for part in last.ranges] == [1, 1]
    assert len(list(bulk.plans([PlanRequest("many1", 0, stop)] * 1201))) == 1201  # three requests
    assert len(list(bulk.plans([PlanRequest("many1", 0, stop, parts=6000)] * 3))) == 3


def read(batches: Any) -> list[list[bytes]]:
    """The bodies of each range."""
    found: list[list[bytes]] = [[]]
    for batch in batches:
        found[-1] += batch.column(batch.schema.get_field_index("body")).to_pylist()
        if not batch.num_rows:
            found.append([])
    return found


def test_one_stream_has_the_rows_of_many_ranges(many: Server, bulk: BulkClient) -> None:
    stop = bulk.bounds().next
    ranges = [("many1", 0, stop), ("many0", 0, stop), ("many4", 0, stop), ("many1", 0, 0)]
    assert read(bulk.rows_of(ranges, columns="body")) == [[b"x"] * 3, [], [b"x"] * 2, [], []]
    assert read(bulk.rows_of([], columns="body")) == [[]]
    with pytest.raises(QueueNotFound):
        bulk.rows_of([*ranges, ("absent", 0, 1)])
    names = bulk.rows_of(ranges[:1], columns="core").schema.names
    assert names == next(bulk.rows("many1", 0, stop, columns="core")).schema.names


def test_one_stream_has_the_deliveries_of_many_leases(bulk_server: Server, bulk: BulkClient) -> None:
    for number in range(2):
        bulk_server.ok("queue", "create", f"given{number}")
        sent(bulk_server, f"given{number}", 2)
    first, second = bulk.leases("both", [("given0", 9, None), ("given1", 9, None)], lease_ms=60_000)
    assert isinstance(first, Lease)
    assert isinstance(second, Lease)
    ranges = [("given0", first.start, first.stop), ("given1", second.start, second.stop)]
    batches = bulk.rows_of(ranges, subscription="both", columns="body")
    assert batches.schema.names == ["delivery_seq", "body"]
    assert read(batches) == [[b"x"] * 2, [b"x"] * 2, []]
    bulk.release("both", "given1", second.stop)
    with pytest.raises(Truncated):  # the first range has been sent when that shows
        read(bulk.rows_of(ranges, subscription="both", columns="body"))
    with pytest.raises(LeaseLost):
        bulk.rows_of(ranges[::-1], subscription="both", columns="body")
    bulk.release("both", "given0", first.stop)


def test_one_call_leases_acknowledges_and_releases(bulk_server: Server, bulk: BulkClient) -> None:
    for number in range(3):
        bulk_server.ok("queue", "create", f"leased{number}")
        sent(bulk_server, f"leased{number}", number + 1)
    wanted = [(f"leased{number}", 10, None) for number in range(3)]
    leases = list(bulk.leases("many", [*wanted, ("absent", 1, 5)], lease_ms=60_000))
    assert [lease.rows for lease in leases if isinstance(lease, Lease)] == [1, 2, 3]
    assert isinstance(leases[3], QueueNotFound)
    given = [lease.stop for lease in leases if isinstance(lease, Lease)]
    acked = list(bulk.acks("many", [("leased0", given[0]), ("leased1", given[1] + 5), ("leased2", given[2])]))
    assert [one.removed for one in acked if isinstance(one, Acked)] == [1, 3]
    assert isinstance(acked[1], LeaseLost)
    (released,) = bulk.releases("many", [("leased1", given[1])])
    assert released == Acked(2, 0)
    assert [queue.messages for queue in bulk.bounds([name for name, _, _ in wanted]).queues] == [0, 2, 0]


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("/plan", {"queues": {}}, "queues must be a list of JSON objects"),
        ("/plan", {"queues": [1]}, "queues must be a list of JSON objects"),
        ("/plan", {"queues": [{"queue": "orders"}]}, "from is missing"),
        ("/plan", {"queues": [{"queue": "orders", "from": 0, "to": 1}] * 501}, "at most 500"),
        (
            "/plan",
            {"queues": [{"queue": "orders", "from": 0, "to": 1, "parts": 4000}] * 3},
            "10000 parts in all",
        ),
        ("/plan", {"queues": [], "queue": "orders"}, "unknown parameter 'queue'"),
        ("/plan", {"queues": [], "content": "events"}, "pass no queues"),
        ("/ack", {"subscription": "s", "queues": [{"queue": "orders", "up": 1}]}, "upto is missing"),
        ("/lease", {"subscription": "s", "queues": [{"queue": "orders", "lease_ms": 5}]}, "'lease_ms'"),
        ("/rows", {"queues": [{"queue": "orders", "from": 5, "to": 1}]}, "must not be less"),
        ("/rows", {"queues": [{"queue": "orders", "from": 0, "to": 1, "columns": "body"}]}, "'columns'"),
        (
            "/rows",
            {"content": "events", "queues": []},
            "content must be one of messages, journal, deadletter",
        ),
        ("/rows", {"content": "journal", "subscription": "s", "queues": []}, "content must be messages"),
        ("/rows", {"queue": "orders", "from": 0, "to": 1}, "queues is missing"),
        ("/bounds", {"pattern": ".*", "since": -1}, "since must be"),
        ("/bounds", {"pattern": ".*", "missing": "ignore"}, "missing must be one of error, skip"),
    ],
)
def test_what_is_wrong_with_one_ends_the_whole_call(
    bulk_server: Server, path: str, content: object, words: str
) -> None:
    api.refused(api.ask(bulk_server, "POST", path, content), 400, "BAD_REQUEST", words)


def test_a_pattern_is_looked_for_again_when_queues_come_and_go(many: Server, bulk: BulkClient) -> None:
    pattern = r".*\\coming\d"
    assert bulk.bounds(pattern=pattern).known == 0
    many.ok("queue", "create", "coming1")
    assert bulk.bounds(pattern=pattern).known == 1
    many.ok("queue", "delete", "coming1")
    assert bulk.bounds(pattern=pattern).known == 0
    with pytest.raises(BadRequest):
        bulk.bounds(pattern="(")


def test_late_messages_make_a_queue_show() -> None:
    """They lie behind what was read; only the counter of the queue tells."""
    world = World()
    world.create()
    world.create("other")
    cores = [world.manager.find(name).core for name in ("orders", "other")]
    assert changed(cores, 0) == []
    first = world.send(b"one") & SEQUENCE
    world.run()
    assert changed(cores, first) == [0]
    assert changed(cores, first + 1) == []
    assert changed(cores, first + 1, cores[0].ordinal - 1) == [0]  # a queue that the reader does not know
    assert (span(cores[0], 0, first), span(cores[0], 0, first + 1), span(cores[1], 0, first + 1)) == (0, 1, 0)
    assert span(cores[0], first, 1 << 63) == 1
