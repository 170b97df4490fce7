"""A streaming query without Spark: calls a reader as Spark's engine does, and dies on demand."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable

from msmq_fast.spark.datasource import MsmqDataSource
from msmq_fast.spark.source import MsmqReader, MsmqStreamReader

POINTS = ("planned", "logged", "partitioned", "read", "written")
"""Where a query can die: each is the moment behind that step, before the next one."""


class Died(Exception):
    """The driver was killed."""


def stream_reader(**options: Any) -> MsmqStreamReader:
    source = MsmqDataSource({name: str(value) for name, value in options.items()})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, MsmqStreamReader)
    reader.poll_s = 0.0
    return reader


def batch_rows(**options: Any) -> list[dict[str, Any]]:
    """What `spark.read` would give."""
    source = MsmqDataSource({name: str(value) for name, value in options.items()})
    reader = source.reader(source.schema())
    assert isinstance(reader, MsmqReader)
    return read_all(reader, reader.partitions())


def read_all(reader: Any, partitions: Any) -> list[dict[str, Any]]:
    """Read as executors do: by a copy that was pickled, partitions too."""
    rows: list[dict[str, Any]] = []
    for partition in partitions:
        there, part = pickle.loads(pickle.dumps((reader, partition)))  # noqa: S301
        for batch in there.read(part):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.equals(reader._reading.schema)
            rows += batch.to_pylist()
    return rows


class Query:
    """A query with its checkpoint (`offsets`, `commits`) and its sink, where a batch overwrites itself."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.offsets: list[str] = []
        self.commits: set[int] = set()
        self.sink: dict[int, list[dict[str, Any]]] = {}
        self._reader: MsmqStreamReader | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for batch in sorted(self.sink) for row in self.sink[batch]]

    @property
    def bodies(self) -> list[bytes]:
        return [row["body"] for row in self.rows]

    def restart(self, **options: Any) -> None:
        """As after a kill: nothing but checkpoint and sink is left."""
        self._reader = None
        self.options |= options

    def run(self, *, available_now: bool = False, die: str | None = None) -> int:
        """Batches until there is nothing more; how many. `die`: at that point of the first batch, Died."""
        reader = self._started()
        if available_now:
            reader.prepareForTriggerAvailableNow()
        batches = 0
        while self._trigger(reader, die):
            batches += 1
        return batches

    def batch(self, die: str | None = None) -> bool:
        """One trigger; whether there was a batch."""
        return self._trigger(self._started(), die)

    def _started(self) -> MsmqStreamReader:
        if self._reader is None:
            self._reader = stream_reader(**self.options)
            if len(self.offsets) - (len(self.offsets) - 1 not in self.commits) <= 0:
                self._initial = json.dumps(self._reader.initialOffset())
        return self._reader

    def _trigger(self, reader: MsmqStreamReader, die: str | None) -> bool:
        number = len(self.offsets) - 1
        if number not in self.commits and number >= 0:
            start = self.offsets[number - 1] if number else self._initial
        else:
            start = self.offsets[number] if number >= 0 else self._initial
            limit = ReadAllAvailable() if die == "unlimited" else reader.getDefaultReadLimit()
            end = json.dumps(reader.latestOffset(json.loads(start), limit))
            if end == start:
                return False
            self._die(die, "planned")
            self.offsets.append(end)
            if number >= 0:
                reader.commit(json.loads(self.offsets[number]))
            number += 1
        self._die(die, "logged")
        partitions = reader.partitions(json.loads(start), json.loads(self.offsets[number]))
        self._die(die, "partitioned")
        rows = read_all(reader, partitions)
        self._die(die, "read")
        self.sink[number] = rows
        self._die(die, "written")
        self.commits.add(number)
        return True

    def _die(self, die: str | None, point: str) -> None:
        if die == point:
            self._reader = None
            raise Died(point)
