"""The tick of the event loop: what one iteration brought goes to disk together; deadlines share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

__all__ = ["Pacemaker", "Timed"]

_ARM_INTERVAL = 0.001  # seconds from a turn of the loop to the look at the deadlines that it may have changed


class Timed(Protocol):
    """Something with deadlines, in monotonic seconds."""

    def next_deadline(self) -> float | None:
        """When `expire` is due, None for never. It changes nothing, however often it is asked."""

    def expire(self, now: float) -> object:
        """Run what is due at `now`."""


class _Committer(Protocol):
    def fileno(self) -> int:
        """Readable when something has completed."""

    def complete(self) -> int | None:
        """Tell the listeners."""


class Pacemaker:
    """Calls `submit` once per loop iteration in which anything happened, `complete` when the disk is done.

    Front ends call `touch` before they feed something in: the first call of an iteration reads the clock, so
    that what arrives after a silence is not judged by the time at which the silence began. A callback
    scheduled while the loop polls runs after all sockets that were readable have been served, so everything
    that one poll brought shares one batch.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        *,
        tick: Callable[[], None],
        submit: Callable[[], object],
    ) -> None:
        self._loop = loop
        self._monotonic = monotonic
        self._tick = tick
        self._submit = submit
        self._timed: list[Timed] = []
        self._committers: list[_Committer] = []
        self._flush: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._again: asyncio.TimerHandle | None = None
        self._stopped = False
        self.iterations = 0

    def watch(self, committer: _Committer) -> None:
        """Complete what this writer or reader reports through its eventfd."""
        self._committers.append(committer)

        def completed() -> None:
            self.touch()
            committer.complete()

        self._loop.add_reader(committer.fileno(), completed)

    def add(self, timed: Timed) -> None:
        """Run the deadlines of `timed`."""
        self._timed.append(timed)
        self.touch()

    def touch(self) -> None:
        """Something happens now: read the clock, unless this iteration has; submit and look at the deadlines
        once, at the end of it.
        """
        if self._flush is None and not self._stopped:
            self._tick()
            self._flush = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._flush = None
        self.iterations += 1
        self._submit()
        # Asking everyone for deadlines costs more than a small turn of the loop: no message waits for it.
        if self._again is None:
            self._again = self._loop.call_later(_ARM_INTERVAL, self._arm)

    def _arm(self) -> None:
        self._again = None
        due = None
        for timed in self._timed:
            deadline = timed.next_deadline()
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        if due == self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = due
        if due is not None:
            self._timer = self._loop.call_later(max(0.0, due - self._monotonic()), self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._due = None
        self.touch()
        for timed in self._timed:
            deadline = timed.next_deadline()
            # Read the clock afterwards: a deadline may be "now".
            if deadline is not None and deadline <= (now := self._monotonic()):
                timed.expire(now)

    def stop(self) -> None:
        """Watch nothing any more."""
        self._stopped = True
        for handle in (self._flush, self._timer, self._again):
            if handle is not None:
                handle.cancel()
        self._flush = self._timer = self._again = None
        for committer in self._committers:
            self._loop.remove_reader(committer.fileno())
        self._committers.clear()
