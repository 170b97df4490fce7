"""Converters for the values of arguments: each converts a word of the command line to a value, or raises an
error that says what is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msmq_fast.protocol.moments import parse_moment
from msmq_fast.protocol.units import parse_duration, parse_rate, parse_size

_Value = TypeVar("_Value")

__all__ = [
    "duration",
    "first_second",
    "hexadecimal",
    "last_second",
    "number",
    "outgoing_name",
    "queue_name",
    "rate",
    "size",
]


def number(low: int, high: int) -> Callable[[str], int]:
    """Return a converter for whole numbers from `low` to `high`."""

    def parsed(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
        if not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text} is not between {low} and {high}")
        return int(text)

    return parsed


def duration(high: float = 2**32 - 1) -> Callable[[str], float]:
    """Return a converter for durations from 0 to `high` seconds, such as "30 s", "5m", "1h", "2d", "500ms",
    or a bare number of seconds.
    """

    def parsed(text: str) -> float:
        seconds = _parsed(parse_duration, text)
        if seconds > high:
            raise argparse.ArgumentTypeError(f"{text} is longer than {high:.10g} seconds")
        return seconds

    return parsed


def size(text: str) -> int:
    """Return the number of bytes of a size such as "64 MiB", "10MB", or a bare number of bytes."""
    return _parsed(parse_size, text)


def rate(text: str) -> int:
    """Return the number of bytes per second of a rate such as "50 MiB/s", "50 MiB", or a bare number of
    bytes.
    """
    return _parsed(parse_rate, text)


def first_second(text: str) -> int:
    """Return the first second, since 1970, of a time such as "2026-01-31" or "2026-01-31T12:00" (UTC)."""
    return _parsed(parse_moment, text)


def last_second(text: str) -> int:
    """Return the last second of a time: a day or a minute at the end of a range belongs to the range."""
    return _parsed(partial(parse_moment, last=True), text)


def queue_name(text: str) -> str:
    """Return a queue name unchanged; the queue manager checks it. Completion offers names of queues for the
    arguments that this function converts.
    """
    return text


def outgoing_name(text: str) -> str:
    """Return the name of an outgoing queue unchanged. Completion offers names of outgoing queues for the
    arguments that this function converts.
    """
    return text


def hexadecimal(text: str) -> bytes:
    """Return the bytes that a text spells with two hexadecimal digits for each byte."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not hexadecimal") from None


def _parsed(parse: Callable[[str], _Value], text: str) -> _Value:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
