"""Coverage of the lake: which events of each queue manager it has, and which are missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BUCKET: Final = 1 << 16
"""Number of events in a bucket: the numbers of a bucket are sorted only if some are missing."""

_SAME_MOMENT_US: Final = 10_000_000
"""Maximum difference between the clocks of two archives, in microseconds."""

SHOWN: Final = 100
"""Maximum number of missing ranges listed for one queue manager; all of them are counted."""

_KEY: Final = ("qm_guid", "incarnation")


@dataclass(frozen=True)
class Wanted:
    """The events that the lake must have for the proof of a day.

    Of the days from `first` to `last`, no event may be missing between two others. Of the day `day` itself,
    the lake must have all events from the beginning of the day up to `until`. `gone`: names or GUIDs, in
    lower case, of removed queue managers, of which no more events are expected. `dropped`: the number of the
    last event that was deleted from silver, by queue manager.
    """

    first: date
    last: date
    day: date
    until: datetime
    gone: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def around(
        cls,
        day: date,
        lookback: int,
        now: datetime,
        grace_s: float,
        *,
        gone: Collection[str] = (),
        dropped: Mapping[str, int] | None = None,
    ) -> Wanted:
        """Returns the coverage that the audit of a day needs, with `lookback` days before and after it. Of a
        day that is not over, the lake must have the events up to `grace_s` seconds ago.
        """
        days = timedelta(days=lookback)
        end = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC)
        names = tuple(sorted(name.lower() for name in gone))
        until = min(end, now - timedelta(seconds=grace_s))
        return cls(day - days, day + days, day, until, names, dropped or {})


def coverage(history: DataFrame, counters: DataFrame, wanted: Wanted | None = None) -> DataFrame:
    """Returns one row per feed, that is, per queue manager and incarnation of its store. `history` is all of
    silver/events.

    - `missing_ranges`: the holes in the wanted days, as "from-to".
    - `dropped`: how many events the queue manager dropped from its feed before they were archived.
    - `restored`: the store was restored from a backup, so earlier events may be in the feed a second time.
    - `rolled_back`: the store was set back unnoticed to an earlier state: it counted fewer events than
      before.
    - `sound`: no holes in the wanted days, nothing dropped, neither restored nor rolled back.
    - `began_late`, `ended_early`: the lake lacks the beginning or the end of the wanted day.
    - `whole`: sound, and neither began late nor ended early.
    - `from_first`: the lake has the feed from its first event, without any hole.
    - `solid_from`: the event number from which on there is no hole.
    - `through`: the time up to which the lake has all events.

    If `wanted` is None, the holes of all days count, and `began_late` and `ended_early` are false.
    """
    from pyspark.sql import functions as F

    numbers = history.select(*_KEY, "feed_seq", "event_time")
    bucket = numbers.withColumn("bucket", F.floor(F.col("feed_seq") / _BUCKET))
    buckets = bucket.groupBy(*_KEY, "bucket").agg(
        F.count("*").alias("n"),
        F.min("feed_seq").alias("low"),
        F.max("feed_seq").alias("high"),
        F.min_by("event_time", "feed_seq").alias("low_time"),
        F.max_by("event_time", "feed_seq").alias("high_time"),
        F.max("event_time").alias("last_time"),
    )
    spans = _spans(bucket, buckets, wanted)
    return _judged(spans, _holes(bucket, buckets, wanted), _told(counters, spans, wanted), wanted)


def _holes(bucket: DataFrame, buckets: DataFrame, wanted: Wanted | None) -> DataFrame:
    """Returns three values for each feed. `missing`: the number of events missing in the wanted days.
    `ranges`: their numbers. `solid_from`: the event number from which on no event is missing.

    The whole feed is searched for holes, because the events before and after a hole may be of days far from
    the wanted days.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    def hole(number: str, time: str) -> tuple[Column, ...]:
        """Returns the columns of the hole between the event `previous` and the event in the column `number`:
        its first and last missing number, and the days `after` and `before`, in order even if a clock went
        back.
        """
        return (
            (F.col("previous") + 1).alias("first"),
            (F.col(number) - 1).alias("last"),
            F.to_date(F.least("previous_time", time)).alias("after"),
            F.to_date(F.greatest("previous_time", time)).alias("before"),
        )

    order = Window.partitionBy(*_KEY).orderBy("bucket")
    outer = (
        buckets.withColumn("previous", F.lag("high").over(order))
        .withColumn("previous_time", F.lag("high_time").over(order))
        .where(F.col("low") > F.col("previous") + 1)
        .select(*_KEY, *hole("low", "low_time"))
    )
    broken = buckets.where(F.col("n") < F.col("high") - F.col("low") + 1).select(*_KEY, "bucket")
    inside = Window.partitionBy(*_KEY, "bucket").orderBy("feed_seq")
    inner = (
        bucket.join(F.broadcast(broken), [*_KEY, "bucket"])
        .withColumn("previous", F.lag("feed_seq").over(inside))
        .withColumn("previous_time", F.lag("event_time").over(inside))
        .where(F.col("feed_seq") > F.col("previous") + 1)
        .select(*_KEY, *hole("feed_seq", "event_time"))
    )
    seen = F.lit(True)
    if wanted is not None:
        seen = (F.col("after") <= F.lit(wanted.last)) & (F.col("before") >= F.lit(wanted.first))
    size = F.col("last") - F.col("first") + 1
    return (
        outer.unionByName(inner)
        .groupBy(*_KEY)
        .agg(
            F.sum(F.when(seen, size)).alias("missing"),
            F.sort_array(F.collect_list(F.when(seen, F.struct("first", "last")))).alias("ranges"),
            (F.max("last") + 1).alias("solid_from"),
        )
    )


