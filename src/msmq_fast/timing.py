"""Deadlines, in monotonic seconds; None: there is none. Every room may use it; it imports nothing."""

from __future__ import annotations

from typing import Final

__all__ = ["NEVER", "earliest"]

NEVER: Final = float("inf")
"""A deadline that is not armed, where the C function `min` chooses among many."""


def earliest(*deadlines: float | None) -> float | None:
    """The first of the deadlines that are armed.

    A loop: the event loop asks after almost every turn, and `min` over a generator takes three times as long.
    """
    first = None
    for deadline in deadlines:
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first
