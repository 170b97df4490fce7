"""gold/sequence_gaps: follows every transactional sequence with Spark's transformWithState, keyed by sender,
queue and sequence. The state of a sequence is its next number and its open gaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.spark.lake.sequence import Arrival, Finding, Numbers
from msmq_fast.spark.lake.tables import struct

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column, DataFrame

FOUND: Final = {
    "sender": "STRING",
    "dest": "STRING",
    "seq_id": "BIGINT",
    "from_no": "BIGINT",
    "to_no": "BIGINT",
    "kind": "STRING",
    "first_us": "BIGINT",
}
_KEY: Final = ("sender", "dest", "seq_id")
_ORDER: Final = ["incarnation", "feed_seq"]
_STATE: Final = "expected BIGINT, gaps ARRAY<STRUCT<first: BIGINT, last: BIGINT, time_us: BIGINT>>"


def sequence_gaps(
    events: DataFrame, lifecycle: DataFrame, coverage: DataFrame, *, stateful: bool = True
) -> DataFrame:
    """Returns the columns sender, dest, seq_id, from_no, to_no, kind (gap, duplicate, reorder, restart),
    first_seen, day.

    Numbers of messages that expired or were purged at the sender before they were sent are not a gap. A
    sequence is expected to begin at 1 only if the lake has its beginning. A `restart` is a sequence that
    follows another one of the same sender for the same queue, because the sender was restarted or had nothing
    to send for a while.

    If `stateful` is False, it uses window functions in place of transformWithState, which cannot be used in a
    declarative pipeline, where PySpark needs the columns of a query before it runs.
    """
    from pyspark.sql import functions as F

    numbered = events.where(
        F.col("seq_no").isNotNull() & (F.col("seq_no") > 0) & F.col("message_id").isNotNull()
    )
    arrivals = numbered.where((F.col("event") == "arrived") & (F.col("qm_guid") != F.col("source_machine")))
    arrivals = arrivals.select(
        F.col("source_machine").alias("sender"),
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
        arrivals.select(*_KEY, "seq_no", *_ORDER, "previous", "time_us", kept.alias("withdrawn"))
        .unionByName(_withdrawn(numbered, lifecycle))
        .join(starts.select(*_KEY, "known"), list(_KEY))
    )
    found = _by_state(tokens) if stateful else by_windows(tokens)
    restarts = starts.where("again").select(
        *_KEY,
        F.col("first_no").alias("from_no"),
        F.col("first_no").alias("to_no"),
        F.lit("restart").alias("kind"),
        F.col("first_us"),
    )
    first_seen = F.timestamp_micros("first_us")
    return found.unionByName(restarts).select(
        *_KEY,
        "from_no",
        "to_no",
        "kind",
        first_seen.alias("first_seen"),
        F.to_date(first_seen).alias("day"),
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
    sent = numbered.where((F.col("event") == "sent") & (F.col("qm_guid") == F.col("source_machine")))
    return sent.join(given_up.select("message_id", "dest"), "message_id").select(
        F.col("source_machine").alias("sender"),
        "dest",
        "seq_id",
        "seq_no",
        "incarnation",
        "feed_seq",
        F.lit(-1).cast("bigint").alias("previous"),
        F.unix_micros("event_time").alias("time_us"),
        F.lit(True).alias("withdrawn"),
    )


def _by_state(tokens: DataFrame) -> DataFrame:
    groups = tokens.groupBy(*_KEY)
    return groups.transformWithStateInPandas(follower(), struct(FOUND), "append", "none")


def by_windows(tokens: DataFrame) -> DataFrame:
    """Returns the same findings as transformWithState, computed by window functions that sort each sequence
    twice.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    def row(first: Column, last: Column, kind: Column) -> list[Column]:
        ends = (first.cast("bigint").alias("from_no"), last.cast("bigint").alias("to_no"))
        return [*map(F.col, _KEY), *ends, kind.alias("kind"), F.col("time_us").alias("first_us")]

    number = F.col("seq_no")
    arrived = tokens.where(~F.col("withdrawn"))
    order = Window.partitionBy(*_KEY).orderBy(*_ORDER)
    same = Window.partitionBy(*_KEY, "seq_no").orderBy(*_ORDER)
    seen = arrived.withColumn("times", F.row_number().over(same)).withColumn(
        "before", F.max(number).over(order.rowsBetween(Window.unboundedPreceding, -1))
    )
    again = F.when(F.col("times") > 1, "duplicate").when(number < F.col("before"), "reorder")
    wrong = seen.withColumn("again", again).where(F.col("again").isNotNull())
    each = tokens.groupBy(*_KEY, "seq_no").agg(
        F.min("time_us").alias("time_us"),
        F.max("known").alias("known"),
        F.max(F.when(~F.col("withdrawn"), number)).alias("arrived"),
    )
    whole = Window.partitionBy(*_KEY)
    start = F.when(F.col("known"), 0).otherwise(F.min("arrived").over(whole) - 1)
    edges = each.withColumn("low", F.coalesce(F.lag("seq_no").over(whole.orderBy("seq_no")), start))
    edges = edges.withColumn("high", F.max("arrived").over(whole))
    gaps = edges.where((number > F.col("low") + 1) & (number <= F.col("high")))
    return wrong.select(*row(number, number, F.col("again"))).unionByName(
        gaps.select(*row(F.col("low") + 1, number - 1, F.lit("gap")))
    )


