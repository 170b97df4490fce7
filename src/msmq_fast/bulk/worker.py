"""The bulk reader thread: runs one piece of work at a time and uses at most its share of a core."""

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
"""Seconds for which a piece of work may run at the lowest priority. While the piece reads, the store cannot
reuse pages that are freed.
"""


class Worker:
    """A thread that runs pieces of work in the order in which they were submitted. The thread is shared
    fairly if each stream submits one bounded piece at a time.

    `share` is the share of one core that work may use; 0 means no limit. After a piece that used t seconds of
    processor time, the thread pauses until t / share seconds after the beginning of the piece; work that the
    event loop does for readers makes the pause longer. `boost` is called on the event loop when a piece takes
    longer than PATIENCE.
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
        """Run `work` on the thread. Call this method on the event loop. Raises RuntimeError if the worker is
        closed.
        """
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
        """Count `used` seconds of processor time, which the event loop spent for readers, toward the
        share.
        """
        self._share.charge(used, time.monotonic())

    def _paced(self, work: Callable[[], T]) -> T:
        while (pause := self._share.pause(time.monotonic())) > 0:  # charges in the meantime make it longer
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
        """Wait for the current piece of work, and drop the pieces that have not begun. A second call has no
        effect.
        """
        self._closing.set()
        self._executor.shutdown(wait=True, cancel_futures=True)
