"""Signals: events with any number of listeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """A callable that calls all of its listeners, in the order in which they were connected."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def connect(self, listener: Callable[P, None]) -> None:
        """Call `listener` whenever the signal is called from now on."""
        self._listeners.append(listener)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all listeners."""
        for listener in self._listeners:
            listener(*args, **kwargs)
