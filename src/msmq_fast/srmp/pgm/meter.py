"""Measures a rate in octets per second."""

from __future__ import annotations


class Meter:
    """Counts octets in intervals of one second. The rate covers the last complete interval and the current
    one.
    """

    def __init__(self) -> None:
        self._begin: float | None = None
        self._current = 0
        self._last = 0

    def count(self, size: int, now: float) -> None:
        self._move(now)
        self._current += size

    def rate(self, now: float) -> float:
        """Return the rate in octets per second."""
        if self._begin is None:
            return 0.0
        self._move(now)
        return (self._last + self._current) / (1.0 + min(1.0, max(0.0, now - self._begin)))

    def _move(self, now: float) -> None:
        if self._begin is None:
            self._begin = now
        passed = int(now - self._begin)
        if passed > 0:
            self._last = self._current if passed == 1 else 0
            self._current = 0
            self._begin += passed
