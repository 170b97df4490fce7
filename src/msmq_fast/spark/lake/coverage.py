"""The lake's proof of itself: which events of each queue manager it has, and which it misses."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BUCKET: Final = 1 << 16
"""Events that are looked at together: only where some are missing their numbers are sorted."""

SHOWN: Final = 100
"""Missing ranges that are listed for one queue manager; all of them are counted."""


def coverage(history: DataFrame, counters: DataFrame, first: date, last: date) -> DataFrame:
    """One row per queue manager and incarnation.

    `history` is all of silver; holes are looked for between the days `first` and `last`. `missing_ranges` are
    "from-to". `whole`: no holes there, nothing of the feed was dropped before it was read, and the store did
    not come back from a backup (`restored`: what happened before may have happened again). `from_first`: the
    lake has the feed from its first event, without any hole. `through` is the time up to which the lake knows
    everything.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    events = history.where(F.col("day").between(F.lit(first), F.lit(last)))
    numbers = events.select("qm_guid", "incarnation", "feed_seq", "event_time")
    bucket = numbers.withColumn("bucket", F.floor(F.col("feed_seq") / _BUCKET))
    buckets = bucket.groupBy("qm_guid", "incarnation", "bucket").agg(
        F.count("*").alias("n"),
        F.min("feed_seq").alias("low"),
        F.max("feed_seq").alias("high"),
    )
    order = Window.partitionBy("qm_guid", "incarnation").orderBy("bucket")
    between = buckets.withColumn("before", F.lag("high").over(order)).where(
        F.col("low") > F.col("before") + 1
    )
    outer = between.select(
        "qm_guid", "incarnation", (F.col("before") + 1).alias("first"), (F.col("low") - 1).alias("last")
    )
    broken = buckets.where(F.col("n") < F.col("high") - F.col("low") + 1)
    broken = broken.select("qm_guid", "incarnation", "bucket")
    inside = Window.partitionBy("qm_guid", "incarnation", "bucket").orderBy("feed_seq")
    inner = (
        bucket.join(F.broadcast(broken), ["qm_guid", "incarnation", "bucket"])
        .withColumn("before", F.lag("feed_seq").over(inside))
        .where(F.col("feed_seq") > F.col("before") + 1)
        .select(
            "qm_guid",
            "incarnation",
            (F.col("before") + 1).alias("first"),
            (F.col("feed_seq") - 1).alias("last"),
        )
    )
    holes = (
        outer.unionByName(inner)
        .groupBy("qm_guid", "incarnation")
        .agg(
            F.sum(F.col("last") - F.col("first") + 1).alias("missing"),
            F.sort_array(F.collect_list(F.struct("first", "last"))).alias("ranges"),
        )
    )
    return _judged(_spans(history, first), holes, counters)


def _spans(history: DataFrame, first: date) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    spans = history.groupBy("qm_guid", "incarnation").agg(
        F.min("feed_seq").alias("from_seq"),
        F.max("feed_seq").alias("to_seq"),
        F.count("*").alias("events"),
        F.min("event_time").alias("from_time"),
        F.max("event_time").alias("last_event"),
    )
    earlier = F.lag("incarnation").over(Window.partitionBy("qm_guid").orderBy("incarnation"))
    began = earlier.isNotNull() & (F.to_date("from_time") >= F.lit(first))
    everything = (F.col("from_seq") == 1) & (F.col("events") == F.col("to_seq"))
    return spans.withColumn("restored", began).withColumn("from_first", everything)


def _judged(spans: DataFrame, holes: DataFrame, counters: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    told = counters.groupBy("qm_guid", "incarnation").agg(
        F.max("name").alias("name"),
        F.max("feed_first").alias("feed_first"),
        F.max("feed_next").alias("feed_next"),
        F.max("taken_at").alias("told_at"),
    )
    key = ["qm_guid", "incarnation"]
    rows = spans.join(holes, key, "left").join(told, key, "full")
    text = F.transform(
        F.slice("ranges", 1, SHOWN),
        lambda r: F.concat_ws("-", r["first"].cast("string"), r["last"].cast("string")),
    )
    next_seq = F.coalesce(F.col("to_seq") + 1, F.lit(1))
    dropped = F.greatest(F.col("feed_first") - next_seq, F.lit(0))
    behind = F.greatest(F.col("feed_next") - next_seq, F.lit(0))
    missing = F.coalesce("missing", F.lit(0))
    caught_up = F.coalesce(behind == 0, F.lit(False))
    return rows.select(
        F.col("qm_guid").alias("qm"),
        "name",
        "incarnation",
        "from_seq",
        "to_seq",
        F.coalesce("events", F.lit(0)).alias("events"),
        "from_time",
        F.when(caught_up, F.greatest("last_event", "told_at"))
        .otherwise(F.col("last_event"))
        .alias("through"),
        F.coalesce(text, F.array().cast("array<string>")).alias("missing_ranges"),
        missing.alias("missing"),
        F.coalesce(dropped, F.lit(0)).alias("dropped"),
        F.coalesce(behind, F.lit(0)).alias("behind"),
        F.coalesce("restored", F.lit(False)).alias("restored"),
        F.coalesce("from_first", F.lit(False)).alias("from_first"),
        (
            F.col("from_seq").isNotNull()
            & (missing == 0)
            & (F.coalesce(dropped, F.lit(0)) == 0)
            & ~F.coalesce("restored", F.lit(False))
        ).alias("whole"),
    )
