"""The interface of the clock that the constructor of the queue manager gets."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """A wall clock for time stamps and deadlines of messages, and a monotonic clock for time-outs (X-03,
    X-04).
    """

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""

    def wall_us(self) -> int:
        """Microseconds since 1970-01-01, UTC."""
