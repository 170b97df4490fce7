"""Points in time as people write them, on the command line and in the forms of the web console.

| text | means |
|---|---|
| `2026-01-31` | a day |
| `2026-01-31T12`, `2026-01-31 12:00`, `2026-01-31 12:00:05` | an hour, a minute, a second |
| `2026-01-31T12:00+01:00`, `2026-01-31T11:00Z` | the same with an offset; without one, UTC |
| `1769860800` | seconds since 1970 |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from msmq_fast.protocol.text import quoted

__all__ = ["parse_moment"]

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(?:[Tt ](?P<hour>\d\d)(?P<minute>:\d\d)?(?P<second>:\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_SPANS: Final = (("second", 1), ("minute", 60), ("hour", 3600))  # seconds that the last part of a text covers
_DAY: Final = 86_400
_LONGEST: Final = 12  # digits of a number of seconds
_SHOWN: Final = 40  # characters of a wrong text that an error repeats


def parse_moment(text: str, *, last: bool = False) -> int:
    """Return the seconds since 1970 of a time: the first second of what `text` means, or with `last`, the
    last one, so that a range that ends with a day includes that day. Times before 1970 are 0.

    Raises ValueError, with one line that shows correct examples.
    """
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST:
        return int(text)
    matched = _TIME.fullmatch(text)
    try:
        if matched is None:
            raise ValueError(text)
        given = datetime.fromisoformat(text.upper())
    except ValueError:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        raise ValueError(
            f"invalid time {quoted(shown)}: write 2026-01-31, 2026-01-31T12:00 (UTC) or seconds since 1970"
        ) from None
    span = next((seconds for name, seconds in _SPANS if matched[name]), _DAY)
    first = int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())
    return max(0, first + span - 1 if last else first)
