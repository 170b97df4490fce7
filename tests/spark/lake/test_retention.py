"""The feed of a queue manager ran over before the lake had it: never silent, from the query to the report."""

from __future__ import annotations

import io
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.protocol.exits import Exit
from msmq_fast.spark.lake import session
from msmq_fast.spark.lake.archive import Archive, Source
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.main import main
from msmq_fast.spark.losses import DataLoss
from msmq_fast.terminal.progress import Progress
from tests.spark.driving import Query
from tests.spark.fakeserver import FakeServer
from tests.spark.realserver import running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def once(small: SparkSession, lake: Lake, url: str) -> int:
    job = Archive(small, lake, "main", Source((url,), contents=("events",)))
    with Progress("archive", 1, io.StringIO()) as progress:
        job.once(progress)
    return job.archived["events"]


@pytest.mark.long(seconds=8)
def test_the_audit_tells_what_the_archive_missed(
    small: SparkSession,
    fake: FakeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(session, "start", lambda name, **_: small)
    lake = Lake.create(str(tmp_path / "lake"))
    fake.manager.create("orders")
    for number in range(30):
        fake.manager.send("orders", b"%d" % number)
    fake.manager.trim_events(5)  # before the lake heard of this queue manager
    assert once(small, lake, fake.url) == 31 - 4
    for number in range(30):
        fake.manager.send("orders", b"%d" % number)
    fake.manager.trim_events(51)
    assert once(small, lake, fake.url) == 61 - 50

    assert main(["audit", "--lake", lake.root]) == Exit.OK
    assert "unproven" in capsys.readouterr().out
    (row,) = lake.dataset("gold/coverage").to_table().to_pylist()
    assert row["missing_ranges"] == ["32-50"]
    assert row["missing"] == 19
    assert not row["whole"]
    assert not row["from_first"]
    assert row["from_seq"] == 5
    report = tmp_path / "report.md"
    assert main(["report", "--lake", lake.root, "--markdown", str(report)]) == Exit.OK
    assert "19 events of fake are missing in the lake" in report.read_text()


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(300)
def test_a_feed_of_one_mebibyte(caplog: pytest.LogCaptureFixture) -> None:
    with running(environment={"MSMQ_FAST_STORE__FEED_MAX_SIZE": "1 MiB"}) as server:
        server.create("orders")
        query = Query(url=server.url, content="events", startingOffsets="earliest", maxRowsPerTrigger=1000)
        server.send("orders", [b"first"] * 1000)
        query.batch()
        before = BulkClient(server.url).bounds(content="events").feed_next
        for _ in range(40):
            server.send("orders", [b"more"] * 1000)
        deadline = time.monotonic() + 150
        while (bounds := BulkClient(server.url).bounds(content="events")).feed_first <= before:
            assert time.monotonic() < deadline, "the feed is not trimmed"
            time.sleep(1)
        size = (bounds.feed_next - bounds.feed_first) * 72
        assert size < 2 << 20

        line = (
            rf"the events 1001 to \d+ of {bounds.name} are no longer kept \(feed retention\); a subscription"
        )
        with pytest.raises(DataLoss, match=line):
            query.run()
        query.restart(failOnDataLoss="false")
        with caplog.at_level(logging.WARNING, "msmq_fast.spark"):
            query.run()
        assert f"the query goes on with event {bounds.feed_first}" in caplog.text
        numbers = [row["feed_seq"] for row in query.rows]
        assert numbers[999] == 1000
        assert numbers[1000] >= bounds.feed_first
        assert numbers[1000:] == list(range(numbers[1000], bounds.feed_next))
