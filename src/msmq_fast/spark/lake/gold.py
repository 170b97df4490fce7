"""The gold tables that are computed from events and lifecycles without a stateful Spark operator. Each table
answers one question.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake.classes import NEGATIVE, failure_code, failure_name
from msmq_fast.spark.lake.lifecycle import UNDELIVERED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES: Final = 5
"""Number of sample message identifiers of a group."""

_ENTERS: Final = ("sent", "arrived", "journaled", "dead_lettered", "returned")
_LEAVES: Final = ("received", "removed", "expired", "purged")


def steps(events: DataFrame) -> DataFrame:
    """Returns the changes of the number of messages in queues, one row per event and queue. The columns are
    qm, queue, event_time, incarnation, feed_seq, event, change (1, -1 or 0 messages) and packet_size.
    """
    from pyspark.sql import functions as F

    outgoing = F.coalesce(F.col("queue_kind") == "outgoing", F.lit(False))
    told_only = (F.col("event") == "nacked") & (F.coalesce("class", F.lit(0)) >= NEGATIVE)  # it expires next
    passed_on = outgoing & F.col("event").isin("acked", "nacked") & ~told_only
    moved = F.col("event") == "moved"
    change = (
        F.when(F.col("event").isin(*_ENTERS), 1)
        .when(F.col("event").isin(*_LEAVES) | passed_on, -1)
        .when(moved & F.col("origin_queue").isNull(), -1)
        .when(moved, 1)
        .otherwise(0)
    )
    columns = ("event_time", "incarnation", "feed_seq", "event", "change", "packet_size")
    known = events.where(F.col("queue").isNotNull())
    own = known.withColumn("change", change).select(F.col("qm_guid").alias("qm"), "queue", *columns)
    left = known.where(moved & F.col("origin_queue").isNotNull()).withColumn("change", F.lit(-1))
    return own.unionByName(
        left.select(F.col("qm_guid").alias("qm"), F.col("origin_queue").alias("queue"), *columns)
    )


def queue_minute(steps: DataFrame, bases: DataFrame, day: date) -> DataFrame:
    """Returns one row per minute and queue with events in this minute: the messages that arrived and left,
    the bytes that arrived, and the depth (number of messages) at the end of the minute.

    `steps` must have each change once. `bases` is the result of `bases`, from which the depth of a queue
    before its first known event is computed.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    today = F.to_date("event_time") == F.lit(day)
    before = (
        steps.where(F.to_date("event_time") < F.lit(day))
        .groupBy("qm", "queue")
        .agg(F.sum("change").alias("start"))
    )

    def count(*names: str) -> Column:
        return F.count_if(F.col("event").isin(*names))

    came = F.col("change") > 0
    minutes = (
        steps.where(today)
        .groupBy("qm", "queue", F.date_trunc("minute", "event_time").alias("minute"))
        .agg(
            F.count_if(came).alias("arrived"),
            count("received", "acked").alias("received"),
            count("expired").alias("expired"),
            count("nacked").alias("nacked"),
            F.coalesce(F.sum(F.when(came, F.col("packet_size"))), F.lit(0)).alias("bytes"),
            F.sum("change").alias("change"),
        )
    )
    running = Window.partitionBy("qm", "queue").orderBy("minute")
    depth = F.sum("change").over(running) + F.coalesce("start", F.lit(0)) + F.coalesce("untold", F.lit(0))
    rows = minutes.join(before, ["qm", "queue"], "left")
    return rows.join(F.broadcast(_untold(steps, bases)), ["qm", "queue"], "left").select(
        "qm", "queue", "minute", "arrived", "received", "expired", "nacked", "bytes", depth.alias("depth_end")
    )


