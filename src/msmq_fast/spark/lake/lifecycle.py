"""Lifecycles of messages: one row per message and destination, from the events of all queue managers.

The events of one message are first aggregated per queue of each queue manager (`stations`). Then the stations
at its sender and at its receiver are combined into one row. A message that was sent to several queues under
one identifier has a row for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake.classes import ORDER_ACK, failure_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_APART: Final = ("journal", "deadletter", "xact_deadletter")
"""Kinds of queues that receive copies. Events there do not belong to the life of the message itself."""

UNDELIVERED: Final = ("expired", "purged", "dead", "nacked", "removed")
"""States of messages that no program received, and none will. Each of them is an explained end."""

_ENDS: Final = ("received", *UNDELIVERED)
"""Final states of a message, the most informative ones first."""

INTERNAL_QUEUE: Final = (
    r"(?i)\\private\$\\(order|notify|admin)_queue\$$|^private=[0-9a-f-]{36}\\0000000[134]$"
)
"""Names of internal queues of queue managers: by path or direct name, or by their numbers, which
acknowledgments have that are routed back.
"""


def place_of(queue: Column) -> Column:
    r"""Returns the part of a queue's name that is the same at the sender and at the receiver:
    `private$\orders` for `DIRECT=OS:HOST\private$\orders` and for `HOST\private$\orders;retry`; null for
    names without such a part.
    """
    from pyspark.sql import functions as F

    plain = F.lower(F.regexp_replace(queue, ";.*$", ""))
    url = F.regexp_extract(plain, r"^direct=https?://[^/]+/msmq/(.+)$", 1)
    path = F.regexp_extract(plain, r"^[^\\]*\\(.+)$", 1)
    return F.nullif(F.when(url != "", F.translate(url, "/", "\\")).otherwise(path), F.lit(""))


def stations(events: DataFrame) -> DataFrame:
    """Returns one row per message, queue manager and queue, which includes its subqueues, with the times and
    counts of the message's events there.
    """
    from pyspark.sql import functions as F

    own = events.where(F.col("message_id").isNotNull() & ~_between_managers())
    outgoing = F.coalesce(F.col("queue_kind") == "outgoing", F.lit(False)) | (F.col("event") == "sent")
    apart = F.coalesce(F.col("queue_kind").isin(*_APART), F.lit(False))
    own = own.select(
        "message_id",
        "qm_guid",
        "source_machine",
        outgoing.alias("outgoing"),
        F.regexp_replace("queue", ";.*$", "").alias("home"),
        F.col("queue").contains(";").alias("sub"),
        "event",
        "event_time",
        "class",
        "reason",
        "feed_seq",
        "queue",
        "abort_count",
        "origin_queue",
        apart.alias("apart"),
    ).where(~F.col("apart") | (F.col("event") == "dead_lettered"))
    home = F.when(F.col("apart"), F.lit(None)).otherwise(F.col("home"))
    return _gathered(own.withColumn("home", home))


def _between_managers() -> Column:
    """Returns a condition for the events of messages that queue managers send to each other; the receiver
    consumes them on arrival, without a `received` event.
    """
    from pyspark.sql import functions as F

    internal = F.coalesce(F.col("queue").rlike(INTERNAL_QUEUE), F.lit(False))
    return internal | F.coalesce(F.col("class") == ORDER_ACK, F.lit(False))


def _gathered(own: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    def when(*names: str) -> Column:
        return F.when(F.col("event").isin(*names), F.col("event_time"))

    def count(*names: str) -> Column:
        return F.count_if(F.col("event").isin(*names))

    failed = (F.col("event") == "nacked") | F.col("event").isin(
        "expired", "purged", "removed", "dead_lettered"
    )
    why = F.when(failed, failure_name())
    poisoned = (F.col("event") == "moved") & F.col("queue").rlike(r"(?i);.*(poison|retry)")
    left = (F.col("event") == "moved") & F.col("origin_queue").isNull()
    return own.groupBy("message_id", "qm_guid", "source_machine", "outgoing", "home").agg(
        F.min(when("sent")).alias("sent_time"),
        F.min(when("arrived")).alias("arrived_time"),
        F.min(when("received")).alias("received_time"),
        F.min(F.when(F.col("outgoing"), when("acked"))).alias("acked_time"),
        F.max(when("expired", "purged", "removed", "nacked", "dead_lettered", "received")).alias("last_end"),
        count("sent").alias("sent"),
        count("arrived").alias("arrived"),
        (count("received") - count("returned")).alias("received"),
        count("expired").alias("expired"),
        count("purged").alias("purged"),
        count("removed").alias("removed"),
        count("nacked").alias("nacked"),
        count("dead_lettered").alias("dead"),
        count("aborted_return").alias("aborts"),
        count("duplicate").alias("wire_duplicates"),
        F.count_if(F.col("event") == "moved").alias("moves"),
        F.count_if(left).alias("withdrawn"),
        F.max(F.when(poisoned, F.col("queue"))).alias("poison_queue"),
        F.max("abort_count").alias("abort_count"),
        F.min(when("aborted_return")).alias("first_abort"),
        F.max(when("aborted_return")).alias("last_abort"),
        F.max(why).alias("why"),
        F.min("event_time").alias("first_event"),
    )


def lifecycle(stations: DataFrame) -> DataFrame:
    """Returns one row per message and destination. `state` is never `lost` or `lost?` here;
    `reconcile.judged` determines these states.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    from_here = F.coalesce(F.col("qm_guid") == F.col("source_machine"), F.lit(False))
    side = (
        F.when(F.col("outgoing") & from_here, "sender")
        .when(F.col("outgoing"), "transit")
        .when(from_here, "local")
        .otherwise("receiver")
    )
    # At its sender, a dead letter is in a separate queue, in addition to the route of the message: it is not
    # a message that was sent to a local queue.
    dead_letter = F.col("home").isNull() & (F.col("dead") > 0) & (F.col("side") == "local")
    sided = stations.withColumn("side", side)
    sided = sided.withColumn("side", F.when(dead_letter, "apart").otherwise(F.col("side")))
    message = Window.partitionBy("message_id")
    ways = F.count_if(F.col("side") == "sender").over(message)
    place = F.coalesce(place_of(F.col("home")), F.lit(""))
    single = (F.col("ways") <= 1) & (F.col("side") != "local")
    key = (
        F.when(single, F.lit("/"))
        .when(F.col("side") == "local", F.concat(F.lit("local/"), place))
        .otherwise(place)
    )
    rows = sided.withColumn("ways", ways).withColumn("way", key)
    # The copy belongs to the only destination of the message. If there are several, no event tells which one.
    own = F.when(F.col("side") != "apart", F.col("way"))
    only = F.when(F.min(own).over(message) == F.max(own).over(message), F.min(own).over(message))
    way = F.when(F.col("side") == "apart", F.coalesce(only, F.lit("apart"))).otherwise(F.col("way"))
    return _rows(rows.withColumn("way", way))


