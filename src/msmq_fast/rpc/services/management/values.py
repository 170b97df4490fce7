"""The values that management properties have on the wire: PROPVARIANT records (MS-MQMQ 2.2.12, 2.2.13)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.rpc.idl.mqmq import BLOB, CACLSID, CAL, CALPWSTR, CAPROPVARIANT, CAUH, CAUL, PROPVARIANT

if TYPE_CHECKING:
    from uuid import UUID

    from msmq_fast.qm.outgoing.sequences import SequenceInfo
    from msmq_fast.rpc.ndr.record import Record

__all__ = [
    "MOST_TEXT",
    "NULL",
    "VarType",
    "blob",
    "clsids",
    "i4",
    "i4s",
    "i8",
    "text",
    "texts",
    "ui4",
    "ui4s",
    "ui8s",
    "variants",
]

MOST_TEXT: Final = 1 << 20
"""Characters of the names in one list, at most: the list is built and encoded while the loop waits, for
about 0.2 s.
"""

_MOST_U32: Final = 0xFFFFFFFF
_MOST_I32: Final = 0x7FFFFFFF


class VarType(IntEnum):
    """The values of VARTYPE that management properties have."""

    EMPTY = 0
    NULL = 1
    I4 = 3
    UI4 = 19
    I8 = 20
    LPWSTR = 31
    BLOB = 65
    I4S = 0x1003
    VARIANTS = 0x100C
    UI4S = 0x1013
    UI8S = 0x1015
    LPWSTRS = 0x101F
    CLSIDS = 0x1048


def _variant(kind: VarType, value: Any) -> Record:
    return PROPVARIANT(int(kind), 0, 0, 0, value)


NULL: Final = _variant(VarType.NULL, None)
"""The value of a property that the object does not have."""


def text(value: str) -> Record:
    """VT_LPWSTR."""
    return _variant(VarType.LPWSTR, value)


def ui4(value: int) -> Record:
    """VT_UI4; a greater value is given as the greatest."""
    return _variant(VarType.UI4, min(value, _MOST_U32))


def i4(value: int) -> Record:
    """VT_I4; a greater value is given as the greatest."""
    return _variant(VarType.I4, min(value, _MOST_I32))


def i8(value: int) -> Record:
    """VT_I8."""
    return _variant(VarType.I8, value)


def blob(place: SequenceInfo | None) -> Record:
    """VT_BLOB with a SEQUENCE_INFO (MS-MQMQ 2.2.5.1); zeros for None, which stands for no message."""
    values = (0, 0, 0) if place is None else (place.sequence_id, place.number, place.previous)
    packed = struct.pack("<QII", *values)
    return _variant(VarType.BLOB, BLOB(len(packed), packed))


def texts(values: Iterable[str]) -> Record:
    """VT_VECTOR | VT_LPWSTR. Raises INSUFFICIENT_RESOURCES for more than MOST_TEXT characters."""
    listed: list[str] = []
    size = 0
    for value in values:
        listed.append(value)
        size += len(value) + 1
        if size > MOST_TEXT:
            raise InsufficientResources(f"the names of a list have more than {MOST_TEXT} characters")
    return _variant(VarType.LPWSTRS, CALPWSTR(len(listed), listed))


def ui4s(values: Sequence[int]) -> Record:
    """VT_VECTOR | VT_UI4."""
    return _variant(VarType.UI4S, CAUL(len(values), [min(value, _MOST_U32) for value in values]))


def ui8s(values: Sequence[int]) -> Record:
    """VT_VECTOR | VT_UI8."""
    return _variant(VarType.UI8S, CAUH(len(values), list(values)))


def i4s(values: Sequence[int]) -> Record:
    """VT_VECTOR | VT_I4. HRESULTs, which have the highest bit, become negative numbers."""
    signed = [value - (1 << 32) if _MOST_I32 < value <= _MOST_U32 else value for value in values]
    return _variant(VarType.I4S, CAL(len(signed), signed))


def clsids(values: Sequence[UUID]) -> Record:
    """VT_VECTOR | VT_CLSID."""
    return _variant(VarType.CLSIDS, CACLSID(len(values), list(values)))


def variants(values: Sequence[Record]) -> Record:
    """VT_VECTOR | VT_VARIANT."""
    return _variant(VarType.VARIANTS, CAPROPVARIANT(len(values), list(values)))
