"""From queue managers into bronze and silver: each event once, whatever is interrupted."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import EVENT_COLUMNS, chosen
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.spark.lake import bronze, silver, verify
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.checkpoints import Checkpoints
from msmq_fast.spark.lake.delta import Landed
from msmq_fast.spark.lake.landing import Landing
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.tables import SCHEMAS, table_schema
from msmq_fast.spark.lake.writing import Placing
from msmq_fast.terminal.progress import Progress
from tests.spark.fakeserver import FakeServer, serving
from tests.support.lakes import contents

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
    silver.merge(spark, lake)
    rows = silver.events(spark, lake).select("qm_guid", "feed_seq", "event").collect()
    return sorted(tuple(row) for row in rows)


@pytest.mark.long(seconds=17)
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
    assert lake.table("bronze/events").since(None).commits == 2
    messages = bronze.table(small, lake, "messages").collect()
    assert len(messages) == 58
    assert {row.label for row in messages} == {None}
    bodies = {row.body_sha256: bytes(row.body) for row in bronze.table(small, lake, "bodies").collect()}
    assert bodies.keys() == {row.body_sha256 for row in messages}
    assert all(hashlib.sha256(body).hexdigest() == name for name, body in bodies.items())
    # Each body was sent twelve times. Tasks that run at the same time do not know of each other.
    assert bronze.table(small, lake, "bodies").count() <= 10
    assert in_silver(small, lake) == feeds(servers)

    lake.delete("_state/checkpoints")
    servers[0].manager.send("orders", b"more")
    assert once(small, lake, servers, contents=("events",)) == {"events": 65}  # all of it, once more
    assert lake.table("bronze/events").since(None).commits == 3
    assert in_silver(small, lake) == feeds(servers)
    assert [problem for check in verify.CHECKS for problem in check(small, lake)] == []


def event(number: int | None, **more: Any) -> dict[str, Any]:
    return {"qm_guid": "q", "incarnation": 1, "feed_seq": number, "event": "arrived", "event_time": 0, **more}


def told(rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """Events as the bulk API sends them."""
    columns = [column for column in EVENT_COLUMNS if column.name in event(1)]
    return [pa.RecordBatch.from_pylist(rows, schema=arrow_schema(columns))]


def messages(*bodies: bytes | None) -> list[pa.RecordBatch]:
    rows = [{"message_id": f"m{number}", "body": body} for number, body in enumerate(bodies)]
    return [pa.RecordBatch.from_pylist(rows, schema=arrow_schema(chosen("message_id,body")))]


class Job:
    """Tasks and the driver of one query, without Spark."""

    def __init__(self, lake: Lake, table: str, run: str = "r", **options: Any) -> None:
        self.placed: list[int] = []
        self.lake = lake
        self.table = table
        self.landing = Landing(lake.root, table == "events", **options)
        self.placing = Placing(lake, table, run, self.placed.append)

    def write(self, number: int, *tasks: list[pa.RecordBatch]) -> None:
        files = [Landed(**row) for task in tasks for row in self.landing.land(task).to_pylist()]
        self.placing.place(files, number)

    def read(self, table: str = "") -> list[dict[str, Any]]:
        return contents(self.lake, table or self.table)


class Rows:
    """What foreachBatch gets, as far as the archive looks at it."""

    def __init__(self, landed: pa.RecordBatch | None) -> None:
        self.landed = landed

    def collect(self) -> list[tuple[Any, ...]]:
        assert self.landed is not None, "the rows were read again"
        return [tuple(row.values()) for row in self.landed.to_pylist()]


def test_a_batch_is_committed_once(lake: Lake) -> None:
    job = Job(lake, "events")
    job.placing(cast("DataFrame", Rows(job.landing.land(told([event(1), event(2)])))), 0)
    job.placing(cast("DataFrame", Rows(None)), 0)  # what the feed no longer keeps does not vanish
    assert job.placed == [2]
    assert [row["feed_seq"] for row in job.read()] == [1, 2]
    job.write(0, told([event(3)]))  # another process was a moment later
    assert [row["feed_seq"] for row in job.read()] == [1, 2]
    job.write(1, told([event(3)]))
    assert sorted(row["feed_seq"] for row in job.read()) == [1, 2, 3]


def test_a_file_that_vanishes_is_noticed(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    job = Job(lake, "messages")
    job.write(0, messages(b"a"), messages(b"b"))
    job.write(1, messages(b"c"))
    gone, shorter, _ = sorted(Path(lake.path("bronze/messages")).rglob("*.parquet"))
    gone.unlink()
    parquet.write_table(parquet.read_table(shorter).slice(0, 0), shorter)
    assert main(["verify", "--lake", lake.root]) == Exit.FAILURE  # Spark need not be asked
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 2
    assert {file.name for file in (gone, shorter) for line in found if file.name in line} == {
        gone.name,
        shorter.name,
    }


def test_rows_that_can_be_no_events_are_set_aside(lake: Lake, tmp_path: Path) -> None:
    job = Job(lake, "events")
    outside = event(3, qm_guid="../../elsewhere")
    job.write(0, told([event(1), event(None), event(0), event(2, event=None), outside]))
    assert [row["feed_seq"] for row in job.read()] == [1]
    found = lake.dataset("_quarantine/events").to_table().to_pylist()
    assert sorted(row["why"] for row in found) == [
        "event is missing",
        "feed_seq is missing",
        "feed_seq is not positive",
        "qm_guid is not a GUID",
    ]
    assert not list(tmp_path.rglob("*elsewhere*"))


def test_a_disk_that_fails_leaves_no_torn_batch(lake: Lake) -> None:
    Path(lake.path("bronze")).mkdir()
    Path(lake.path("bronze/events")).write_text("in the way")
    job = Job(lake, "events")
    with pytest.raises(OSError, match="bronze/events"):
        job.write(0, told([event(1)]))
    Path(lake.path("bronze/events")).unlink()
    job.write(0, told([event(1)]))
    assert len(job.read()) == 1


def test_a_task_that_fails_leaves_no_files(lake: Lake) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        for _ in range(80):  # more than one row group
            yield from told([event(1)] * 1000)
        raise ConnectionError("the server went away")

    with pytest.raises(ConnectionError):
        Job(lake, "events").landing.land(broken())
    assert list(Path(lake.root).rglob("*.parquet")) == []


def test_bodies_are_left_out_on_demand(lake: Lake) -> None:
    Job(lake, "messages", redacted=("body",)).write(0, messages(b"x"))
    Job(lake, "messages", bodies=False).write(1, messages(b"x"))
    Job(lake, "messages", redacted=("body", "body_sha256")).write(2, messages(b"x"))
    assert contents(lake, "bodies") == []
    hashes = [row["body_sha256"] for row in Job(lake, "messages").read()]
    assert sorted(map(str, hashes)) == sorted([hashlib.sha256(b"x").hexdigest()] * 2 + ["None"])


def test_what_was_to_have_no_bodies_misses_none(small: SparkSession, lake: Lake) -> None:
    """Bodies are kept, then not any more, then again, by one job with one checkpoint."""
    kept: tuple[dict[str, Any], ...] = ({}, {"bodies": False}, {"redacted": ("body",)}, {})
    for number, options in enumerate(kept):
        Job(lake, "messages", **options).write(number, messages(b"body %d" % number))
    assert verify.bodies_missing(small, lake) == []
    bodies = lake.table("bronze/bodies")
    bodies.remove(bodies.files()[:1])
    assert verify.bodies_missing(small, lake) == ["1 bodies of archived messages are missing"]


def test_a_body_is_stored_once_over_batches_and_again_only_if_it_is_nowhere(lake: Lake) -> None:
    job = Job(lake, "messages")
    job.write(0, messages(b"a", b"b", b"a", None, b""))
    job.write(1, messages(b"b", b"c"))
    assert sorted(row["body"] for row in job.read("bodies")) == [b"", b"a", b"b", b"c"]
    # A kill between bodies and headers: another archive may have counted on these bodies, so they stay.
    landed = [Landed(**row) for row in job.landing.land(messages(b"b", b"d")).to_pylist()]
    bodies = [file for file in landed if file.table == "bronze/bodies"]
    lake.table("bronze/bodies").commit(bodies, table_schema(SCHEMAS["bronze/bodies"]))
    job.write(2, messages(b"b", b"d"))
    assert sorted(row["body"] for row in job.read("bodies")) == [b"", b"a", b"b", b"c", b"d"]
    assert len(job.read()) == 9


def test_queries_share_no_registration(spark: SparkSession, lake: Lake, servers: list[FakeServer]) -> None:
    """Spark's streams write to the map of their registration without a lock while they start."""
    source = Source((servers[0].url,))
    maps = []
    for content in ("events", "messages"):
        plan: Any = source.stream(spark, content, lake)._jdf.queryExecution().analyzed()  # type: ignore[operator]
        maps.append(plan.source().get().source().dataSourceCls().envVars())
    identity = cast("Any", spark.sparkContext._jvm).System.identityHashCode
    assert identity(maps[0]) != identity(maps[1])


