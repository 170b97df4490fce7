"""Deadlines in monotonic seconds; None means that there is no deadline. Every package may import this module;
it imports none of them.
"""

from __future__ import annotations

from typing import Final

__all__ = ["NEVER", "earliest"]

NEVER: Final = float("inf")
"""An unarmed deadline as a number, for code that compares deadlines with the C function `min`."""


def earliest(*deadlines: float | None) -> float | None:
    """Return the earliest of the armed deadlines; None if none is armed.

    This is a loop because the event loop calls it after almost every turn, and `min` over a generator takes
    three times as long.
    """
    first = None
    for deadline in deadlines:
        if deadline is not None and (first is None or deadline < first):
            first = deadline
    return first
