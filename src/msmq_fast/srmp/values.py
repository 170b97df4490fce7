"""The text values of SRMP: dates, GUIDs, numbers, message and stream identifiers ([MC-MQSRM] 2.2.1).

Each `read_` function raises `Nonconforming` if the text does not have the expected form; white space around a
value is allowed.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from uuid import UUID

from msmq_fast.protocol.text import quoted

__all__ = [
    "END_OF_TIME",
    "Nonconforming",
    "read_base64",
    "read_date",
    "read_guid",
    "read_message_id",
    "read_number",
    "read_stream_id",
    "write_date",
    "write_message_id",
    "write_stream_id",
]

END_OF_TIME = 0x7FFFFFFF  # Unix seconds: the latest date that is sent, 20380119T031407

_MAX_DIGITS = 40  # with zeros in front
_U32 = 0xFFFFFFFF
_U64 = 0xFFFFFFFFFFFFFFFF
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})")
_GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_MESSAGE_ID = re.compile(rf"uuid:([0-9]{{1,20}})@({_GUID.pattern})")
_STREAM_ID = re.compile(rf"uid:({_GUID.pattern})\\([0-9]{{1,40}})")


class Nonconforming(ValueError):
    """A received message does not conform to section 2 of [MC-MQSRM], or SRMP cannot express a message that
    is to be sent. The text gives the reason on one line.
    """


def read_date(text: str) -> int:
    """Return the Unix seconds of a UTC date `YYYYMMDDThhmmss` of any year (2.2.1.2)."""
    return _date(text.strip())


@lru_cache(maxsize=512)  # a sender writes the same second many times
def _date(text: str) -> int:
    found = _DATE.fullmatch(text)
    try:
        if found is not None:
            return (datetime(*map(int, found.groups()), tzinfo=UTC) - _EPOCH) // timedelta(seconds=1)  # type: ignore[arg-type, misc]
    except ValueError:
        pass
    raise Nonconforming(f"{_shown(text)} is not a date YYYYMMDDThhmmss")


@lru_cache(maxsize=512)
def write_date(seconds: int) -> str:
    """Return Unix seconds as a UTC date `YYYYMMDDThhmmss`, limited to the range of 32 bits (A-90)."""
    return (_EPOCH + timedelta(seconds=min(max(seconds, 0), END_OF_TIME))).strftime("%Y%m%dT%H%M%S")


def read_guid(text: str) -> UUID:
    """Read a GUID without braces (2.2.1.1)."""
    return _guid(text.strip())


@lru_cache(maxsize=512)  # every message of a sender has its GUID several times
def _guid(text: str) -> UUID:
    if not _GUID.fullmatch(text):
        raise Nonconforming(f"{_shown(text)} is not a GUID")
    return UUID(text)


def read_number(text: str, limit: int = _U64) -> int:
    """Read an xs:unsignedLong of at most `limit` (2.2.1.3)."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        value = int(text)
        if value <= limit:
            return value
    raise Nonconforming(f"{_shown(text)} is not a number from 0 to {limit}")


def read_base64(text: str, size: int | None = None) -> bytes:
    """Read base64, with or without line breaks; it must hold exactly `size` octets if `size` is given."""
    try:
        data = b64decode("".join(text.split()), validate=True)
    except (Base64Error, ValueError) as problem:
        raise Nonconforming(f"{_shown(text)} is not base64") from problem
    if size is not None and len(data) != size:
        raise Nonconforming(f"{_shown(text)} holds {len(data)} bytes, not {size}")
    return data


def read_message_id(text: str) -> tuple[UUID, int]:
    """Return the GUID and the ordinal of `uuid:ordinal@guid` (2.2.4.3)."""
    return _message_id(text.strip())


@lru_cache(maxsize=64)  # each identifier is read again where its message is put into a queue
def _message_id(text: str) -> tuple[UUID, int]:
    found = _MESSAGE_ID.fullmatch(text)
    if found is None:
        raise Nonconforming(f"{_shown(text)} is not a message identifier uuid:number@guid")
    return _guid(found[2]), read_number(found[1], _U32)


def write_message_id(guid: UUID, ordinal: int) -> str:
    """Return a message identifier, `uuid:ordinal@guid`."""
    return f"uuid:{ordinal}@{guid}"


def read_stream_id(text: str) -> tuple[UUID, int]:
    """Return the GUID and the 64-bit sequence of `uid:guid\\sequence` (2.2.5.3.1).

    The high half of the sequence is a time stamp.
    """
    found = _STREAM_ID.fullmatch(text.strip())
    if found is None:
        raise Nonconforming(rf"{_shown(text)} is not a stream identifier uid:guid\number")
    return _guid(found[1]), read_number(found[2])


def write_stream_id(guid: UUID, sequence: int) -> str:
    """Return a stream identifier, `uid:guid\\sequence`."""
    return f"uid:{guid}\\{sequence}"


def _shown(text: str) -> str:
    return quoted(text if len(text) <= 60 else f"{text[:57]}...")