def test_one_archive_of_a_name_at_a_time(lake: Lake, tmp_path: Path) -> None:
    main_archive = Checkpoints(lake, "main")
    with main_archive.alone():
        with pytest.raises(CommandError, match=r"an archive named 'main' .*--name") as raised:
            Checkpoints(lake, "main").alone().__enter__()
        assert raised.value.code == Exit.IN_USE
        with Checkpoints(lake, "other").alone(), Checkpoints(lake, "main", str(tmp_path)).alone():
            pass
    with Checkpoints(lake, "main").alone():
        pass


def test_a_run_lasts_as_long_as_its_checkpoint(lake: Lake) -> None:
    """Batches without their checkpoint begin at 0: under the old run they would seem to be in the lake."""
    found = Checkpoints(lake, "main")
    first = found.run("events")
    assert Checkpoints(lake, "main").run("events") == first != found.run("messages")
    lake.delete("_state/checkpoints")
    assert found.run("events") != first


def test_the_checkpoints_of_an_object_store_are_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lakes = [Lake(f"s3://bucket/{name}") for name in "ab"]
    paths = [Path(Checkpoints(lake, "main").path("events")) for lake in lakes]
    assert len(set(paths)) == 2
    assert all(path.is_relative_to(tmp_path / "msmq-lake") for path in paths)
