"""Reading over HTTP: bounds, plans, rows and events are what other ways show."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from msmq_fast import Access, sync
from msmq_fast.client.bulk.client import BadRequest, BulkClient, GoneEvents, SubscriptionNotFound
from msmq_fast.protocol.columns import EVENT_COLUMNS, MESSAGE_COLUMNS
from tests.bulk.conftest import COUNT
from tests.support.http import bulk as api
from tests.support.processes.servers import Server


def test_bounds_tell_where_the_queue_manager_and_a_queue_stand(bulk_server: Server, bulk: BulkClient) -> None:
    (stats,) = bulk_server.ok("stats")
    (shown,) = bulk_server.ok("queue", "show", "orders")
    bounds = bulk.bounds(["orders"])
    assert (bounds.qm, bounds.name, bounds.incarnation) == (
        stats["guid"],
        stats["name"],
        stats["incarnation"],
    )
    (orders,) = bounds.queues
    assert (orders.name, orders.guid, orders.kind) == (shown["name"], shown["guid"], "queue")
    assert (orders.messages, orders.bytes, orders.late) == (COUNT, shown["bytes"], 0)
    assert not orders.transactional
    assert 0 < orders.first < bounds.next
    (empty,) = bulk.bounds(["empty"]).queues
    assert (empty.messages, empty.first) == (0, bounds.next)


def test_queues_are_found_by_patterns(bulk: BulkClient) -> None:
    def names(pattern: str, content: str = "messages") -> list[str]:
        return [queue.name.split("\\")[-1] for queue in bulk.bounds(pattern=pattern, content=content).queues]

    assert names(r".*\\(ORDERS|empty)") == ["empty", "orders"]
    assert "orders" in names(".*")
    assert names("orders") == []  # the whole path has to match
    assert names(r".*\\orders", "journal") == ["orders;JOURNAL"]
    assert not [name for name in names(".*") if name.endswith("$")]  # the queue manager's own


def test_bounds_of_more_queues_than_a_url_names(bulk: BulkClient) -> None:
    bounds = bulk.bounds(["orders", "empty"] * 500)
    assert [queue.messages for queue in bounds.queues] == [COUNT, 0] * 500


def test_other_contents(bulk_server: Server, bulk: BulkClient) -> None:
    dead = [(queue.kind, queue.transactional) for queue in bulk.bounds(content="deadletter").queues]
    assert dead == [("deadletter", False), ("xact_deadletter", True)]
    (journal,) = bulk.bounds([r".\private$\orders"], content="journal").queues
    assert journal.kind == "journal"
    with pytest.raises(BadRequest, match="not a dead-letter queue"):
        bulk.bounds(["orders"], content="deadletter")
    bulk_server.ok("queue", "create", "kept", "--journal")
    bulk_server.ok("send", "kept", "--body", "copied", "--recoverable")
    bulk_server.messages("kept")
    rows = api.table(bulk.rows("kept", 0, bulk.bounds().next, content="journal", columns="body,queue_kind"))
    assert rows.to_pylist() == [{"body": b"copied", "queue_kind": "journal"}]


def test_a_subqueue_is_found_by_its_name_and_by_a_pattern_with_a_semicolon(
    bulk_server: Server, bulk: BulkClient
) -> None:
    bulk_server.ok("queue", "create", "mixed")
    bulk_server.ok("send", "mixed", "--body", "x", "--recoverable")
    with sync.connect(bulk_server.endpoint) as connection:
        mixed = connection.open("mixed", Access.RECEIVE | Access.PEEK)
        later = connection.open("mixed;later", Access.MOVE)
        mixed.move(mixed.peek(timeout=5), later)
    assert [queue.messages for queue in bulk.bounds(["mixed;later"]).queues] == [1]
    assert len(bulk.bounds(pattern=r".*\\mixed.*").queues) == 1
    assert len(bulk.bounds(pattern=r".*\\mixed(;.*)?").queues) == 2


def test_rows_are_what_a_reader_gets_in_the_order_of_arrival(bulk_server: Server, bulk: BulkClient) -> None:
    bounds = bulk.bounds(["orders"])
    rows = api.table(bulk.rows("orders", bounds.queues[0].first, bounds.next)).to_pylist()
    assert [row["arrival_seq"] for row in rows] == sorted(row["arrival_seq"] for row in rows)
    seen = bulk_server.ok("receive", "orders", "--peek", "--count", str(COUNT))
    assert len(rows) == len(seen) == COUNT
    by_number = {row["arrival_seq"]: row for row in rows}
    for message in seen:
        row = by_number[message["arrival_seq"]]
        for name in ("lookup_id", "message_id", "label", "priority", "body_size", "app_specific"):
            assert row[name] == message[name], name
        assert row["body"].decode().startswith("body ")
        assert row["delivery"] == 1
    # A queue's own order is another one: higher priorities first.
    assert [message["priority"] for message in seen] != [row["priority"] for row in rows]


def test_columns_are_chosen(bulk: BulkClient) -> None:
    names = {column.name for column in MESSAGE_COLUMNS}
    everything = bulk.schema(queue="orders", columns="all")
    assert set(everything.names) == names - {"sender_cert", "signature", "raw_packet"}
    assert "body" not in bulk.schema(queue="orders", columns="all", body=False).names
    assert everything.field("arrived_time").type == pa.timestamp("us", tz="UTC")
    rows = api.table(bulk.rows("orders", 0, bulk.bounds().next, columns="priority,body"))
    assert rows.schema.names == ["priority", "body"]
    assert set(rows["priority"].to_pylist()) == {0, 3, 7}
    full = bulk.rows("orders", 0, bulk.bounds().next, columns="core", raw=True, security=True)
    assert {"raw_packet", "signature"} <= set(next(full).schema.names)
    full.close()


def test_a_range_ends_before_its_end(bulk: BulkClient) -> None:
    numbers = api.table(bulk.rows("orders", 0, bulk.bounds().next, columns="arrival_seq"))[0].to_pylist()
    low, high = numbers[10], numbers[20]
    assert api.table(bulk.rows("orders", low, high, columns="arrival_seq"))[0].to_pylist() == numbers[10:20]
    assert list(bulk.rows("orders", high, high, columns="arrival_seq")) == []
    beyond = bulk.rows("orders", numbers[-1], (1 << 63) - 1, columns="arrival_seq")
    assert api.table(beyond)[0].to_pylist() == numbers[-1:]


@pytest.mark.parametrize(
    ("parts", "limits"), [(1, {}), (4, {}), (3, {"max_rows": 100}), (2, {"max_bytes": 9000})]
)
def test_a_plan_parts_what_is_there(bulk: BulkClient, parts: int, limits: dict[str, int]) -> None:
    stop = bulk.bounds().next
    plan = bulk.plan("orders", 0, stop, parts=parts, **limits)
    assert plan.ranges[0].start == 0
    assert [part.stop for part in plan.ranges[:-1]] == [part.start for part in plan.ranges[1:]]
    assert plan.ranges[-1].stop == plan.stop
    assert len(plan.ranges) <= parts
    read = [api.table(bulk.rows("orders", part.start, part.stop)).num_rows for part in plan.ranges]
    assert read == [part.rows for part in plan.ranges]
    assert sum(read) == plan.rows == min(COUNT, limits.get("max_rows", plan.rows))
    assert plan.bytes <= limits.get("max_bytes", plan.bytes)
    assert plan.stop == stop if not limits else plan.stop < stop


def test_events_are_numbered_without_gaps_and_planned_without_counting(bulk: BulkClient) -> None:
    bounds = bulk.bounds(content="events")
    events = api.table(bulk.events(bounds.feed_first, bounds.feed_next))
    assert events.schema.names == [column.name for column in EVENT_COLUMNS]
    assert events["feed_seq"].to_pylist() == list(range(bounds.feed_first, bounds.feed_next))
    assert events["event"].to_pylist().count("arrived") >= COUNT
    plan = bulk.plan("", bounds.feed_first, bounds.feed_next + 1000, content="events", parts=3, max_rows=10)
    assert [part.rows for part in plan.ranges] == [4, 4, 2]
    assert (plan.rows, plan.stop) == (10, bounds.feed_first + 10)
    assert bulk.plan("", bounds.feed_next, bounds.feed_next, content="events").ranges == ()
    for call in (bulk.events, lambda start, stop: bulk.plan("", start, stop, content="events")):
        with pytest.raises(GoneEvents) as gone:
            call(bounds.feed_first - 1, bounds.feed_next)
        assert gone.value.first == bounds.feed_first


def test_subscriptions_of_the_feed_keep_their_place(bulk: BulkClient) -> None:
    bounds = bulk.bounds(content="events")
    made = bulk.subscribe("lake-1", position=bounds.feed_first, max_lag_bytes=1 << 20)
    assert (made.name, made.position) == ("lake-1", bounds.feed_first)
    assert made.details["lag_events"] == bounds.feed_next - bounds.feed_first
    assert bulk.commit("lake-1", bounds.feed_first + 5).position == bounds.feed_first + 5
    assert bulk.commit("lake-1", bounds.feed_first + 2).position == bounds.feed_first + 5
    assert [slot.name for slot in bulk.subscriptions()] == ["lake-1"]
    assert bulk.subscription("lake-1").details["max_lag_bytes"] == 1 << 20
    with pytest.raises(BadRequest, match="does not exist yet"):
        bulk.commit("lake-1", 1 << 40)
    bulk.unsubscribe("lake-1")
    bulk.unsubscribe("lake-1")
    with pytest.raises(SubscriptionNotFound, match="lake-1"):
        bulk.subscription("lake-1")


def test_figures_are_in_the_metrics(bulk_server: Server, bulk: BulkClient) -> None:
    bulk.subscribe("seen", position=bulk.bounds(content="events").feed_next)
    sum(batch.num_rows for batch in bulk.rows("orders", 0, bulk.bounds().next))
    api.ask(bulk_server, "GET", "/rows?queue=absent&from=0&to=1")
    text = api.metrics(bulk_server)

    def value(pattern: str) -> float:
        found = re.search(f"^{pattern} (.*)$", text, re.MULTILINE)
        assert found is not None, pattern
        return float(found[1])

    assert value("msmq_fast_bulk_rows_total") >= COUNT
    assert value(r'msmq_fast_bulk_requests_total\{call="rows",status="200"\}') >= 1
    assert value(r'msmq_fast_bulk_requests_total\{call="rows",status="404"\}') >= 1
    assert value(r'msmq_fast_refusals_total\{reason="QUEUE_NOT_FOUND",what="bulk request"\}') >= 1
    assert value(r'msmq_fast_subscription_lag_events\{subscription="seen"\}') >= 0
    assert value("msmq_fast_bulk_streams") == 0
    bulk.unsubscribe("seen")
