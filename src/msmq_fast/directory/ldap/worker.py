"""The thread that waits for the domain controller, so that the event loop does not."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.store.completion import Completion

__all__ = ["REST_S", "Post", "ThreadWorker", "Worker"]

T = TypeVar("T")
Post = Callable[..., None]
"""Calls a function with arguments on the event loop, from any thread."""

REST_S: Final = 0.0001
"""Seconds of rest between two short pieces of a long operation. A thread that works for milliseconds on end
keeps a processor from the threads that handle messages, on whatever core it runs.
"""
MAX_WAITING: Final = 1_000
"""Operations that may wait for the domain controller."""


class Worker(Protocol):
    """Performs operations on the domain one after the other."""

    def submit(self, operation: Callable[[], T]) -> Completion[T]:
        """Perform an operation. The completion fails with the DirectoryError that the operation raises."""

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function on the event loop. For use by an operation."""

    def give_way(self) -> None:
        """Perform the operations that wait, and let other threads run. For use by a long operation."""

    def close(self) -> None:
        """Stop after the running operation. Those that wait are not performed."""


class ThreadWorker:
    """A worker with a thread of its own, which begins with the first operation."""

    def __init__(self, post: Post, *, max_waiting: int = MAX_WAITING) -> None:
        self._post = post
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(max_waiting)
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, operation: Callable[[], T]) -> Completion[T]:
        done: Completion[T] = Completion()

        def run() -> None:
            try:
                value = operation()
            except DirectoryError as error:
                self._post(done.fail, error)
            except Exception as error:  # else the caller would wait for ever
                self._post(done.fail, generic(f"{type(error).__name__}: {error}"))
            else:
                self._post(done.resolve, value)

        if self._closed:
            return failed(generic("the server stops"))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="directory", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(run)
        except queue.Full:
            reason = "too many operations wait for the domain controller"
            return failed(DirectoryError(DirectoryOperationResult.NOT_CONNECTED, reason))
        return done

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        if not self._closed:
            self._post(function, *arguments)

    def give_way(self) -> None:
        time.sleep(REST_S)
        while not self._waiting.empty() and not self._closed:
            run = self._waiting.get_nowait()
            if run is not None:
                run()
        if self._closed:
            raise generic("the server stops")

    def close(self) -> None:
        self._closed = True
        while True:  # the thread is a daemon: a domain controller that hangs does not delay a stop
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                break
        self._waiting.put_nowait(None)

    def _work(self) -> None:
        while True:
            run: Any = self._waiting.get()
            if run is None:
                return
            if not self._closed:
                run()
