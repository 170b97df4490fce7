"""A stream over 10,000 queues of a real server, of which 100 have something new at a time."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import msmq_fast
from msmq_fast.spark import register
from tests.spark.realserver import RealServer, running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.long(seconds=90), pytest.mark.timeout(900)]

QUEUES = 10_000
ACTIVE = 100
EACH = 5
ROUNDS = 8
BATCH_S = 2.0
"""Seconds that a batch may take on two cores. The best of ROUNDS counts, since other programs run beside."""
OFFSET_BYTES = 20_000


@pytest.mark.parametrize("mode", ["keep", "remove"])
def test_a_batch_costs_what_its_queues_cost(
    spark: SparkSession, many: RealServer, tmp_path: Path, mode: str
) -> None:
    chance = random.Random(mode)
    counted: list[int] = []

    def count(batch: DataFrame, number: int) -> None:
        counted.append(batch.count())

    options = {"startingOffsets": "latest"} if mode == "keep" else REMOVE
    register(spark)
    query = (
        spark.readStream.format("msmq")
        .options(url=many.url, subscribePattern=r".*\\big\d+", **options)
        .load()
        .writeStream.foreachBatch(count)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        query.processAllAvailable()
        first = offsets(tmp_path)  # these name as many queues as had messages before
        batches = []
        for _ in range(ROUNDS):
            for number in chance.sample(range(QUEUES), ACTIVE):
                send(many, f"big{number}")
            query.processAllAvailable()
            batches += [progress for progress in query.recentProgress if progress["numInputRows"]]
    finally:
        query.stop()
    assert sum(counted) >= ROUNDS * ACTIVE * EACH
    report: dict[str, Any] = json.loads(batches[-1]["sources"][0]["latestOffset"])
    assert report["queues"] == QUEUES
    assert report["source"].startswith(f"{mode} messages of ")
    size = max(len(path.read_text().splitlines()[-1]) for path in offsets(tmp_path) - first)
    assert size < OFFSET_BYTES
    took = sorted(progress["durationMs"]["triggerExecution"] / 1000 for progress in batches)
    print(f"{mode}: a batch takes {took[0]} s, median {took[len(took) // 2]} s; {size} bytes of offset")
    assert took[0] < BATCH_S


def offsets(checkpoint: Path) -> set[Path]:
    """The files with the offsets of each batch."""
    return {path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()}


def send(server: RealServer, queue: str) -> None:
    """Handles are few, so this one is closed again."""
    messages = [msmq_fast.Message(b"x" * 100, delivery=msmq_fast.RECOVERABLE) for _ in range(EACH)]
    with server.connection().open(queue, msmq_fast.Access.SEND) as opened:
        opened.send_many(messages)


REMOVE = {"onSourceCommit": "remove", "subscription": "many"}


@pytest.fixture(scope="module")
def many() -> Any:
    with running() as server:
        for number in range(QUEUES):
            server.create(f"big{number}")
        yield server
