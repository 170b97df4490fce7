"""Reading queues without taking anything: what a query gives, and what it says when something is gone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from msmq_fast.spark.losses import DataLoss, SourceError
from msmq_fast.spark.offsets import OffsetError
from msmq_fast.spark.options import OptionError
from msmq_fast.spark.read_modes import keep
from tests.spark.driving import POINTS, Died, Query, batch_rows, stream_reader
from tests.spark.fakequeues import FakeManager
from tests.spark.fakeserver import FakeServer, serving


def query(fake: FakeServer, **options: object) -> Query:
    return Query(**{"url": fake.url, "subscribe": "orders", "startingOffsets": "earliest", **options})


def filled(
    fake: FakeServer, count: int = 10, name: str = "orders", text: str = "", **settings: object
) -> None:
    if not any(path.endswith(f"\\{name}") for path in fake.manager.queues):
        fake.manager.create(name)
    for index in range(count):
        fake.manager.send(name, f"{text or name} {index}".encode(), **settings)  # type: ignore[arg-type]


def bodies(count: int, name: str = "orders", first: int = 0) -> list[bytes]:
    return [f"{name} {index}".encode() for index in range(first, first + count)]


def test_mixed_priorities_are_read_in_the_order_of_arrival_and_none_is_missed(fake: FakeServer) -> None:
    chance = random.Random(7)
    fake.manager.create("orders")
    running = query(fake)
    sent: list[bytes] = []
    for round_ in range(20):
        for index in range(chance.randrange(12)):
            body = b"%d/%d" % (round_, index)
            fake.manager.send("orders", body, priority=chance.randrange(8))
            sent.append(body)
        running.run()
    assert running.bodies == sent
    assert [row["arrival_seq"] for row in running.rows] == sorted(row["arrival_seq"] for row in running.rows)


def test_a_message_that_is_not_durable_yet_stops_the_batch_before_it(fake: FakeServer) -> None:
    filled(fake, 3)
    waiting = fake.manager.send("orders", b"late to be durable", pending=True)
    fake.manager.send("orders", b"after it")
    running = query(fake)
    running.run()
    assert running.bodies == bodies(3)
    fake.manager.settle(waiting, "orders")
    running.run()
    assert running.bodies == [*bodies(3), b"late to be durable", b"after it"]


def test_what_an_aborted_transaction_gives_back_was_read_while_it_was_locked(fake: FakeServer) -> None:
    filled(fake, 5)
    held = next(iter(fake.manager.queues["private$\\orders"].held.values()))
    held.state = "locked"  # a transaction has received it
    running = query(fake)
    running.run()
    held.state = "available"  # and was aborted
    filled(fake, 1, "audit")
    running.run()
    assert running.bodies == bodies(5)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_every_row_comes_once(fake: FakeServer, point: str) -> None:
    filled(fake, 10)
    running = query(fake, maxRowsPerTrigger=4)
    running.batch()
    with pytest.raises(Died):
        running.batch(die=point)
    fake.manager.send("orders", b"meanwhile", priority=7)
    running.restart()
    running.run()
    assert running.bodies == [*bodies(10), b"meanwhile"]


def test_the_first_batch_again_after_a_kill_begins_where_it_began(fake: FakeServer) -> None:
    filled(fake, 2)
    running = query(fake, startingOffsets="latest")
    running.batch()
    fake.manager.send("orders", b"new")
    with pytest.raises(Died):
        running.batch(die="read")
    running.restart()  # asks for the initial offset again, and the latest is another one now
    running.run()
    assert running.bodies == [b"new"]


def test_limits_are_shared_among_queues_in_proportion(fake: FakeServer) -> None:
    filled(fake, 90, "orders")
    filled(fake, 10, "audit")
    running = query(fake, subscribe="orders,audit", maxRowsPerTrigger=20)
    assert running.run() == 5
    first = [row["queue"] for row in running.sink[0]]
    assert len(first) == 20
    assert first.count("fake\\private$\\audit") == 7  # of backlogs that count up to the limit: 20 and 10
    assert sorted(running.bodies) == sorted([*bodies(90), *bodies(10, "audit")])


def test_fewer_rows_than_queues_are_given_in_turn(fake: FakeServer) -> None:
    for name in ("a", "b", "c"):
        filled(fake, 2, name)
    running = query(fake, subscribe="a,b,c", maxRowsPerTrigger=1)
    assert running.run() == 6
    assert {len(rows) for rows in running.sink.values()} == {1}
    assert len({rows[0]["queue"] for number, rows in running.sink.items() if number < 3}) == 3


def test_bytes_and_rows_limit_together_and_one_large_row_still_comes(fake: FakeServer) -> None:
    fake.manager.create("orders")
    for size in (10, 5000, 10, 10, 10, 10):
        fake.manager.send("orders", bytes(size))
    running = query(fake, maxRowsPerTrigger=3, maxBytesPerTrigger="1k")
    running.run()
    assert [len(rows) for _, rows in sorted(running.sink.items())] == [1, 1, 3, 1]


def test_available_now_ends_with_what_was_there(fake: FakeServer) -> None:
    filled(fake, 6)
    running = query(fake, maxRowsPerTrigger=4)
    reader = running._started()
    reader.prepareForTriggerAvailableNow()
    fake.manager.send("orders", b"too late")
    while running.batch():
        pass
    assert running.bodies == bodies(6)
    running.restart()
    running.run(available_now=True)
    assert running.bodies == [*bodies(6), b"too late"]


def test_few_rows_wait_until_their_time(fake: FakeServer) -> None:
    filled(fake, 2)
    assert query(fake, minRowsPerTrigger=3).run() == 0
    assert query(fake, minRowsPerTrigger=2).run() == 1
    assert query(fake, minRowsPerTrigger=3, maxTriggerDelay="0s").run() == 1


def test_ranges_for_several_tasks(fake: FakeServer) -> None:
    filled(fake, 100)
    reader = stream_reader(url=fake.url, subscribe="orders", startingOffsets="earliest", minPartitions=4)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    partitions = reader.partitions(start, end)
    assert [partition.rows for partition in partitions] == [25, 25, 25, 25]
    assert [p.ranges for p in reader.partitions(start, end)] == [p.ranges for p in partitions]
    assert len(batch_rows(url=fake.url, subscribe="orders", maxRowsPerPartition=7)) == 100


def test_more_ranges_than_a_plan_has(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(fake, 10)
    fake.manager.most_parts = 3
    monkeypatch.setattr(keep, "_MOST_PARTS", 3)
    running = query(fake, maxRowsPerPartition=1)
    with pytest.raises(Died):
        running.batch(die="logged")
    partitions = running._started().partitions(json.loads(running._initial), json.loads(running.offsets[0]))
    assert [partition.rows for partition in partitions] == [1] * 10
    running.run()
    assert running.bodies == bodies(10)


def test_a_time_is_found_though_messages_go_while_it_is_looked_for(fake: FakeServer) -> None:
    filled(fake, 10)
    manager, gone = fake.manager, []
    queue, plan = manager.queues["private$\\orders"], manager.plan

    def planned(name: str, content: str, start: int, *others: int) -> Any:
        found = plan(name, content, start, *others)
        if not gone:
            gone.append(queue.held.pop(min(seq for seq in queue.held if seq >= start)))
        return found

    manager.plan = planned  # type: ignore[method-assign]
    later = manager.now_us // 1000 + 1000
    rows = batch_rows(url=fake.url, subscribe="orders", endingTimestamp=later)
    assert len(gone) == 1
    assert len(rows) == 9


def test_starting_positions(fake: FakeServer) -> None:
    filled(fake, 10)
    times = sorted(h.row["arrived_time"] for h in fake.manager.queues["private$\\orders"].held.values())

    def read(**options: object) -> list[bytes]:
        return [r["body"] for r in batch_rows(url=fake.url, subscribe="orders", **options)]

    assert read() == bodies(10)
    assert read(startingOffsets="latest") == []
    assert read(startingOffsets='{"orders": 4}', endingOffsets='{"fake\\\\private$\\\\orders": 7}') == bodies(
        3, first=3
    )
    assert read(startingOffsets='{"fake": {"orders": -2}}', endingOffsets='{"orders": -1}') == bodies(10)
    assert read(startingTimestamp=times[4] // 1000) == bodies(6, first=4)
    assert read(startingTimestamp=times[4] // 1000, endingTimestamp=times[6] // 1000) == bodies(2, first=4)
    assert read(startingTimestamp=times[9] // 1000 + 1) == []


def test_each_queue_can_begin_and_end_at_a_time_of_its_own(fake: FakeServer) -> None:
    for name in ("orders", "audit", "other"):
        filled(fake, 10, name)

    def time_of(name: str, index: int) -> int:
        held = fake.manager.queues[f"private$\\{name}"].held.values()
        return int(sorted(h.row["arrived_time"] for h in held)[index] // 1000)

    def read(**options: object) -> list[bytes]:
        rows = batch_rows(url=fake.url, subscribe="orders,audit,other", **options)
        return sorted(row["body"] for row in rows)

    times = json.dumps({"orders": time_of("orders", 7), "fake": {"Audit": time_of("audit", 9)}})
    named = sorted([*bodies(3, first=7), *bodies(1, "audit", first=9)])
    assert read(startingOffsetsByTimestamp=times, startingOffsets="latest") == named
    assert read(startingOffsetsByTimestamp=times) == sorted([*named, *bodies(10, "other")])
    late = time_of("other", 8)
    some = read(startingOffsetsByTimestamp=times, startingTimestamp=late)
    assert some == sorted([*named, *bodies(2, "other", first=8)])
    ends = json.dumps({"orders": time_of("orders", 8), "other": 0})
    assert read(startingOffsetsByTimestamp=times, endingOffsetsByTimestamp=ends) == [
        b"audit 9",
        b"orders 7",
    ]
    with pytest.raises(
        OptionError, match="'startingOffsetsByTimestamp' names 'ordres', which is not a queue"
    ):
        read(startingOffsetsByTimestamp='{"ordres": 1}')
    running = query(fake, startingOffsets="latest", startingOffsetsByTimestamp='{"orders": 0}')
    running.run()
    assert running.bodies == bodies(10)


def test_content_of_journals_and_dead_letter_queues(fake: FakeServer) -> None:
    orders = fake.manager.create("orders")
    assert orders.journal is not None
    held = fake.manager.send("orders", b"done")
    orders.journal.held[1] = orders.held.pop(held.arrival_seq)
    fake.manager.send(r"system$;deadletter", b"dead")
    assert [r["body"] for r in batch_rows(url=fake.url, subscribe="orders", content="journal")] == [b"done"]
    assert [r["body"] for r in batch_rows(url=fake.url, content="deadletter")] == [b"dead"]
    following = query(fake, content="journal")
    following.run()
    fake.manager.delete("orders")
    with pytest.raises(DataLoss, match=r"orders;JOURNAL of fake was deleted"):
        following.run()


def test_bodies_as_texts(fake: FakeServer) -> None:
    fake.manager.create("orders")
    for body, kind in (
        ("né".encode("utf-16-le"), 31),
        ("né".encode(), 0),
        (b'{"a": 1}', 0),
        (b"\xff\xfe\xd8", 0),
    ):
        fake.manager.send("orders", body, body_type=kind)

    def texts(decode: str) -> list[str | None]:
        rows = batch_rows(url=fake.url, subscribe="orders", columns="label,body_size", decode=decode)
        assert set(rows[0]) == {"label", "body_size", "body_text"}
        return [row["body_text"] for row in rows]

    assert texts("text")[:3] == ["né", "né", '{"a": 1}']
    assert texts("json") == [None, None, '{"a": 1}', None]
    assert texts("utf16")[0] == "né"


def test_several_queue_managers_have_offsets_of_their_own(fake: FakeServer) -> None:
    with serving(manager=FakeManager("other")) as other:
        filled(fake, 3)
        filled(other, 2)
        running = query(fake, url=f"{fake.url},{other.url}")
        running.run()
        filled(other, 2)
        running.run()
        assert len(running.rows) == 7
        assert len({row["qm_guid"] for row in running.rows}) == 2
        with pytest.raises(SourceError, match="names the queue manager fake twice"):
            query(fake, url=f"{fake.url},{fake.url.replace('127.0.0.1', 'localhost')}").run()
        running.restart(url=fake.url)
        with pytest.raises(DataLoss, match="none of the addresses in 'url' leads"):
            running.run()


def test_queues_of_each_manager_by_assign(fake: FakeServer) -> None:
    filled(fake, 3)
    filled(fake, 3, "audit")
    running = query(fake, subscribe="x", assign="{}")
    del running.options["subscribe"]
    running.options["assign"] = f'{{"{fake.url}": ["audit"]}}'
    running.run()
    assert running.bodies == bodies(3, "audit")


def test_a_pattern_finds_new_queues_and_reads_them_from_their_first_message(fake: FakeServer) -> None:
    filled(fake, 2, "orders1")
    running = query(fake, startingOffsets="latest")
    del running.options["subscribe"]
    running.options["subscribePattern"] = r".*orders\d"
    running.run()
    filled(fake, 3, "orders2")
    filled(fake, 3, "elsewhere")
    running.run()
    assert running.bodies == bodies(3, "orders2")


# What is gone.


def going_on(running: Query) -> None:
    running.restart(failOnDataLoss="false")
    running.run()


def test_rows_that_went_between_planning_and_reading(fake: FakeServer) -> None:
    filled(fake, 5)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.receive("orders")
    running.restart()
    with pytest.raises(DataLoss, match=r"1 of 5 rows of fake.private.*received, expired or purged"):
        running.run()
    going_on(running)
    assert running.bodies == bodies(4, first=1)


def test_rows_that_go_while_tasks_run(fake: FakeServer) -> None:
    filled(fake, 5)
    reader = stream_reader(url=fake.url, subscribe="orders", startingOffsets="earliest")
    start = reader.initialOffset()
    partitions = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    fake.manager.receive("orders")
    with pytest.raises(DataLoss, match="1 of 5 rows between"):
        list(reader.read(partitions[0]))


def test_messages_moved_in_behind_what_was_read(fake: FakeServer) -> None:
    filled(fake, 1, "retry")
    moved = next(iter(fake.manager.queues["private$\\retry"].held.values()))
    filled(fake, 3)
    running = query(fake)
    running.run()
    fake.manager.move(moved, "retry", "orders")
    with pytest.raises(DataLoss, match=r"1 messages were moved into fake.private.*orders"):
        running.run()
    going_on(running)
    filled(fake, 1)
    running.restart(failOnDataLoss="true")
    with pytest.raises(DataLoss):
        running.run()  # the checkpoint knows of no batch since
    going_on(running)
    running.restart(failOnDataLoss="true")
    assert running.run() == 0  # now it does
    assert running.bodies == [*bodies(3), b"orders 0"]


def test_a_queue_that_was_deleted(fake: FakeServer) -> None:
    filled(fake, 3)
    filled(fake, 1, "audit")
    running = query(fake, subscribe="orders,audit")
    running.run()
    fake.manager.delete("orders")
    with pytest.raises(DataLoss, match=r"queue fake.private..orders of fake was deleted"):
        running.run()
    filled(fake, 1, "audit")
    going_on(running)
    assert len(running.rows) == 5


def test_a_queue_that_the_query_does_not_want_any_more_is_no_loss(fake: FakeServer) -> None:
    filled(fake, 3)
    filled(fake, 1, "audit")
    running = query(fake, subscribe="orders,audit")
    running.run()
    running.restart(subscribe="audit")
    filled(fake, 1, "audit")
    running.run()
    running.restart()
    del running.options["subscribe"]
    running.options["subscribePattern"] = ".*orders"
    running.run()  # a queue that is wanted again is new: it is read from its first message
    assert len(running.rows) == 8


def test_a_queue_that_was_deleted_and_made_again(fake: FakeServer) -> None:
    filled(fake, 3)
    running = query(fake)
    running.run()
    fake.manager.delete("orders")
    filled(fake, 2)
    with pytest.raises(DataLoss, match="was deleted and created again"):
        running.run()
    going_on(running)
    assert running.bodies == [*bodies(3), *bodies(2)]
    running.restart(failOnDataLoss="true")
    filled(fake, 1)
    running.run()
    assert len(running.rows) == 6


def test_a_queue_that_went_in_the_middle_of_a_batch(fake: FakeServer) -> None:
    filled(fake, 3)
    running = query(fake)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.delete("orders")
    fake.manager.create("elsewhere")
    running.restart()
    with pytest.raises(SourceError, match="orders"):
        running.run()


def test_a_store_that_came_back_from_a_backup(fake: FakeServer) -> None:
    filled(fake, 3)
    running = query(fake)
    running.run()
    fake.manager.restored()
    with pytest.raises(DataLoss, match=r"incarnation 2.*incarnation 1.*new checkpointLocation"):
        running.run()
    going_on(running)
    assert running.bodies == [*bodies(3), *bodies(3)]  # nothing is missed; what was read comes again
    filled(fake, 1)
    with pytest.raises(Died):
        running.batch(die="logged")
    fake.manager.restored()
    running.restart(failOnDataLoss="true")
    with pytest.raises(DataLoss, match=r"restored or copied before 1 rows"):
        running.run()


def test_a_store_that_went_back_without_knowing_it(fake: FakeServer) -> None:
    """As with a machine that was set back: numbers that were read are given to other messages."""
    filled(fake, 6)
    running = query(fake)
    running.run()
    queue = fake.manager.queues["private$\\orders"]
    fake.manager.sequence = 3
    for seq in (4, 5, 6):
        del queue.held[seq]
    filled(fake, 2, text="other")
    with pytest.raises(DataLoss, match=r"was read up to arrival 6, and has come to 5 only: .* went back"):
        running.run()
    running.restart(failOnDataLoss="false")
    running.run()
    assert running.bodies[6:] == [*bodies(3), b"other 0", b"other 1"]


def test_a_query_that_would_begin_behind_everything_is_refused(fake: FakeServer) -> None:
    filled(fake, 3)
    with pytest.raises(
        OptionError, match=r"9 for .*orders is too large, because the next number will be 4; use -1"
    ):
        query(fake, startingOffsets='{"orders": 9}').run()


def test_a_batch_that_would_begin_behind_everything_is_refused_too(fake: FakeServer) -> None:
    """It reported an empty day after a restore, or for a number that was mistyped."""
    fake.manager.create("orders")
    for number in range(3):
        fake.manager.send("orders", b"%d" % number)
    with pytest.raises(
        OptionError, match=r"9 for .*orders is too large, because the next number will be 4; use -1"
    ):
        batch_rows(url=fake.url, subscribe="orders", startingOffsets='{"orders": 9}')
    assert batch_rows(url=fake.url, subscribe="orders", startingOffsets='{"orders": 4}') == []


def test_a_checkpoint_of_another_mode_is_refused(fake: FakeServer) -> None:
    filled(fake, 1)
    running = query(fake)
    running.run()
    del running.options["startingOffsets"]
    running.restart(onSourceCommit="remove", subscription="s")
    with pytest.raises(OffsetError, match="in mode 'keep', this one is in mode 'remove'"):
        running.run()


# Servers that fail.


def test_a_stream_that_breaks_off_is_read_on_where_it_ended(fake: FakeServer) -> None:
    filled(fake, 9000)
    fake.fault("GET .*/rows", "cut")
    running = query(fake, retryIntervalMs=1)
    running.run()
    assert running.bodies == bodies(9000)
    assert sum("/rows?" in request for request in fake.requests) == 2


def test_answers_that_never_come_are_asked_for_again(fake: FakeServer) -> None:
    filled(fake, 10)
    for call in ("bounds", "plan", "rows"):
        fake.fault(call, "drop")
        fake.fault(call, "refuse")
    running = query(fake, retryIntervalMs=1, maxRowsPerTrigger=4)
    running.run()
    assert running.bodies == bodies(10)


def test_a_server_that_is_down_is_said_in_one_line(fake: FakeServer) -> None:
    filled(fake, 1)
    url = fake.url
    with serving() as gone:
        pass
    with pytest.raises(SourceError, match=r"refused.*is the queue manager running"):
        query(fake, url=gone.url, numRetries=1, retryIntervalMs=1).run()
    assert url in query(fake).options["url"]


def test_a_queue_that_is_not_there_and_one_that_may_not_be_read(fake: FakeServer) -> None:
    filled(fake, 1)
    with pytest.raises(SourceError, match="no queue 'invoices' on fake"):
        query(fake, subscribe="invoices").run()
    fake.manager.denied.add("private$\\orders")
    with pytest.raises(SourceError, match=r"no right to read.*peek right"):
        query(fake).run()


def test_tokens_are_needed_and_never_shown() -> None:
    with serving(token="s3cret") as fake:  # noqa: S106
        filled(fake, 2)
        with pytest.raises(SourceError, match=r"auth\.token"):
            query(fake).run()
        running = query(fake, **{"auth.token": "s3cret"})
        running.run()
        assert running.bodies == bodies(2)
        reader = stream_reader(url=fake.url, subscribe="orders", **{"auth.token": "s3cret"})
        assert "s3cret" not in repr(reader._options) + repr(reader._endpoints)
