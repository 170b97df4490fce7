"""The result of an operation that may have to wait for the disk, a message or a directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class NotDone(Exception):
    """`result` was called before the operation finished."""


class Completion(Generic[T]):
    """A future without asyncio. It is resolved only once, with a value or an error, and then calls its
    callbacks immediately.
    """

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Completion[T]], None]] | None = None

    @classmethod
    def of(cls, value: T) -> Completion[T]:
        """Returns a completion that is already resolved with `value`."""
        completion = cls()
        completion.resolve(value)
        return completion

    def resolve(self, value: T) -> bool:
        """Sets the value. Returns False, without any effect, if the completion is already resolved."""
        if self.done:
            return False
        self._value = value
        self._finish()
        return True

    def fail(self, error: Exception) -> bool:
        """Sets the error. Returns False, without any effect, if the completion is already resolved."""
        if self.done:
            return False
        self._error = error
        self._finish()
        return True

    def result(self) -> T:
        """Returns the value. Raises the error that the operation failed with (an MSMQError), or NotDone."""
        if not self.done:
            raise NotDone("the operation is still running")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def exception(self) -> Exception | None:
        """Returns the error, None if the operation succeeded or is still running."""
        return self._error

    def add_done_callback(self, callback: Callable[[Completion[T]], None]) -> None:
        """Calls `callback(self)` when the completion is resolved: immediately if it is already resolved."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def then(self, step: Callable[[T], Completion[U]]) -> Completion[U]:
        """Calls `step(value)` when this completion is resolved with `value`. Returns a new completion. It
        gets the outcome of the completion that `step` returns; it fails if this completion fails or `step`
        raises.
        """
        following: Completion[U] = Completion()

        def pass_on(done: Completion[U]) -> None:
            error = done.exception()
            if error is None:
                following.resolve(done.result())
            else:
                following.fail(error)

        def take_step(done: Completion[T]) -> None:
            try:
                step(done.result()).add_done_callback(pass_on)
            except Exception as error:
                following.fail(error)

        self.add_done_callback(take_step)
        return following

    def _finish(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(self)