def _rows(sided: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    sending = F.col("side") == "sender"
    there_at_last = F.col("side").isin("receiver", "local")
    ended = F.col("expired") + F.col("purged") + F.col("dead") + F.col("nacked") + F.col("removed") > 0
    waiting = (F.col("side") == "transit") & F.col("acked_time").isNull() & ~ended

    def here(name: str) -> Column:
        """Returns the sum of a column over the queues at the destination."""
        return F.coalesce(F.sum(F.when(there_at_last, F.col(name))), F.lit(0))

    def total(name: str) -> Column:
        return F.coalesce(F.sum(F.when(sending, F.col(name))), F.lit(0))

    local = F.max(F.col("side") == "local")
    grouped = sided.groupBy("message_id", "way").agg(
        F.max("source_machine").alias("sender"),
        F.max(F.when(there_at_last, F.col("qm_guid"))).alias("receiver"),
        F.max(F.when(sending, F.col("home"))).alias("sent_to"),
        F.max_by(F.when(there_at_last, F.col("home")), F.when(there_at_last, F.col("arrived_time"))).alias(
            "arrived_at"
        ),
        F.min(F.when(sending, F.col("sent_time"))).alias("remote_sent"),
        F.max("acked_time").alias("acked_time"),
        F.min(F.when(there_at_last, F.col("arrived_time"))).alias("first_arrived"),
        F.min(F.when(there_at_last, F.col("received_time"))).alias("first_received"),
        F.max("last_end").alias("terminal_time"),
        F.max("poison_queue").alias("poison_queue"),
        F.max("abort_count").alias("abort_count"),
        F.min("first_abort").alias("first_abort"),
        F.max("last_abort").alias("last_abort"),
        F.max("why").alias("why"),
        F.min("first_event").alias("first_event"),
        total("sent").alias("sent"),
        total("nacked").alias("sender_nacked"),
        here("arrived").alias("arrived"),
        here("received").alias("deliveries"),
        here("aborts").alias("aborts"),
        here("wire_duplicates").alias("wire_duplicates"),
        here("withdrawn").alias("withdrawn"),
        here("moves").alias("moves"),
        local.alias("local"),
        F.max(waiting).alias("waiting"),
        *(F.sum(name).alias(name) for name in ("received", "expired", "purged", "dead", "nacked", "removed")),
    )
    return _states(grouped)


def _states(grouped: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    end = F.coalesce(*(F.when(F.col(name) > 0, F.lit(name)) for name in _ENDS))
    state = F.coalesce(end, F.lit("open"))
    sent = F.when(F.col("local"), F.col("first_arrived")).otherwise(F.col("remote_sent"))
    twice = F.greatest(F.col("arrived") - F.col("withdrawn"), F.col("deliveries")) - 1

    def milliseconds(start: str, stop: str) -> Column:
        return (F.unix_micros(stop) - F.unix_micros(start)) / 1000.0

    rows = grouped.withColumn("first_sent", sent)
    return rows.select(
        F.to_date("first_event").alias("day"),
        "message_id",
        "sender",
        "receiver",
        "sent_to",
        "arrived_at",
        "local",
        "waiting",
        "first_sent",
        "acked_time",
        "first_arrived",
        "first_received",
        F.when(end.isNotNull(), end).alias("terminal_event"),
        F.when(end.isNotNull(), F.col("terminal_time")).alias("terminal_time"),
        milliseconds("first_sent", "first_arrived").alias("sent_to_arrived_ms"),
        milliseconds("first_arrived", "first_received").alias("arrived_to_received_ms"),
        milliseconds("first_sent", "first_received").alias("total_ms"),
        F.col("deliveries").cast("int").alias("deliveries"),
        F.col("aborts").cast("int").alias("aborts"),
        F.greatest(twice, F.lit(0)).cast("int").alias("duplicates"),
        F.col("wire_duplicates").cast("int").alias("wire_duplicates"),
        F.col("moves").cast("int").alias("moves"),
        (F.col("sent") > 0).alias("seen_sent"),
        (F.col("arrived") > 0).alias("seen_arrived"),
        "abort_count",
        "poison_queue",
        "first_abort",
        "last_abort",
        F.col("why").alias("reason"),
        (F.col("dead") > 0).alias("dead_lettered"),
        state.alias("state"),
    )
