"""The return value of `connect()` and `open()`: `await` returns the opened object; `async with` also closes
the object at the end.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Opening"]


class _Closing(Protocol):
    async def __aenter__(self) -> Any: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


T = TypeVar("T", bound=_Closing)


class Opening(Coroutine[Any, Any, T], Generic[T]):
    """A coroutine that is also a context manager. Like any coroutine, it runs once.

    With `thing = await opening`, the caller closes the object; `async with opening as thing` closes it at the
    end.
    """

    def __init__(self, made: Coroutine[Any, Any, T]) -> None:
        self._made = made
        self._open: T | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._made.__await__()

    async def __aenter__(self) -> T:
        self._open = await self._made
        await self._open.__aenter__()
        return self._open

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.__aexit__(kind, error, trace)

    # What a coroutine has, so that asyncio.run() and create_task() take it.

    def send(self, value: Any) -> Any:
        """Resume the wrapped coroutine with a value, like `coroutine.send`."""
        return self._made.send(value)

    def throw(self, *given: Any) -> Any:
        """Raise an exception inside the wrapped coroutine, like `coroutine.throw`."""
        return self._made.throw(*given)

    def close(self) -> None:
        """Close the wrapped coroutine, like `coroutine.close`."""
        self._made.close()
