"""Limits the share of a core that bulk reads may use, on whichever thread they run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from threading import Lock
from typing import Any, TypeVar

__all__ = ["Charged", "Share"]

T = TypeVar("T")


class Share:
    """Computes when the next piece of work may begin, so that all pieces together use at most `share` of the
    time of one core; 0 means no limit. Times are monotonic seconds. Several threads may use one object.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._lock = Lock()
        self._begun: float | None = None  # of the piece that is being done
        self._free_at = 0.0

    @property
    def begun(self) -> float | None:
        """The time at which the current piece of work began; None if none is running."""
        return self._begun

    def pause(self, now: float) -> float:
        """Return the seconds until the next piece may begin; 0 or less if it may begin at once."""
        return self._free_at - now

    def begin(self, now: float) -> None:
        """Record that a piece of work begins. Only one piece runs at a time."""
        with self._lock:
            self._begun = now

    def end(self, used: float) -> None:
        """Record that the piece of work has ended after `used` seconds of processor time."""
        with self._lock:
            begun, self._begun = self._begun, None
            self._add(used, begun or 0.0)

    def charge(self, used: float, now: float) -> None:
        """Charge `used` seconds of processor time that other work has used until `now`. That work may have
        run in parallel to a piece.
        """
        with self._lock:
            self._add(used, now - used if self._begun is None else self._begun)

    def _add(self, used: float, since: float) -> None:
        if self._share:
            self._free_at = max(self._free_at, since) + used / self._share


class Charged(Awaitable[T]):
    """Wraps a coroutine and passes the processor seconds of each of its steps to `charge`, which counts them.
    A step runs until the coroutine waits; the time of other work that runs meanwhile is not passed.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        charge: Callable[[float], None],
        processor_time: Callable[[], float],
    ) -> None:
        self._coroutine = coroutine
        self._charge = charge
        self._time = processor_time

    def __await__(self) -> Generator[Any, Any, T]:
        """Run the coroutine, and pass the processor seconds of each step to `charge`."""
        step: Callable[[Any], Any] = self._coroutine.send
        argument: Any = None
        while True:
            begun = self._time()
            try:
                awaited = step(argument)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._charge(self._time() - begun)
            try:
                step, argument = self._coroutine.send, (yield awaited)
            except BaseException as error:
                step, argument = self._coroutine.throw, error
