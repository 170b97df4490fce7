"""The commit loop: commits the writes of one iteration of the event loop together, and handles all deadlines
with one timer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from msmq_fast.qm.faults import Faults
from msmq_fast.qm.timed import Timed, TimedGroup

__all__ = ["CommitLoop"]

_ARM_INTERVAL = 0.004  # seconds from a turn of the loop to the look at the deadlines that it may have changed
_LINGER = 0.00015  # seconds of polling after a commit on this thread: the reply often arrives at once
_SUBMIT_AGAIN = 0.1  # seconds after which a batch is submitted again that raised


class _Committer(Protocol):
    def fileno(self) -> int:
        """Return a descriptor that is readable when operations have completed."""

    def complete(self) -> int | None:
        """Call the callbacks of all operations that have completed."""


class CommitLoop:
    """Calls `submit` once in each iteration of the event loop that has work, and `complete` when a commit has
    ended.

    Front ends call `touch` before they process input. The first call in an iteration reads the clock, so that
    input after an idle period is not handled with the time at which that period began. It also schedules a
    callback, which runs after all readable sockets have been served: all input of one iteration is therefore
    committed in one batch.

    After a `submit` that committed on this thread, the event loop polls for a moment without sleeping: to
    wake it would take longer than all work for a single message. On a computer with one processor it sleeps
    at once, because the peer needs that processor.

    An exception is counted by `faults` and does not stop the loop: the rest of the batch is still submitted,
    and all other deadlines are still handled (`TimedGroup`).
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        *,
        tick: Callable[[], None],
        submit: Callable[[], int | None],
        submit_to_thread: Callable[[], int | None],
        faults: Faults,
    ) -> None:
        """`submit` may commit on the thread of the event loop; `submit_to_thread` always leaves the commit to
        the writer thread.
        """
        self._loop = loop
        self._monotonic = monotonic
        self._tick = tick
        self._submit = submit
        self._submit_to_thread = submit_to_thread
        self._faults = faults
        self._timed = TimedGroup(faults, monotonic)
        self._committers: list[_Committer] = []
        self._flush: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._again: asyncio.TimerHandle | None = None
        self._linger = _LINGER if len(os.sched_getaffinity(0)) > 1 else 0.0
        self._lingers_until = 0.0
        self._lingering = False
        self._stopped = False
        self.iterations = 0

    def watch(self, committer: _Committer) -> None:
        """Call `complete` whenever this writer or reader signals its eventfd."""
        self._committers.append(committer)

        def completed() -> None:
            self.touch()
            try:
                committer.complete()
            except Exception as error:
                self._faults.note("a completion", error)

        self._loop.add_reader(committer.fileno(), completed)

    def add(self, timed: Timed) -> None:
        """Handle the deadlines of `timed` from now on."""
        self._timed.add(type(timed).__name__, timed)
        self.touch()

    def drain(self) -> None:
        """From now on, commit on the writer thread only. While the server stops, a disk that does not answer
        must not block the event loop: the loop must still handle the signal or the timer that ends the stop.
        """
        self._submit = self._submit_to_thread

    def touch(self) -> None:
        """Announce work. Reads the clock unless this iteration has already done so, and schedules a `submit`
        and a check of the deadlines at the end of the iteration.
        """
        if self._flush is None and not self._stopped:
            self._tick()
            self._flush = self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._flush = None
        self.iterations += 1
        try:
            if self._submit() and self._linger:
                self._lingers_until = self._monotonic() + self._linger
                if not self._lingering:
                    self._poll()
        except Exception as error:
            self._faults.note("a commit", error)
            self._loop.call_later(_SUBMIT_AGAIN, self.touch)
        finally:
            # Asking everyone for deadlines costs more than a small turn of the loop: no message waits for it.
            if self._again is None:
                self._again = self._loop.call_later(_ARM_INTERVAL, self._arm)

    def _poll(self) -> None:
        """Keep the event loop from sleeping, with a callback that is always due."""
        self._lingering = not self._stopped and self._monotonic() < self._lingers_until
        if self._lingering:
            self._loop.call_soon(self._poll)

    def _arm(self) -> None:
        self._again = None
        due = self._timed.next_deadline()
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
        self.touch()  # before anything can raise: submits the results of this turn and arms the timer
        self._timed.expire(self._monotonic())

    def stop(self) -> None:
        """Stop watching all writers and readers."""
        self._stopped = True
        for handle in (self._flush, self._timer, self._again):
            if handle is not None:
                handle.cancel()
        self._flush = self._timer = self._again = None
        for committer in self._committers:
            self._loop.remove_reader(committer.fileno())
        self._committers.clear()
