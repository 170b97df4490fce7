"""Callbacks at points in time, for what has few of them: opens, and what else may not take for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count

from msmq_fast.qm.faults import for_each

__all__ = ["Timer", "Timers"]

_FEW = 64


class Timer:
    """One callback; it happens once, or never."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def take(self) -> Callable[[], None] | None:
        """The callback, unless it was cancelled; it is taken once."""
        callback, self.callback = self.callback, None
        return callback

    def cancel(self) -> None:
        """It does not happen. Cancelling twice, or too late, is fine."""
        self.callback = None


class Timers:
    """Times are monotonic seconds, by the clock that is given."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._limit = _FEW

    def after(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Calls back after this number of seconds, in `expire`."""
        if len(self._heap) >= self._limit:
            # Most are cancelled long before their time.
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapify(self._heap)
            self._limit = max(_FEW, 2 * len(self._heap))
        timer = Timer(callback)
        heappush(self._heap, (self._monotonic() + seconds, next(self._numbers), timer))
        return timer

    def next_deadline(self) -> float | None:
        """When `expire` is due, None for never."""
        while self._heap and self._heap[0][2].callback is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def expire(self, now: float) -> None:
        """Run what is due."""
        for_each(self._due(now), lambda callback: callback())

    def _due(self, now: float) -> Iterator[Callable[[], None]]:
        while self._heap and self._heap[0][0] <= now:
            callback = heappop(self._heap)[2].take()
            if callback is not None:
                yield callback
