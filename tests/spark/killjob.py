"""A driver that `killharness` starts and kills: several queries in one session, until it is told to finish.

The only argument is a file with JSON: `master`, `finish` (a file: once it exists the queries end with what
is there) and `queries`. A query has `kind` (of `KINDS`), `name`, `options` of the source, and `directory`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from msmq_fast.spark import register
from tests.spark.conftest import SETTINGS


def load(spark: SparkSession, query: dict[str, Any]) -> DataFrame:
    """The source, with a registration of its own: there are other streams."""
    register(spark)
    return spark.readStream.format("msmq").options(**query["options"]).load()


def start_parquet(spark: SparkSession, query: dict[str, Any], trigger: dict[str, Any]) -> StreamingQuery:
    """Each batch overwrites a directory of its own."""
    directory = Path(query["directory"])

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(directory / "out" / f"batch={number:010d}"))

    rows = load(spark, query)
    return (
        rows.writeStream.foreachBatch(write)
        .queryName(query["name"])
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


def start_delta(spark: SparkSession, query: dict[str, Any], trigger: dict[str, Any]) -> StreamingQuery:
    """Each batch is one commit of a Delta table, with its number as the mark that it is there."""
    root = query["table"]

    def write(batch: DataFrame, number: int) -> None:
        known = DeltaTable.is_deltatable(root)
        last = DeltaTable(root).transaction_version(query["name"]) if known else None
        if last is None or number > last:
            mark = CommitProperties(app_transactions=[Transaction(query["name"], number)])
            rows = batch.select("message_id", "arrival_seq", "body").toArrow()
            write_deltalake(root, rows, mode="append", commit_properties=mark)

    return (
        load(spark, query)
        .writeStream.foreachBatch(write)
        .queryName(query["name"])
        .option("checkpointLocation", str(Path(query["directory"]) / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


def start_sink(spark: SparkSession, query: dict[str, Any], trigger: dict[str, Any]) -> StreamingQuery:
    """From queue to queue."""
    rows = load(spark, query)
    return (
        rows.select("body", "label")
        .writeStream.format("msmq")
        .queryName(query["name"])
        .options(**query["sink"])
        .option("checkpointLocation", str(Path(query["directory"]) / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


KINDS = {"parquet": start_parquet, "delta": start_delta, "sink": start_sink}


BUSY = "Python worker failed to connect back"
"""What Spark says when Python takes more than ten seconds to start; a supervisor starts the query again."""
PARDONS = 20


class Supervised:
    """A query that is started again where the machine was too busy; any other error ends the job."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._pardons = PARDONS
        self.query = start()

    def goes_on(self) -> bool:
        """Whether it runs. Raises its error."""
        error = None if self.query.isActive else self.query.exception()
        if error is not None and BUSY in str(error) and self._pardons:
            self._pardons -= 1
            self.query = self._start()
        elif error is not None:
            raise error
        return self.query.isActive

    def stop(self) -> None:
        """Raises its error."""
        self.query.stop()
        error = self.query.exception()
        if error is not None and BUSY not in str(error):
            raise error


def run(spark: SparkSession, job: dict[str, Any], trigger: dict[str, Any], finish: Path | None) -> None:
    """Run all queries until they end, or until `finish` exists. A query's error ends the job."""
    running: list[Supervised] = []
    for query in job["queries"]:
        one = Supervised(partial(KINDS[query["kind"]], spark, query, trigger))
        while one.goes_on() and one.query.status["message"].startswith("Initializing"):
            time.sleep(0.05)  # what starts at once starts slowly
        running.append(one)
    while sum(one.goes_on() for one in running) and not (finish and finish.exists()):
        time.sleep(0.05)
    for one in running:
        one.stop()


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    builder = SparkSession.builder.master(job["master"])
    for name, value in {**SETTINGS, **job.get("settings", {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    finish = Path(job["finish"])
    if not finish.exists():
        run(spark, job, {"processingTime": "0 seconds"}, finish)
    run(spark, job, {"availableNow": True}, None)
    spark.stop()


if __name__ == "__main__":
    main()