def _spans(bucket: DataFrame, buckets: DataFrame, wanted: Wanted | None) -> DataFrame:
    """Returns the first and the last event of each feed, and `restored`: whether the store was restored from
    a backup in the wanted days or later.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("qm_guid").orderBy("incarnation")
    spans = (
        buckets.groupBy(*_KEY)
        .agg(
            F.min("low").alias("from_seq"),
            F.max("high").alias("to_seq"),
            F.sum("n").alias("events"),
            F.min_by("low_time", "low").alias("from_time"),
            F.max("last_time").alias("last_event"),
        )
        .withColumn("earlier", F.lag("to_seq").over(order))
        .withColumn("earlier_last", F.lag("last_event").over(order))
        .withColumn("from_first", (F.col("from_seq") == 1) & (F.col("events") == F.col("to_seq")))
    )
    restored = F.col("earlier").isNotNull()
    if wanted is None:
        return spans.withColumn("restored", restored)
    # The feed of a restored store begins with events from before the backup: the time of its first event says
    # nothing. It came back between the last event of the earlier feed and the first one that is its own.
    later = F.broadcast(spans.where(restored).select(*_KEY, "earlier"))
    own = (
        bucket.join(later, list(_KEY))
        .where(F.col("feed_seq") > F.col("earlier"))
        .groupBy(*_KEY)
        .agg(F.min_by("event_time", "feed_seq").alias("own_first"))
    )
    first = F.lit(wanted.first)
    near = F.coalesce(F.to_date("own_first") >= first, F.lit(True)) | (F.to_date("earlier_last") >= first)
    return spans.join(own, list(_KEY), "left").withColumn("restored", restored & near)


def _told(counters: DataFrame, spans: DataFrame, wanted: Wanted | None) -> DataFrame:
    """Returns, for each feed, what its queue manager counted. `sure_at`: the last time at which the queue
    manager had counted no more events than the lake has.

    A feed only grows. A queue manager that counts fewer events than before therefore runs on an earlier state
    of its store (`rolled_back`): new events have the numbers of old events, and for each such number the lake
    may have the new or the old event. Counts taken at about the same moment are not compared, because two
    archives may have different clocks.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    known = F.col("feed_next") - 1 <= F.coalesce("to_seq", F.lit(0))
    before = Window.partitionBy(*_KEY).orderBy(F.unix_micros("taken_at"))
    before = before.rangeBetween(Window.unboundedPreceding, -_SAME_MOMENT_US)
    fell = F.col("feed_next") < F.max("feed_next").over(before)
    if wanted is not None:
        fell = fell & (F.to_date("taken_at") >= F.lit(wanted.first))
    counters = counters.withColumn("fell", F.coalesce(fell, F.lit(False)))
    return (
        counters.join(F.broadcast(spans.select(*_KEY, "to_seq")), list(_KEY), "left")
        .groupBy(*_KEY)
        .agg(
            F.max("name").alias("name"),
            F.max("feed_first").alias("feed_first"),
            F.max("feed_next").alias("feed_next"),
            F.max(F.when(known, F.col("taken_at"))).alias("sure_at"),
            F.max("fell").alias("rolled_back"),
        )
    )


