"""Whether the event loop keeps up: a turn that takes long holds up everything else that the server does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

__all__ = ["LONGEST", "StallWatch"]

_log = logging.getLogger("msmq_fast.server")

_INTERVAL: Final = 1.0  # seconds between two looks
LONGEST: Final = 2.0
"""Seconds of processor time that may pass between two looks."""
_REMEMBERED: Final = 10.0  # seconds in which a stall makes the server not ready


class StallWatch:
    """A `Timed` that looks every second at the processor time of its thread.

    If more than `LONGEST` of it has passed, the loop ran something else all the while, although the look was
    due after a second. The processor time does not count what other processes on a busy machine take.
    """

    def __init__(
        self, monotonic: Callable[[], float], processor: Callable[[], float] = time.thread_time
    ) -> None:
        """`processor` gives the processor time of the calling thread. Create it where the loop runs."""
        self._monotonic = monotonic
        self._processor = processor
        self._used = processor()
        self._due = monotonic() + _INTERVAL
        self._took = 0.0
        self._until = 0.0

    def next_deadline(self) -> float:
        """When the next look is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Look."""
        used = self._processor()
        took, self._used = used - self._used, used
        self._due = now + _INTERVAL
        if took > LONGEST:
            self._took = took
            self._until = now + _REMEMBERED
            _log.warning("the event loop was busy for %.1f s in one turn", took)

    @property
    def why_not_ready(self) -> str | None:
        """The last stall, for `/readyz`; None if there was none lately."""
        if self._monotonic() >= self._until:
            return None
        return f"the event loop was busy for {self._took:.1f} s in one turn"
