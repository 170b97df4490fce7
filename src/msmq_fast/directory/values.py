"""Kinds of attribute values: their checks, comparison, stored form and JSON form."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

Value = str | int | bool | bytes | UUID | tuple[str, ...] | tuple[bytes, ...] | tuple[UUID, ...]

_SID = re.compile(r"S-1-(?:[0-9]{1,10}|0x[0-9A-Fa-f]{12})(?:-[0-9]{1,10}){1,15}", re.IGNORECASE)
_MAX_TEXT = 32_767  # characters
_LONGEST_NUMBER = 20  # characters


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of attribute value. `described` completes the sentence "expected …" of an error text.

    `order` returns the sort key of a value; the members of a list are compared one by one. `to_json` and
    `from_json` convert for people and files, `to_store` and `from_store` for records. Functions that take
    unchecked data raise ValueError with the sentence "expected …".
    """

    described: str
    check: Callable[[Any], Any]
    order: Callable[[Any], Any]
    to_json: Callable[[Any], Any]
    from_json: Callable[[Any], Any]
    to_store: Callable[[Any], Any]
    from_store: Callable[[Any], Any]
    many: bool = False

    def members(self, value: Any) -> Iterable[Any]:
        """Return the values that conditions compare: each member of a list, or the single value."""
        return tuple(self.order(item) for item in value) if self.many else (self.order(value),)

    def sort_key(self, value: Any) -> Any:
        """Return the key by which enumerations sort this value."""
        return self.members(value)


def _same(value: Any) -> Any:
    return value


def value_of_text(known: Kind, text: str) -> Any:
    """Convert a value that a person wrote: the items of a list are separated by commas, a flag is true or
    false. Raises ValueError.
    """
    if known.many:
        return known.from_json([word.strip() for word in text.split(",") if word.strip()])
    plain: list[Any] = [text]
    if text.casefold() in ("true", "false"):
        plain.insert(0, text.casefold() == "true")
    elif text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _LONGEST_NUMBER:
        plain.insert(0, int(text))
    for value in plain[:-1]:
        try:
            return known.from_json(value)
        except ValueError:
            continue
    return known.from_json(text)


def mismatch(described: str, value: object) -> ValueError:
    """Return the error for a value that does not fit its kind."""
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    return ValueError(f"expected {described}, got {shown[:80]}")


def _kind(
    described: str,
    check: Callable[[Any], Any],
    *,
    order: Callable[[Any], Any] = _same,
    to_json: Callable[[Any], Any] = _same,
    from_json: Callable[[Any], Any] | None = None,
    to_store: Callable[[Any], Any] = _same,
    from_store: Callable[[Any], Any] | None = None,
) -> Kind:
    return Kind(described, check, order, to_json, from_json or check, to_store, from_store or check)


def list_of(item: Kind) -> Kind:
    """Return the kind of a list of `item` values. The condition EQUALS on it means that the list contains the
    value.
    """
    described = f"a list, each {item.described}"

    def each(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def whole(value: Any) -> Any:
            if not isinstance(value, list | tuple):
                raise mismatch(described, value)
            return tuple(convert(member) for member in value)

        return whole

    def plain(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: [convert(member) for member in value]

    return Kind(
        described,
        each(item.check),
        item.order,
        plain(item.to_json),
        each(item.from_json),
        plain(item.to_store),
        each(item.from_store),
        many=True,
    )


def _checked_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise mismatch("text", value)
    return value


def _checked_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise mismatch("true or false", value)
    return value


def _checked_guid(value: Any) -> UUID:
    if not isinstance(value, UUID):
        raise mismatch("a GUID", value)
    return value


def _guid_from_text(value: Any) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise mismatch("a GUID", value) from None


def _guid_from_bytes(value: Any) -> UUID:
    if not isinstance(value, bytes) or len(value) != 16:
        raise mismatch("16 bytes of a GUID", value)
    return UUID(bytes_le=value)


def _checked_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise mismatch("bytes", value)
    return value


def _bytes_from_text(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise mismatch("bytes in base64", value) from None


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _checked_sid(value: Any) -> str:
    if not isinstance(value, str) or not _SID.fullmatch(value):
        raise mismatch("a SID such as S-1-5-21-1-2-3-1000", value)
    return value.upper().replace("0X", "0x")


def _checked_digest(value: Any) -> bytes:
    if not isinstance(value, bytes) or len(value) != 16:
        raise mismatch("an MD5 digest of 16 bytes", value)
    return value


def integer(low: int, high: int) -> Kind:
    """Return the kind of a whole number from `low` to `high`, both included."""
    described = f"a whole number from {low} to {high}"

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise mismatch(described, value)
        return value

    return _kind(described, check)


def choice(**words: int) -> Kind:
    """Return the kind for numbers that have a name in `words` (name=number). JSON has the name."""
    described = f"one of {', '.join(words)}"
    names = {number: word for word, number in words.items()}
    folded = {word.casefold(): number for word, number in words.items()}

    def check(value: Any) -> int:
        if isinstance(value, bool) or value not in names:
            raise mismatch(described, value)
        return int(value)

    def read(value: Any) -> int:
        return (
            folded[value.casefold()]
            if isinstance(value, str) and value.casefold() in folded
            else check(value)
        )

    return _kind(described, check, to_json=lambda value: names[value], from_json=read)


TEXT = _kind("text", _checked_text, order=str.casefold)
FLAG = _kind("true or false", _checked_flag, order=int)
GUID = _kind(
    "a GUID",
    _checked_guid,
    order=lambda value: value.bytes,
    to_json=str,
    from_json=_guid_from_text,
    to_store=lambda value: value.bytes_le,
    from_store=_guid_from_bytes,
)
BLOB = _kind("bytes", _checked_bytes, to_json=_base64, from_json=_bytes_from_text)
SID = _kind("a SID", _checked_sid)
DIGEST = _kind(
    "an MD5 digest",
    _checked_digest,
    to_json=_base64,
    from_json=lambda value: _checked_digest(_bytes_from_text(value)),
)
UINT32 = integer(0, 0xFFFF_FFFF)
SECONDS = integer(0, 0xFFFF_FFFF)
