"""Commits one micro-batch of the archive: all of its files, or none, and once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msmq_fast.spark.lake.delta import Landed, Mark
from msmq_fast.spark.lake.layout import Lake
from msmq_fast.spark.lake.tables import SCHEMAS, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BODIES: Final = "bronze/bodies"


class Placing:
    """A function for foreachBatch, which commits one batch to the lake. It is called with the rows of
    LandingSource, which describe the files of the batch, and with the number of the batch.

    A batch that was committed is skipped, because the same batch always has the same rows; the mark of the
    commit is the run of the archive and the number of the batch. After every other batch, `placed` is called
    with the number of rows in the batch.
    """

    def __init__(self, lake: Lake, table: str, run: str, placed: Callable[[int], None]) -> None:
        self._lake = lake
        self._table = f"bronze/{table}"
        self._run = run
        self._placed = placed
        self._last: int | None = None

    def __call__(self, files: DataFrame, number: int) -> None:
        if self._last is None:  # an earlier query of the run may have committed this batch
            marked = self._lake.table(self._table).marked(self._run)
            self._last = -1 if marked is None else marked
        if number > self._last:
            self.place([Landed(*row) for row in files.collect()], number)
            self._last = number

    def place(self, files: Iterable[Landed], number: int) -> None:
        """Commits the files of the batch `number`. Raises Conflict."""
        tables: dict[str, list[Landed]] = defaultdict(list)
        for file in files:
            tables[file.table].append(file)
        rows = sum(file.rows for file in tables[self._table])
        # The table itself is last: its mark says that the whole batch is in the lake. Bodies have no mark,
        # because a repeated batch stores only those bodies that it does not find.
        for table in sorted(tables, key=lambda table: (table == self._table, table)):
            marks = [] if table == _BODIES else [Mark(self._run, number)]
            self._lake.table(table).commit(tables[table], table_schema(SCHEMAS[table]), marks=marks)
        self._placed(rows)
