"""Reads records of META, and checks their types."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast._native.tables import Tables
from msmq_fast.store import decode
from msmq_fast.store.errors import StoreError
from msmq_fast.store.schema import MetaName, Table

_GUID_BYTES: Final = 16
_LIMIT: Final = 1 << 63
_NUMBERS: Final = frozenset(
    (
        MetaName.INCARNATION,
        MetaName.CREATED,
        MetaName.SNAPSHOT,
        MetaName.SEQUENCE_HW,
        MetaName.MESSAGE_ID_HW,
        MetaName.TX_SEQUENCE_HW,
        MetaName.TX_TIMESTAMP,
        MetaName.QUEUE_ORDINAL_HW,
        MetaName.PRIVATE_NUMBER_HW,
    )
)


def read_meta(tables: Tables, name: bytes, default: Any = None) -> Any:
    """Returns a durable value of META, `default` if there is none. Raises StoreError if the value is
    damaged.
    """
    value = tables.get(Table.META, name)
    if value is None:
        return default
    try:
        found = decode.cold(value)
    except decode.DecodeError as error:
        raise StoreError(f"the store is damaged: {_label(name)}: {error}") from error
    if name in _NUMBERS and not (type(found) is int and 0 <= found < _LIMIT):
        raise StoreError(f"the store is damaged: {_label(name)} is not a number in the valid range")
    if name == MetaName.GUID and not (isinstance(found, bytes) and len(found) == _GUID_BYTES):
        raise StoreError(f"the store is damaged: {_label(name)} is not a GUID")
    return found


def _label(name: bytes) -> str:
    return f"its record {name.decode(errors='replace')}"
