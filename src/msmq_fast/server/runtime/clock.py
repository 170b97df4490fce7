"""The clocks and the random source that the server passes to the lower packages, so that tests can replace
them.
"""

from __future__ import annotations

import time

__all__ = ["SystemClock"]


class SystemClock:
    """A wall clock for time stamps, and a monotonic clock for durations, since the wall clock may be set."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Returns seconds since an arbitrary moment; the value never decreases."""

    def wall_us(self) -> int:
        """Return microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def wall_s(self) -> int:
        """Return seconds since 1970, UTC."""
        return time.time_ns() // 1_000_000_000
