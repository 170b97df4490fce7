"""Prepares events for an audit: each event once, and with the name of its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS: Final = {
    "sent": "outgoing",
    "arrived": "queue",
    "moved": "queue",
    "journaled": "journal",
    "dead_lettered": "deadletter",
}


def restored(coverage: DataFrame) -> list[str]:
    """Returns the GUIDs of the queue managers whose store was restored from a backup."""
    from pyspark.sql import functions as F

    several = coverage.groupBy("qm").agg(F.count("*").alias("n")).where(F.col("n") > 1)
    return [row.qm for row in several.collect()]


def single(events: DataFrame, restored: list[str]) -> DataFrame:
    """Returns the events without those that a restored store repeats: the feed of such a store begins with
    the events from before the backup, which the lake already has under the earlier incarnation. `restored`:
    the GUIDs of the queue managers with such a store.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if not restored:
        return events
    content = ("qm_guid", "feed_seq", "event", "event_time", "message_id", "lookup_id")
    first = F.min("incarnation").over(Window.partitionBy(*content))
    restored_events = events.where(F.col("qm_guid").isin(restored)).withColumn("first", first)
    return events.where(~F.col("qm_guid").isin(restored)).unionByName(
        restored_events.where(F.col("incarnation") == F.col("first")).drop("first")
    )


def named(events: DataFrame) -> DataFrame:
    """Fills in `queue` and `queue_kind` in events of queues that were deleted before the events were
    archived.

    These values are taken from the event with which the message entered the queue. That event is found by the
    LookupIdentifier: a message keeps it while it is in a queue, and a copy in a journal or dead-letter queue
    has another one. The type of the event gives the kind of the queue even if the name of the queue was never
    archived.
    """
    from pyspark.sql import functions as F

    nameless = F.col("queue_kind").isNull() & F.col("lookup_id").isNotNull() & (F.col("lookup_id") > 0)
    nameless = nameless & F.col("message_id").isNotNull()
    if events.where(nameless).isEmpty():
        return events
    kinds = F.create_map(*(F.lit(part) for pair in _KINDS.items() for part in pair))
    missing = events.where(nameless).select("qm_guid", "lookup_id").distinct()
    entered = (
        events.where(F.col("event").isin(*_KINDS))
        .join(missing, ["qm_guid", "lookup_id"], "left_semi")
        .withColumn("kind", F.coalesce("queue_kind", kinds[F.col("event")]))
        .groupBy("qm_guid", "lookup_id")
        .agg(F.max("queue").alias("known_queue"), F.max_by("kind", "feed_seq").alias("known_kind"))
    )
    return (
        events.join(entered, ["qm_guid", "lookup_id"], "left")
        .withColumn("queue", F.coalesce("queue", F.when(nameless, F.col("known_queue"))))
        .withColumn("queue_kind", F.coalesce("queue_kind", F.when(nameless, F.col("known_kind"))))
        .drop("known_queue", "known_kind")
    )
