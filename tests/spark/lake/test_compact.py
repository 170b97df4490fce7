"""Compaction and retention: fewer files, the same rows for every reader, and only what is too old goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import chosen
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import bronze, session, silver, verify
from msmq_fast.spark.lake.compact import expire_bronze, expire_days, fold_bodies
from msmq_fast.spark.lake.delta import Landed
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.writing import Placing
from tests.spark.lake.feeds import DAY, Pair
from tests.support.lakes import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = (DAY, DAY + timedelta(days=1))
TABLES = ("events", "messages", "bodies", "counters")


def archive_messages(lake: Lake, run: str, number: int, arrived: datetime, bodies: Sequence[bytes]) -> None:
    """A batch of headers and bodies, as the tasks of the archive and its driver make it."""
    columns = "qm_guid,queue,queue_kind,arrival_seq,arrived_time,message_id,body"
    rows = [
        {
            "qm_guid": "q",
            "queue": "host\\private$\\orders",
            "arrival_seq": 100 * number + place,
            "arrived_time": arrived,
            "message_id": f"{run}-{number}-{place}",
            "body": body,
        }
        for place, body in enumerate(bodies)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(chosen(columns)))
    landed = Landing(lake.root, events=False).land([batch]).to_pylist()
    Placing(lake, "messages", run, lambda rows: None).place([Landed(**row) for row in landed], number)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two days, six batches of events, two runs of messages with bodies of which some came twice."""
    lake = Lake.create(str(tmp_path / "lake"))
    number = 0
    for day in DAYS:
        pair = Pair(day.day, day=day)
        rows = pair.rows()
        for part in range(3):
            write_batch(lake, "events", number, rows[part::3])
            number += 1
        write_batch(lake, "counters", day.day, pair.told(day + timedelta(hours=20)))
    for number in range(4):
        arrived = DAYS[number // 2] + timedelta(hours=number)
        archive_messages(lake, "queue", number, arrived, [b"%d" % (number * 3 + place) for place in range(5)])
    archive_messages(lake, "journal", 0, DAYS[0], [b"4", b"only here"])
    archive_messages(lake, "journal", 1, DAYS[1], [b"5"])
    return lake


def counted(small: SparkSession, lake: Lake) -> dict[str, list[int]]:
    """Rows, as Spark, pyarrow and DuckDB count them."""
    found: dict[str, list[int]] = {}
    for table in TABLES:
        data = lake.dataset(f"bronze/{table}")
        with duckdb.connect() as connection:
            by_duckdb = connection.execute("select count(*) from data").fetchone()
        assert by_duckdb is not None
        found[table] = [bronze.table(small, lake, table).count(), data.count_rows(), by_duckdb[0]]
    return found


def files(lake: Lake) -> dict[str, int]:
    return {table: len(lake.table(f"bronze/{table}").files()) for table in TABLES}


def contents(small: SparkSession, lake: Lake, table: str) -> list[Any]:
    return sorted(map(str, bronze.table(small, lake, table).collect()))


@pytest.fixture
def verbs(small: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verbs take the session of the test."""
    monkeypatch.setattr(session, "start", lambda name, **_: small)


@pytest.mark.long(seconds=20)
@pytest.mark.usefixtures("verbs")
def test_what_is_folded_is_the_same_for_every_reader(small: SparkSession, lake: Lake) -> None:
    before = {table: contents(small, lake, table) for table in TABLES}
    assert files(lake) == {"events": 12, "messages": 6, "bodies": 5, "counters": 2}
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    after = counted(small, lake)
    for table in ("events", "messages", "counters"):
        assert contents(small, lake, table) == before[table]
        assert after[table] == [len(before[table])] * 3
    # One file for each day, of events for each queue manager; bodies are too young.
    assert files(lake) == {"events": 4, "messages": 2, "bodies": 5, "counters": 2}
    assert fold_bodies(small, lake, time.time() + 10_000) == 4
    assert set(contents(small, lake, "bodies")) == set(before["bodies"])
    assert main(["verify", "--lake", lake.root]) == Exit.OK
    again = counted(small, lake)
    assert main(["compact", "--lake", lake.root]) == Exit.OK  # there is nothing more to fold
    assert fold_bodies(small, lake, time.time() + 20_000) == 0
    assert counted(small, lake) == again


@pytest.mark.usefixtures("verbs")
def test_an_archive_goes_on_behind_what_was_folded(small: SparkSession, lake: Lake) -> None:
    main(["compact", "--lake", lake.root])
    fold_bodies(small, lake, time.time() + 10_000)
    messages = bronze.table(small, lake, "messages").count()
    archive_messages(lake, "queue", 4, DAYS[1], [b"0", b"new"])  # the body of b"0" is in the folded file
    archive_messages(lake, "queue", 4, DAYS[1], [b"0", b"new"])  # a batch is archived once
    assert bronze.table(small, lake, "messages").count() == messages + 2
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    assert main(["verify", "--lake", lake.root]) == Exit.OK
    bodies = [bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()]
    assert bodies.count(b"0") == bodies.count(b"new") == 1


@pytest.mark.usefixtures("verbs")
def test_of_two_that_fold_the_same_bodies_one_gives_way(
    lake: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test stands for a process that replaces files between the reading and the commit of `compact`."""
    from msmq_fast.spark.lake import frames

    written = frames.write

    def slow(*arguments: Any, **more: Any) -> Any:
        found = written(*arguments, **more)
        if "bronze/bodies" in arguments:
            table = Lake.open(lake.root).table("bronze/bodies")
            table.remove(table.files()[:1])
        return found

    monkeypatch.setattr(frames, "write", slow)
    later = time.time() + 10_000
    monkeypatch.setattr("time.time", lambda: later)
    before = files(lake)
    assert main(["compact", "--lake", lake.root]) == Exit.IN_USE
    assert "run it again" in capsys.readouterr().err
    assert files(lake)["bodies"] == before["bodies"] - 1


@pytest.mark.long(seconds=22)
@pytest.mark.usefixtures("verbs")
def test_only_what_is_too_old_goes(small: SparkSession, lake: Lake) -> None:
    assert main(["audit", "--lake", lake.root]) == Exit.OK
    gold = {table.name: table.files() for table in lake.tables() if table.name.startswith("gold/")}
    assert gold
    today: date = DAYS[1].date()
    assert expire_bronze(lake, None, today) == expire_days(lake, None, today) == 0
    assert expire_bronze(lake, 1, today) == 0  # what is a day old is kept
    assert expire_bronze(lake, 0, today) == 3  # the first day: events, messages, counters
    assert silver.days(lake) == [day.date() for day in DAYS]
    assert expire_days(lake, 0, today) == 2
    assert lake.days("silver/events") == lake.days("silver/lifecycle") == [today]
    assert {table.name: table.files() for table in lake.tables() if table.name.startswith("gold/")} == gold
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    kept = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert b"only here" in kept  # a task may count on what is in a recent file
    assert fold_bodies(small, lake, time.time() + 10_000) > 0
    kept = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert b"only here" not in kept  # its message went, and so does the body
    assert {b"6", b"13"} <= kept
    assert main(["verify", "--lake", lake.root]) == Exit.OK


@pytest.mark.usefixtures("verbs")
def test_what_was_folded_grows_too_old_as_well(small: SparkSession, lake: Lake) -> None:
    """Or else a lake that is compacted every night would keep everything for ever."""
    today: date = DAYS[1].date()
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    assert expire_bronze(lake, 0, today) == 3  # the first day of events, messages and counters
    days = {
        row.day for row in bronze.table(small, lake, "events").selectExpr("date(event_time) day").collect()
    }
    assert days == {today}
    fold_bodies(small, lake, time.time() + 10_000)
    bodies = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    named = {b"%d" % number for number in range(6, 14)} | {b"5"}
    assert bodies == named


def test_bodies_go_with_the_last_batch_of_a_run(small: SparkSession, lake: Lake) -> None:
    """An archive that ended long ago: nothing of it is younger than what is to go."""
    tomorrow = (DAYS[1] + timedelta(days=1)).date()
    silver.merge(small, lake)
    expire_bronze(lake, 0, tomorrow)
    assert lake.days("bronze/messages") == []
    assert fold_bodies(small, lake) == 0
    fold_bodies(small, lake, time.time() + 10_000)
    assert bronze.table(small, lake, "bodies").count() == 0


def test_events_that_came_a_moment_ago_are_not_dropped_before_silver_has_them(
    small: SparkSession, lake: Lake
) -> None:
    """The archive of an old feed goes on while the lake is compacted."""
    silver.merge(small, lake)
    known = silver.events(small, lake).count()
    write_batch(lake, "events", 6, Pair(77, day=DAY).rows())
    expire_bronze(lake, 0, DAYS[1].date())
    silver.merge(small, lake)
    assert silver.events(small, lake).count() == known + len(Pair(77, day=DAY).rows())


def test_a_body_that_a_task_counts_on_is_not_dropped(small: SparkSession, lake: Lake) -> None:
    """A task has seen the body in a batch, and does not store it again; its own batch is not complete yet.
    Meanwhile the last message that names it grows too old.
    """
    columns = "qm_guid,queue,arrival_seq,arrived_time,message_id,body"
    row = {"qm_guid": "q", "queue": "x", "arrival_seq": 900, "arrived_time": DAYS[1], "message_id": "late"}
    batch = pa.RecordBatch.from_pylist([{**row, "body": b"only here"}], schema=arrow_schema(chosen(columns)))
    landed = Landing(lake.root, events=False).land([batch]).to_pylist()
    assert [file["table"] for file in landed] == ["bronze/messages"]
    silver.merge(small, lake)
    fold_bodies(small, lake)
    expire_bronze(lake, 0, DAYS[1].date())
    fold_bodies(small, lake)
    Placing(lake, "messages", "queue", lambda rows: None).place([Landed(**row) for row in landed], 4)
    assert verify.bodies_missing(small, lake) == []


def test_what_silver_dropped_on_demand_is_not_missing(small: SparkSession, lake: Lake) -> None:
    silver.merge(small, lake)
    first = (
        silver.events(small, lake).where("day < '2026-03-02'").groupBy("qm_guid").max("feed_seq").collect()
    )
    expire_days(lake, 0, DAYS[1].date())
    assert verify.missing_in_silver(small, lake) == []  # bronze still has what silver has not
    assert silver.kept(lake) == (DAYS[1].date(), {row[0]: row[1] for row in first})
    table = lake.table("silver/events")
    table.remove(table.files(day=str(DAYS[1].date())))
    assert verify.missing_in_silver(small, lake) != []
