"""When a lake can say "nothing lost": feeds that begin, end or break off at the wrong time, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.spark.lake import gold
from msmq_fast.spark.lake.coverage import Wanted, coverage
from msmq_fast.spark.lake.tables import COUNTERS, SILVER_EVENTS, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = datetime(2026, 3, 10, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)
FAR = datetime(2099, 1, 1, tzinfo=UTC)


def frame(spark: SparkSession, columns: dict[str, str], rows: Sequence[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in columns) for row in rows], ddl(columns))


class Feeds:
    """Feeds by the names of their queue managers, and what those said of themselves."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.told: list[dict[str, Any]] = []

    def tell(self, qm: str, numbers: Sequence[int], time: datetime, *, incarnation: int = 1) -> None:
        """Events, a second apart."""
        for place, number in enumerate(numbers):
            self.event(qm, number, time + timedelta(seconds=place), incarnation=incarnation)

    def event(self, qm: str, number: int, time: datetime, *, incarnation: int = 1, **more: Any) -> None:
        row = {"qm_guid": qm, "incarnation": incarnation, "feed_seq": number, "event_time": time}
        self.events.append({**row, "event": "started", "day": time.date(), "qm": qm, **more})

    def look(self, qm: str, following: int, time: datetime, *, incarnation: int = 1, **more: Any) -> None:
        """`following` is the number of its next event."""
        row = {"qm_guid": qm, "name": f"host-{qm}", "incarnation": incarnation, "taken_at": time}
        self.told.append({**row, "feed_first": 1, "feed_next": following, **more})

    def proof(self, spark: SparkSession, wanted: Wanted) -> DataFrame:
        return coverage(frame(spark, SILVER_EVENTS, self.events), frame(spark, COUNTERS, self.told), wanted)


def wanted(**more: Any) -> Wanted:
    return Wanted.around(DAY.date(), 7, FAR, 3600.0, **more)


def test_a_day_is_proven_from_its_beginning_to_its_end(small: SparkSession) -> None:
    feeds = Feeds()
    noon = DAY + timedelta(hours=12)
    days = timedelta(days=1)
    expected = {}

    def scene(name: str, *flaws: str) -> str:
        expected[name] = set(flaws)
        return name

    qm = scene("whole")
    feeds.tell(qm, range(1, 5), noon)
    feeds.look(qm, 5, NEXT)
    qm = scene("whole from the day before")
    feeds.tell(qm, [5], noon - days)
    feeds.tell(qm, [6, 7], noon)
    feeds.look(qm, 8, NEXT)

    qm = scene("a hole before which everything is long ago", "missing")
    feeds.tell(qm, range(1, 6), noon - 20 * days)
    feeds.tell(qm, range(10, 13), noon)
    feeds.look(qm, 13, NEXT)
    qm = scene("a hole behind which everything is much later", "missing")
    feeds.tell(qm, range(1, 6), noon)
    feeds.tell(qm, range(10, 13), noon + 20 * days)
    qm = scene("a hole beside an event of a clock that was wrong", "missing")
    feeds.tell(qm, [1, 2], noon)
    feeds.tell(qm, [3], FAR)
    feeds.tell(qm, [5, 6], noon)
    feeds.look(qm, 7, NEXT)
    qm = scene("a hole of another time")
    feeds.tell(qm, [1, 2], noon - 30 * days)
    feeds.tell(qm, [5, 6], noon - 29 * days)
    feeds.tell(qm, [7, 8], noon)
    feeds.look(qm, 9, NEXT)

    qm = scene("the lake began on that day", "began_late")
    feeds.tell(qm, [5, 6], noon)
    feeds.look(qm, 7, NEXT)
    qm = scene("the lake began later", "began_late")
    feeds.tell(qm, [5, 6], noon + 3 * days)
    feeds.look(qm, 7, noon + 4 * days)
    qm = scene("what was before is not kept any more")
    feeds.tell(qm, [5, 6], noon)
    feeds.look(qm, 7, NEXT)
    dropped = {qm: 4}

    qm = scene("the archive ended on that day", "ended_early")
    feeds.tell(qm, [1, 2], noon)
    feeds.look(qm, 3, noon)
    qm = scene("what came later is not in the lake", "ended_early")
    feeds.tell(qm, [1, 2], noon)
    feeds.look(qm, 3, noon)
    feeds.look(qm, 9, NEXT)
    qm = scene("the archive ended, and its clock was far ahead", "ended_early")
    feeds.tell(qm, [1, 2], noon)
    feeds.tell(qm, [3], FAR)
    feeds.look(qm, 4, noon)
    qm = scene("the archive ended days ago", "ended_early")
    feeds.tell(qm, [1, 2], noon - 3 * days)
    qm = scene("it is no more")
    feeds.tell(qm, [1, 2], noon - 3 * days)
    feeds.look(qm, 3, noon - 3 * days)

    qm = scene("restored, with a feed from long before")
    feeds.tell(qm, range(1, 41), noon - 30 * days)
    feeds.tell(qm, range(41, 61), noon - days)
    feeds.tell(qm, range(1, 41), noon - 30 * days, incarnation=2)
    feeds.tell(qm, range(41, 62), noon, incarnation=2)
    feeds.look(qm, 62, NEXT, incarnation=2)
    qm = scene("restored long ago")
    feeds.tell(qm, range(1, 41), noon - 30 * days)
    feeds.tell(qm, range(1, 31), noon - 30 * days, incarnation=2)
    feeds.tell(qm, range(31, 51), noon - 20 * days, incarnation=2)
    feeds.tell(qm, range(51, 61), noon, incarnation=2)
    feeds.look(qm, 61, NEXT, incarnation=2)

    qm = scene("the machine was set back to a snapshot", "rolled_back")
    feeds.tell(qm, range(1, 9), noon)
    feeds.look(qm, 9, noon + timedelta(hours=1))
    feeds.look(qm, 6, noon + timedelta(hours=2))  # events 6 to 8 are others now
    feeds.look(qm, 9, NEXT)
    qm = scene("set back long ago")
    feeds.tell(qm, range(1, 9), noon - 30 * days)
    feeds.look(qm, 9, noon - 29 * days)
    feeds.look(qm, 6, noon - 28 * days)
    feeds.tell(qm, [9], noon)
    feeds.look(qm, 10, NEXT)
    qm = scene("two archives whose clocks differ a little")
    feeds.tell(qm, range(1, 5), noon)
    feeds.look(qm, 5, NEXT)
    feeds.look(qm, 4, NEXT + timedelta(seconds=2))

    feeds.look(scene("never archived", "from_seq"), 9, NEXT)

    proof = feeds.proof(small, wanted(gone=["HOST-it is no more"], dropped=dropped)).collect()
    solid = {row.qm: (row.solid_from, row.from_first) for row in proof}
    assert solid["whole"] == (1, True)
    assert solid["a hole of another time"] == (5, False)
    assert solid["the lake began later"] == (5, False)
    flaws = {
        (row.qm, row.incarnation): {
            name
            for name in ("missing", "dropped", "restored", "rolled_back", "began_late", "ended_early")
            if row[name]
        }
        | ({"from_seq"} if row.from_seq is None else set())
        for row in proof
    }
    restored = "restored, with a feed from long before"
    assert flaws.pop((restored, 2)) == {"restored"}
    assert flaws.pop(("restored long ago", 2)) == set()
    never = flaws.pop(("never archived", 1))
    assert "from_seq" in never
    del expected["never archived"]
    assert {qm: found for (qm, _), found in flaws.items()} == expected
    for row in proof:
        found = flaws.get((row.qm, row.incarnation), {"?"} if row.qm == "never archived" else set())
        edges = {"began_late", "ended_early"}
        assert row.whole == (not found and (row.qm, row.incarnation) != (restored, 2)), row.qm
        assert row.sound == (not found - edges and (row.qm, row.incarnation) != (restored, 2)), row.qm


