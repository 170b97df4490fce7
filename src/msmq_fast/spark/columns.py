"""Gathers rows that Python code creates into record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import Column

BATCH_ROWS: Final = 4096
BATCH_BYTES: Final = 4 << 20


class Gatherer:
    """Collects rows (tuples in the order of the columns) into record batches of bounded size."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.schema = arrow_schema(columns)
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[Any, ...], size: int = 0) -> bool:
        """Add a row of about `size` bytes. Return True if the caller should take a batch now."""
        self._rows.append(row)
        self._bytes += size
        return len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def take(self) -> pa.RecordBatch:
        """Return one batch with the rows that were added since the last call of `take`."""
        rows, self._rows, self._bytes = self._rows, [], 0
        return record_batch(self.schema, rows)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield one more batch with the rows that were added but not taken, if any."""
        if self._rows:
            yield self.take()


def record_batch(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a record batch of `rows`, tuples in the order of the columns of `schema`."""
    values = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for field, column in zip(schema, values, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
