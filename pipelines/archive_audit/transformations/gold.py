"""The questions of an audit, a table each."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from msmq_fast.spark.lake import gold
from msmq_fast.spark.lake.reconcile import reconciliation
from msmq_fast.spark.lake.sequences import sequence_gaps as gaps


def known(view: str) -> DataFrame:
    return SparkSession.active().read.table(f"known_{view}")


@dp.materialized_view
def sequence_gaps() -> DataFrame:
    tables = (known("events"), known("lifecycle"), known("coverage"))
    return gaps(*tables, stateful=False)


@dp.materialized_view(comment="Sender against receiver, with a verdict")
def sender_and_receiver() -> DataFrame:
    return reconciliation(known("lifecycle"), known("gaps"))


@dp.materialized_view
def latency() -> DataFrame:
    return gold.latency(known("lifecycle"))


@dp.materialized_view
def nack_by_class() -> DataFrame:
    return gold.nack_by_class(known("events"))


@dp.materialized_view
def duplicates() -> DataFrame:
    return gold.duplicates(known("lifecycle"), known("events"))
