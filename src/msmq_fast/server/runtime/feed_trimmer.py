"""Trims the event feed by age and size, in small steps."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["FeedTrimmer"]

_INTERVAL = 5.0  # seconds between two looks: the feed grows by some MiB a second under load
_SOON = 0.1  # seconds until the next step while there is more to drop
_STEP = 200  # records dropped in one unit of work


class FeedTrimmer:
    """Trims the feed. `trim(limit)` deletes up to `limit` records and returns how many it deleted."""

    def __init__(self, monotonic: Callable[[], float], trim: Callable[[int], int]) -> None:
        self._trim = trim
        self._due = monotonic() + _INTERVAL

    def next_deadline(self) -> float:
        """Return the time at which the next step is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Trim the feed by one step."""
        more = self._trim(_STEP) >= _STEP
        self._due = now + (_SOON if more else _INTERVAL)
