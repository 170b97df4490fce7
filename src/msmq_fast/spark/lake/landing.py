"""The tasks of the archive: write rows of the bulk API as Parquet files, directly from Arrow.

Spark plans the tasks, repeats failed ones, and counts the rows. The rows never pass through Spark's JVM,
which would take ten times as long for fifty columns. The files are below `_arriving` until the driver moves
them (writing.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from msmq_fast.spark.lake.layout import FOLDED, RECENT, SCHEMA_VERSION, Batch, Lake
from msmq_fast.spark.lake.tables import BODIES, EVENTS, MESSAGES, arrow

ARRIVING: Final = "_arriving"
_GROUP_ROWS: Final = 65_536
_GROUP_BYTES: Final = 64 << 20
"""The size of a row group in bytes, which a task holds in memory."""
_RECENT_BODIES: Final = 250_000
"""The number of recent bodies that are searched before a body is stored, since a journal or dead-letter copy
usually follows soon. `compact` finds other duplicates.
"""
_NEEDED: Final = ("qm_guid", "incarnation", "feed_seq", "event", "event_time")

LANDED: Final = pa.schema([("layer", pa.string()), ("path", pa.string()), ("rows", pa.int64())])
"""The row that a task sends to the driver for each file."""


class Landed(NamedTuple):
    """A file that a task has written below `_arriving`. `layer` is the table to which it belongs, for example
    `bronze/messages`.
    """

    layer: str
    path: str
    rows: int


@dataclass(frozen=True)
class Landing:
    """The parameters of the tasks of an archive run: what they write, and into which lake. They are pickled
    to executors.

    `events`: the rows are events, not messages. `bodies`: whether the bodies of messages are stored.
    `redacted`: columns that are written as null. The hash of a body is always stored, unless the column of
    the hash is redacted.
    """

    lake: str
    run: str
    events: bool
    bodies: bool = True
    redacted: tuple[str, ...] = ()

    def land(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Writes all rows of a task. Returns one row per written file, with the columns LANDED. Raises
        OSError, and any exception that `batches` raises, after deleting the files.
        """
        files = _Files(Lake(self.lake), self.run)
        try:
            for rows in _groups(batches):
                if self.events:
                    _events(files, rows)
                else:
                    self._messages(files, rows)
            landed = files.close()
        except BaseException:
            files.abandon()
            raise
        columns = [list(column) for column in zip(*landed, strict=True)] or [[], [], []]
        return pa.record_batch(columns, schema=LANDED)

    def _messages(self, files: _Files, rows: pa.Table) -> None:
        if "body" in rows.column_names:
            names = _hashes(rows.column("body"))
            if self.bodies and "body" not in self.redacted:
                files.write("bronze/bodies", files.unknown(rows.column("body"), names))
            rows = rows.append_column("body_sha256", names)
        gone = [name for name in self.redacted if name in rows.column_names]
        files.write("bronze/messages", _shaped(rows.drop_columns(gone), MESSAGES))


class _Files:
    """The files that one task writes: one for each table for which it has rows."""

    def __init__(self, lake: Lake, run: str) -> None:
        self._lake = lake
        self._run = run
        self._open: dict[str, tuple[str, Any, parquet.ParquetWriter]] = {}
        self._rows: dict[str, int] = {}
        self._stored: set[str] = set()

    def write(self, layer: str, rows: pa.Table) -> None:
        """Writes rows of the table `layer` as one row group of its file."""
        if not rows.num_rows:
            return
        if layer not in self._open:
            path = f"{ARRIVING}/{self._run}/{uuid.uuid4().hex}.parquet"
            stream = self._lake.create_file(path)
            short = [name for name in rows.column_names if name != "body"]
            writer = parquet.ParquetWriter(
                stream, rows.schema, compression="zstd", use_dictionary=short, write_statistics=short
            )
            self._open[layer] = (path, stream, writer)
        self._open[layer][2].write_table(rows, row_group_size=_GROUP_ROWS)
        self._rows[layer] = self._rows.get(layer, 0) + rows.num_rows

    def unknown(self, bodies: pa.ChunkedArray, names: pa.ChunkedArray) -> pa.Table:
        """Returns those bodies, with their hashes `names`, that neither this task nor a recent batch has
        stored.
        """
        known = pc.is_in(names, value_set=_recent(self._lake))
        fresh = []
        for name, stored in zip(names.to_pylist(), known.to_pylist(), strict=True):
            new = name is not None and not stored and name not in self._stored
            if new:
                self._stored.add(name)
            fresh.append(new)
        rows = pa.table({"body_sha256": names, "body": bodies}).filter(pa.array(fresh, pa.bool_()))
        return _shaped(rows, BODIES)

    def close(self) -> list[Landed]:
        """Closes the files and returns a description of each."""
        for _, stream, writer in self._open.values():
            writer.close()
            stream.close()
        return [Landed(layer, path, self._rows[layer]) for layer, (path, _, _) in self._open.items()]

    def abandon(self) -> None:
        """Deletes the files after a failure. Files that cannot be deleted are deleted when the archive is
        started again.
        """
        for path, stream, writer in self._open.values():
            for end in (writer.close, stream.close):
                with contextlib.suppress(OSError):  # for example the disk is still full
                    end()
            self._lake.delete_file(path)


