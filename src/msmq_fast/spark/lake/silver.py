"""Merges bronze into silver: the events of each day and queue manager, each once."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from msmq_fast.spark.lake.layout import Lake, Swap, latest
from msmq_fast.spark.lake.tables import EVENTS, SILVER_EVENTS, ddl, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MERGED: Final = "_state/silver.json"
_KEPT: Final = "_state/silver-kept.json"
_TABLE: Final = "silver/events"
_DAILY: Final = (_TABLE, "silver/lifecycle")
IDENTITY: Final = ("qm_guid", "incarnation", "feed_seq")
"""The columns that identify an event permanently."""


class Merge(NamedTuple):
    """The result of a merge: the number of batches read, and the rewritten `partitions` of silver/events,
    each as (day, GUID of the queue manager).
    """

    batches: int
    partitions: list[tuple[str, str]]


class Kept(NamedTuple):
    """What silver has kept after deletions. `first`: the first day that silver still has; None if no day was
    ever deleted. `ends`: the number of the last deleted event, by queue manager.
    """

    first: date | None
    ends: dict[str, int]


def merge(spark: SparkSession, lake: Lake) -> Merge:
    """Merges every complete batch of bronze/events that is not yet in silver into silver/events.

    Silver has each event once, even if it was archived several times, by a run that lost its checkpoint or by
    two archives.
    """
    from pyspark.sql import functions as F

    known = merged(lake)
    batches = [b for b in lake.batches("events") if b.number > known.get(b.run, -1)]
    if not batches:
        return Merge(0, [])
    fresh = load(spark.read, EVENTS, *(batch.path for batch in batches))
    fresh = fresh.withColumn("day", F.to_date("event_time")).withColumn("qm", F.col("qm_guid"))
    touched = [(str(row.day), str(row.qm)) for row in fresh.select("day", "qm").distinct().collect()]
    state = known | latest(batches)
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
    """Returns all events of silver; filter by `day`."""
    if not lake.names(_TABLE):
        return spark.createDataFrame([], ddl(SILVER_EVENTS))
    return load(spark.read, SILVER_EVENTS, lake.path(_TABLE))


def merged(lake: Lake) -> dict[str, int]:
    """Returns, for each run of an archive, the number of its last batch of events that was merged into
    silver.
    """
    return dict(lake.read_json(_MERGED) or {})


def kept(lake: Lake) -> Kept:
    """Returns the first day that `compact --keep-silver` kept, and the last events that it deleted."""
    note = lake.read_json(_KEPT)
    return Kept(None, {}) if note is None else Kept(date.fromisoformat(note["first"]), note["ends"])


def forget(lake: Lake, first: date) -> int:
    """Deletes the days of events and lifecycles before `first`. Returns how many directories were deleted."""
    limit = f"day={first}"
    days = [(table, day) for table in _DAILY for day in lake.names(table) if "day=" <= day < limit]
    if not days:
        return 0
    before, ends = kept(lake)
    for table, day in days:
        for leaf in lake.names(f"{table}/{day}") if table == _TABLE else ():
            last = lake.newest(f"{table}/{day}/{leaf}", "feed_seq")
            qm = leaf.removeprefix("qm=")
            ends[qm] = max(last or 0, ends.get(qm, 0))
    note = {"first": max(first, before or first).isoformat(), "ends": ends}
    lake.swap(Swap([f"{table}/{day}" for table, day in days], []), then=(_KEPT, note))
    return len(days)


def days(lake: Lake) -> list[date]:
    """Returns the days for which silver has events."""
    names = [name.removeprefix("day=") for name in lake.names(_TABLE) if name.startswith("day=")]
    return [date.fromisoformat(name) for name in names]


def _partitions(spark: SparkSession, lake: Lake, keys: list[tuple[str, str]]) -> DataFrame | None:
    if not keys:
        return None
    paths = [lake.path(_directory(*key)) for key in keys]
    return load(spark.read.option("basePath", lake.path(_TABLE)), SILVER_EVENTS, *paths)


def _leaf(day: str, qm: str) -> str:
    return f"day={day}/qm={qm}"


def _directory(day: str, qm: str) -> str:
    return f"{_TABLE}/{_leaf(day, qm)}"
