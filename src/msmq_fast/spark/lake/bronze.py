"""Reading bronze tables: complete batches only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import BODIES, COUNTERS, EVENTS, MESSAGES, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {"events": EVENTS, "messages": MESSAGES, "bodies": BODIES, "counters": COUNTERS}


def table(spark: SparkSession, lake: Lake, name: str) -> DataFrame:
    """A bronze table with the columns of this release: those that older batches lack are null."""
    return read(spark, name, [batch.path for batch in lake.batches(name)])


def read(spark: SparkSession, name: str, paths: list[str]) -> DataFrame:
    """Some batches of a bronze table."""
    schema = ddl(COLUMNS[name])
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)
