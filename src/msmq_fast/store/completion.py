"""The result of an operation that waits: for the disk, for a message, for a directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class NotDone(Exception):
    """`result` was asked for too early."""


class Completion(Generic[T]):
    """Resolved once, with a value or an error; calls back in the turn in which that happens. No asyncio."""

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[Callable[[Completion[T]], None]] | None = None

    @classmethod
    def of(cls, value: T) -> Completion[T]:
        """One that is resolved already."""
        completion = cls()
        completion.resolve(value)
        return completion

    def resolve(self, value: T) -> bool:
        """Sets the value; False, and nothing happens, if it is resolved already."""
        if self.done:
            return False
        self._value = value
        self._finish()
        return True

    def fail(self, error: Exception) -> bool:
        """Sets the error; False, and nothing happens, if it is resolved already."""
        if self.done:
            return False
        self._error = error
        self._finish()
        return True

    def result(self) -> T:
        """The value; raises the error it failed with (an MSMQError), or NotDone."""
        if not self.done:
            raise NotDone("the operation is still running")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def exception(self) -> Exception | None:
        """The error, None if there is none (yet)."""
        return self._error

    def add_done_callback(self, callback: Callable[[Completion[T]], None]) -> None:
        """Calls `callback(self)` when resolved: at once if it is."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def then(self, step: Callable[[T], Completion[U]]) -> Completion[U]:
        """The completion of `step(value)`; an error of this one, or one that `step` raises, ends it."""
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
