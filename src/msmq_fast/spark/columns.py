"""Rows of tables that are made on this side, gathered into record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import Column

BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 4 << 20


class Gatherer:
    """Rows (tuples in the order of the columns) to record batches of bounded size."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.schema = arrow_schema(columns)
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[Any, ...], size: int = 0) -> bool:
        """`size`: about how many bytes the row has. True when a batch should be taken."""
        self._rows.append(row)
        self._bytes += size
        return len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def take(self) -> pa.RecordBatch:
        """The rows so far as one batch."""
        rows, self._rows, self._bytes = self._rows, [], 0
        return record_batch(self.schema, rows)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The last batch, if there is one."""
        if self._rows:
            yield self.take()


def record_batch(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """A batch of rows."""
    values = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for field, column in zip(schema, values, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
