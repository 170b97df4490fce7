"""What `test_cluster` submits: reads a queue as a batch and as a stream, and prints one line of JSON.

Arguments: address of the server, directory for the stream, `register` or `discover`, and for Spark Connect
the port of its server. Imports nothing of the tests: it runs where they are not.
"""

import json
import sys
from collections.abc import Iterator

from pyspark.sql import SparkSession


def where(_: Iterator[object]) -> Iterator[tuple[str, str]]:
    """The executor, and where its msmq_fast comes from."""
    import os

    import msmq_fast.spark.source as source

    yield os.environ.get("SPARK_EXECUTOR_DIRS", ""), source.__file__


def session(port: str | None) -> SparkSession:
    if port is None:
        return SparkSession.builder.getOrCreate()
    return SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()


def main() -> None:
    url, directory, way = sys.argv[1:4]
    port = sys.argv[4] if len(sys.argv) > 4 else None
    spark = session(port)
    if way == "register":
        import msmq_fast.spark

        msmq_fast.spark.register(spark)
    options = {"url": url, "subscribe": "orders", "minPartitions": "4"}
    rows = spark.read.format("msmq").options(**options).load()
    found = {"batch": rows.count(), "bodies": rows.select("body").distinct().count()}
    query = (
        spark.readStream.format("msmq")
        .options(**options, startingOffsets="earliest", maxRowsPerTrigger="300")
        .load()
        .writeStream.format("parquet")
        .option("path", f"{directory}/out")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    found["stream"] = spark.read.parquet(f"{directory}/out").select("message_id").distinct().count()
    if port is None:
        places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
        found["executors"] = len({executor for executor, _ in places})
        found["files"] = sorted({file for _, file in places})
    print("RESULT", json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
