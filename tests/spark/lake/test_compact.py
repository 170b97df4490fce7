"""Compaction and retention: fewer files, the same rows for every reader, and only what is too old goes."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import OLD_NAMES, chosen
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import bronze, session, silver, verify
from msmq_fast.spark.lake.compact import expire_bronze, expire_days, fold_bodies
from msmq_fast.spark.lake.landing import Landed, Landing
from msmq_fast.spark.lake.layout import FOLDED, Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.writing import Placing
from tests.spark.lake.feeds import DAY, Pair
from tests.spark.lake.lakes import write_batch

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
    landed = Landing(lake.root, run, events=False).land([batch]).to_pylist()
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
    """Rows and different bodies, as Spark, pyarrow and DuckDB count them."""
    found: dict[str, list[int]] = {}
    for table in TABLES:
        files = [str(path) for b in lake.batches(table) for path in Path(b.path).glob("*.parquet")]
        with duckdb.connect() as connection:
            by_duckdb = connection.execute("select count(*) from read_parquet(?)", [files]).fetchone()
        assert by_duckdb is not None
        found[table] = [
            bronze.table(small, lake, table).count(),
            dataset.dataset(files).count_rows(),
            by_duckdb[0],
        ]
    return found


def an_hour_later(lake: Lake) -> None:
    """Nobody counts on the bodies of the folded batch any more."""
    for mark in Path(lake.root).glob(f"bronze/bodies/run={FOLDED}/*/_SUCCESS"):
        os.utime(mark, (0, 0))


def contents(small: SparkSession, lake: Lake, table: str) -> list[Any]:
    return sorted(map(str, bronze.table(small, lake, table).collect()))


def test_columns_of_older_batches_are_read_under_their_old_names(small: SparkSession, lake: Lake) -> None:
    before = {table: contents(small, lake, table) for table in ("events", "messages")}
    assert any("source_machine='" in row for row in before["events"])
    old = {new: name for name, new in OLD_NAMES.items()}
    for table in before:
        for file in Path(lake.batches(table)[0].path).glob("*.parquet"):
            rows = parquet.read_table(file)
            renamed = rows.rename_columns([old.get(name, name) for name in rows.column_names])
            assert renamed.column_names != rows.column_names
            parquet.write_table(renamed, file)
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    assert {table: contents(small, lake, table) for table in before} == before


@pytest.fixture
def verbs(small: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verbs take the session of the test."""
    monkeypatch.setattr(session, "start", lambda name, **_: small)


@pytest.mark.usefixtures("verbs")
def test_what_is_folded_is_the_same_for_every_reader(small: SparkSession, lake: Lake) -> None:
    before = {table: contents(small, lake, table) for table in TABLES}
    batches = {table: len(lake.batches(table)) for table in TABLES}
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    after = counted(small, lake)
    for table in ("events", "messages", "counters"):
        assert contents(small, lake, table) == before[table]
        assert after[table] == [len(before[table])] * 3
    assert {table: len(lake.batches(table)) for table in TABLES} == {
        "events": 3,  # all of a day are one, but the last
        "messages": batches["messages"] - 1,
        "bodies": 1,
        "counters": 2,
    }
    assert set(contents(small, lake, "bodies")) == set(before["bodies"])
    assert main(["verify", "--lake", lake.root]) == Exit.OK
    again = counted(small, lake)
    assert main(["compact", "--lake", lake.root]) == Exit.OK  # there is nothing more to fold
    assert counted(small, lake) == again == after


@pytest.mark.usefixtures("verbs")
def test_an_archive_goes_on_behind_what_was_folded(small: SparkSession, lake: Lake) -> None:
    main(["compact", "--lake", lake.root])
    messages = bronze.table(small, lake, "messages").count()
    archive_messages(lake, "queue", 4, DAYS[1], [b"0", b"new"])  # the body of b"0" is in the folded batch
    assert bronze.table(small, lake, "messages").count() == messages + 2
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    assert main(["verify", "--lake", lake.root]) == Exit.OK
    bodies = [bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()]
    assert bodies.count(b"0") == bodies.count(b"new") == 1


@pytest.mark.usefixtures("verbs")
def test_one_verb_at_a_time(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """The test stands for a process that verifies."""
    lake.write_json("_state/lock.json", {"what": "verify", "pid": 1, "host": socket.gethostname()})
    batches = lake.batches("events")
    assert main(["compact", "--lake", lake.root]) == Exit.IN_USE
    assert "is being changed by `msmq-lake verify` (process 1" in capsys.readouterr().err
    assert lake.batches("events") == batches


@pytest.mark.long(seconds=22)
@pytest.mark.usefixtures("verbs")
def test_only_what_is_too_old_goes(small: SparkSession, lake: Lake) -> None:
    assert main(["audit", "--lake", lake.root]) == Exit.OK
    gold = {str(path.relative_to(lake.root)) for path in Path(lake.root, "gold").rglob("*.parquet")}
    today: date = DAYS[1].date()
    assert expire_bronze(lake, None, today) == expire_days(lake, None, today) == 0
    assert expire_bronze(lake, 1, today) == 0  # what is a day old is kept
    assert expire_bronze(lake, 0, today) == 3 + 3 + 1  # the first day: events, messages, counters
    assert {row.day for row in small.read.parquet(lake.path("silver/events")).select("day").collect()} == {
        str(day.date()) for day in DAYS
    }
    assert expire_days(lake, 0, today) == 2
    assert lake.names("silver/events") == lake.names("silver/lifecycle") == [f"day={today}"]
    assert {str(path.relative_to(lake.root)) for path in Path(lake.root, "gold").rglob("*.parquet")} == gold
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    kept = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert b"only here" in kept  # a task may count on what is in a recent batch
    an_hour_later(lake)
    assert main(["compact", "--lake", lake.root]) == Exit.OK  # there is nothing new, but something to drop
    kept = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert b"only here" not in kept  # its message went, and so does the body
    assert {b"6", b"13"} <= kept
    assert main(["verify", "--lake", lake.root]) == Exit.OK


@pytest.mark.usefixtures("verbs")
def test_what_was_folded_grows_too_old_as_well(small: SparkSession, lake: Lake) -> None:
    """Or else a lake that is compacted every night would keep everything for ever."""
    today: date = DAYS[1].date()
    assert main(["compact", "--lake", lake.root]) == Exit.OK
    assert expire_bronze(lake, 0, today) == 1 + 2 + 1  # the first day of events, of two runs of messages
    days = {
        row.day for row in bronze.table(small, lake, "events").selectExpr("date(event_time) day").collect()
    }
    assert days == {today}
    an_hour_later(lake)
    fold_bodies(small, lake)
    bodies = {bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    named = {b"%d" % number for number in range(6, 14)} | {b"5"}
    assert bodies == named


def test_bodies_go_with_the_last_batch_of_a_run(small: SparkSession, lake: Lake) -> None:
    """An archive that ended long ago: nothing of it is younger than what is to go."""
    tomorrow = (DAYS[1] + timedelta(days=1)).date()
    silver.merge(small, lake)
    expire_bronze(lake, 0, tomorrow)
    assert lake.batches("messages") == []
    fold_bodies(small, lake)
    an_hour_later(lake)
    fold_bodies(small, lake)
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
    landed = Landing(lake.root, "queue", events=False).land([batch]).to_pylist()
    assert [file["layer"] for file in landed] == ["bronze/messages"]
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
    lake.delete(f"silver/events/day={DAYS[1].date()}")
    assert verify.missing_in_silver(small, lake) != []
