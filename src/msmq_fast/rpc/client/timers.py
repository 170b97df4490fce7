"""Callbacks at points in time, for what has few of them: opens, and what else may not take for ever."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

__all__ = ["Timer", "Timers"]


class Timer:
    """One callback; it happens once, or never."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """It does not happen. Cancelling twice, or too late, is fine."""
        self.callback = None


class Timers:
    """Times are monotonic seconds, by the clock that is given."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()

    def after(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back in so many seconds, in `expire`."""
        timer = Timer(callback)
        heappush(self._heap, (self._monotonic() + seconds, next(self._numbers), timer))
        return timer

    def next_deadline(self) -> float | None:
        """When `expire` is due, None for never."""
        while self._heap and self._heap[0][2].callback is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self) -> None:
        """Run what is due."""
        now = self._monotonic()
        while self._heap and self._heap[0][0] <= now:
            timer = heappop(self._heap)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