def test_today_is_to_be_covered_up_to_a_moment_ago() -> None:
    def until(now: datetime) -> datetime:
        return Wanted.around(DAY.date(), 7, now, 3600.0).until

    assert until(DAY + timedelta(hours=10)) == DAY + timedelta(hours=9)
    assert until(NEXT + timedelta(hours=2)) == until(FAR) == NEXT


QUEUE: dict[str, Any] = {"queue": "host\\private$\\q", "queue_kind": "queue", "packet_size": 10}


class Counted(Feeds):
    """Two queue managers whose first events nobody has; a message came and went in each, another one came."""

    def __init__(self) -> None:
        super().__init__()
        for qm in ("true", "false", "asked once"):
            for number, event in enumerate(("arrived", "arrived", "received"), 6):
                self.event(qm, number, DAY + timedelta(hours=number), **QUEUE, **{"event": event})
        for qm, held in (("true", 5), ("false", 4)):
            self.look(qm, 7, DAY + timedelta(hours=6, minutes=30), **QUEUE, count=5)
            self.look(qm, 9, NEXT, **QUEUE, count=held)
            self.look(qm, 9, NEXT, queue="new", queue_kind="queue", count=0)
        self.look("asked once", 9, NEXT, **QUEUE, count=3)


@pytest.fixture(scope="module")
def counted(small: SparkSession) -> dict[str, list[Any]]:
    """gold/counters and gold/queue_minute of a lake that knows the feeds from event 6 on."""
    feeds, day = Counted(), date(2026, 3, 10)
    history, told = frame(small, SILVER_EVENTS, feeds.events), frame(small, COUNTERS, feeds.told)
    proof = coverage(history, told, wanted()).cache()
    bases, steps = gold.bases(told, proof).cache(), gold.steps(history)
    return {
        "counters": gold.counters(steps, told, proof, bases, day).collect(),
        "queue_minute": gold.queue_minute(steps, bases, day).collect(),
    }


def test_counts_are_compared_from_where_the_lake_knows_them(counted: dict[str, list[Any]]) -> None:
    """Also where the first events are not there: from one answer of the queue manager to the next."""
    found = {(row.qm, row.queue): (row.counted, row.computed, row.equal) for row in counted["counters"]}
    name = QUEUE["queue"]
    assert found == {
        ("true", name): (5, 5, True),
        ("false", name): (4, 5, False),
        ("true", "new"): (0, 0, True),
        ("false", "new"): (0, 0, True),
        ("asked once", name): (3, None, None),
    }


def test_depths_begin_with_what_was_there(counted: dict[str, list[Any]]) -> None:
    rows = sorted(counted["queue_minute"], key=lambda row: row.minute)
    assert [row.depth_end for row in rows if row.qm == "true"] == [5, 6, 5]
