"""A lake in an object store: moto's S3, without a jar for Spark."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import bronze, session, silver, verify
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.audit import audit
from msmq_fast.spark.lake.checkpoints import Checkpoints
from msmq_fast.spark.lake.compact import fold_bodies
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.lake.rules import Rules
from msmq_fast.terminal.progress import Progress
from tests.spark.fakeserver import FakeServer
from tests.support.objects import s3_server

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long(seconds=120), pytest.mark.timeout(1800), pytest.mark.needs(modules=("moto",))]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    with s3_server() as server, pytest.MonkeyPatch.context() as patched:
        for name, value in server.environment.items():
            patched.setenv(name, value)
        yield f"s3://{server.bucket()}"


@pytest.fixture
def verbs(store: str, small: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The verbs take the session of the test; what they keep on this machine is below its directory."""
    monkeypatch.setattr(session, "start", lambda name, **_: small)
    for name, value in os.environ.items():
        if name.startswith("AWS_"):  # for Python workers: the JVM may have been started before
            monkeypatch.setitem(small.sparkContext.environment, name, value)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def once(spark: SparkSession, lake: Lake, name: str, server: FakeServer) -> dict[str, int]:
    """`msmq-lake archive --once --name NAME`, in this process."""
    job = Archive(spark, lake, name, Source((server.url,)), Checkpoints(lake, name))
    with Progress("archive", 1, io.StringIO()) as progress:
        job.once(progress)
    return job.archived


def fill(server: FakeServer, count: int) -> None:
    for number in range(count):
        server.manager.send("orders", b"body %d" % (number % 7), label=f"label {number}")
    server.manager.receive("orders")


@pytest.mark.usefixtures("verbs")
def test_a_lake_on_s3_is_archived_audited_compacted_and_audited_again(
    small: SparkSession, store: str, fake: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    root = f"{store}/lake"
    lake = Lake.create(root)
    fake.manager.create("orders")
    fill(fake, 30)
    first = once(small, lake, "main", fake)
    assert (first["events"], first["messages"]) == (len(fake.manager.events), 29)
    assert main(["audit", "--lake", root]) == Exit.OK
    said = capsys.readouterr().out
    fill(fake, 10)
    assert once(small, lake, "main", fake)["messages"] == 10 - 1 + 1
    assert once(small, lake, "main", fake)["messages"] == 0
    assert main(["compact", "--lake", root]) == Exit.OK
    assert fold_bodies(small, lake) == 0  # too young
    assert main(["audit", "--lake", root]) == Exit.OK
    again = capsys.readouterr().out
    assert "30 arrived" in said
    assert "40 arrived" in again
    assert main(["verify", "--lake", root]) == Exit.OK
    assert main(["report", "--lake", root, "--html", str(tmp_path / "page.html")]) == Exit.OK
    numbers = [row.feed_seq for row in silver.events(small, lake).orderBy("feed_seq").collect()]
    assert numbers == list(range(1, len(fake.manager.events) + 1))
    assert bronze.table(small, lake, "messages").count() == 29 + 10


@pytest.mark.usefixtures("verbs")
@pytest.mark.parametrize("place", ["local", "s3"])
def test_two_archives_a_compaction_and_readers_at_once(
    small: SparkSession, store: str, fake: FakeServer, tmp_path: Path, place: str
) -> None:
    """No reader sees a part of a batch, or a day while a merge or an audit replaces it."""
    lake = Lake.create(f"{store}/busy" if place == "s3" else str(tmp_path / "busy"))
    fake.manager.create("orders")
    fill(fake, 20)
    for name in ("one", "two"):
        once(small, lake, name, fake)
    silver.merge(small, lake)
    (day,) = silver.days(lake)
    audit(small, lake, day, Rules())
    counts: dict[str, list[int]] = {"bronze/events": [], "silver/events": [], "silver/lifecycle": []}
    ended = threading.Event()
    errors: list[BaseException] = []

    def read() -> None:
        while not ended.is_set():
            for table, seen in counts.items():
                data = Lake.open(lake.root).dataset(table)
                seen.append(data.count_rows())

    def archive(name: str) -> None:
        try:
            for _ in range(2):
                once(small, Lake.open(lake.root), name, fake)
        except BaseException as error:
            errors.append(error)

    def compact() -> None:
        own = Lake.open(lake.root)
        try:
            while not ended.is_set():
                for name in ("events", "messages", "counters"):
                    own.table(f"bronze/{name}").compact()
        except BaseException as error:
            errors.append(error)

    fill(fake, 20)
    total = len(fake.manager.events)
    beside = [threading.Thread(target=work) for work in (read, compact)]
    archives = [threading.Thread(target=archive, args=(name,)) for name in ("one", "two")]
    for thread in (*beside, *archives):
        thread.start()
    while any(thread.is_alive() for thread in archives):
        silver.merge(small, lake)
        audit(small, lake, day, Rules())
    for thread in archives:
        thread.join()
    silver.merge(small, lake)
    audit(small, lake, day, Rules())
    ended.set()
    for thread in beside:
        thread.join()
    assert errors == []
    first = counts["silver/events"][0]
    assert set(counts["silver/events"]) <= {first, total}  # one batch came on top
    assert set(counts["silver/lifecycle"]) <= {20, 40}  # a row for each message of the day
    assert set(counts["bronze/events"]) <= {2 * first, first + total, 2 * total}
    assert [problem for check in verify.CHECKS for problem in check(small, lake)] == []
    assert silver.events(small, lake).count() == total