def _events(files: _Files, rows: pa.Table) -> None:
    """Writes event rows unchanged. Rows that cannot be events are written to _quarantine, with the reason."""
    why = _flaws(rows)
    if why.null_count < len(why):
        bad = rows.append_column("why", why).filter(pc.is_valid(why))
        files.write("_quarantine/events", _shaped(bad, EVENTS | {"why": "STRING"}))
        rows = rows.filter(pc.is_null(why))
    files.write("bronze/events", _shaped(rows, EVENTS))


def _flaws(rows: pa.Table) -> pa.ChunkedArray:
    """Returns, for each row, the reason why it cannot be an event; null if it can."""
    none = pa.scalar(None, pa.string())
    reasons = [pc.if_else(pc.is_null(rows.column(name)), f"{name} is missing", none) for name in _NEEDED]
    low = pc.fill_null(pc.less(rows.column("feed_seq"), 1), False)
    return pc.coalesce(*reasons, pc.if_else(low, "feed_seq is not positive", none))


def _hashes(bodies: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array(
        [
            pa.array(
                [None if body is None else hashlib.sha256(body).hexdigest() for body in chunk.to_pylist()],
                pa.string(),
            )
            for chunk in bodies.chunks
        ],
        pa.string(),
    )


def _shaped(rows: pa.Table, columns: dict[str, str]) -> pa.Table:
    """Returns the rows with exactly the columns `columns`; columns that the rows lack are null."""
    arrays = []
    for name, kind in columns.items():
        if name == "schema_version":
            arrays.append(pa.array([SCHEMA_VERSION] * rows.num_rows, pa.int32()))
        elif name in rows.column_names:
            found = rows.column(name)
            arrays.append(found if found.type == arrow(kind) else found.cast(arrow(kind)))
        else:
            arrays.append(pa.nulls(rows.num_rows, arrow(kind)))
    return pa.table(arrays, schema=pa.schema([(name, arrow(kind)) for name, kind in columns.items()]))


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields tables of successive batches, each large enough for a row group of a Parquet file."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        rows = sum(one.num_rows for one in held)
        if rows >= _GROUP_ROWS or sum(one.nbytes for one in held) >= _GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held.clear()
    if held:
        yield pa.Table.from_batches(held)


_looked_at: dict[str, pa.ChunkedArray] = {}
"""Hashes of recent batches of bodies by path, kept because a worker process executes many tasks."""


def _recent(lake: Lake) -> pa.ChunkedArray:
    # `compact` drops bodies without a message from the folded batch, and does not know a task's messages.
    batches = [batch for batch in lake.recent("bodies", RECENT) if batch.run != FOLDED]
    for gone in _looked_at.keys() - {batch.path for batch in batches}:
        del _looked_at[gone]
    chunks: list[pa.Array] = []
    for batch in reversed(batches):
        if sum(map(len, chunks)) >= _RECENT_BODIES:
            break
        if batch.path not in _looked_at:
            _looked_at[batch.path] = _stored(lake, batch)
        chunks += _looked_at[batch.path].chunks
    return pa.chunked_array(chunks, pa.string())


def _stored(lake: Lake, batch: Batch) -> pa.ChunkedArray:
    """Returns the hashes of the bodies in a batch; none if the batch is too large, or `compact` has just
    replaced it.
    """
    found: list[pa.Array] = []
    with contextlib.suppress(FileNotFoundError):
        for path, _ in lake.files(lake.relative(batch.path)):
            with lake.open_file(path) as stream:
                file = parquet.ParquetFile(stream)
                if file.metadata.num_rows <= _RECENT_BODIES:
                    found += file.read(columns=["body_sha256"]).column(0).chunks
    return pa.chunked_array(found, pa.string())
