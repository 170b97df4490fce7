"""Calls about many queues at once: each item of the request gets its own answer, an error too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from msmq_fast.bulk.errors import refusal_of

__all__ = ["MOST_AT_ONCE", "each"]

MOST_AT_ONCE: Final = 500
"""The most queues of one call."""
T = TypeVar("T")

_TOGETHER: Final = 32
"""How many items run at a time: they share commits of the store, and other work runs between two groups."""


async def each(items: Sequence[T], call: Callable[[T], Awaitable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the answer of `call` for each item, in their order; for an item that is refused, the JSON object
    of the refusal. Raises the exception of the first item that is malformed or fails unexpectedly.
    """
    answers: list[dict[str, Any]] = []
    for first in range(0, len(items), _TOGETHER):
        group = [call(item) for item in items[first : first + _TOGETHER]]
        found = await asyncio.gather(*group, return_exceptions=True)
        answers += [one if isinstance(one, dict) else _refused(one) for one in found]
        await asyncio.sleep(0)
    return answers


def _refused(error: BaseException) -> dict[str, Any]:
    refusal = refusal_of(error) if isinstance(error, Exception) else None
    if refusal is None or refusal.code == "BAD_REQUEST":
        raise error
    return refusal.answer()
