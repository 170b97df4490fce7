"""Reads bronze tables, and shapes their rows for declarative pipelines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from typing import TYPE_CHECKING

from msmq_fast.spark.lake.delta import File
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import BODIES, COUNTERS, EVENTS, MESSAGES, SCHEMA_VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_COUNTED = "_state/counters-kept.json"
COLUMNS = {"events": EVENTS, "messages": MESSAGES, "bodies": BODIES, "counters": COUNTERS}


def table(spark: SparkSession, lake: Lake, name: str) -> DataFrame:
    """Returns a bronze table with the columns of this release: columns that older files lack are null."""
    return read(spark, lake, name, lake.table(f"bronze/{name}").files())


def read(spark: SparkSession, lake: Lake, name: str, files: Iterable[File]) -> DataFrame:
    """Returns the rows of files of a bronze table."""
    from msmq_fast.spark.lake import frames

    return frames.read(spark, lake, f"bronze/{name}", COLUMNS[name], files)


def counted_since(lake: Lake) -> date | None:
    """Returns the first day of which bronze/counters still has all counts; None if none were ever deleted."""
    note = lake.read_json(_COUNTED)
    return None if note is None else date.fromisoformat(note["first"])


def note_counted_since(lake: Lake, first: date) -> None:
    """Records the day that `counted_since` returns; call this before counters of earlier days are deleted."""
    lake.write_json(_COUNTED, {"first": max(first, counted_since(lake) or first).isoformat()})


def shaped(rows: DataFrame, columns: dict[str, str], known: Collection[str]) -> DataFrame:
    """Returns the rows with exactly the columns `columns`; a column that the source lacks is null. `known`
    are the columns of the source, which a declarative pipeline cannot inspect.
    """
    from pyspark.sql import functions as F

    def column(name: str, kind: str) -> Column:
        if name == "schema_version":
            return F.lit(SCHEMA_VERSION).alias(name)
        found = F.col(name) if name in known else F.lit(None)
        return found.cast(kind).alias(name)

    return rows.select(*(column(name, kind) for name, kind in columns.items()))
