"""The questions of an audit, a table each."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from msmq_fast.spark.lake import gold
from msmq_fast.spark.lake.reconcile import reconciliation
from msmq_fast.spark.lake.sequences import sequence_gaps as gaps


def table(name: str) -> DataFrame:
    return SparkSession.active().read.table(name)


@dp.materialized_view
def sequence_gaps() -> DataFrame:
    tables = (table("silver_events"), table("silver_lifecycle"), table("coverage_of_feeds"))
    return gaps(*tables, stateful=False)


@dp.materialized_view(comment="Sender against receiver, with a verdict")
def sender_and_receiver() -> DataFrame:
    return reconciliation(table("silver_lifecycle"), table("sequence_gaps"))


@dp.materialized_view
def latency() -> DataFrame:
    return gold.latency(table("silver_lifecycle"))


@dp.materialized_view
def nack_by_class() -> DataFrame:
    return gold.nack_by_class(table("silver_events"))


@dp.materialized_view
def duplicates() -> DataFrame:
    return gold.duplicates(table("silver_lifecycle"), table("silver_events"))
