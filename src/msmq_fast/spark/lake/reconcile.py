"""Compares senders with receivers: which messages are lost, which are proven, and which cannot be
determined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.spark.lake.lifecycle import UNDELIVERED
from msmq_fast.spark.lake.tables import LIFECYCLE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def judged(lifecycle: DataFrame, coverage: DataFrame, grace_s: float) -> DataFrame:
    """Returns the lifecycle with `dest` and `receiver` filled in where they can be determined, and with the
    states `lost` and `lost?`.

    A message is `lost` if the receiving queue manager acknowledged it to the sender, the feed of the receiver
    has no arrival of it, no final acknowledgment came back, and the lake has the receiver's feed for at least
    `grace_s` seconds after the acknowledgment. If the feed of the sender or receiver has a hole, the state is
    `lost?`, because a loss cannot be proven. `proven`: the lake has both feeds of the whole audited day,
    without a hole. `overdue`: an open message that still waits at its sender or at a router `grace_s` seconds
    after it was sent.
    """
    from pyspark.sql import functions as F

    feeds = coverage.groupBy("qm").agg(
        F.max("through").alias("through"),
        F.min(F.when(F.col("from_seq") > 1, F.col("from_time"))).alias("from_time"),
        F.min("sound").alias("sound"),
        F.min("whole").alias("whole"),
    )
    known_of = F.struct("through", "from_time", "sound", "whole")
    receivers = feeds.select(F.col("qm").alias("receiver"), known_of.alias("receiving"))
    senders = feeds.select(F.col("qm").alias("sender"), known_of.alias("sending"))
    known = (
        lifecycle.join(F.broadcast(_ways(lifecycle, coverage)), ["sender", "sent_to"], "left")
        .withColumn("receiver", F.coalesce("receiver", "usual_receiver"))
        .withColumn("dest", F.coalesce("arrived_at", "usual_dest", "sent_to"))
        .join(F.broadcast(receivers), "receiver", "left")
        .join(F.broadcast(senders), "sender", "left")
    )
    gone = (F.col("state") == "open") & F.col("acked_time").isNotNull() & ~F.col("seen_arrived")
    gone = gone & ~F.col("waiting")  # at a router
    patience = int(grace_s * 1_000_000)
    waited = F.unix_micros("receiving.through") >= F.unix_micros("acked_time") + patience
    from_time = F.col("receiving.from_time")
    in_view = F.coalesce(from_time <= F.col("first_sent"), from_time.isNull())
    sound = F.coalesce(F.col("receiving.sound") & F.col("sending.sound"), F.lit(False))
    proven = F.coalesce(F.col("receiving.whole") & F.col("sending.whole"), F.lit(False))
    state = (
        F.when(gone & sound & in_view & waited, "lost")
        .when(gone & F.coalesce(waited, F.lit(True)), "lost?")
        .otherwise(F.col("state"))
    )
    waits = F.col("acked_time").isNull() | F.col("waiting")
    late = F.unix_micros("sending.through") >= F.unix_micros("first_sent") + patience
    late = late & waits & F.col("seen_sent") & ~F.col("seen_arrived") & (F.col("state") == "open")
    overdue = F.coalesce(late, F.lit(False))
    known = known.withColumn("state", state).withColumn("overdue", overdue).withColumn("proven", proven)
    return known.select(*LIFECYCLE)


def _ways(lifecycle: DataFrame, coverage: DataFrame) -> DataFrame:
    """Returns, for each sender and address (`sender`, `sent_to`), the queue manager and queue at which most
    messages from this sender to this address arrive. If none has arrived, the queue manager is the one with
    the host name in the address.
    """
    from pyspark.sql import functions as F

    arrivals = (
        lifecycle.where(F.col("sent_to").isNotNull())
        .groupBy("sender", "sent_to")
        .agg(F.mode("receiver").alias("found"), F.mode("arrived_at").alias("usual_dest"))
    )
    host = F.lower(F.regexp_extract("sent_to", r"(?i)^direct=[a-z]+:(?://)?([^\\/:]+)", 1))
    names = coverage.where(F.col("name").isNotNull())
    names = names.groupBy(F.lower("name").alias("host")).agg(F.max("qm").alias("named"))
    return (
        arrivals.withColumn("host", host)
        .join(F.broadcast(names), "host", "left")
        .select("sender", "sent_to", F.coalesce("found", "named").alias("usual_receiver"), "usual_dest")
    )


def reconciliation(lifecycle: DataFrame, gaps: DataFrame, counters: DataFrame | None = None) -> DataFrame:
    """Returns counts per day, sender and destination, with a verdict. `counters`: the comparison of counts
    that `gold.with_uncounted` returned; None if nothing was compared.

    The verdict is `lost` if messages are lost; `unproven` if the lake does not have the whole feeds of sender
    and receiver, if numbers of a transactional sequence are missing, or if the receiver's count of the queue
    is missing or differs from the events; `undelivered` if nothing is lost, but some messages are overdue, or
    were refused, expired, purged or removed, and are not in a dead-letter queue; otherwise `ok`.

    The column `discarded` counts the messages that are not in a dead-letter queue; the column `undelivered`
    counts those in dead-letter queues, too. `pending` counts the open messages that have not arrived.
    `compared`: whether the receiver's count of the queue is equal to the sum of the events; null if
    `counters` has no row of this queue.
    """
    from pyspark.sql import functions as F

    def count(state: str) -> Column:
        return F.count_if(F.col("state") == state)

    undelivered = F.col("state").isin(*UNDELIVERED)
    rows = lifecycle.groupBy("day", "sender", "receiver", "dest").agg(
        F.count_if(F.col("seen_sent") | F.col("local")).alias("sent"),
        F.count_if(F.col("seen_arrived")).alias("arrived"),
        *(count(state).alias(state) for state in ("received", *UNDELIVERED)),
        F.count_if(undelivered).alias("undelivered"),
        F.count_if(undelivered & ~F.col("dead_lettered")).alias("discarded"),
        count("open").alias("open"),
        F.count_if((F.col("state") == "open") & ~F.col("seen_arrived")).alias("pending"),
        F.count_if("overdue").alias("overdue"),
        count("lost").alias("lost"),
        count("lost?").alias("unclear"),
        F.count_if(F.col("duplicates") > 0).alias("duplicated"),
        F.min("proven").alias("proven"),
    )
    broken = gaps.where(F.col("kind") == "gap").groupBy("sender", "dest").agg(F.count("*").alias("gaps"))
    rows = rows.join(F.broadcast(broken), ["sender", "dest"], "left")
    rows = rows.withColumn("gaps", F.coalesce("gaps", F.lit(0)))
    compared = F.lit(None).cast("boolean")
    if counters is not None:
        equal = F.min(F.coalesce("equal", F.lit(False))).alias("compared")
        looks = counters.groupBy(F.col("qm").alias("receiver"), F.col("queue").alias("dest")).agg(equal)
        rows = rows.join(F.broadcast(looks), ["receiver", "dest"], "left")
        compared = F.col("compared")
    rows = rows.withColumn("compared", compared)
    doubtful = ~F.col("proven") | (F.col("unclear") > 0) | (F.col("gaps") > 0)
    verdict = (
        F.when(F.col("lost") > 0, "lost")
        .when(doubtful | ~F.coalesce("compared", F.lit(True)), "unproven")
        .when((F.col("discarded") > 0) | (F.col("overdue") > 0), "undelivered")
        .otherwise("ok")
    )
    return rows.withColumn("verdict", verdict)
