"""Detects stalls of the event loop: a long iteration delays everything else that the server does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from math import ceil
from typing import Final

__all__ = ["LAG_BINS", "LONGEST", "StallWatch"]

_log = logging.getLogger("msmq_fast.server")

_INTERVAL: Final = 1.0  # seconds between two looks
LONGEST: Final = 2.0
"""Processor time between two checks, in seconds, above which the event loop counts as stalled."""
LAG_BINS: Final = 16
"""Number of bins of `StallWatch.lag`: the last one counts delays above 16 s."""
_REMEMBERED: Final = 10.0  # seconds in which a stall makes the server not ready


class StallWatch:
    """Checks every second how much processor time its thread has used; the commit loop calls it (`Timed`).

    If the thread has used more than `LONGEST` since the last check, one callback has kept the event loop
    busy: otherwise the check would have run after a second. Processor time does not include the time that
    other processes take on a busy machine.
    """

    def __init__(
        self, monotonic: Callable[[], float], processor: Callable[[], float] = time.thread_time
    ) -> None:
        """`processor` returns the processor time of the calling thread. Create the object in the thread of
        the event loop.
        """
        self._monotonic = monotonic
        self._processor = processor
        self._used = processor()
        self._due = monotonic() + _INTERVAL
        self._took = 0.0
        self._until = 0.0
        self._lags = [0] * LAG_BINS
        self._lag_total = 0.0

    def lag(self) -> tuple[tuple[int, ...], float]:
        """Return the delays of all checks behind their due times: (counts, sum in seconds). Count i is of the
        delays up to 2**i ms that no lower bin counts; the last count is of all longer delays.
        """
        return tuple(self._lags), self._lag_total

    def next_deadline(self) -> float:
        """Return the time at which the next check is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Check for a stall."""
        used = self._processor()
        took, self._used = used - self._used, used
        late = max(0.0, self._monotonic() - self._due)
        self._lags[min(max(0, ceil(late * 1000) - 1).bit_length(), LAG_BINS - 1)] += 1
        self._lag_total += late
        self._due = now + _INTERVAL
        if took > LONGEST:
            self._took = took
            self._until = now + _REMEMBERED
            _log.warning("the event loop was busy for %.1f s in one turn", took)

    @property
    def why_not_ready(self) -> str | None:
        """Return a text about the last stall, for `/readyz`; None if there was none recently."""
        if self._monotonic() >= self._until:
            return None
        return f"the event loop was busy for {self._took:.1f} s in one turn"
