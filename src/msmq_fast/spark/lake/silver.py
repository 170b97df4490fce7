"""Merges bronze into silver: the events of each day and queue manager, each once."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from msmq_fast.spark.lake.delta import Conflict, Mark
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import SILVER_EVENTS, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEPT: Final = "_state/silver-kept.json"
_SOURCE: Final = "bronze/events"
_TABLE: Final = "silver/events"
_DAILY: Final = (_TABLE, "silver/lifecycle")
_ATTEMPTS: Final = 3
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
    """Merges every batch of bronze/events that is not yet in silver into silver/events.

    Silver has each event once, even if it was archived several times, by a run that lost its checkpoint or by
    two archives. If another process merges at the same time, one of them does the work again.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _merge(spark, lake)
        except Conflict:
            continue
    return _merge(spark, lake)


def _merge(spark: SparkSession, lake: Lake) -> Merge:
    from msmq_fast.spark.lake import frames

    target = lake.table(_TABLE)
    version = merged(lake)
    fresh = lake.table(_SOURCE).since(version)
    if fresh.version < 0 or fresh.version == version:
        return Merge(0, [])
    mark = Mark(_SOURCE, fresh.version)
    if not fresh.files:
        target.commit([], table_schema(SILVER_EVENTS), marks=[mark], seen={_SOURCE: version})
        return Merge(0, [])
    touched = {(file.partition["day"], file.partition["qm"]) for file in fresh.files}
    old = [file for file in target.files() if (file.partition["day"], file.partition["qm"]) in touched]
    rows = frames.read(spark, lake, _SOURCE, SILVER_EVENTS, fresh.files)
    if old:
        rows = rows.unionByName(frames.read(spark, lake, _TABLE, SILVER_EVENTS, old))
    once = (
        rows.dropDuplicates(list(IDENTITY))
        .repartition("day", "qm")
        .sortWithinPartitions("day", "qm", "incarnation", "feed_seq")
    )
    written = frames.write(once, lake, _TABLE, by=target.by)
    target.commit(written, table_schema(SILVER_EVENTS), removed=old, marks=[mark], seen={_SOURCE: version})
    return Merge(fresh.commits, sorted((str(day), str(qm)) for day, qm in touched))


def events(spark: SparkSession, lake: Lake) -> DataFrame:
    """Returns all events of silver; filter by `day`."""
    from msmq_fast.spark.lake import frames

    return frames.whole(spark, lake, _TABLE, SILVER_EVENTS)


def merged(lake: Lake) -> int | None:
    """Returns the version of bronze/events up to which its events are in silver; None if none are."""
    return lake.table(_TABLE).marked(_SOURCE)


def kept(lake: Lake) -> Kept:
    """Returns the first day that `compact --keep-silver` kept, and the last events that it deleted."""
    note = lake.read_json(_KEPT)
    return Kept(None, {}) if note is None else Kept(date.fromisoformat(note["first"]), note["ends"])


def forget(lake: Lake, first: date) -> int:
    """Deletes the days of events and lifecycles before `first`. Returns how many days were deleted, counted
    for each of the two tables.
    """
    gone = {
        table: [file for file in lake.table(table).files() if (file.partition["day"] or "") < str(first)]
        for table in _DAILY
    }
    if not any(gone.values()):
        return 0
    before, ends = kept(lake)
    for qm, last in _last_events(lake, [file.path for file in gone[_TABLE]]).items():
        ends[qm] = max(last, ends.get(qm, 0))
    lake.write_json(_KEPT, {"first": max(first, before or first).isoformat(), "ends": ends})
    for table, files in gone.items():
        if files:
            lake.table(table).remove(files)
    return sum(len({file.partition["day"] for file in files}) for files in gone.values())


def days(lake: Lake) -> list[date]:
    """Returns the days for which silver has events."""
    return lake.days(_TABLE)


def _last_events(lake: Lake, paths: list[str]) -> dict[str, int]:
    """Returns the greatest number of an event in these files of silver/events, by queue manager."""
    from pyarrow import compute, parquet

    last: dict[str, int] = {}
    for path in paths:
        with lake.open_file(f"{_TABLE}/{path}") as stream:
            rows = parquet.read_table(stream, columns=["qm_guid", "feed_seq"])
        if rows.num_rows:
            qm = str(rows["qm_guid"][0])
            last[qm] = max(last.get(qm, 0), compute.max(rows["feed_seq"]).as_py() or 0)
    return last
