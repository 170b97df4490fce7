"""Queries of many queues: what a batch costs depends on the queues that changed, not on those that exist."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from msmq_fast.spark.losses import DataLoss, SourceError
from msmq_fast.spark.read_modes import remove
from tests.spark.driving import POINTS, Died, Query, batch_rows, stream_reader
from tests.spark.fakeserver import FakeServer

COUNT = 60
PATTERN = r".*\\many\d+"


def query(fake: FakeServer, mode: str = "keep", **options: object) -> Query:
    common: dict[str, object] = {"url": fake.url, "subscribePattern": PATTERN}
    if mode == "keep":
        common["startingOffsets"] = "earliest"
    else:
        common |= {"onSourceCommit": "remove", "subscription": "job"}
    return Query(**{**common, **options})


def filled(fake: FakeServer, numbers: Any = range(COUNT), text: str = "") -> list[bytes]:
    """One message for each of these queues, which are made if they are not there; the bodies."""
    bodies = []
    for number in numbers:
        name = f"many{number}"
        if f"private$\\{name}" not in fake.manager.queues:
            fake.manager.create(name)
        bodies.append(f"{name} {text}".encode())
        fake.manager.send(name, bodies[-1])
    return bodies


def created(fake: FakeServer, count: int = COUNT) -> None:
    for number in range(count):
        fake.manager.create(f"many{number}")


def calls(fake: FakeServer) -> list[str]:
    """The calls since the last time, without those of tasks."""
    taken = [request.split("?")[0].split("/")[-1] for request in fake.requests]
    fake.requests.clear()
    return [call for call in taken if call != "rows"]


@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_calls_do_not_grow_with_the_number_of_queues(fake: FakeServer, mode: str) -> None:
    filled(fake)
    running = query(fake, mode)
    running.run()
    assert len(running.rows) == COUNT
    assert len(calls(fake)) < 12
    assert running.run() == 0
    assert set(calls(fake)) == {"bounds"}
    filled(fake, [7], "new")
    running.batch()
    assert len(calls(fake)) <= 5
    assert running.bodies[-1] == b"many7 new"


def test_idle_looks_list_no_queue(fake: FakeServer) -> None:
    filled(fake)
    running = query(fake)
    running.run()
    listed = []
    bounds = fake.manager.bounds

    def looked(*given: Any, **more: Any) -> dict[str, Any]:
        answer = bounds(*given, **more)
        listed.append([queue["name"] for queue in answer["queues"]])
        return answer

    fake.manager.bounds = looked  # type: ignore[method-assign]
    running.run()
    filled(fake, [4, 9], "new")
    running.batch()
    running.restart()
    running.run()
    assert [len(names) for names in listed if names] == [2]


@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_offsets_name_only_what_changed(fake: FakeServer, mode: str) -> None:
    filled(fake)
    running = query(fake, mode)
    running.run()
    filled(fake, range(5), "new")
    running.batch()
    (position,) = json.loads(running.offsets[-1])["qms"].values()
    assert len(position["q"]) == 5
    assert len(running.offsets[-1]) < 1200


def test_queues_with_few_rows_share_a_task(fake: FakeServer) -> None:
    filled(fake)
    for number in range(11_000):
        fake.manager.send("many5", b"%d" % number)

    def tasks(**more: object) -> list[int]:
        reader = stream_reader(url=fake.url, subscribePattern=PATTERN, startingOffsets="earliest", **more)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        return [partition.rows for partition in reader.partitions(start, end)]

    found = tasks()  # in the order of the queues' GUIDs, so that the large one is anywhere
    assert len(found) <= 3
    assert max(found) == 11_001
    assert sum(found) == COUNT - 1 + 11_001
    assert len(tasks(minPartitions=20)) >= 20
    assert max(tasks(maxRowsPerPartition=100)) == 100
    assert len(batch_rows(url=fake.url, subscribePattern=PATTERN)) == COUNT + 11_000


@pytest.mark.parametrize("mode", ["keep", "remove"])
@pytest.mark.parametrize("fault", ["drop", "refuse", "cut"])
def test_a_stream_of_many_queues_that_fails_is_read_queue_by_queue(
    fake: FakeServer, mode: str, fault: str
) -> None:
    sent = filled(fake, range(8))
    fake.fault("POST .*/rows", fault, times=4)  # with all retries
    running = query(fake, mode, retryIntervalMs=1)
    running.run()
    assert sorted(running.bodies) == sorted(sent)
    assert not [path for path in fake.faults if fault != "cut"]


def test_a_queue_that_goes_before_it_is_read_is_named(fake: FakeServer) -> None:
    sent = filled(fake, range(8))
    reader = stream_reader(url=fake.url, subscribePattern=PATTERN, startingOffsets="earliest")
    start = reader.initialOffset()
    (partition,) = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    fake.manager.receive("many3")
    fake.manager.delete("many5")
    with pytest.raises(DataLoss, match=r"many3 at .* 1 of 1 rows|many5 at .* was deleted before it was read"):
        list(reader.read(partition))
    assert len(batch_rows(url=fake.url, subscribePattern=PATTERN)) == len(sent) - 2


@pytest.mark.parametrize("mode", ["keep", "remove"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_every_row_comes_once(fake: FakeServer, point: str, mode: str) -> None:
    chance = random.Random(point)
    sent = filled(fake, range(30))
    running = query(fake, mode, maxRowsPerTrigger=12)
    for round_ in range(4):
        with pytest.raises(Died):
            running.batch(die=point)
        sent += filled(fake, chance.sample(range(40), 7), f"{round_}")
        if round_ == 2:
            fake.manager.crash()
        running.restart()
        running.batch()
    running.run()
    assert sorted(running.bodies) == sorted(sent)


@pytest.mark.parametrize("restarted", [False, True])
def test_new_queues_are_read_from_their_first_message_though_it_is_older(
    fake: FakeServer, restarted: bool
) -> None:
    """A message that was moved into a new queue keeps its number, which the query has passed elsewhere. After
    a restart the server no longer counts it as late.
    """
    created(fake, 3)
    fake.manager.create("elsewhere")
    moved = fake.manager.send("elsewhere", b"moved")
    filled(fake, [0])
    running = query(fake)
    running.run()
    fake.manager.create("many77")
    fake.manager.move(moved, "elsewhere", "many77")
    if restarted:
        fake.manager.crash()
    running.run()
    assert running.bodies == [b"many0 ", b"moved"]


def test_a_message_that_is_moved_into_a_queue_without_news_is_noticed(fake: FakeServer) -> None:
    created(fake)
    moved = fake.manager.send("many3", b"moved")
    filled(fake, [0])
    running = query(fake, startingOffsets="latest")
    running.run()
    filled(fake, [1])
    running.run()
    fake.manager.move(moved, "many3", "many40")
    with pytest.raises(DataLoss, match=r"1 messages were moved into fake.*many40"):
        running.run()


def test_deleted_queues_without_news_are_named(fake: FakeServer) -> None:
    filled(fake)
    running = query(fake)
    running.run()
    fake.manager.delete("many8")
    with pytest.raises(DataLoss, match=r"queue fake.private..many8 of fake was deleted with"):
        running.run()
    running.restart()  # the driver has only the checkpoint
    with pytest.raises(DataLoss, match=r"many8 of fake was deleted with"):
        running.run()
    fake.manager.create("many8")
    running.restart()
    with pytest.raises(DataLoss, match=r"many8 of fake was deleted and created again"):
        running.run()
    running.restart(failOnDataLoss="false")
    filled(fake, [8, 9], "new")
    running.run()
    running.restart(failOnDataLoss="true")
    assert running.run() == 0
    assert set(running.bodies[-2:]) == {b"many8 new", b"many9 new"}


def test_queues_that_were_deleted_before_the_server_restarted_are_counted(fake: FakeServer) -> None:
    filled(fake)
    running = query(fake)
    running.run()
    for number in (5, 6):
        fake.manager.delete(f"many{number}")
    filled(fake, range(400, 403))  # queues that are new do not make up for them
    fake.manager.crash()
    running.restart()
    with pytest.raises(DataLoss, match="2 queues of fake that the query reads were deleted"):
        running.run()


def test_another_selection_neither_skips_nor_repeats(fake: FakeServer) -> None:
    filled(fake, range(10))
    running = query(fake, subscribePattern=r".*\\many[0-4]")
    running.run()
    assert len(running.rows) == 5
    running.restart(subscribePattern=PATTERN)
    running.run()
    assert len(running.rows) == len(set(running.bodies)) == 10
    running.restart(subscribePattern=r".*\\many[5-9]")
    filled(fake, [0, 5], "new")
    running.run()
    del running.options["subscribePattern"]
    running.restart(subscribe=",".join(f"many{number}" for number in range(10)))
    running.run()  # 0 to 4 are wanted again, and read from their first message as new queues are
    assert len(running.rows) == 17


def test_a_long_list_of_names_cannot_be_changed(fake: FakeServer) -> None:
    numbers = [f"{number:0>80}" for number in range(COUNT)]
    filled(fake, numbers)
    names = [f".\\private$\\many{number}" for number in numbers]
    running = query(fake, subscribe=",".join(names))
    del running.options["subscribePattern"]
    running.run()
    running.restart(subscribe=",".join(reversed(names)))
    filled(fake, numbers[3:4], "new")
    running.run()
    assert len(running.rows) == COUNT + 1
    assert len(running.offsets[-1]) < 1000
    running.restart(subscribe=",".join(names[1:]))
    with pytest.raises(SourceError, match=r"another list of queues.*over 4000 characters.*restore the list"):
        running.run()


# Checkpoints of earlier releases.


def version_1(fake: FakeServer, mode: str, places: dict[str, tuple[int, int, int]]) -> str:
    """An offset as the first release wrote it: every queue, with (from, to, rows)."""
    manager = fake.manager
    queues = {
        queue.guid: {"path": queue.path, "from": 0, "to": 0, "rows": 0, "late": queue.late}
        for key, queue in manager.queues.items()
        if "many" in key
    }
    for name, (begin, end, rows) in places.items():
        entry = queues[manager.queues[f"private$\\{name}"].guid]
        entry |= {"from": begin, "to": end, "rows": rows}
    return json.dumps(
        {
            "v": 1,
            "mode": mode,
            **({"sub": "job"} if mode == "remove" else {}),
            "qms": {
                manager.guid: {
                    "name": manager.name,
                    "inc": manager.incarnation,
                    "start": manager.start,
                    "q": dict(sorted(queues.items())),
                }
            },
        }
    )


@pytest.mark.parametrize("finished", [True, False])
def test_a_checkpoint_of_version_1_goes_on(fake: FakeServer, finished: bool) -> None:
    """With the batch in its commit log, and without: then it is read again as it was planned."""
    filled(fake, range(4))
    stop = fake.manager.sequence + 1
    numbers = {f"many{number}": number + 1 for number in range(4)}
    running = query(fake)
    running._initial = version_1(fake, "keep", {})
    running.offsets = [
        version_1(
            fake,
            "keep",
            {name: (0, stop, 1) if number != 3 else (0, 2, 0) for name, number in numbers.items()},
        )
    ]
    if finished:
        running.commits = {0}
    later = filled(fake, [1, 50], "new")
    running.run()
    read = [b"many0 ", b"many1 ", b"many3 "]
    assert sorted(running.bodies) == sorted([b"many2 ", *later] + ([] if finished else read))
    assert json.loads(running.offsets[-1])["v"] == 2
    fake.manager.delete("many2")
    running.restart()
    with pytest.raises(DataLoss, match="many2 of fake was deleted"):
        running.run()


def test_a_queue_of_a_checkpoint_of_version_1_that_was_deleted(fake: FakeServer) -> None:
    filled(fake, range(4))
    stop = fake.manager.sequence + 1
    running = query(fake)
    running.offsets = [version_1(fake, "keep", {f"many{n}": (0, stop, 1) for n in range(4)})]
    running.commits = {0}
    fake.manager.delete("many2")
    with pytest.raises(DataLoss, match="many2 of fake was deleted"):
        running.run()


@pytest.mark.parametrize("finished", [True, False])
def test_a_consuming_query_with_a_checkpoint_of_version_1_goes_on(fake: FakeServer, finished: bool) -> None:
    filled(fake, range(4))
    fake.manager.lease("job", "many1", 1, 0, 900.0)
    running = query(fake, "remove")
    running._initial = version_1(fake, "remove", dict.fromkeys(("many0", "many1"), (0, 0, 0)))
    running.offsets = [version_1(fake, "remove", {"many1": (1, 2, 1)})]
    if finished:
        running.commits = {0}
    running.run()
    expected = [b"many0 ", b"many2 ", b"many3 "] + ([] if finished else [b"many1 "])
    assert sorted(running.bodies) == sorted(expected)
    assert not any(queue.held for queue in fake.manager.queues.values())


def test_a_checkpoint_of_a_later_release_is_refused(fake: FakeServer) -> None:
    filled(fake, range(1))
    running = query(fake)
    running.run()
    running.offsets = [running.offsets[0].replace('"v": 2', '"v": 3')]
    running.restart()
    with pytest.raises(ValueError, match=r"offsets of version 3; this release reads versions up to 2"):
        running.run()


# Consuming.


def test_more_queues_than_a_batch_leases_take_turns(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remove, "BATCH_QUEUES", 4)
    sent = filled(fake, range(10))
    running = query(fake, "remove")
    running.batch()
    assert len(running.rows) == 4
    running.run()
    assert sorted(running.bodies) == sorted(sent)
    assert not any(queue.held for queue in fake.manager.queues.values())


# Lag.


def lag(running: Query) -> dict[str, Any]:
    assert running._reader is not None
    report = running._reader.reportLatestOffset()
    assert report is not None
    return report


@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_the_report_tells_what_is_read_and_how_far_it_is_behind(fake: FakeServer, mode: str) -> None:
    created(fake, 4)
    for _ in range(10):
        filled(fake, [0])
    filled(fake, [1, 1])
    running = query(fake, mode, maxRowsPerTrigger=6)
    running.batch()
    report = lag(running)
    assert report["source"] == rf"{mode} messages of {PATTERN} at {fake.url}"
    assert report["queues"] == 4
    assert report["rowsBehindLatest"] == 6
    assert report["maxOffsetsBehindLatest"] == max(report["behind"].values())
    assert report["minOffsetsBehindLatest"] == 0
    assert report["avgOffsetsBehindLatest"] == 1.5
    assert set(report["behind"]) <= {"fake\\private$\\many0", "fake\\private$\\many1"}
    assert report["next"] == {"fake": fake.manager.sequence + 1}
    running.run()
    assert (lag(running)["rowsBehindLatest"], lag(running)["behind"]) == (0, {})


def test_the_report_names_only_the_worst_queues(fake: FakeServer) -> None:
    for number in range(100):
        for _ in range(number + 1):
            filled(fake, [number])
    running = query(fake, maxRowsPerTrigger=100)
    running.batch()
    report = lag(running)
    assert len(report["behind"]) == 20
    assert next(iter(report["behind"])).endswith("many99")
    assert report["rowsBehindLatest"] == 5050 - 100
    assert report["minOffsetsBehindLatest"] == 0


def test_the_report_of_events(fake: FakeServer) -> None:
    filled(fake, range(5))
    running = Query(url=fake.url, content="events", startingOffsets="earliest", maxRowsPerTrigger=4)
    assert stream_reader(**running.options).reportLatestOffset() is None
    running.batch()
    report = lag(running)
    assert report["source"] == f"events events at {fake.url}"
    assert report["behind"] == {"events of fake": 6}
