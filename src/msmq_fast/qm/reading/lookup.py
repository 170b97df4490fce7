"""Which message a read by LookupIdentifier means (MessageSeekAction)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Lookup"]


class Lookup(IntEnum):
    """MessageSeekAction."""

    CURRENT = 0
    NEXT = 1
    PREVIOUS = 2
    FIRST = 3
    LAST = 4
