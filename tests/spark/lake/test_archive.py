"""From queue managers into bronze and silver: each event once, whatever is interrupted."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.cli.progress import Progress
from msmq_fast.spark.lake import bronze, silver, verify
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.layout import Lake, batch_directory
from msmq_fast.spark.lake.writing import events_writer, messages_writer
from tests.spark.fakeserver import FakeServer, serving

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"))


@pytest.fixture
def servers() -> Iterator[list[FakeServer]]:
    with serving() as first, serving() as second:
        yield [first, second]


def once(spark: SparkSession, lake: Lake, servers: list[FakeServer], **source: Any) -> dict[str, int]:
    """`msmq-lake archive --once`, in this process."""
    job = Archive(spark, lake, "main", Source(tuple(server.url for server in servers), **source))
    with Progress("archive", 1, io.StringIO()) as progress:
        job.once(progress)
    return job.archived


def feeds(servers: list[FakeServer]) -> list[tuple[str, int, str]]:
    found = [
        (server.manager.guid, row["feed_seq"], row["event"])
        for server in servers
        for row in server.manager.events
    ]
    return sorted(found)


def in_silver(spark: SparkSession, lake: Lake) -> list[tuple[str, int, str]]:
    with lake.exclusive("test"):
        silver.merge(spark, lake)
    rows = silver.events(spark, lake).select("qm_guid", "feed_seq", "event").collect()
    return sorted(tuple(row) for row in rows)


def test_two_queue_managers_and_a_checkpoint_that_is_lost(
    small: SparkSession, lake: Lake, servers: list[FakeServer]
) -> None:
    for server in servers:
        server.manager.create("orders")
        for number in range(30):
            server.manager.send("orders", b"body %d" % (number % 5), label=f"secret {number}")
        server.manager.receive("orders")
    contents = ("messages", "events")
    archived = once(small, lake, servers, contents=contents, max_rows=40, redacted=("label",))
    assert archived == {"messages": 58, "events": 64}
    assert len(lake.batches("events")) == 2
    messages = bronze.table(small, lake, "messages").collect()
    assert len(messages) == 58
    assert {row.label for row in messages} == {None}
    bodies = {row.body_sha256: bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert bodies.keys() == {row.body_sha256 for row in messages}
    assert all(hashlib.sha256(body).hexdigest() == name for name, body in bodies.items())
    assert bronze.table(small, lake, "bodies").count() == 5  # each body once, though it was sent twelve times
    assert in_silver(small, lake) == feeds(servers)

    lake.delete("_state/checkpoints")
    servers[0].manager.send("orders", b"more")
    assert once(small, lake, servers, contents=("events",)) == {"events": 65}  # all of it, once more
    assert len({batch.run for batch in lake.batches("events")}) == 2
    assert in_silver(small, lake) == feeds(servers)
    assert [problem for check in verify.CHECKS for problem in check(small, lake)] == []


def event(number: int | None, **more: Any) -> dict[str, Any]:
    return {"qm_guid": "q", "incarnation": 1, "feed_seq": number, "event": "arrived", "event_time": 0, **more}


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    names = "qm_guid string, incarnation int, feed_seq long, event string, event_time long"
    return spark.createDataFrame(rows, names).withColumn("event_time", _time())


def _time() -> Any:
    from pyspark.sql import functions as F

    return F.timestamp_micros("event_time")


def test_a_complete_batch_is_not_written_again_and_a_torn_one_is(small: SparkSession, lake: Lake) -> None:
    write = events_writer(lake, "r")
    write(frame(small, [event(1), event(2)]), 0)
    write(frame(small, [event(1)]), 0)  # what the feed no longer keeps does not vanish from the lake
    assert bronze.table(small, lake, "events").count() == 2
    directory = Path(lake.path(batch_directory("events", "r", 0)))
    (directory / "_SUCCESS").unlink()
    assert bronze.table(small, lake, "events").count() == 0
    write(frame(small, [event(3)]), 0)
    assert [row.feed_seq for row in bronze.table(small, lake, "events").collect()] == [3]


def test_rows_that_can_be_no_events_are_set_aside(small: SparkSession, lake: Lake) -> None:
    rows = [event(1), event(None), event(0), event(2, event=None)]
    events_writer(lake, "r")(frame(small, rows), 0)
    assert bronze.table(small, lake, "events").count() == 1
    aside = small.read.parquet(lake.path("_quarantine/events/run=r/batch=0000000000")).collect()
    assert sorted(row.why for row in aside) == [
        "event is missing",
        "feed_seq is missing",
        "feed_seq is not positive",
    ]


def test_a_disk_that_fails_leaves_no_torn_batch(small: SparkSession, lake: Lake) -> None:
    Path(lake.path("bronze")).mkdir()
    Path(lake.path("bronze/events")).write_text("in the way")
    write = events_writer(lake, "r")
    with pytest.raises(Exception, match="bronze/events"):
        write(frame(small, [event(1)]), 0)
    Path(lake.path("bronze/events")).unlink()
    write(frame(small, [event(1)]), 0)
    assert bronze.table(small, lake, "events").count() == 1


def test_bodies_are_left_out_on_demand(small: SparkSession, lake: Lake) -> None:
    rows = small.createDataFrame([("m1", bytearray(b"x"))], "message_id string, body binary")
    messages_writer(lake, "r", ("body",), bodies=True)(rows, 0)
    messages_writer(lake, "r", (), bodies=False)(rows, 1)
    messages_writer(lake, "r", ("body", "body_sha256"), bodies=True)(rows, 2)
    assert lake.batches("bodies") == []
    hashes = [row.body_sha256 for row in bronze.table(small, lake, "messages").collect()]
    assert sorted(map(str, hashes)) == sorted([hashlib.sha256(b"x").hexdigest()] * 2 + ["None"])
