"""Writes Parquet files below the tables of a lake, from Arrow, in tasks of the archive and of Spark.

A file is not part of its table until the driver commits it (delta.py). A task that fails deletes its files; a
task that is killed leaves them, and `compact` deletes them after a week.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from msmq_fast.spark.lake.delta import Landed, Partition
from msmq_fast.spark.lake.layout import Lake

__all__ = ["LANDED", "Files", "groups", "landed_rows", "split"]

_GROUP_ROWS: Final = 65_536
_GROUP_BYTES: Final = 64 << 20
"""The size of a row group in bytes, which a task holds in memory."""
_OPEN: Final = 32
"""The number of files that a task has open at once."""
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of the directory of rows whose partition column is null."""
_WIDE: Final = ("body",)
"""Columns without dictionary and statistics."""

LANDED: Final = pa.schema(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("partition", pa.string()),
        ("stats", pa.string()),
    ]
)
"""The row that a task sends to the driver for each file, a `Landed`."""


def landed_rows(files: Iterable[Landed]) -> pa.RecordBatch:
    """Returns descriptions of files as rows with the columns LANDED."""
    columns = [list(column) for column in zip(*files, strict=True)] or [[] for _ in LANDED]
    return pa.record_batch(columns, schema=LANDED)


class Files:
    """The files that one task writes: one for each table and partition for which it has rows, or several if
    the partitions alternate.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._open: dict[tuple[str, str], _File] = {}
        self._ended: list[_File] = []

    def write(self, table: str, rows: pa.Table, partition: Partition | None = None) -> None:
        """Writes rows as one row group of the file of a partition. The rows do not have the partition
        columns. Also writes a file without rows.
        """
        key = (table, json.dumps(partition or {}))
        if key not in self._open:
            if len(self._open) == _OPEN:
                eldest = next(iter(self._open))
                self._ended.append(self._open.pop(eldest))
                self._ended[-1].close()
            self._open[key] = _File(self._lake, table, partition or {}, rows.schema)
        self._open[key].write(rows)

    def close(self) -> list[Landed]:
        """Closes the files and returns a description of each. Raises OSError."""
        for file in self._open.values():
            file.close()
        return [file.landed() for file in (*self._ended, *self._open.values())]

    def abandon(self) -> None:
        """Deletes the files after a failure, as far as that is possible."""
        for file in (*self._ended, *self._open.values()):
            file.abandon()


class _File:
    """One Parquet file."""

    def __init__(self, lake: Lake, table: str, partition: Partition, schema: pa.Schema) -> None:
        self._lake = lake
        self._table = table
        self._partition = partition
        self._rows = 0
        self._size = 0
        self._metadata: list[Any] = []
        directories = [
            f"{name}={_NULL if value is None else quote(value, safe='')}" for name, value in partition.items()
        ]
        self._path = "/".join((*directories, f"{uuid.uuid4().hex}.parquet"))
        self._stream = lake.create_file(f"{table}/{self._path}")
        short = [name for name in schema.names if name not in _WIDE]
        self._writer = parquet.ParquetWriter(
            self._stream,
            schema,
            compression="zstd",
            use_dictionary=short,
            write_statistics=short,
            metadata_collector=self._metadata,
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=_GROUP_ROWS)
        self._rows += rows.num_rows

    def close(self) -> None:
        self._writer.close()
        self._size = self._stream.tell()
        self._stream.close()

    def abandon(self) -> None:
        for end in (self._writer.close, self._stream.close):
            with contextlib.suppress(OSError, ValueError, RuntimeError):  # the disk is still full
                end()
        with contextlib.suppress(OSError):
            self._lake.delete_file(f"{self._table}/{self._path}")

    def landed(self) -> Landed:
        stats = json.dumps(_stats(self._metadata[0]))
        return Landed(self._table, self._path, self._rows, self._size, json.dumps(self._partition), stats)


def _stats(metadata: Any) -> dict[str, Any]:
    """Returns the statistics of a file for Delta's log: the number of rows, and the least and the greatest
    value of each column of numbers or times.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(metadata.num_columns):
            column = row_group.column(index)
            name, found = column.path_in_schema, column.statistics
            if found is None or not found.has_min_max:
                if found is None or found.null_count != column.num_values + (found.null_count or 0):
                    unknown.add(name)
                continue
            if isinstance(found.min, int | datetime | date) and not isinstance(found.min, bool):
                least[name] = min(found.min, least.get(name, found.min))
                most[name] = max(found.max, most.get(name, found.max))
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: _plain(value) for name, value in least.items() if name not in unknown},
        "maxValues": {name: _plain(value) for name, value in most.items() if name not in unknown},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value.isoformat() if isinstance(value, date) else value


def split(rows: pa.Table, by: Sequence[str]) -> Iterator[tuple[Partition, pa.Table]]:
    """Yields the rows of each combination of values in the columns `by`, without these columns."""
    if not by:
        yield {}, rows
        return
    if not rows.num_rows:
        return
    first = {name: rows.column(name)[0].as_py() for name in by}
    if pc.all(_equal(rows, first)).as_py():  # most often
        yield {name: _partition(one) for name, one in first.items()}, rows.drop_columns(list(by))
        return
    values = rows.select(list(by)).group_by(list(by)).aggregate([]).to_pylist()
    for value in values:
        part = rows.filter(_equal(rows, value))
        yield {name: _partition(one) for name, one in value.items()}, part.drop_columns(list(by))


def _equal(rows: pa.Table, value: dict[str, Any]) -> Any:
    kept = None
    for name, one in value.items():
        column = rows.column(name)
        same = pc.is_null(column) if one is None else pc.fill_null(pc.equal(column, one), False)
        kept = same if kept is None else pc.and_(kept, same)
    return kept


def _partition(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, date) else value


def groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields tables of successive batches, each large enough for a row group of a Parquet file."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)
