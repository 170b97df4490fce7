"""The simple types that .NET's formatters and VARIANT have in common: their names, ranges, and matching
Python values.

The name of a type is its .NET name in lower case (`int16`, `single`, `datetime`); a trailing `[]` denotes an
array.

To add a type: add a row to `_ROWS`, and the range of the type to `_in_range`; the formatters read everything
else from the row.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmq_fast.bodies.errors import BodyError

ARRAY: Final = "[]"
TICKS_PER_MICROSECOND: Final = 10
_EPOCH: Final = datetime(1, 1, 1)
_MAX_DECIMAL: Final = 2**96
_MAX_SCALE: Final = 28


class SimpleType(NamedTuple):
    """The names and the layout of one type."""

    name: str
    net: str  # of .NET, without `System.`
    xml: str | None  # element of XmlSerializer; None: XmlSerializer does not write it alike everywhere
    code: int  # PrimitiveTypeEnumeration of MS-NRBF 2.1.2.3; 0: not a primitive type there
    layout: str  # of a struct; "": of no fixed layout
    variant: int  # VARTYPE that the ActiveX formatter states; 0: it has none
    python: tuple[type, ...]


_ROWS: Final = (
    SimpleType("boolean", "Boolean", "boolean", 1, "<?", 11, (bool,)),
    SimpleType("uint8", "Byte", "unsignedByte", 2, "<B", 17, (int,)),
    SimpleType("char", "Char", "char", 3, "", 18, (str,)),
    SimpleType("decimal", "Decimal", "decimal", 5, "", 6, (Decimal, int)),
    SimpleType("double", "Double", "double", 6, "<d", 5, (float, int)),
    SimpleType("int16", "Int16", "short", 7, "<h", 2, (int,)),
    SimpleType("int32", "Int32", "int", 8, "<i", 3, (int,)),
    SimpleType("int64", "Int64", "long", 9, "<q", 20, (int,)),
    SimpleType("int8", "SByte", "byte", 10, "<b", 16, (int,)),
    SimpleType("single", "Single", "float", 11, "<f", 4, (float, int)),
    SimpleType("timespan", "TimeSpan", None, 12, "<q", 0, (timedelta,)),
    SimpleType("datetime", "DateTime", "dateTime", 13, "<Q", 7, (datetime,)),
    SimpleType("uint16", "UInt16", "unsignedShort", 14, "<H", 18, (int,)),
    SimpleType("uint32", "UInt32", "unsignedInt", 15, "<I", 19, (int,)),
    SimpleType("uint64", "UInt64", "unsignedLong", 16, "<Q", 21, (int,)),
    SimpleType("string", "String", "string", 18, "", 8, (str,)),
    SimpleType("guid", "Guid", "guid", 0, "", 72, (UUID,)),
    SimpleType("bytes", "Byte[]", "base64Binary", 0, "", 0x1011, (bytes, bytearray, memoryview)),
)
TYPES: Final = {row.name: row for row in _ROWS}
_INTEGER: Final = re.compile(r"(u?)int(\d+)")
_INFERRED: Final = ("boolean", "double", "string", "bytes", "decimal", "datetime", "timespan", "guid")


def simple_type(name: str) -> SimpleType:
    """Return the type with this name, without `[]`. Raises BodyError, whose text lists the known names, if
    there is no such type.
    """
    found = TYPES.get(name)
    if found is None:
        raise BodyError(f"invalid type {name!r}: choose one of {', '.join(sorted(TYPES))}")
    return found


def infer(value: Any) -> str:
    """Return the name of the simple type for a value, if the caller has not named a type.

    An int is an int32, int64 or uint64, whichever fits first. Raises BodyError if no type fits.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        for name in ("int32", "int64", "uint64"):
            if _in_range(value, name):
                return name
        raise BodyError(f"{shown(value)} does not fit into 64 bits")
    if isinstance(value, list | tuple):
        return _infer_items(value)
    for name in _INFERRED:
        if isinstance(value, TYPES[name].python[0]) or (
            name == "bytes" and isinstance(value, TYPES[name].python)
        ):
            return name
    raise BodyError(f"a {type(value).__name__} has no simple type; convert it, or use the formatter json")


