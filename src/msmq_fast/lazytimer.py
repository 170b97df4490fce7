"""A timer of the event loop that is rarely rescheduled, for deadlines that are postponed all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msmq_fast.timing import NEVER

__all__ = ["LazyTimer"]


_CLOSED = -NEVER  # before every deadline, so that none is armed


class LazyTimer:
    """A timer that calls `due` at the armed deadline or earlier.

    If the deadline is postponed, the timer still fires at the earlier time: `due` must check the clock and
    arm the timer again. `at` is the time at which the timer fires; a deadline that is not before `at` needs
    no call of `arm`.
    """

    __slots__ = ("_due", "_handle", "_loop", "_monotonic", "at")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float], due: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._monotonic = monotonic
        self._due = due
        self._handle: asyncio.TimerHandle | None = None
        self.at = NEVER  # when it fires

    def arm(self, deadline: float | None) -> None:
        """Call `due` no later than at `deadline`; None changes nothing, since there is no deadline now."""
        if deadline is None or self.at <= deadline:
            return
        if self._handle is not None:
            self._handle.cancel()
        self.at = deadline
        self._handle = self._loop.call_later(max(0.0, deadline - self._monotonic()), self._fire)

    def close(self) -> None:
        """Stop the timer and drop its reference to `due`, so that its owner can be freed without the garbage
        collector.
        """
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self.at = _CLOSED
        self._due = _nothing

    def _fire(self) -> None:
        self._handle = None
        self.at = NEVER
        self._due()


def _nothing() -> None:
    """Do nothing; the callback of a closed timer."""
