"""The ways in which a read by LookupIdentifier selects a message (MessageSeekAction)."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Lookup"]


class Lookup(IntEnum):
    """MessageSeekAction: select the message with the lookup identifier, the next or previous one, or the
    first or last one of the queue.
    """

    CURRENT = 0
    NEXT = 1
    PREVIOUS = 2
    FIRST = 3
    LAST = 4
