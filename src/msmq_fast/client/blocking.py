"""The base of the generated `sync.py`: an event loop in a background thread, and wrappers around the asyncio
objects that run on that loop.

Wrappers may be used from any thread. A forked child gets an event loop of its own and must connect again,
since the connections belong to the parent.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

T = TypeVar("T")


class _Runner:
    """The event loop of the background thread, started at its first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Reset the state in a forked child, where the loop's thread does not exist and the lock may be held
        for ever.
        """
        self._lock = threading.Lock()
        self._loop = None

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="msmq_fast.sync", daemon=True).start()
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except (KeyboardInterrupt, CancelledError):
            future.cancel()
            raise


_runner = _Runner()


def run(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background loop and wait for its result."""
    return _runner.run(call)


def on_loop(function: Callable[[], T]) -> T:
    """Call a function on the thread of the background loop, for functions that make objects bound to the
    loop.
    """

    async def call() -> T:
        return function()

    return _runner.run(call())


def iterate(source: AsyncIterable[T]) -> Iterator[T]:
    """Yield the items of an asynchronous iterable; each is fetched when the caller asks for it."""
    items = source.__aiter__()
    try:
        while True:
            try:
                yield _runner.run(_next(items))
            except StopAsyncIteration:
                return
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            _runner.run(close())


async def _next(items: Any) -> Any:
    return await items.__anext__()


Inner = TypeVar("Inner")


class Wrapper(Generic[Inner]):
    """A blocking wrapper around an object of the asyncio client, for callers in other threads."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner


def unwrap(value: Any) -> Any:
    """Return the object inside a wrapper; any other value is returned unchanged."""
    return value._inner if isinstance(value, Wrapper) else value


class _Managed(Protocol):
    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object: ...


_Closing = TypeVar("_Closing", bound=_Managed)


class ClosingWrapper(Wrapper[_Closing]):
    """A wrapper that a `with` statement opens and closes."""

    def __enter__(self) -> Self:
        _runner.run(_enter(self._inner))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _runner.run(_exit(self._inner, kind, error, trace))


async def _enter(inner: _Managed) -> None:
    await inner.__aenter__()


async def _exit(
    inner: _Managed,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    await inner.__aexit__(kind, error, trace)