def _judged(spans: DataFrame, holes: DataFrame, counters: DataFrame, wanted: Wanted | None) -> DataFrame:
    from pyspark.sql import functions as F

    rows = spans.join(holes, list(_KEY), "left").join(counters, list(_KEY), "full")
    text = F.transform(
        F.slice("ranges", 1, SHOWN),
        lambda r: F.concat_ws("-", r["first"].cast("string"), r["last"].cast("string")),
    )
    next_seq = F.coalesce(F.col("to_seq") + 1, F.lit(1))
    rows = (
        rows.withColumn("dropped", F.coalesce(F.greatest(F.col("feed_first") - next_seq, F.lit(0)), F.lit(0)))
        .withColumn("behind", F.coalesce(F.greatest(F.col("feed_next") - next_seq, F.lit(0)), F.lit(0)))
        .withColumn("missing", F.coalesce("missing", F.lit(0)))
        .withColumn("restored", F.coalesce("restored", F.lit(False)))
        .withColumn("rolled_back", F.coalesce("rolled_back", F.lit(False)))
        .withColumn("began_late", _began_late(wanted))
        .withColumn("ended_early", _ended_early(wanted))
    )
    sound = F.col("from_seq").isNotNull() & (F.col("missing") == 0) & (F.col("dropped") == 0)
    sound = sound & ~F.col("restored") & ~F.col("rolled_back")
    return rows.select(
        F.col("qm_guid").alias("qm"),
        "name",
        "incarnation",
        "from_seq",
        "to_seq",
        F.coalesce("events", F.lit(0)).alias("events"),
        "from_time",
        F.greatest("last_event", "sure_at").alias("through"),
        F.coalesce(text, F.array().cast("array<string>")).alias("missing_ranges"),
        "missing",
        "dropped",
        "behind",
        "restored",
        "rolled_back",
        F.coalesce("from_first", F.lit(False)).alias("from_first"),
        F.coalesce("solid_from", "from_seq").alias("solid_from"),
        "began_late",
        "ended_early",
        sound.alias("sound"),
        (sound & ~F.col("began_late") & ~F.col("ended_early")).alias("whole"),
    )


def _began_late(wanted: Wanted | None) -> Column:
    """Returns whether the first event that the lake has of a feed is of the wanted day or later, although the
    feed had earlier events.
    """
    from pyspark.sql import functions as F

    if wanted is None:
        return F.lit(False)
    before = F.lit(0)
    for qm, last in wanted.dropped.items():
        before = F.when(F.col("qm_guid") == qm, F.lit(last)).otherwise(before)
    unknown = F.col("earlier").isNull() & (F.col("from_seq") > before + 1)
    return F.coalesce(unknown & (F.to_date("from_time") >= F.lit(wanted.day)), F.lit(False))


def _ended_early(wanted: Wanted | None) -> Column:
    """Returns whether the lake may lack events of a queue manager from before `wanted.until`. This is the
    case if the lake has no event and no count of that time or a later one, which would show that the lake has
    all earlier events. False for a removed queue manager.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if wanted is None:
        return F.lit(False)
    one = Window.partitionBy("qm_guid")
    reach = F.max(F.coalesce("sure_at", "last_event")).over(one)
    gone = F.lower("qm_guid").isin(*wanted.gone) | F.lower(F.max("name").over(one)).isin(*wanted.gone)
    early = F.coalesce(reach < F.lit(wanted.until), F.lit(True))
    return early & ~F.coalesce(gone, F.lit(False))
