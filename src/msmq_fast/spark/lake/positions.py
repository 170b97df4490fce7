"""Events of queues that were deleted since: their queue manager does not know the names, other events do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS = {
    "sent": "outgoing",
    "arrived": "queue",
    "moved": "queue",
    "journaled": "journal",
    "dead_lettered": "deadletter",
}


def completed(events: DataFrame) -> DataFrame:
    """Events with `queue` and `queue_kind` filled in from what brought the message there.

    A message keeps its LookupIdentifier as long as it is in a queue, and a journal or dead-letter copy has
    its own, so the event that brought it there tells the kind of queue even where no name was ever archived.
    """
    from pyspark.sql import functions as F

    nameless = F.col("queue_kind").isNull() & F.col("message_id").isNotNull()
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
