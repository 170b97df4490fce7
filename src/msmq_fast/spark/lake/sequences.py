"""gold/sequence_gaps: every transactional sequence is followed in Spark's transformWithState, keyed by
sender, queue and sequence, so that its state is the next number and the gaps that are open.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.spark.lake.sequence import Arrival, Finding, Numbers

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

FOUND: Final = (
    "sender STRING, dest STRING, seq_id BIGINT, from_no BIGINT, to_no BIGINT, kind STRING, first_us BIGINT"
)
_KEY: Final = ("sender", "dest", "seq_id")
_STATE: Final = "expected BIGINT, gaps ARRAY<STRUCT<first: BIGINT, last: BIGINT, time_us: BIGINT>>"


def sequence_gaps(events: DataFrame, lifecycle: DataFrame, coverage: DataFrame) -> DataFrame:
    """sender, dest, seq_id, from_no, to_no, kind (gap, duplicate, reorder, restart), first_seen, day.

    Numbers that the sender gave up before they left (they expired or were purged there) are no gap. The
    beginning of a sequence is expected to be 1 only where the lake saw the sequence begin. A restart is a
    sequence after another one of the same sender for the same queue: its sender was started again, or it had
    nothing to send for a while.
    """
    from pyspark.sql import functions as F

    numbered = events.where(
        F.col("seq_no").isNotNull() & (F.col("seq_no") > 0) & F.col("message_id").isNotNull()
    )
    arrivals = numbered.where(
        (F.col("event") == "arrived") & (F.col("qm_guid") != F.col("source_machine_guid"))
    )
    arrivals = arrivals.select(
        F.col("source_machine_guid").alias("sender"),
        F.regexp_replace("queue", ";.*$", "").alias("dest"),
        "seq_id",
        "seq_no",
        "qm_guid",
        "incarnation",
        "feed_seq",
        F.coalesce("prev_seq_no", F.lit(-1)).alias("previous"),
        F.unix_micros("event_time").alias("time_us"),
    ).where(F.col("dest").isNotNull())
    starts = _starts(arrivals, coverage)
    kept = F.lit(False)
    tokens = (
        arrivals.drop("qm_guid")
        .withColumn("withdrawn", kept)
        .unionByName(_withdrawn(numbered, lifecycle))
        .join(F.broadcast(starts.select(*_KEY, "known")), list(_KEY))
    )
    found = tokens.groupBy(*_KEY).transformWithStateInPandas(follower(), FOUND, "append", "none")
    restarts = starts.where("again").select(
        *_KEY,
        F.col("first_no").alias("from_no"),
        F.col("first_no").alias("to_no"),
        F.lit("restart").alias("kind"),
        F.col("first_us"),
    )
    return (
        found.unionByName(restarts)
        .withColumn("first_seen", F.timestamp_micros("first_us"))
        .withColumn("day", F.to_date("first_seen"))
        .drop("first_us")
    )


def _starts(arrivals: DataFrame, coverage: DataFrame) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    whole = coverage.groupBy(F.col("qm").alias("qm_guid")).agg(F.min("from_first").alias("from_first"))
    order = F.struct("incarnation", "feed_seq")
    firsts = arrivals.groupBy(*_KEY, "qm_guid").agg(
        F.min(order).alias("first"),
        F.min_by("seq_no", order).alias("first_no"),
        F.min("time_us").alias("first_us"),
    )
    before = F.lag("seq_id").over(Window.partitionBy("sender", "dest").orderBy("first"))
    return (
        firsts.join(F.broadcast(whole), "qm_guid", "left")
        .withColumn("again", before.isNotNull())
        .withColumn("known", F.coalesce(F.col("again") | F.col("from_first"), F.lit(False)))
    )


def _withdrawn(numbered: DataFrame, lifecycle: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    left = ("expired", "purged", "removed", "nacked", "dead")
    given_up = lifecycle.where(F.col("seen_sent") & ~F.col("seen_arrived") & F.col("state").isin(*left))
    sent = numbered.where((F.col("event") == "sent") & (F.col("qm_guid") == F.col("source_machine_guid")))
    return sent.join(given_up.select("message_id", "dest"), "message_id").select(
        F.col("source_machine_guid").alias("sender"),
        "dest",
        "seq_id",
        "seq_no",
        "incarnation",
        "feed_seq",
        F.lit(-1).cast("bigint").alias("previous"),
        F.unix_micros("event_time").alias("time_us"),
        F.lit(True).alias("withdrawn"),
    )


def follower() -> Any:
    """The processor; a function, so that this module is imported without PySpark."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Follower(StatefulProcessor):
        """State: the next number, and the gaps that are open."""

        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("sequence", _STATE)

        def handleInputRows(
            self, key: tuple[str, str, int], rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            table = pd.concat(list(rows)).sort_values(["incarnation", "feed_seq"], kind="stable")
            arrived = table[~table["withdrawn"]]
            numbers = self._numbers(arrived, bool(table["known"].iloc[0]))
            found = [*_arrive(numbers, arrived)]
            numbers.withdraw(table.loc[table["withdrawn"], "seq_no"].tolist())
            found += numbers.missing()
            self._state.update((numbers.expected, [list(gap) for gap in numbers.gaps]))
            yield pd.DataFrame(
                [(*key, f.first, f.last, f.kind, f.time_us) for f in found],
                columns=["sender", "dest", "seq_id", "from_no", "to_no", "kind", "first_us"],
            )

        def _numbers(self, arrived: pd.DataFrame, known: bool) -> Numbers:
            if self._state.exists():
                expected, gaps = self._state.get()
                return Numbers(expected, [(gap[0], gap[1], gap[2]) for gap in gaps])
            return Numbers(1 if known or arrived.empty else int(arrived["seq_no"].iloc[0]))

        def close(self) -> None:
            pass

    return Follower()


def _arrive(numbers: Numbers, arrived: pd.DataFrame) -> Iterator[Finding]:
    """What is in order, which is nearly everything, is not looked at number by number."""
    column = arrived["seq_no"].to_numpy()
    if len(column) and column[0] == numbers.expected and bool((column[1:] == column[:-1] + 1).all()):
        numbers.expected = int(column[-1]) + 1
        return
    values = zip(column.tolist(), arrived["previous"].tolist(), arrived["time_us"].tolist(), strict=True)
    yield from numbers.arrive(Arrival(*value) for value in values)
