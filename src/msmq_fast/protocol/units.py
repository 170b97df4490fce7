"""The common parser of sizes, durations and rates in TOML, on the command line and in Spark options.

A quantity is a decimal number and a unit, with or without a blank between them. Units are not case-sensitive.

| quantity | units | a bare number |
|---|---|---|
| size | B, kB, MB, GB, TB (powers of 1000); KiB, MiB, GiB, TiB or k, m, g, t (powers of 1024) | bytes |
| duration | ms, s, m, h, d | seconds, unless the caller names another unit |
| rate | a size, or a size and "/s" | bytes per second |

The functions do not check the range of a value: callers do.
"""

from __future__ import annotations

import re
from typing import Final

from msmq_fast.protocol.text import quoted

__all__ = ["UnitError", "parse_duration", "parse_rate", "parse_size", "shown_duration", "shown_size"]

_SIZES: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
"""The bytes of each unit. The letters k, m, g and t alone are powers of 1024, as for Docker, Java
and systemd.
"""
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# The lengths are bounded: the number of digits decides how long the arithmetic below takes.
_QUANTITY: Final = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))?\s{0,8}([A-Za-z]{0,8})")
_SHOWN: Final = 40  # characters of a wrong text that an error repeats


class UnitError(ValueError):
    """A text is not a valid quantity. The message says what is wrong and shows a correct example."""


def parse_size(text: str) -> int:
    """Return the bytes of a text such as "64 MiB", "10GB" or "1048576", rounded down. Raises UnitError."""
    size = _parse(text, _SIZES, "")
    if size is None:
        raise _invalid("size", text, "64 MiB")
    return int(size)


def parse_duration(text: str, *, bare: str = "s") -> float:
    """Return the seconds of a text such as "30 s", "1.5h" or "500ms"; a bare number has the unit `bare`.

    Raises UnitError.
    """
    milliseconds = _parse(text, _MILLISECONDS, bare)
    if milliseconds is None:
        raise _invalid("duration", text, "30 s")
    return milliseconds / 1000


def parse_rate(text: str) -> int:
    """Return the bytes per second of a text such as "10 MiB/s" or "10MB", rounded down. Raises UnitError."""
    amount = text.rstrip()
    rate = _parse(amount[:-2] if amount.lower().endswith("/s") else amount, _SIZES, "")
    if rate is None:
        raise _invalid("rate", text, "10 MiB/s")
    return int(rate)


def shown_size(size: int) -> str:
    """Return a text that `parse_size` reads as `size` bytes, in the largest unit without decimals."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _SIZES[unit.lower()] == 0:
            return f"{size // _SIZES[unit.lower()]} {unit}"
    return f"{size} B"


def shown_duration(seconds: float) -> str:
    """Return a text that `parse_duration` reads as `seconds`, in the largest unit without decimals."""
    for unit in ("d", "h", "m"):
        if seconds and seconds * 1000 % _MILLISECONDS[unit] == 0:
            return f"{seconds * 1000 / _MILLISECONDS[unit]:.10g} {unit}"
    return f"{seconds:.10g} s" if seconds >= 1 or not seconds else f"{seconds * 1000:.10g} ms"


def _parse(text: str, units: dict[str, int], bare: str) -> int | float | None:
    """Return the amount in the smallest unit, an int if it is whole; None if `text` is not a quantity."""
    matched = _QUANTITY.fullmatch(text.strip())
    if matched is None:
        return None
    whole, decimals, unit = matched[1], matched[2] or "", matched[3].lower() or bare
    if unit not in units:
        return None
    # In whole numbers: a float has 53 bits, and a size may need more.
    scaled: int = int(whole + decimals) * units[unit]
    scale: int = 10 ** len(decimals)
    return scaled // scale if scaled % scale == 0 else scaled / scale


def _invalid(quantity: str, text: str, example: str) -> UnitError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return UnitError(f"invalid {quantity} {quoted(shown)}: write a number with a unit, for example {example}")
