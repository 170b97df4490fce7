"""A timer of the event loop that is seldom moved: for deadlines that are put off all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msmq_fast.timing import NEVER

__all__ = ["LazyTimer"]


_CLOSED = -NEVER  # before every deadline, so that none is armed


class LazyTimer:
    """Calls `due` at the deadline that was armed, or before it.

    A timer that fires early enough stays when the deadline is put off: `due` looks at the clock and arms
    again.
    To avoid a call, compare a deadline with `at` before you arm.
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
        """Fire no later than at `deadline`; None: there is no deadline now."""
        if deadline is None or self.at <= deadline:
            return
        if self._handle is not None:
            self._handle.cancel()
        self.at = deadline
        self._handle = self._loop.call_later(max(0.0, deadline - self._monotonic()), self._fire)

    def close(self) -> None:
        """Stops the timer and drops its reference to `due`: its owner must not wait for the garbage
        collection.
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
    """The callback of a closed timer: it does nothing."""
