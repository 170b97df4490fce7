"""The clocks and the randomness that the server hands to the rooms below, which read none themselves."""

from __future__ import annotations

import time

__all__ = ["SystemClock"]


class SystemClock:
    """Wall clock for stamps, monotonic clock for durations, which a step of the wall clock never moves."""

    __slots__ = ()

    monotonic = staticmethod(time.monotonic)
    """Seconds since an arbitrary moment; never goes back."""

    def wall_us(self) -> int:
        """Microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def wall_s(self) -> int:
        """Seconds since 1970, UTC."""
        return time.time_ns() // 1_000_000_000
