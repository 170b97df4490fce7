"""What becomes of one micro-batch of the archive: directories that are whole, or do not count."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake.layout import SCHEMA_VERSION, SUCCESS, Lake, batch_directory
from msmq_fast.spark.lake.tables import BODIES, EVENTS, MESSAGES, ddl

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Writer = Callable[["DataFrame", int], None]
"""What foreachBatch calls with the rows and the number of a batch."""

RECENT: Final = 32
"""Batches in which a body is looked for before it is stored: a journal or dead-letter copy comes soon.
`compact` finds the others.
"""


def events_writer(lake: Lake, run: str) -> Writer:
    """bronze/events: rows as they are. What can't be an event goes to _quarantine, with the reason."""

    def write(rows: DataFrame, number: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        target = batch_directory("events", run, number)
        if lake.exists(f"{target}/{SUCCESS}"):
            return  # written before a kill: the same batch has the same rows
        flaw = _flaw()
        seen = Observation()
        observed = rows.observe(seen, F.count_if(flaw.isNotNull()).alias("bad"))
        _write(lake, shaped(observed.where(flaw.isNull()), EVENTS), target)
        if seen.get["bad"]:
            bad = shaped(rows, EVENTS).withColumn("why", flaw).where(F.col("why").isNotNull())
            _write(lake, bad, target.replace("bronze/", "_quarantine/", 1))

    return write


def messages_writer(lake: Lake, run: str, redacted: tuple[str, ...], bodies: bool) -> Writer:
    """bronze/messages and bronze/bodies: headers, and each body once by its hash.

    `redacted` columns are written as null. `bodies`: whether they are kept; the hash is kept in any case
    unless it is redacted itself.
    """

    def write(rows: DataFrame, number: int) -> None:
        from pyspark.sql import functions as F

        target = batch_directory("messages", run, number)
        if lake.exists(f"{target}/{SUCCESS}"):
            return
        if "body" in rows.columns:
            rows = rows.withColumn("body_sha256", F.sha2("body", 256))
        rows = rows.persist()  # read once: what receivers take meanwhile is gone
        try:
            if bodies and "body" in rows.columns and "body" not in redacted:
                _write(lake, _new_bodies(lake, rows), batch_directory("bodies", run, number))
            for name in redacted:
                rows = rows.withColumn(name, F.lit(None).cast(MESSAGES.get(name, "BINARY")))
            _write(lake, shaped(rows, MESSAGES), target)
        finally:
            rows.unpersist()

    return write


def shaped(rows: DataFrame, columns: dict[str, str], known: Collection[str] | None = None) -> DataFrame:
    """With exactly these columns: null where the source does not have them.

    `known`: the columns that `rows` has, for those who may not ask it (in declarative pipelines).
    """
    from pyspark.sql import functions as F

    present = rows.columns if known is None else known

    def column(name: str, kind: str) -> Column:
        if name == "schema_version":
            return F.lit(SCHEMA_VERSION).alias(name)
        found = F.col(name) if name in present else F.lit(None)
        return found.cast(kind).alias(name)

    return rows.select(*(column(name, kind) for name, kind in columns.items()))


def _flaw() -> Column:
    """Why a row can't be an event; null if it can."""
    from pyspark.sql import functions as F

    needed = ("qm_guid", "incarnation", "feed_seq", "event", "event_time")
    missing = F.coalesce(*(F.when(F.col(name).isNull(), F.lit(f"{name} is missing")) for name in needed))
    return F.coalesce(missing, F.when(F.col("feed_seq") < 1, F.lit("feed_seq is not positive")))


def _new_bodies(lake: Lake, rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    fresh = (
        rows.where(F.col("body").isNotNull()).select("body_sha256", "body").dropDuplicates(["body_sha256"])
    )
    recent = sorted(lake.batches("bodies"), key=lambda batch: (batch.number, batch.run))[-RECENT:]
    if not recent:
        return fresh
    reader = rows.sparkSession.read.schema(ddl(BODIES))
    known = reader.parquet(*(batch.path for batch in recent)).select("body_sha256")
    return fresh.join(known, "body_sha256", "left_anti")


def _write(lake: Lake, rows: DataFrame, target: str) -> None:
    try:
        rows.write.mode("overwrite").parquet(lake.path(target))
    except Exception:
        with contextlib.suppress(OSError):
            lake.delete(target)
        raise