def follower() -> Any:
    """Returns the stateful processor for transformWithState. Its class is defined in this function, so that
    the module can be imported without PySpark.
    """
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Follower(StatefulProcessor):
        """Follows one sequence. Its state is the next number and the open gaps."""

        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("sequence", _STATE)

        def handleInputRows(
            self, key: tuple[str, str, int], rows: Iterator[pd.DataFrame], timerValues: Any
        ) -> Iterator[pd.DataFrame]:
            table = pd.concat(list(rows))
            numbers = self._numbers(table)
            yield _follow(key, table, numbers)
            self._state.update((numbers.expected, [list(gap) for gap in numbers.gaps]))

        def _numbers(self, table: pd.DataFrame) -> Numbers:
            if self._state.exists():
                expected, gaps = self._state.get()
                return Numbers(expected, [(gap[0], gap[1], gap[2]) for gap in gaps])
            return _begun(table)

        def close(self) -> None:
            pass

    return Follower()


def _begun(table: pd.DataFrame) -> Numbers:
    """Returns the initial state of a sequence: it expects number 1 if the lake has the beginning of the
    sequence, else the first number that the lake has.
    """
    first = table[~table["withdrawn"]].sort_values(_ORDER)["seq_no"]
    return Numbers(1 if bool(table["known"].iloc[0]) or first.empty else int(first.iloc[0]))


def _follow(key: tuple[str, str, int], table: pd.DataFrame, numbers: Numbers) -> pd.DataFrame:
    import pandas as pd

    arrived = table[~table["withdrawn"]].sort_values(_ORDER, kind="stable")
    found = [*_arrive(numbers, arrived)]
    numbers.withdraw(table.loc[table["withdrawn"], "seq_no"].tolist())
    found += numbers.missing()
    rows = [(*key, f.first, f.last, f.kind, f.time_us) for f in found]
    return pd.DataFrame(rows, columns=list(FOUND))


def _arrive(numbers: Numbers, arrived: pd.DataFrame) -> Iterator[Finding]:
    """Adds numbers that arrived and yields the findings. Numbers that are all in order, the usual case, are
    processed in one step.
    """
    column = arrived["seq_no"].to_numpy()
    if len(column) and column[0] == numbers.expected and bool((column[1:] == column[:-1] + 1).all()):
        numbers.expected = int(column[-1]) + 1
        return
    values = zip(column.tolist(), arrived["previous"].tolist(), arrived["time_us"].tolist(), strict=True)
    yield from numbers.arrive(Arrival(*value) for value in values)