def _infer_items(items: Sequence[Any]) -> str:
    names = {infer(item) for item in items if item is not None}
    if not names:
        raise BodyError("the type of a list without values is not known: name it, for example type='int32[]'")
    if any(name.endswith(ARRAY) for name in names):
        raise BodyError("a list of lists has no simple type; use the formatter json")
    integers = [name for name in ("uint64", "int64", "int32") if name in names]
    if integers and len(integers) == len(names):
        widest = "int64" if integers == ["uint64", "int64"] else integers[0]
        return widest + ARRAY
    if len(names) > 1:
        raise BodyError(f"a list must hold values of one type, not {' and '.join(sorted(names))}")
    return names.pop() + ARRAY


def check(value: Any, kind: SimpleType) -> None:
    """Raise BodyError, with one line, unless the value has the type."""
    if not isinstance(value, kind.python) or (isinstance(value, bool) and kind.name != "boolean"):
        wanted = " or ".join(each.__name__ for each in kind.python)
        raise BodyError(f"type {kind.name} takes {wanted}, not {shown(value)}")
    if not _in_range(value, kind.name):
        raise BodyError(f"{shown(value)} is out of the range of {kind.name}")


def _in_range(value: Any, name: str) -> bool:
    found = _INTEGER.fullmatch(name)
    if found:
        bits = int(found[2])
        return bool(0 <= value < 1 << bits if found[1] else -1 << bits - 1 <= value < 1 << bits - 1)
    if name == "char":
        return len(value) == 1 and ord(value) < 0x10000 and _is_text(value)
    if name == "string":
        return _is_text(value)
    if name == "decimal":
        return fits_decimal(Decimal(value))
    if name in ("single", "double"):
        try:
            struct.pack(TYPES[name].layout, value)
        except (OverflowError, struct.error):
            return False
    return True


def _is_text(value: str) -> bool:
    """Whether UTF-8 and UTF-16 can encode the text, that is, each surrogate is part of a pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def fits_decimal(value: Decimal) -> bool:
    """Whether a System.Decimal can hold the value exactly: 96 bits and at most 28 decimal places."""
    if not value.is_finite() or value.adjusted() > 28 or len(value.as_tuple().digits) > 60:
        return False
    scale, digits = decimal_parts(value)
    return scale <= _MAX_SCALE and digits < _MAX_DECIMAL


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """Return (number of decimal places, digits as an integer without the sign). The value must be finite and
    its exponent small.
    """
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    return scale, int("".join(map(str, digits))) * 10 ** max(int(exponent), 0)


def to_ticks(value: datetime) -> int:
    """Return the ticks (100 ns) from the beginning of the year 1 to a datetime; its time zone is ignored."""
    since = value.replace(tzinfo=None) - _EPOCH
    return (
        since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds
    ) * TICKS_PER_MICROSECOND


def span_ticks(value: timedelta) -> int:
    """Return a duration in ticks (100 ns). Raises BodyError if it exceeds the range of a System.TimeSpan."""
    ticks = (
        value.days * 86_400_000_000 + value.seconds * 1_000_000 + value.microseconds
    ) * TICKS_PER_MICROSECOND
    if not -(1 << 63) <= ticks < 1 << 63:
        raise BodyError(f"the duration {value} is out of the range of timespan")
    return ticks


def from_ticks(ticks: int) -> datetime | None:
    """Return the datetime of `ticks`, truncated to microseconds; None if it is not in the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(microseconds=ticks // TICKS_PER_MICROSECOND)
    except OverflowError:
        return None


def shown(value: Any) -> str:
    """Return the text of a value for an error message: the type and at most 60 characters of the value."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    text = ascii(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
