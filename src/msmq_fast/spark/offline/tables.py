"""Reads the tables of a store as record batches. Each task of a query reads some key ranges of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import EVENT_COLUMNS, Column, chosen
from msmq_fast.spark.columns import Gatherer
from msmq_fast.spark.offline.backend import Backend, opened
from msmq_fast.spark.offline.catalogue import Catalogue, Stretch, read_catalogue
from msmq_fast.spark.offline.errors import OfflineError
from msmq_fast.spark.offline.native import event_batches, message_batches
from msmq_fast.spark.offline.plain import event_rows, message_rows
from msmq_fast.spark.offline.records import (
    QUEUE_COLUMNS,
    RAW_COLUMNS,
    WRITER_COLUMNS,
    queue_rows,
    raw_rows,
    writer_rows,
)

CORRUPT: Final = Column("_corrupt", "binary")
STORED: Final = (Column("store_key", "binary"), Column("state", "string"))

Rows = Iterator[tuple[dict[str, Any], int]]


@dataclass(frozen=True)
class Request:
    """The parameters that all tasks of a query share."""

    directory: Path
    table: str
    columns: tuple[Column, ...]
    computer: str
    decoder: str = "auto"
    mode: str = "PERMISSIVE"
    transaction: int | None = None  # the last commit when the query was planned


@dataclass(frozen=True)
class Task:
    """The key ranges that a task reads. Only the tables `messages` and `events` are split into ranges."""

    request: Request
    stretches: tuple[Stretch, ...] = ()


def table_columns(
    table: str, columns: str = "core", *, body: bool = True, raw: bool = False, security: bool = False
) -> tuple[Column, ...]:
    """Returns the columns of a table. The arguments after `table` only apply to the table `messages`: they
    select its columns in the same way as the arguments of `protocol.columns.chosen`. Raises ValueError for an
    unknown column.
    """
    if table == "messages":
        return (*chosen(columns, body=body, raw=raw, security=security), *STORED, CORRUPT)
    if table == "events":
        return (*EVENT_COLUMNS, CORRUPT)
    return {"queues": QUEUE_COLUMNS, "writers": WRITER_COLUMNS, "raw": RAW_COLUMNS}[table]


def read(task: Task) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a task.

    Raises OfflineError if the store cannot be read, if it has changed since the query was planned, or, in the
    mode FAILFAST, if a record is damaged.
    """
    request = task.request
    with opened(request.directory, request.decoder) as backend:
        _check_unchanged(request, backend)
        catalogue = read_catalogue(backend, request.computer)
        if request.table == "queues":
            yield from _gathered(request, queue_rows(backend, catalogue))
        elif request.table == "writers":
            yield from _gathered(request, writer_rows(backend, catalogue))
        elif request.table == "raw":
            yield from _gathered(request, raw_rows(backend))
        else:
            reader = _messages if request.table == "messages" else _events
            for stretch in task.stretches:
                yield from reader(request, backend, catalogue, stretch)
        _check_unchanged(request, backend)  # checked at each read: a server may have started meanwhile


def _check_unchanged(request: Request, backend: Backend) -> None:
    if request.transaction not in (None, backend.transaction()):
        raise OfflineError(
            f"the store in {request.directory} has changed since the query was planned: read a snapshot"
        )


def _gathered(request: Request, rows: Rows) -> Iterator[pa.RecordBatch]:
    """Yields record batches of the rows. Damaged rows are included in the mode PERMISSIVE and left out in
    DROPMALFORMED; in FAILFAST, they raise OfflineError.
    """
    names = [column.name for column in request.columns]
    gatherer = Gatherer(request.columns)
    for row, size in rows:
        corrupt = row.get(CORRUPT.name)
        if corrupt is not None and request.mode != "PERMISSIVE":
            if request.mode == "FAILFAST":
                raise _damage(request, row)
            continue
        if gatherer.add(tuple(map(row.get, names)), 300 + size):
            yield gatherer.take()
    yield from gatherer.rest()


def _damage(request: Request, row: dict[str, Any]) -> OfflineError:
    key = row.get("store_key")
    what = f"the message with the key {key.hex()}" if key else "a record of events"
    return OfflineError(f"{what} in the store in {request.directory} cannot be read")


def _messages(
    request: Request, backend: Backend, catalogue: Catalogue, stretch: Stretch
) -> Iterator[pa.RecordBatch]:
    names = [column.name for column in request.columns]

    def plainly(part: Stretch) -> Iterator[pa.RecordBatch]:
        return _gathered(request, message_rows(backend, catalogue, part, names))

    # Which messages a purge in progress has removed depends on data that the native encoder does not read.
    if backend.native is None or catalogue.queue(stretch.ordinal).purged_to:
        yield from plainly(stretch)
        return
    keep = request.mode == "PERMISSIVE"
    columns = [column for column in request.columns if keep or column != CORRUPT]
    position = stretch.start
    for batch, damaged, unreadable in message_batches(backend.native, catalogue, stretch, columns):
        if request.mode == "FAILFAST" and (damaged or unreadable):
            yield from plainly(Stretch(stretch.ordinal, position, stretch.stop))  # to name it in the error
            return
        if batch is not None:
            yield batch if keep else _with_nulls(batch, request.columns)
            position = _behind(batch, position)
        if damaged and keep:
            yield from _gathered(request, _damaged_positions(backend, catalogue, damaged))


def _behind(batch: pa.RecordBatch, position: int) -> int:
    """Returns the LookupIdentifier from which to read after a batch: one more than that of its last message,
    and at least `position`.
    """
    keys = batch.column(batch.schema.get_field_index("store_key"))
    return max(position, int.from_bytes(keys[-1].as_py()[4:12], "big") + 1)


def _damaged_positions(backend: Backend, catalogue: Catalogue, keys: Sequence[bytes]) -> Rows:
    for key in keys:
        ordinal = int.from_bytes(key[:4], "big")
        lookup_id = int.from_bytes(key[4:12].ljust(8, b"\0"), "big")
        found = Stretch(ordinal, lookup_id, min(lookup_id + 1, (1 << 64) - 1))
        for row, size in message_rows(backend, catalogue, found, ()):
            if row["store_key"] == key:
                yield row, size


def _with_nulls(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    schema = arrow_schema(columns)
    arrays = [
        batch.column(column.name) if column != CORRUPT else pa.nulls(batch.num_rows, pa.binary())
        for column in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _events(
    request: Request, backend: Backend, catalogue: Catalogue, stretch: Stretch
) -> Iterator[pa.RecordBatch]:
    if backend.native is None:
        yield from _gathered(request, event_rows(backend, catalogue, stretch))
        return
    columns = [column for column in request.columns if column != CORRUPT]
    for batch, covered in event_batches(backend.native, catalogue, stretch, columns):
        if batch is None:
            yield from _gathered(request, event_rows(backend, catalogue, covered))
        elif batch.num_rows:
            yield _with_nulls(batch, request.columns)
