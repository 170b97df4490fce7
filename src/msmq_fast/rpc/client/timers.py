"""Callbacks that run after a time, for objects with few timers, such as calls with a time-out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from msmq_fast.qm.faults import for_each

__all__ = ["Timer", "Timers"]

_FEW = 64


class Timer:
    """One callback, which runs once or, if cancelled, never."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def take(self) -> Callable[[], None] | None:
        """Return the callback at the first call; None if it was cancelled or taken already."""
        callback, self.callback = self.callback, None
        return callback

    def cancel(self) -> None:
        """Cancel the callback. Has no effect if it was cancelled or has run already."""
        self.callback = None


class Timers:
    """All scheduled callbacks. Times are monotonic seconds of the clock passed to the constructor."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._limit = _FEW

    def after(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Schedules a callback in `seconds` from now; `expire` runs it."""
        if len(self._heap) >= self._limit:
            # Most callbacks are cancelled long before they are due.
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapify(self._heap)
            self._limit = max(_FEW, 2 * len(self._heap))
        timer = Timer(callback)
        heappush(self._heap, (self._monotonic() + seconds, next(self._numbers), timer))
        return timer

    def next_deadline(self) -> float | None:
        """Return the time at which to call `expire`; None if there is no callback."""
        while self._heap and self._heap[0][2].callback is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self, now: float) -> None:
        """Run the callbacks that are due."""
        for_each(self._due(now), lambda callback: callback())

    def _due(self, now: float) -> Iterator[Callable[[], None]]:
        while self._heap and self._heap[0][0] <= now:
            callback = heappop(self._heap)[2].take()
            if callback is not None:
                yield callback
