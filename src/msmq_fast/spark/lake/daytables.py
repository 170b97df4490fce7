"""Writes the tables of one audited day. When all are written, they take the place of the last audit's.

The note in gold/audits says which events the tables of the day are made of. It must not be newer than any of
them, even if processes are killed or audit the same day at the same time:

1. Each audit of a day has a number, greater than those of all audits before it. The number is the mark of its
   commits, which fail as soon as another audit of the day has begun to commit.
2. The first commit removes the old note, the last one adds the new note. A day without a note is audited
   again.
3. Each other table gets the day in one step. gold/reconciliation is the last of them, because it makes the
   day an audited one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.spark.lake.delta import Conflict, Landed, Mark
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import GOLD

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DayTables"]

_LAST: Final = "gold/reconciliation"
_NOTES: Final = "gold/audits"
_TABLES: Final = ("silver/lifecycle", *(f"gold/{name}" for name in GOLD))
"""The tables that an audit writes. Any of them may have been deleted since the last audit."""


class DayTables:
    """The tables of one day, written by one audit. Make it before the audit reads anything."""

    def __init__(self, spark: SparkSession, lake: Lake, day: date, done: Callable[[], None]) -> None:
        self._spark = spark
        self._lake = lake
        self._day = day
        self._done = done
        self._mark = f"day={day}"
        self._last = max(lake.table(name).marked(self._mark) or 0 for name in _TABLES)
        self._written: dict[str, tuple[list[Landed], pa.Schema]] = {}
        self._kept: list[DataFrame] = []

    def __enter__(self) -> DayTables:
        return self

    def __exit__(self, *_: object) -> None:
        for rows in self._kept:
            rows.unpersist()

    def commit(self) -> None:
        """Replaces the day in the tables that were written. Raises Conflict if another audit of the day has
        begun to do so since this object was made.
        """
        self._replace(_NOTES, [], self._last + 1)
        tables = self._written.keys() - {_NOTES}
        for name in sorted(tables, key=lambda name: (name == _LAST, name)):
            self._replace(name, self._written[name][0], self._last + 1)
        self._replace(_NOTES, self._written[_NOTES][0], self._last + 2)

    def _replace(self, name: str, files: list[Landed], number: int) -> None:
        import pyarrow as pa

        table = self._lake.table(name)
        done = table.commit(
            files,
            self._written[name][1].append(pa.field("day", pa.date32())),
            removed=table.files(day=str(self._day)),
            marks=[Mark(self._mark, number)],
        )
        if not done:
            raise Conflict(f"{name}: another process has audited {self._day}")

    def write(self, table: str, rows: DataFrame, *, whole: bool = True) -> DataFrame:
        """Writes the day's part of a table, and returns a DataFrame that reads it back. `whole`: writes a
        single file, for a small table.
        """
        from msmq_fast.spark.lake import frames

        files = frames.write(
            rows.coalesce(1) if whole else rows, self._lake, table, partition={"day": str(self._day)}
        )
        self._written[table] = files, frames.arrow_of(rows.schema)
        self._done()
        return frames.read(self._spark, self._lake, table, rows.schema, frames.landed(files))

    def note(self, row: dict[str, Any]) -> None:
        """Writes the note of the audit, a row of gold/audits."""
        import pyarrow as pa

        from msmq_fast.spark.lake.files import Files

        files, rows = Files(self._lake), pa.Table.from_pylist([row])
        files.write(_NOTES, rows, {"day": str(self._day)})
        self._written[_NOTES] = files.close(), rows.schema

    def keep(self, rows: DataFrame) -> DataFrame:
        """Returns an intermediate result that several tables need, computed once, until the end of the
        audit.
        """
        from msmq_fast.spark.lake import frames

        self._kept.append(frames.kept(rows))
        self._done()
        return self._kept[-1]
