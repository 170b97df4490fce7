"""The archive's driver is killed at random moments while messages flow; silver has the feed exactly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from msmq_fast.client.bulk.client import BulkClient
from msmq_fast.spark.lake import bronze, silver, verify
from msmq_fast.spark.lake.layout import Lake
from tests.spark.conftest import SETTINGS, spark_environment
from tests.spark.killharness import PATIENCE, Flow, Job, Stream, carnage
from tests.spark.realserver import running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Content(Stream):
    """One query of the archive, seen by its checkpoint."""

    def batches(self) -> int:
        try:
            return sum(name.isdigit() for name in os.listdir(self.directory / "offsets"))
        except FileNotFoundError:
            return 0


class ArchiveJob(Job):
    """`msmq-lake archive --follow`; at its end `--once`."""

    def __init__(self, directory: Path, url: str) -> None:
        self.lake = directory / "lake"
        checkpoints = self.lake / "_state" / "checkpoints" / "main"
        contents = ("events", "messages")
        super().__init__(directory, url, [Content(name, "", {}, checkpoints / name) for name in contents])
        conf = directory / "conf"
        conf.mkdir()
        lines = [f"{name} {value}" for name, value in SETTINGS.items()]
        lines += ["spark.master local[2]", f"spark.local.dir {directory / 'scratch'}"]
        (conf / "spark-defaults.conf").write_text("\n".join(lines))
        self._environment = {**os.environ, **spark_environment(), "SPARK_CONF_DIR": str(conf)}
        self._command = [sys.executable, "-m", "msmq_fast.spark.lake.main", "archive", "--url", url]
        self._command += ["--lake", str(self.lake), "--content", ",".join(contents), "--max-rows", "200"]

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "--follow", "--interval", "0 seconds"],
                env=self._environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def ended(self) -> None:
        self.kill()
        done = subprocess.run(
            [*self._command, "--max-rows", "50000", "--once"],  # what is left, in a few batches
            env=self._environment,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]


def feed(url: str) -> list[dict[str, Any]]:
    client = BulkClient(url)
    bounds = client.bounds(content="events")
    return [row for batch in client.events(bounds.feed_first, bounds.feed_next) for row in batch.to_pylist()]


@pytest.mark.long(seconds=400)
@pytest.mark.timeout(1800)
def test_twenty_kills(small: SparkSession, tmp_path: Path) -> None:
    with running() as server:
        server.create("orders", journal=True)
        server.create("audit")
        job, flow = ArchiveJob(tmp_path, server.url), Flow(server, ["orders", "audit"])
        carnage(job, flow, kills=20, seed=5)
        lake = Lake.open(str(job.lake))
        silver.merge(small, lake)
        assert [problem for check in verify.CHECKS for problem in check(small, lake)] == []
        names = ("feed_seq", "event", "event_time", "queue", "message_id", "lookup_id")
        rows = silver.events(small, lake).orderBy("feed_seq").select(*names, "qm_guid").collect()
        told = feed(server.url)
        assert len(rows) >= sum(len(sent) for sent in flow.sent.values())
        assert [(row.feed_seq, row.event, row.message_id, row.lookup_id) for row in rows] == [
            (row["feed_seq"], row["event"], row["message_id"], row["lookup_id"]) for row in told[: len(rows)]
        ]
        assert told[len(rows) :] == []
        messages = bronze.table(small, lake, "messages").select("message_id").collect()
        arrived = {row["message_id"] for row in told if row["event"] == "arrived"}
        assert len(messages) == len({row.message_id for row in messages}) == len(arrived)
