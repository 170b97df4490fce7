"""Simple values as the text of an XML element, in the format of .NET's XmlConvert."""

from __future__ import annotations

import binascii
import math
import re
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from msmq_fast.bodies.errors import BodyError
from msmq_fast.bodies.types import SimpleType, check, decimal_parts, fits_decimal

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,7}))?(?:(Z)|([+-])(\d\d):(\d\d))?", re.ASCII
)
_INTEGER: Final = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?", re.ASCII)
_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_SPECIAL: Final = {"NaN": math.nan, "INF": math.inf, "-INF": -math.inf}
_SINGLE: Final = struct.Struct("<f")


def to_text(value: Any, kind: SimpleType) -> str:
    """Return the escaped text of an element. Raises BodyError if the value does not have the type, or XML
    cannot hold it.
    """
    check(value, kind)
    return _WRITERS.get(kind.name, str)(value)


def from_text(text: str, kind: SimpleType) -> Any:
    """Parse the text of an element; white space around values other than strings is ignored.

    A time with a finer resolution is truncated to microseconds. Raises BodyError if the text is not a value
    of the type.
    """
    if kind.name == "string":
        return text
    word = text.strip(" \t\r\n")
    try:
        value = _READERS.get(kind.name, _read_integer)(word)
        check(value, kind)
    except (ValueError, InvalidOperation, OverflowError):
        short = word if len(word) <= 40 else word[:37] + "..."
        raise BodyError(f"{short!a} is not a value of type {kind.name}") from None
    return value


# ------------------------------------------------------------------------------------------------- writing


def _string(value: str) -> str:
    found = _FORBIDDEN.search(value)
    if found:
        raise BodyError(f"XML does not allow the character U+{ord(found[0]):04X} at position {found.start()}")
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def decimal_text(value: Decimal | int) -> str:
    """Format a number as System.Decimal does: no exponent, no negative zero, decimal places kept."""
    value = Decimal(value)
    scale, digits = decimal_parts(value)
    text = str(digits).rjust(scale + 1, "0")
    whole, part = (text[:-scale], "." + text[-scale:]) if scale else (text, "")
    return ("-" if value < 0 else "") + whole + part


def _floating(value: float, digits: int, more: int, same: Callable[[str], bool]) -> str:
    """Format a float as .NET Framework's format R does: with `digits` significant digits, or with `more` if
    `same` shows that the text with `digits` would be parsed as another value.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
    text = f"{value:.{digits - 1}e}"
    if not same(text):
        text = f"{value:.{more - 1}e}"
    mantissa, _, power = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    figures = mantissa.lstrip("-").replace(".", "").rstrip("0")
    exponent = int(power)
    if not figures:
        return sign + "0"
    if exponent < -4 or exponent >= max(digits, len(figures)):
        rest = "." + figures[1:] if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{rest}E{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{figures}"
    whole, part = figures[: exponent + 1].ljust(exponent + 1, "0"), figures[exponent + 1 :]
    return f"{sign}{whole}.{part}" if part else sign + whole


def _double(value: float) -> str:
    value = float(value)
    return _floating(value, 15, 17, lambda text: float(text) == value)


def _single(value: float) -> str:
    value = _to_single(float(value))
    return _floating(value, 7, 9, lambda text: _to_single(float(text)) == value)


def _to_single(value: float) -> float:
    try:
        (found,) = _SINGLE.unpack(_SINGLE.pack(value))
    except OverflowError:  # the last digit of the largest value, rounded up
        return math.copysign(math.inf, value)
    return float(found)


def _time(value: datetime) -> str:
    text = value.replace(tzinfo=None, microsecond=0).isoformat()
    if value.microsecond:
        text += f".{value.microsecond:06d}".rstrip("0")
    offset = value.utcoffset()
    if offset is None:
        return text
    minutes = round(offset.total_seconds() / 60)
    if not minutes:
        return text + "Z"
    return f"{text}{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


_WRITERS: Final[dict[str, Callable[[Any], str]]] = {
    "boolean": lambda value: "true" if value else "false",
    "bytes": lambda value: b64encode(value).decode(),
    "char": lambda value: str(ord(value)),
    "datetime": _time,
    "decimal": decimal_text,
    "double": _double,
    "single": _single,
    "string": _string,
}

# ------------------------------------------------------------------------------------------------- reading


def _read_integer(word: str) -> int:
    if not _INTEGER.fullmatch(word):
        raise ValueError(word)
    return int(word)


def _read_boolean(word: str) -> bool:
    if word not in _BOOLEANS:
        raise ValueError(word)
    return _BOOLEANS[word]


def _read_floating(word: str) -> float:
    if word in _SPECIAL:
        return _SPECIAL[word]
    if not _NUMBER.fullmatch(word):
        raise ValueError(word)
    return float(word)


def read_decimal(word: str) -> Decimal:
    """Parse the text of a System.Decimal. Raises ValueError."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(word)
    value = Decimal(word)
    if not fits_decimal(value):
        raise ValueError(word)
    return value


def _read_time(word: str) -> datetime:
    found = _TIME.fullmatch(word)
    if found is None:
        raise ValueError(word)
    clock, fraction, utc, sign, hours, minutes = found.groups()
    value = datetime.fromisoformat(clock)
    if fraction:
        value = value.replace(microsecond=int(fraction[:6].ljust(6, "0")))
    if utc:
        return value.replace(tzinfo=UTC)
    if sign is None:
        return value
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return value.replace(tzinfo=timezone(-offset if sign == "-" else offset))


def _read_bytes(word: str) -> bytes:
    try:
        return b64decode("".join(word.split()), validate=True)
    except binascii.Error:
        raise ValueError(word) from None


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "boolean": _read_boolean,
    "bytes": _read_bytes,
    "char": lambda word: chr(_read_integer(word)),
    "datetime": _read_time,
    "decimal": read_decimal,
    "double": _read_floating,
    "guid": UUID,
    "single": _read_floating,
}
