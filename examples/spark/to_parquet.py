"""Streams what is in queues now into Parquet files: spark-submit to_parquet.py URL QUEUE[,QUEUE…] DIRECTORY.

Run again, it goes on behind what it has written: the checkpoint is beside the data.
"""

import sys

from pyspark.sql import DataFrame, SparkSession

if len(sys.argv) != 4:
    sys.exit("usage: spark-submit to_parquet.py msmq+bulk://HOST:1802 QUEUE[,QUEUE...] DIRECTORY")
_, url, queues, directory = sys.argv


def write(batch: DataFrame, number: int) -> None:
    """A directory for each batch, which a repeated batch overwrites: every row is there once."""
    batch.write.mode("overwrite").parquet(f"{directory}/data/batch={number:010d}")


spark = SparkSession.builder.getOrCreate()
query = (
    spark.readStream.format("msmq")
    .option("url", url)
    .option("subscribe", queues)
    .option("startingOffsets", "earliest")
    .option("maxRowsPerTrigger", 100_000)
    .load()
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", f"{directory}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
print(f"{spark.read.parquet(f'{directory}/data').count()} messages in {directory}/data")
