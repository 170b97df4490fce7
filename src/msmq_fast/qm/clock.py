"""The interface of the clocks that the caller passes to the queue manager."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall clock for stamps and deadlines of messages, monotonic clock for time-outs (X-03, X-04)."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never decreases."""

    def wall_us(self) -> int:
        """Microseconds since 1970, UTC."""
