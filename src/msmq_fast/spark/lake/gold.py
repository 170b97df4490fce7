"""The gold tables that come from events and lifecycles without state: each answers one question."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake.classes import NEGATIVE, failure_code, failure_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES: Final = 5
"""Message identifiers that stand for all of a group."""

_ENTERS: Final = ("sent", "arrived", "journaled", "dead_lettered", "returned")
_LEAVES: Final = ("received", "removed", "expired", "purged")


def steps(events: DataFrame) -> DataFrame:
    """How events change the number of messages in queues: qm, queue, event_time, feed_seq, event, change,
    packet_size.
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


def queue_minute(steps: DataFrame, day: date) -> DataFrame:
    """Per minute and queue with events: what came and went, the bytes that came, and how many were there at
    its end.
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
    depth = F.sum("change").over(running) + F.coalesce("start", F.lit(0))
    return minutes.join(before, ["qm", "queue"], "left").select(
        "qm", "queue", "minute", "arrived", "received", "expired", "nacked", "bytes", depth.alias("depth_end")
    )


def latency(lifecycle: DataFrame) -> DataFrame:
    """Percentiles in milliseconds per hour, destination and leg (sent_arrived, arrived_received, total).

    `negative` counts legs that ended before they began, which clocks that differ make; `clock_skew_ms` is the
    shortest way from the sender in that hour: below zero it is the least by which the clocks differ.
    """
    from pyspark.sql import functions as F

    legs = F.expr(
        "stack(3, 'sent_arrived', sent_to_arrived_ms, 'arrived_received', arrived_to_received_ms,"
        " 'total', total_ms)"
    )
    hour = F.date_trunc("hour", "first_arrived").alias("hour")
    rows = lifecycle.where(F.col("seen_arrived")).select("sender", "dest", hour, legs.alias("leg", "ms"))
    shares = F.percentile_approx("ms", [0.5, 0.95, 0.99], 1000)
    return (
        rows.where(F.col("ms").isNotNull())
        .groupBy("sender", "dest", "hour", "leg")
        .agg(
            F.count("*").alias("n"),
            shares.alias("shares"),
            F.max("ms").alias("max_ms"),
            F.count_if(F.col("ms") < 0).alias("negative"),
            F.min("ms").alias("low"),
        )
        .select(
            "sender",
            "dest",
            "hour",
            "leg",
            "n",
            *(F.col("shares")[i].alias(name) for i, name in enumerate(("p50_ms", "p95_ms", "p99_ms"))),
            "max_ms",
            "negative",
            F.when(F.col("leg") == "sent_arrived", F.col("low")).alias("clock_skew_ms"),
        )
    )


def nack_by_class(events: DataFrame) -> DataFrame:
    """Refusals and failures that senders may be told of, per queue and class, with some messages of each."""
    from pyspark.sql import functions as F

    rows = events.where(F.col("event") == "nacked")
    rows = rows.withColumn("code", failure_code()).withColumn("name", failure_name())
    return rows.groupBy(
        F.col("qm_guid").alias("qm"), "queue", F.col("code").alias("class"), F.col("name").alias("class_name")
    ).agg(
        F.count("*").alias("n"),
        F.slice(F.sort_array(F.collect_set("message_id")), 1, SAMPLES).alias("sample_ids"),
    )


def duplicates(lifecycle: DataFrame, events: DataFrame) -> DataFrame:
    """Identifiers that arrived, or were delivered, more than once at one destination.

    `wire_dup`: every repetition was recognised and dropped, as it should be when a connection broke.
    """
    from pyspark.sql import functions as F

    twice = lifecycle.where((F.col("duplicates") > 0) | (F.col("wire_duplicates") > 0))
    rows = twice.select("message_id", "dest", "duplicates", "wire_duplicates")
    seen = events.where(F.col("event").isin("arrived", "duplicate", "received")).select(
        "message_id", "event_time"
    )
    return (
        seen.join(F.broadcast(rows), "message_id")
        .groupBy("message_id", "dest")
        .agg(
            (1 + F.first("duplicates") + F.first("wire_duplicates")).alias("n"),
            F.sort_array(F.collect_list("event_time")).alias("times"),
            (F.first("duplicates") == 0).alias("wire_dup"),
        )
    )


def poison(lifecycle: DataFrame, messages: DataFrame, threshold: int) -> DataFrame:
    """Messages whose transactions were aborted `threshold` times or more, or that were moved to a retry or
    poison queue.
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


def counters(steps: DataFrame, told: DataFrame, coverage: DataFrame) -> DataFrame:
    """What queue managers counted themselves against what events add up to, at the same place of the feed.

    `equal` is null where the lake does not have the feed from its first event: there is nothing to add up.
    """
    from pyspark.sql import functions as F

    place = ("qm", "incarnation", "queue")
    last = (
        told.where(F.col("queue").isNotNull())
        .groupBy("qm_guid", "queue")
        .agg(F.max_by(F.struct("incarnation", "feed_next", "count", "taken_at"), "taken_at").alias("told"))
    )
    last = last.select(F.col("qm_guid").alias("qm"), "queue", "told.*")
    sums = (
        steps.join(F.broadcast(last.select(*place, "feed_next")), list(place))
        .where(F.col("feed_seq") < F.col("feed_next"))
        .groupBy(*place)
        .agg(F.sum("change").alias("computed"))
    )
    proof = coverage.select("qm", "incarnation", "from_first", "to_seq")
    computed = F.coalesce("computed", F.lit(0))
    provable = F.col("from_first") & (F.col("to_seq") + 1 >= F.col("feed_next"))
    return (
        last.join(sums, list(place), "left")
        .join(F.broadcast(proof), ["qm", "incarnation"], "left")
        .select(
            "qm",
            "queue",
            "taken_at",
            "feed_next",
            F.col("count").alias("counted"),
            computed.alias("computed"),
            F.when(provable, F.col("count") == computed).alias("equal"),
        )
    )
