"""The thread that reads in bulk: one piece of work after the other, never more than its share of a core."""

from __future__ import annotations

import threading
import time
from asyncio import AbstractEventLoop, Future, TimerHandle, get_running_loop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from msmq_fast.bulk.pacing import Share

__all__ = ["Worker"]

T = TypeVar("T")

PATIENCE: Final = 0.05
"""Seconds for background work; while it reads, freed pages of the store cannot be reused."""


class Worker:
    """Work is done in the order in which it was given. A stream that gives one bounded piece at a time gets a
    fair part of the thread.

    `share`: of one core, 0 for no limit. A piece that took the processor for t seconds is followed by a pause
    until t / share seconds after its beginning; what the event loop does for readers makes it longer.
    `boost` is called on the loop while a piece has taken longer than PATIENCE.
    """

    def __init__(self, share: float = 0.0, boost: Callable[[], object] = lambda: None) -> None:
        self.cpu_seconds = 0.0
        self._boost = boost
        self._waited_for = 0  # pieces
        self._timer: TimerHandle | None = None
        self._closing = threading.Event()
        self._share = Share(share)
        self._executor = ThreadPoolExecutor(1, "bulk")

    def run(self, work: Callable[[], T]) -> Future[T]:
        """Have the thread do it; to be called on the event loop. RuntimeError: the worker is closed."""
        loop = get_running_loop()
        future = loop.run_in_executor(self._executor, self._paced, work)
        future.add_done_callback(self._ended)
        self._waited_for += 1
        if self._timer is None:
            self._timer = loop.call_later(PATIENCE, self._look, loop)
        return future

    def _ended(self, _: Future[Any]) -> None:
        self._waited_for -= 1

    def _look(self, loop: AbstractEventLoop) -> None:
        self._timer = None
        if self._waited_for:
            begun = self._share.begun
            if begun is not None and time.monotonic() - begun > PATIENCE:
                self._boost()
            self._timer = loop.call_later(PATIENCE, self._look, loop)

    def charge(self, used: float) -> None:
        """The event loop was busy for readers; `used` in seconds of the processor."""
        self._share.charge(used, time.monotonic())

    def _paced(self, work: Callable[[], T]) -> T:
        while (pause := self._share.pause(time.monotonic())) > 0:  # what is charged meanwhile makes it longer
            if self._closing.wait(pause):
                break
        self._share.begin(time.monotonic())
        used = time.thread_time()
        try:
            return work()
        finally:
            used = time.thread_time() - used
            self.cpu_seconds += used
            self._share.end(used)

    def close(self) -> None:
        """Waits for the piece of work that is being done, drops the others; closing twice is fine."""
        self._closing.set()
        self._executor.shutdown(wait=True, cancel_futures=True)