def _untold(steps: DataFrame, bases: DataFrame) -> DataFrame:
    """Returns `untold` for each queue (qm, queue): the number of messages that were in the queue before its
    first change in the lake.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = ["qm", "incarnation", "queue"]
    eldest = F.min("incarnation").over(Window.partitionBy("qm"))
    own = bases.withColumn("eldest", eldest).where(F.col("incarnation") == F.col("eldest")).drop("eldest")
    sums = (
        steps.join(F.broadcast(own.select(*place, "base_seq")), place)
        .where(F.col("feed_seq") < F.col("base_seq"))
        .groupBy(*place)
        .agg(F.sum("change").alias("changed"))
    )
    untold = F.col("base_count") - F.coalesce("changed", F.lit(0))
    return own.join(sums, place, "left").select("qm", "queue", untold.alias("untold"))


def latency(lifecycle: DataFrame, *, whole_day: bool = False) -> DataFrame:
    """Returns latency percentiles in milliseconds per hour, destination and leg (sent_arrived,
    arrived_received, total). `whole_day`: of all hours together, without the column `hour`.

    `negative`: how many latencies are negative, because the clocks of two computers differ. `clock_skew_ms`:
    the shortest sent_arrived latency of that hour; if it is negative, the clocks differ by at least that
    much.
    """
    from pyspark.sql import functions as F

    legs = F.expr(
        "stack(3, 'sent_arrived', sent_to_arrived_ms, 'arrived_received', arrived_to_received_ms,"
        " 'total', total_ms)"
    )
    hour = F.date_trunc("hour", "first_arrived").alias("hour")
    rows = lifecycle.where(F.col("seen_arrived")).select("sender", "dest", hour, legs.alias("leg", "ms"))
    shares = F.percentile_approx("ms", [0.5, 0.95, 0.99], 1000)
    key = ("sender", "dest", *(() if whole_day else ("hour",)), "leg")
    return (
        rows.where(F.col("ms").isNotNull())
        .groupBy(*key)
        .agg(
            F.count("*").alias("n"),
            shares.alias("shares"),
            F.max("ms").alias("max_ms"),
            F.count_if(F.col("ms") < 0).alias("negative"),
            F.min("ms").alias("low"),
        )
        .select(
            *key,
            "n",
            *(F.col("shares")[i].alias(name) for i, name in enumerate(("p50_ms", "p95_ms", "p99_ms"))),
            "max_ms",
            "negative",
            F.when(F.col("leg") == "sent_arrived", F.col("low")).alias("clock_skew_ms"),
        )
    )


def waiting(lifecycle: DataFrame, day: date) -> DataFrame:
    """Returns, for each queue, how many messages of the searched days were in it at the end of the day, and
    the time and identifier of the oldest one.

    `outgoing`: the messages were at their sender or at a router. Then `qm` and `queue` are the sender and the
    address; otherwise the receiver and the destination. `oldest`: when the oldest message arrived, or, if it
    is outgoing, was sent.
    """
    from pyspark.sql import functions as F

    end = F.lit(datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC))
    there = F.col("terminal_event").isNull() | (F.col("terminal_time") >= end)
    there = there & ~F.col("state").isin("lost", "lost?")
    arrived = F.coalesce(F.col("first_arrived") < end, F.lit(False))
    sent = F.col("seen_sent") & (F.col("first_sent") < end)
    unsent = sent & (F.col("waiting") | F.col("acked_time").isNull() | (F.col("acked_time") >= end))
    outgoing = F.coalesce(~arrived & unsent, F.lit(False))
    time = F.when(outgoing, F.col("first_sent")).otherwise(F.col("first_arrived"))
    rows = lifecycle.where(there & (arrived | outgoing)).withColumn("since", time)
    return rows.groupBy(
        F.when(outgoing, F.col("sender")).otherwise(F.col("receiver")).alias("qm"),
        F.when(outgoing, F.col("sent_to")).otherwise(F.col("dest")).alias("queue"),
        outgoing.alias("outgoing"),
    ).agg(
        F.count("*").alias("n"),
        F.min("since").alias("oldest"),
        F.min_by("message_id", "since").alias("oldest_id"),
    )


def nack_by_class(events: DataFrame) -> DataFrame:
    """Returns the number of `nacked` events, for which the sender may get a negative acknowledgment, per
    queue and message class, with the identifiers of sample messages.
    """
    from pyspark.sql import functions as F

    rows = events.where(F.col("event") == "nacked")
    rows = rows.withColumn("code", failure_code()).withColumn("name", failure_name())
    return rows.groupBy(
        F.col("qm_guid").alias("qm"), "queue", F.col("code").alias("class"), F.col("name").alias("class_name")
    ).agg(
        F.count("*").alias("n"),
        F.slice(F.sort_array(F.collect_set("message_id")), 1, SAMPLES).alias("sample_ids"),
    )


def undelivered(lifecycle: DataFrame) -> DataFrame:
    """Returns the number of messages that no program received and none will receive, per destination and
    reason, with the identifiers of sample messages.

    `arrived`: the messages were in their queue before they were removed. `dead_lettered`: they were put into
    a dead-letter queue.
    """
    from pyspark.sql import functions as F

    rows = lifecycle.where(F.col("state").isin(*UNDELIVERED))
    return rows.groupBy(
        "sender",
        "receiver",
        "dest",
        "state",
        F.coalesce("reason", "state").alias("reason"),
        F.col("seen_arrived").alias("arrived"),
        "dead_lettered",
    ).agg(
        F.count("*").alias("n"),
        F.slice(F.sort_array(F.collect_set("message_id")), 1, SAMPLES).alias("sample_ids"),
    )


def duplicates(lifecycle: DataFrame, events: DataFrame) -> DataFrame:
    """Returns the identifiers of messages that arrived, or were received by programs, more than once at one
    destination.

    `wire_dup`: the queue manager recognised and dropped every repetition, which is normal after a lost
    connection.
    """
    from pyspark.sql import functions as F

    twice = lifecycle.where((F.col("duplicates") > 0) | (F.col("wire_duplicates") > 0))
    rows = twice.select("message_id", "dest", "duplicates", "wire_duplicates")
    seen = events.where(F.col("event").isin("arrived", "duplicate", "received")).select(
        "message_id", "event_time"
    )
    return (
        seen.join(rows, "message_id")
        .groupBy("message_id", "dest")
        .agg(
            (1 + F.first("duplicates") + F.first("wire_duplicates")).alias("n"),
            F.sort_array(F.collect_list("event_time")).alias("times"),
            (F.first("duplicates") == 0).alias("wire_dup"),
        )
    )


def poison(lifecycle: DataFrame, messages: DataFrame, threshold: int) -> DataFrame:
    """Returns messages whose transactions were aborted at least `threshold` times, or that were moved to a
    retry or poison queue.
    """
    from pyspark.sql import functions as F

    aborts = F.greatest(F.coalesce("abort_count", F.lit(0)), "aborts")
    bad = lifecycle.where((aborts >= threshold) | F.col("poison_queue").isNotNull())
    rows = bad.select(
        F.coalesce("poison_queue", "dest").alias("queue"),
        "message_id",
        aborts.alias("abort_count"),
        F.col("moves").alias("move_count"),
        "first_abort",
        "last_abort",
        "state",
    )
    known = messages.groupBy("message_id").agg(
        F.max("label").alias("label"), F.max("body_sha256").alias("body_sha256")
    )
    return rows.join(known, "message_id", "left")


def bases(counters: DataFrame, coverage: DataFrame) -> DataFrame:
    """Returns, for each queue, the point of the feed from which on the changes of the number of messages can
    be added up. The columns are:

    - qm, incarnation, queue
    - base_seq: the number of the first event to add
    - base_count: the number of messages before that event
    - base_at: the time of the count; null if no event precedes base_seq

    If the lake has the whole feed, this point is the first event. Otherwise it is the first count of the
    queue manager (`told`) after the last hole of the feed; a queue that did not exist at that time was empty.
    """
    from pyspark.sql import functions as F

    feed = ["qm", "incarnation"]
    proof = coverage.select(*feed, "from_first", "solid_from")
    rows = counters.withColumnRenamed("qm_guid", "qm").join(F.broadcast(proof), feed)
    known = F.col("from_first") | (F.col("feed_next") >= F.col("solid_from"))
    rows = rows.where(F.coalesce(known, F.lit(False)))
    began = rows.groupBy(*feed, "from_first").agg(
        F.min("taken_at").alias("began"), F.min("feed_next").alias("began_seq")
    )
    first = F.min_by(F.struct("feed_next", "count", "taken_at"), "taken_at").alias("first")
    firsts = rows.where(F.col("queue").isNotNull()).groupBy(*feed, "queue").agg(first)
    asked = F.col("first.taken_at") <= F.col("began")
    whole, zero = F.col("from_first"), F.lit(0).cast("bigint")
    return firsts.join(F.broadcast(began), feed).select(
        *feed,
        "queue",
        F.when(whole, F.lit(1))
        .when(asked, F.col("first.feed_next"))
        .otherwise(F.col("began_seq"))
        .alias("base_seq"),
        F.when(~whole & asked, F.col("first.count")).otherwise(zero).alias("base_count"),
        F.when(~whole, F.col("began")).alias("base_at"),
    )


def counters(
    steps: DataFrame, counters: DataFrame, coverage: DataFrame, bases: DataFrame, day: date
) -> DataFrame:
    """Compares, for each queue, two numbers of messages: `counted`, which the queue manager counted, and
    `computed`, which results from the events up to the same position of the feed.

    The count is the first one taken after the day, else the last one taken on the day. `equal` is null if the
    lake has no earlier number of messages of the queue to which the changes could be added.
    """
    from pyspark.sql import functions as F

    place = ["qm", "incarnation", "queue"]
    end = F.lit(datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC))
    proof = coverage.select("qm", "incarnation", "to_seq")
    rows = counters.where(F.col("queue").isNotNull()).withColumnRenamed("qm_guid", "qm")
    rows = rows.join(F.broadcast(proof), ["qm", "incarnation"])
    rows = rows.where(F.col("feed_next") - 1 <= F.coalesce("to_seq", F.lit(0)))
    look = F.struct("incarnation", "feed_next", "count", "taken_at")
    behind = F.min_by(look, F.when(F.col("taken_at") >= end, F.col("taken_at")))
    within = F.max_by(look, F.when(F.to_date("taken_at") == F.lit(day), F.col("taken_at")))
    last = rows.groupBy("qm", "queue").agg(F.coalesce(behind, within).alias("told"))
    last = last.where(F.col("told").isNotNull()).select("qm", "queue", "told.*")
    earlier = F.col("base_at").isNull() | (F.col("base_at") < F.col("taken_at"))
    last = last.join(bases, place, "left").withColumn("base_seq", F.when(earlier, F.col("base_seq")))
    sums = (
        steps.join(F.broadcast(last.select(*place, "base_seq", "feed_next")), place)
        .where((F.col("feed_seq") >= F.col("base_seq")) & (F.col("feed_seq") < F.col("feed_next")))
        .groupBy(*place)
        .agg(F.sum("change").alias("changed"))
    )
    computed = F.when(F.col("base_seq").isNotNull(), F.col("base_count") + F.coalesce("changed", F.lit(0)))
    return last.join(sums, place, "left").select(
        "qm",
        "queue",
        "taken_at",
        "feed_next",
        F.col("count").alias("counted"),
        computed.alias("computed"),
        (F.col("count") == computed).alias("equal"),
    )


_COUNTED: Final = ("queue", "journal", "deadletter", "xact_deadletter")
"""Kinds of queues whose message counts an archive reads from queue managers."""


def with_uncounted(counters: DataFrame, history: DataFrame, day: date) -> DataFrame:
    """Adds to `counters` the queues that have events on the day but no count that was compared. Their `equal`
    is null.

    Without these rows, a lake without any counts would have no difference, and therefore seem correct. Queues
    that were deleted, and their journals, are not added, because they cannot be counted any more.
    """
    from pyspark.sql import functions as F

    own = history.where(F.col("queue").isNotNull())
    deleted = own.where(F.col("event") == "queue_deleted").select("qm", F.col("queue").alias("base"))
    today = (F.col("day") == F.lit(day)) & F.col("queue_kind").isin(*_COUNTED)
    uncounted = (
        own.where(today)
        .select("qm", "queue")
        .distinct()
        .join(counters.select("qm", "queue"), ["qm", "queue"], "left_anti")
        .withColumn("base", F.regexp_replace("queue", ";.*$", ""))
        .join(deleted.distinct(), ["qm", "base"], "left_anti")
        .select("qm", "queue")
    )
    return counters.unionByName(uncounted, allowMissingColumns=True)
