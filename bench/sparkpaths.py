"""Spark sources to measure others against: plain files of LMDB, without a server or packets of MSMQ.

`tuple_path` is what one writes without Arrow: each record is decoded in Python and becomes a tuple.
`ready_batch` gives one finished Arrow batch again and again: what the channel to Spark and Spark itself take.
"""

from __future__ import annotations

import datetime
import itertools
import os
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import lmdb
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["COLUMNS", "ReadyBatch", "TuplePath", "fill"]

COLUMNS: Final = (
    "arrival_seq long, lookup_id long, message_id string, priority byte, class int, label string, "
    "body_size long, sent_time timestamp, arrived_time timestamp, body binary"
)
_KEY: Final = struct.Struct(">Q")
_HEAD: Final = struct.Struct("<Q16sIBHIIH")
"""Lookup id, message id, priority, class, sent, arrived, length of the label."""
_BATCH: Final = 4096


def fill(path: Path, rows: int, body: int) -> None:
    """Make the file: records of all priorities with bodies of so many bytes."""
    content, label = os.urandom(body), b"order"
    computer = uuid.uuid4().bytes_le
    with lmdb.open(str(path), map_size=max(1 << 26, rows * (body + 256) * 4)) as environment:
        for first in range(0, rows, _BATCH):
            with environment.begin(write=True) as transaction:
                for n in range(first, min(first + _BATCH, rows)):
                    head = _HEAD.pack(n << 3, computer, n, n % 8, 0, 1_700_000_000, 1_700_000_000, len(label))
                    transaction.put(_KEY.pack(n), head + label + content, append=True)


@dataclass(frozen=True)
class _Part(InputPartition):
    start: int
    stop: int


class TuplePath(DataSource):
    """`format("tuple_path")`: options `path`, `rows` and `parts`."""

    @classmethod
    def name(cls) -> str:
        return "tuple_path"

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return _TupleReader(self.options["path"], int(self.options["rows"]), int(self.options["parts"]))


class _TupleReader(DataSourceReader):
    def __init__(self, path: str, rows: int, parts: int) -> None:
        self._path = path
        self._cuts = [rows * n // parts for n in range(parts + 1)]

    def partitions(self) -> list[InputPartition]:
        return [_Part(start, stop) for start, stop in itertools.pairwise(self._cuts)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Part)
        fromtimestamp, utc = datetime.datetime.fromtimestamp, datetime.UTC
        computers: dict[bytes, str] = {}
        with (
            lmdb.open(self._path, readonly=True, lock=False) as environment,
            environment.begin(buffers=False) as transaction,
            transaction.cursor() as cursor,
        ):
            cursor.set_range(_KEY.pack(partition.start))
            for key, record in itertools.islice(cursor, partition.stop - partition.start):
                lookup_id, computer, number, priority, kind, sent, arrived, size = _HEAD.unpack_from(record)
                guid = computers.get(computer)
                if guid is None:
                    guid = computers[computer] = str(uuid.UUID(bytes_le=computer))
                start = _HEAD.size + size
                yield (
                    _KEY.unpack(key)[0],
                    lookup_id,
                    f"{guid}\\{number}",
                    priority,
                    kind,
                    record[_HEAD.size : start].decode(),
                    len(record) - start,
                    fromtimestamp(sent, utc),
                    fromtimestamp(arrived, utc),
                    record[start:],
                )


class ReadyBatch(TuplePath):
    """`format("ready_batch")`: options as for `tuple_path`."""

    @classmethod
    def name(cls) -> str:
        return "ready_batch"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _ReadyReader(
            self.options["path"], int(self.options["rows"]), int(self.options["parts"]), schema
        )


class _ReadyReader(_TupleReader):
    def __init__(self, path: str, rows: int, parts: int, schema: StructType) -> None:
        super().__init__(path, rows, parts)
        self._schema = schema

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Part)
        size = min(_BATCH, partition.stop - partition.start)
        rows = list(super().read(_Part(partition.start, partition.start + size)))
        names = self._schema.fieldNames()
        schema = to_arrow_schema(self._schema, timezone="UTC")
        batch = pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
        whole, rest = divmod(partition.stop - partition.start, size)
        yield from itertools.repeat(batch, whole)
        if rest:
            yield batch.slice(0, rest)
