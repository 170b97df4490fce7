"""From bronze to silver: the events of a day and queue manager, each once."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from msmq_fast.spark.lake.layout import Lake, Swap, latest
from msmq_fast.spark.lake.tables import EVENTS, SILVER_EVENTS, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MERGED: Final = "_state/silver.json"
_TABLE: Final = "silver/events"
IDENTITY: Final = ("qm_guid", "incarnation", "feed_seq")
"""What names an event for good."""


class Merge(NamedTuple):
    """What a merge did: batches read, and the (day, queue manager) directories that were written anew."""

    batches: int
    partitions: list[tuple[str, str]]


def merge(spark: SparkSession, lake: Lake) -> Merge:
    """Brings every complete batch of bronze/events that silver does not have yet into silver.

    Each event counts once, however often it was archived: by a run that lost its checkpoint, or by two
    archives.
    """
    from pyspark.sql import functions as F

    merged = lake.read_json(_MERGED) or {}
    batches = [b for b in lake.batches("events") if b.number > merged.get(b.run, -1)]
    if not batches:
        return Merge(0, [])
    fresh = spark.read.schema(ddl(EVENTS)).parquet(*(batch.path for batch in batches))
    fresh = fresh.withColumn("day", F.to_date("event_time")).withColumn("qm", F.col("qm_guid"))
    touched = [(str(row.day), str(row.qm)) for row in fresh.select("day", "qm").distinct().collect()]
    state = merged | latest(batches)
    if not touched:
        lake.write_json(_MERGED, state)
        return Merge(len(batches), [])
    stage = lake.staging()
    kept = _partitions(spark, lake, [key for key in touched if lake.exists(_directory(*key))])
    whole = fresh if kept is None else fresh.unionByName(kept)
    (
        whole.dropDuplicates(list(IDENTITY))
        .repartition("day", "qm")
        .sortWithinPartitions("day", "qm", "incarnation", "feed_seq")
        .write.partitionBy("day", "qm")
        .parquet(lake.path(stage))
    )
    moves = [(f"{stage}/{_leaf(*key)}", _directory(*key)) for key in touched]
    lake.swap(Swap([], moves), then=(_MERGED, state))
    lake.delete(stage)
    return Merge(len(batches), sorted(touched))


def events(spark: SparkSession, lake: Lake) -> DataFrame:
    """All of silver; choose by `day`."""
    if not lake.names(_TABLE):
        return spark.createDataFrame([], ddl(SILVER_EVENTS))
    return spark.read.schema(ddl(SILVER_EVENTS)).parquet(lake.path(_TABLE))


def days(lake: Lake) -> list[date]:
    """The days of which silver has something."""
    names = [name.removeprefix("day=") for name in lake.names(_TABLE) if name.startswith("day=")]
    return [date.fromisoformat(name) for name in names]


def _partitions(spark: SparkSession, lake: Lake, keys: list[tuple[str, str]]) -> DataFrame | None:
    if not keys:
        return None
    paths = [lake.path(_directory(*key)) for key in keys]
    return spark.read.schema(ddl(SILVER_EVENTS)).option("basePath", lake.path(_TABLE)).parquet(*paths)


def _leaf(day: str, qm: str) -> str:
    return f"day={day}/qm={qm}"


def _directory(day: str, qm: str) -> str:
    return f"{_TABLE}/{_leaf(day, qm)}"
