"""Which message a read by LookupIdentifier selects (MessageSeekAction)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Lookup"]


class Lookup(IntEnum):
    """MessageSeekAction: the message to select, relative to a lookup identifier or the ends of the queue."""

    CURRENT = 0
    NEXT = 1
    PREVIOUS = 2
    FIRST = 3
    LAST = 4
