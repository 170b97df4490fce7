"""Operations on the domain for which a caller waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from msmq_fast.directory.ldap.worker import Worker
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.store.completion import Completion

__all__ = ["REQUEST_S", "Proceed", "Requests"]

T = TypeVar("T")

REQUEST_S: Final = 8.0
"""Seconds after which a caller has an answer, whatever all domain controllers do. Programs wait longer."""

Proceed = Callable[[], None]
"""Raises DirectoryError if the caller has its answer already. An operation calls it before it changes the
domain.
"""


class Requests:
    """Passes operations to a worker. One without a result after `limit` seconds fails with
    DirectoryNotConnected, and changes nothing from then on: only what a domain controller has already been
    asked for may still be done.

    `monotonic` returns seconds. Implements `Timed`.
    """

    def __init__(self, worker: Worker, monotonic: Callable[[], float], *, limit: float = REQUEST_S) -> None:
        self._worker = worker
        self._monotonic = monotonic
        self._limit = limit
        self._open: deque[tuple[float, Completion[Any]]] = deque()  # by deadline

    def submit(self, operation: Callable[[Proceed], T]) -> Completion[T]:
        """Perform an operation when the worker has time for it."""
        answer: Completion[T] = Completion()

        def proceed() -> None:
            if answer.done:
                raise self._overdue()

        def perform() -> T:
            proceed()
            return operation(proceed)

        return self._within(self._worker.submit(perform), answer)

    def in_time(self, operation: Completion[T]) -> Completion[T]:
        """Return the outcome of an operation that others wait for, too, and that goes on in any case."""
        return self._within(operation, Completion())

    def _within(self, operation: Completion[T], answer: Completion[T]) -> Completion[T]:
        def performed(done: Completion[T]) -> None:
            error = done.exception()
            if error is None:
                answer.resolve(done.result())
            else:
                answer.fail(error)

        self._open.append((self._monotonic() + self._limit, answer))
        operation.add_done_callback(performed)
        return answer

    def next_deadline(self) -> float | None:
        """Return when the oldest operation without a result fails, None if all have one."""
        while self._open and self._open[0][1].done:
            self._open.popleft()
        return self._open[0][0] if self._open else None

    def expire(self, now: float) -> None:
        """Fail the operations whose time has come."""
        while (due := self.next_deadline()) is not None and due <= now:
            self._open[0][1].fail(self._overdue())

    def _overdue(self) -> DirectoryError:
        return DirectoryError(
            DirectoryOperationResult.NOT_CONNECTED,
            f"no domain controller has answered within {self._limit:g} s",
        )
