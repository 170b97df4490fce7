"""A driver that `killharness` starts and kills: several queries in one session, until it is told to finish.

The only argument is a file with JSON: `master`, `finish` (a file: once it exists the queries end with what
is there) and `queries`. A query has `kind` (of `KINDS`), `name`, `options` of the source, and `directory`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.spark.conftest import SETTINGS


def start_parquet(spark: SparkSession, query: dict[str, Any], trigger: dict[str, Any]) -> StreamingQuery:
    """Each batch overwrites a directory of its own."""
    directory = Path(query["directory"])

    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(directory / "out" / f"batch={number:010d}"))

    rows = spark.readStream.format("msmq").options(**query["options"]).load()
    return (
        rows.writeStream.foreachBatch(write)
        .queryName(query["name"])
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(**trigger)
        .start()
    )


KINDS = {"parquet": start_parquet}


def run(spark: SparkSession, job: dict[str, Any], trigger: dict[str, Any], finish: Path | None) -> None:
    """Start all queries and wait until they end, or until `finish` exists. A query's error ends the job."""
    running = [KINDS[query["kind"]](spark, query, trigger) for query in job["queries"]]
    while any(query.isActive for query in running) and not (finish and finish.exists()):
        time.sleep(0.05)
    for query in running:
        query.stop()
        error = query.exception()
        if error is not None:
            raise error


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
