"""Columns as Arrow: schemas, record batches over native buffers, and the parts of an IPC stream.

pyarrow is an extra (`msmq-fast[bulk]`) and is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.columns import Column

if TYPE_CHECKING:
    from msmq_fast._native.columncells import Encoded

END_OF_STREAM: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""The end mark of an IPC stream; a stream without it is incomplete."""


class ArrowMissing(RuntimeError):
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__("reading in bulk needs pyarrow: install msmq-fast[bulk]")


@cache
def arrow() -> Any:
    """Return the module pyarrow. Raises ArrowMissing."""
    try:
        import pyarrow
    except ImportError as problem:
        raise ArrowMissing from problem
    return pyarrow


@cache
def _types() -> dict[str, Any]:
    pa = arrow()
    types = {name: getattr(pa, name)() for name in ("string", "binary", "int8", "int16", "int32", "int64")}
    return types | {"bool": pa.bool_(), "timestamp": pa.timestamp("us", tz="UTC")}


def arrow_schema(columns: Sequence[Column]) -> Any:
    """Return the pyarrow schema with these columns in this order, all nullable. Raises ArrowMissing."""
    types = _types()
    return arrow().schema([(column.name, types[column.kind]) for column in columns])


def record_batch(schema: Any, encoded: Encoded) -> Any:
    """Return the columns of `encoded` as a pyarrow record batch; it uses the native buffers without a
    copy.
    """
    pa = arrow()
    length = encoded.rows
    arrays = [
        pa.Array.from_buffers(
            field.type, length, [None if part is None else pa.py_buffer(part) for part in parts], nulls
        )
        for field, (nulls, parts) in zip(schema, encoded.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
