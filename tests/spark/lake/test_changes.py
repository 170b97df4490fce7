"""`msmq-lake audit` without `--day` audits the days whose result changes, and no others."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session
from msmq_fast.spark.lake.changes import note, outdated
from msmq_fast.spark.lake.daytables import DayTables
from msmq_fast.spark.lake.delta import Conflict
from msmq_fast.spark.lake.files import Files
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.rules import Rules
from msmq_fast.spark.lake.summary import audited, gold_rows
from msmq_fast.spark.lake.tables import GOLD, SILVER_EVENTS, table_schema
from tests.spark.lake.feeds import DAY, Pair, depths
from tests.support.lakes import write_batch, write_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = DAY.date()
FAR = datetime(2099, 1, 1, tzinfo=UTC)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def write(lake: Lake, table: str, day: date, row: dict[str, Any]) -> None:
    write_day(lake, table, str(day), pa.Table.from_pylist([row]))


def write_event(lake: Lake, day: date, qm: str) -> None:
    """A part of silver that a merge has made."""
    files = Files(lake)
    files.write("silver/events", pa.table({"feed_seq": [1]}), {"day": str(day), "qm": qm})
    lake.table("silver/events").commit(files.close(), table_schema(SILVER_EVENTS))


def audit_note(lake: Lake, number: int, rules: Rules) -> None:
    """What an audit leaves behind."""
    end = datetime.combine(day(number + 1), datetime.min.time(), UTC)
    write(lake, "gold/reconciliation", day(number), {"verdict": "ok"})
    write(lake, "gold/coverage", day(number), {"qm": "q", "incarnation": 1, "through": end})
    write(lake, "gold/audits", day(number), note(lake, day(number), rules))


def test_what_is_outdated_is_known_without_spark(tmp_path: Path) -> None:
    lake, rules = Lake.create(str(tmp_path / "lake")), Rules(lookback=2, now=FAR)
    days = [day(number) for number in range(8)]
    for one in days:
        write_event(lake, one, "q")
    assert outdated(lake, days, rules).certain == days
    for number in range(8):
        audit_note(lake, number, rules)
    assert outdated(lake, days, rules) == ([], {})
    assert outdated(lake, days, Rules(lookback=2, now=FAR, gone=("q",))).certain == days

    write_batch(lake, "counters", 0, [{"taken_at": DAY}])
    assert outdated(lake, days, rules) == ([], {one: [] for one in days})
    for number in range(8):
        audit_note(lake, number, rules)
    write_event(lake, day(5), "other")
    near = {day(number): [day(5)] for number in (3, 4, 6, 7)}
    assert outdated(lake, days, rules) == ([day(5)], near)


def test_a_day_is_audited_again_when_it_is_over(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    noon = DAY + timedelta(hours=12)
    write_event(lake, day(0), "q")
    write(lake, "gold/reconciliation", day(0), {"verdict": "ok"})
    write(lake, "gold/coverage", day(0), {"qm": "q", "incarnation": 1, "through": noon})
    write(lake, "gold/audits", day(0), note(lake, day(0), Rules(now=noon)))
    assert outdated(lake, [day(0)], Rules(now=noon)) == ([], {})
    assert outdated(lake, [day(0)], Rules(now=noon + timedelta(hours=8))).certain == [day(0)]


def half_audited(lake: Lake, spark: SparkSession) -> DayTables:
    """An audit of the first day that has written the note and one table, and committed nothing."""
    tables = DayTables(spark, lake, day(0), lambda: None)
    tables.note(note(lake, day(0), Rules(now=FAR)))
    tables.write("gold/reconciliation", spark.createDataFrame([("ok",)], "verdict STRING"))
    return tables


def test_of_two_audits_at_once_one_gives_way(small: SparkSession, tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    write_event(lake, day(0), "q")
    before = half_audited(lake, small)
    write_event(lake, day(0), "other")
    half_audited(Lake.open(lake.root), small).commit()
    with pytest.raises(Conflict, match="has audited"):
        before.commit()
    assert [row["events"] for row in gold_rows(lake, "audits", day(0))] == [json.dumps({str(day(0)): 2})]


def test_a_day_whose_audit_broke_off_is_audited_again(small: SparkSession, tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    write_event(lake, day(0), "q")
    for broken in (False, True, False):
        tables = half_audited(lake, small)
        log = Path(lake.path("gold/reconciliation/_delta_log"))
        if broken:
            log.rename(log.with_name("aside"))
            log.touch()
            with pytest.raises(Exception):  # noqa: B017 - whatever the disk answers
                tables.commit()
            log.unlink()
            log.with_name("aside").rename(log)
            lake = Lake.open(lake.root)
        else:
            tables.commit()
        assert audited(lake) == [day(0)]
        assert outdated(lake, [day(0)], Rules(now=FAR)).certain == ([day(0)] if broken else [])


class Archive:
    """Pairs of queue managers whose traffic crosses midnight, archived in steps."""

    def __init__(self, lake: Lake, pairs: list[Pair]) -> None:
        self._lake = lake
        self._feeds = [manager.feed() for pair in pairs for manager in pair.managers]
        self._names = [manager.name for pair in pairs for manager in pair.managers]
        self._step = 0
        self._until = datetime.min.replace(tzinfo=UTC)

    def until(self, time: datetime) -> None:
        """Archives what happened before a time, and counts the queues at that time."""
        fresh, told = [], []
        for name, feed in zip(self._names, self._feeds, strict=True):
            known = [row for row in feed if row["event_time"] < time]
            fresh += [row for row in known if row["event_time"] >= self._until]
            head = {"qm_guid": feed[0]["qm_guid"], "name": name, "incarnation": 1, "start": 1}
            head |= {"taken_at": time, "feed_first": 1, "feed_next": len(known) + 1}
            queues = [{**head, "queue": queue, "count": n} for queue, n in depths(known).items()]
            told += queues or [head]
        write_batch(self._lake, "events", self._step, fresh)
        write_batch(self._lake, "counters", self._step, told)
        self._step += 1
        self._until = time


def found(lake: Lake) -> dict[str, list[str]]:
    """All tables that tell of messages and queues."""
    tables = ["silver/lifecycle", *(f"gold/{name}" for name in GOLD if name not in ("audits", "coverage"))]
    data = {name: lake.dataset(name) for name in tables}
    return {
        name: sorted(json.dumps(row, default=str) for row in table.to_table().to_pylist())
        for name, table in data.items()
        if table is not None
    }


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(2400)
def test_the_days_that_changed_are_enough(
    small: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "start", lambda name, **_: small)
    lake = Lake.create(str(tmp_path / "lake"))
    pairs = [
        Pair(40 + number, messages=16, faults=("expired", "refused", "lost"), day=start)
        for number, start in enumerate((DAY, DAY + timedelta(hours=13, minutes=59), DAY + timedelta(days=3)))
    ]
    for pair in pairs:
        for manager in pair.managers:
            manager.notes[0] = (DAY, *manager.notes[0][1:])  # every feed begins on the first day
    archive = Archive(lake, pairs)

    def audited(*words: str) -> list[date]:
        assert main(["audit", "--lake", lake.root, "--json", *words]) == Exit.OK
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [date.fromisoformat(row["day"]) for row in told if row["audited_now"]]

    midnight = DAY + timedelta(days=1)
    archive.until(midnight)
    assert audited() == [day(0)]
    archive.until(midnight + timedelta(hours=2))
    assert audited() == [day(0), day(1)]  # messages that were sent before midnight came after it
    archive.until(midnight + timedelta(days=1, hours=2))
    assert audited() == [day(1)]  # it is complete now: the lake has counts from after its end
    archive.until(midnight + timedelta(days=5))
    assert audited() == [day(3)]
    incremental = found(lake)
    assert audited("--all") == [day(0), day(1), day(3)]
    whole = found(lake)
    # Later counts of queues that did not exist on a day are no reason to audit it again.
    assert set(incremental.pop("gold/counters")) <= set(whole.pop("gold/counters"))
    for name, rows in whole.items():
        assert set(rows) ^ set(incremental[name]) == set(), name

    monkeypatch.setattr(session, "start", None)
    assert audited() == []  # not even Spark is started
    assert main(["audit", "--lake", lake.root]) == Exit.OK
    assert "3 days are as they were at their last audit" in capsys.readouterr().out
