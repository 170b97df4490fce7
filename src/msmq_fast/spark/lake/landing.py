"""The tasks of the archive: write rows of the bulk API as Parquet files, directly from Arrow.

Spark plans the tasks, repeats failed ones, and counts the rows. The rows never pass through Spark's JVM,
which would take ten times as long for fifty columns. The driver commits the files (writing.py).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from msmq_fast.spark.lake.files import Files, groups, landed_rows, split
from msmq_fast.spark.lake.layout import PARTITIONS, Lake
from msmq_fast.spark.lake.recent import RecentBodies
from msmq_fast.spark.lake.tables import (
    BODIES,
    EVENTS,
    MESSAGES,
    SCHEMA_VERSION,
    arrow,
    table_schema,
)

__all__ = ["Landing", "shaped", "with_partitions"]

_NEEDED: Final = ("qm_guid", "incarnation", "feed_seq", "event", "event_time")
_NAME: Final = re.compile(r"[0-9A-Za-z-]{1,64}")
"""The form of a queue manager's GUID, which becomes the name of a directory."""


@dataclass(frozen=True)
class Landing:
    """The parameters of the tasks of an archive: what they write, and into which lake. They are pickled to
    executors.

    `events`: the rows are events, not messages. `bodies`: whether the bodies of messages are stored.
    `redacted`: columns that are written as null. The hash of a body is always stored, unless the column of
    the hash is redacted.
    """

    lake: str
    events: bool
    bodies: bool = True
    redacted: tuple[str, ...] = ()

    def land(self, batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Writes all rows of a task. Returns one row per written file, with the columns LANDED. Raises
        OSError, and any exception that `batches` raises, after deleting the files.
        """
        lake = Lake(self.lake)
        files = Files(lake)
        stored: set[str] = set()
        try:
            for rows in groups(batches):
                if self.events:
                    _events(files, rows)
                else:
                    self._messages(lake, files, rows, stored)
            return landed_rows(files.close())
        except BaseException:
            files.abandon()
            raise

    def _messages(self, lake: Lake, files: Files, rows: pa.Table, stored: set[str]) -> None:
        kept = self.bodies and "body" not in self.redacted
        if "body" in rows.column_names:
            names = _hashes(rows.column("body"))
            if kept:
                unknown = _unknown(lake, rows.column("body"), names, stored)
                if unknown.num_rows:
                    files.write("bronze/bodies", unknown)
            rows = rows.append_column("body_sha256", names)
        rows = rows.append_column("body_kept", pa.array([kept] * rows.num_rows, pa.bool_()))
        gone = [name for name in self.redacted if name in rows.column_names]
        _write(files, "bronze/messages", shaped(rows.drop_columns(gone), MESSAGES))


def with_partitions(table: str, rows: pa.Table) -> pa.Table:
    """Returns the rows of a bronze table with its partition columns, which result from other columns."""
    by = PARTITIONS[table]
    time_column = {"bronze/events": "event_time", "bronze/messages": "arrived_time"}.get(table, "taken_at")
    if "day" in by:
        rows = rows.append_column("day", pc.cast(rows.column(time_column), pa.date32()))
    return rows.append_column("qm", rows.column("qm_guid")) if "qm" in by else rows


def shaped(rows: pa.Table, columns: dict[str, str]) -> pa.Table:
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
    return pa.table(arrays, schema=table_schema(columns))


def _write(files: Files, table: str, rows: pa.Table) -> None:
    for partition, part in split(with_partitions(table, rows), PARTITIONS[table]):
        files.write(table, part, partition)


def _events(files: Files, rows: pa.Table) -> None:
    """Writes event rows unchanged. Rows that cannot be events are written to _quarantine, with the reason."""
    why = _flaws(rows)
    if why is not None:
        bad = rows.append_column("why", why).filter(pc.is_valid(why))
        files.write("_quarantine/events", shaped(bad, EVENTS | {"why": "STRING"}))
        rows = rows.filter(pc.is_null(why))
    if rows.num_rows:
        _write(files, "bronze/events", shaped(rows, EVENTS))


def _flaws(rows: pa.Table) -> pa.ChunkedArray | None:
    """Returns, for each row, the reason why it cannot be an event; null if it can. Returns None if all rows
    can.
    """
    names, numbers = rows.column("qm_guid"), rows.column("feed_seq")
    bad = [name for name in pc.unique(names).to_pylist() if name is not None and not _NAME.fullmatch(name)]
    missing = [name for name in _NEEDED if rows.column(name).null_count]
    if not bad and not missing and _positive(numbers):
        return None
    none = pa.scalar(None, pa.string())
    reasons = [pc.if_else(pc.is_null(rows.column(name)), f"{name} is missing", none) for name in _NEEDED]
    low = pc.fill_null(pc.less(numbers, 1), False)
    odd = pc.is_in(names, value_set=pa.array(bad, pa.string()))
    return pc.coalesce(
        *reasons,
        pc.if_else(low, "feed_seq is not positive", none),
        pc.if_else(odd, "qm_guid is not a GUID", none),
    )


def _positive(numbers: pa.ChunkedArray) -> bool:
    least = pc.min(numbers).as_py()
    return least is None or least > 0


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


def _unknown(lake: Lake, bodies: pa.ChunkedArray, names: pa.ChunkedArray, stored: set[str]) -> pa.Table:
    """Returns those bodies, with their hashes `names`, that neither this task, which has stored those in
    `stored`, nor a recent batch has stored.
    """
    known = pc.is_in(names, value_set=_recent(lake).hashes(time.time()))
    fresh = pc.and_(pc.invert(known), pc.and_(pc.is_valid(names), _first_of_each(names)))
    rows = pa.table({"body_sha256": names, "body": bodies}).filter(fresh)
    if stored:  # a later group of the task
        ours = pa.array([name in stored for name in rows.column(0).to_pylist()], pa.bool_())
        rows = rows.filter(pc.invert(ours))
    stored.update(rows.column(0).to_pylist())
    return shaped(rows, BODIES)


def _first_of_each(values: pa.ChunkedArray) -> pa.Array:
    """Returns, for each value, whether it is the first one of its kind."""
    import numpy as np

    # A dictionary has values in the order of their first appearance.
    indices = values.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
    highest = np.maximum.accumulate(indices)
    return pa.array(indices > np.concatenate(([-1], highest[:-1])))


_followed: dict[str, RecentBodies] = {}
"""The recent bodies of each lake by its root, kept because a worker process executes many tasks."""


def _recent(lake: Lake) -> RecentBodies:
    return _followed.setdefault(lake.root, RecentBodies(lake))
