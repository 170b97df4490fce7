"""Bodies of the ActiveX formatter and of COM programs: the value of a VARIANT, whose type is the body type.

Numbers are little-endian. Strings have no terminating NUL. A currency counts units of 1/10000; a date counts
days since 30 December 1899 (OLE Automation). Objects (VT_STREAM, VT_STORAGE and related types) stay bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from msmq_fast.bodies import kind as variants
from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.text import text
from msmq_fast.bodies.types import TYPES, check

_ALSO: Final = {
    "bstr": (variants.VT_BSTR, "string"),
    "lpwstr": (variants.VT_LPWSTR, "string"),
    "lpstr": (variants.VT_LPSTR, "string"),
    "currency": (variants.VT_CY, "decimal"),
    "date": (variants.VT_DATE, "datetime"),
    "clsid": (variants.VT_CLSID, "guid"),
}
"""Names of VARIANT types that are accepted in addition to those of `bodies.types`, with the VARIANT type and
the simple type of each.
"""

_LAYOUTS: Final = {
    kind.variant: struct.Struct(kind.layout)
    for kind in TYPES.values()
    if kind.layout and kind.variant and kind.name not in ("boolean", "datetime")
}
_I2: Final = struct.Struct("<h")
_I8: Final = struct.Struct("<q")
_R8: Final = struct.Struct("<d")
_DAY_MS: Final = 86_400_000
_EPOCH: Final = datetime(1899, 12, 30)
_CY: Final = Decimal("0.0001")


def encode(value: Any, name: str) -> tuple[bytes, int]:
    """Return (body, body type) for a value.

    `name` is a simple type, or `bstr`, `lpwstr`, `lpstr`, `currency`, `date` or `clsid`; a string becomes a
    BSTR, as COM programs send it. Raises BodyError if there is no VARIANT type for `name`, or the value does
    not have the type `name`.
    """
    variant, simple = _ALSO.get(name, (0, name))
    kind = TYPES.get(simple)
    if kind is None or not kind.variant:
        names = sorted({*_ALSO, *(each.name for each in TYPES.values() if each.variant)})
        raise BodyError(f"the formatter activex does not write {name}: choose one of {', '.join(names)}")
    check(value, kind)
    variant = variant or kind.variant
    writer = _WRITERS.get(variant)
    if kind.name == "char":
        return _LAYOUTS[variant].pack(ord(value)), variant
    return (writer(value) if writer else _LAYOUTS[variant].pack(value)), variant


def decode(body: bytes, body_type: int) -> Any:
    """Return the value of a body with a VARIANT type. Raises BodyError if the body does not have the size of
    its type, or the type is unknown.
    """
    reader = _READERS.get(body_type)
    if reader is not None:
        return reader(body)
    if body_type in variants.WIDE_TEXT or body_type in variants.NARROW_TEXT:
        return text(body, body_type)
    layout = _LAYOUTS.get(body_type)
    if layout is None:
        raise BodyError(f"VARIANT type {body_type} is not known")
    return _unpack(layout, body)


def _unpack(layout: struct.Struct, body: bytes) -> Any:
    if len(body) != layout.size:
        raise BodyError(f"a body of this type must have {layout.size} bytes, not {len(body)}")
    return layout.unpack(body)[0]


# ------------------------------------------------------------------------------------------------- writing


def _narrow(value: str) -> bytes:
    try:
        return value.encode("ascii")
    except UnicodeEncodeError as error:
        character = value[error.start]
        raise BodyError(f"lpstr takes ASCII only, not U+{ord(character):04X}; use bstr") from None


def _currency(value: Decimal | int) -> bytes:
    count = Decimal(value).scaleb(4)
    if count != count.to_integral_value() or not -(1 << 63) <= count < 1 << 63:
        raise BodyError(f"{value} does not fit into a currency: 64 bits with four decimal places")
    return _I8.pack(int(count))


def _date(value: datetime) -> bytes:
    if value.year < 100:
        raise BodyError(f"a date must be in the year 100 or later, not {value.year}")
    since = value.replace(tzinfo=None) - _EPOCH
    count = since.days * _DAY_MS + since.seconds * 1000 + since.microseconds // 1000
    part = count % _DAY_MS
    # Before the epoch the whole days count down, and the time of day still counts up.
    return _R8.pack((count if count >= 0 or not part else count - 2 * part) / _DAY_MS)


_WRITERS: Final[dict[int, Callable[[Any], bytes]]] = {
    variants.VT_BSTR: lambda value: value.encode("utf-16-le"),
    variants.VT_LPWSTR: lambda value: value.encode("utf-16-le"),
    variants.VT_LPSTR: _narrow,
    variants.VT_BOOL: lambda value: _I2.pack(-1 if value else 0),
    variants.VT_CY: _currency,
    variants.VT_DATE: _date,
    variants.VT_CLSID: lambda value: value.bytes_le,
    variants.VT_BYTE_VECTOR: bytes,
}

# ------------------------------------------------------------------------------------------------- reading


def _read_date(body: bytes) -> datetime:
    days = _unpack(_R8, body)
    if not math.isfinite(days) or abs(days) > 4_000_000:
        raise BodyError(f"{days} is not a date")
    count = int(days * _DAY_MS + (0.5 if days >= 0 else -0.5))
    if count < 0:
        count += 2 * (-count % _DAY_MS)
    try:
        return _EPOCH + timedelta(milliseconds=count)
    except OverflowError:
        raise BodyError(f"{days} is not a date") from None


def _read_guid(body: bytes) -> UUID:
    if len(body) != 16:
        raise BodyError(f"a body of this type must have 16 bytes, not {len(body)}")
    return UUID(bytes_le=bytes(body))


_READERS: Final[dict[int, Callable[[bytes], Any]]] = {
    variants.VT_BOOL: lambda body: _unpack(_I2, body) != 0,
    variants.VT_CY: lambda body: _unpack(_I8, body) * _CY,
    variants.VT_DATE: _read_date,
    variants.VT_CLSID: _read_guid,
    variants.VT_BYTE_VECTOR: bytes,
    variants.VT_BYTES: bytes,
}
