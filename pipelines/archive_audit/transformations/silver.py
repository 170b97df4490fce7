"""Each event once, and what became of each message."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_fast.spark.lake.coverage import coverage
from msmq_fast.spark.lake.lifecycle import lifecycle, stations
from msmq_fast.spark.lake.reconcile import judged
from msmq_fast.spark.lake.silver import IDENTITY
from msmq_fast.spark.lake.tables import COUNTERS, struct


def table(name: str) -> DataFrame:
    return SparkSession.active().read.table(name)


@dp.materialized_view
def silver_events() -> DataFrame:
    once = table("bronze_events").dropDuplicates(list(IDENTITY))
    return once.withColumn("day", F.to_date("event_time"))


@dp.materialized_view(comment="Which events the lake has, and which it misses")
def coverage_of_feeds() -> DataFrame:
    counters = SparkSession.active().createDataFrame([], struct(COUNTERS))
    return coverage(table("silver_events"), counters)


@dp.materialized_view(comment="One row per message and destination")
def silver_lifecycle() -> DataFrame:
    grace = float(SparkSession.active().conf.get("spark.msmq.grace", "3600"))
    return judged(lifecycle(stations(table("silver_events"))), table("coverage_of_feeds"), grace)
