"""Each event once, and what became of each message."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from msmq_fast.spark.lake.coverage import coverage
from msmq_fast.spark.lake.lifecycle import lifecycle, stations
from msmq_fast.spark.lake.reconcile import judged
from msmq_fast.spark.lake.silver import IDENTITY
from msmq_fast.spark.lake.tables import COUNTERS, struct


def stored(table: str) -> DataFrame:
    return SparkSession.active().read.table(table)


# The functions of the lake read each table through a view. PySpark 4.3 looks up the tables of a query with
# `withColumn` when the query is defined. If the catalog has such a table from an earlier run, the query does
# not wait for the flow that fills the table now, and reads its old files. The catalog has no such view, so
# the query is looked up when it runs.
@dp.temporary_view
def arrived_events() -> DataFrame:
    return stored("bronze_events")


@dp.temporary_view
def known_events() -> DataFrame:
    return stored("silver_events")


@dp.temporary_view
def known_coverage() -> DataFrame:
    return stored("coverage_of_feeds")


@dp.temporary_view
def known_lifecycle() -> DataFrame:
    return stored("silver_lifecycle")


@dp.temporary_view
def known_gaps() -> DataFrame:
    return stored("sequence_gaps")


@dp.materialized_view
def silver_events() -> DataFrame:
    once = stored("arrived_events").dropDuplicates(list(IDENTITY))
    return once.withColumn("day", F.to_date("event_time"))


@dp.materialized_view(comment="Which events the lake has, and which it misses")
def coverage_of_feeds() -> DataFrame:
    counters = SparkSession.active().createDataFrame([], struct(COUNTERS))
    return coverage(stored("known_events"), counters)


@dp.materialized_view(comment="One row per message and destination")
def silver_lifecycle() -> DataFrame:
    grace = float(SparkSession.active().conf.get("spark.msmq.grace", "3600"))
    return judged(lifecycle(stations(stored("known_events"))), stored("known_coverage"), grace)
