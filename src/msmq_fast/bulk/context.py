"""The state that all calls of the bulk API share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from aiohttp import web

from msmq_fast.bulk.figures import Figures
from msmq_fast.logfields import Refuse
from msmq_fast.security.callers import Callers
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.identity.signing import Signing
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.security.token import Token

__all__ = ["Context", "Limits", "caller", "set_caller"]

_CALLER = "msmq_fast.caller"

T = TypeVar("T")


def set_caller(request: web.Request, token: Token) -> None:
    """Store the caller in the request object."""
    request[_CALLER] = token


def caller(request: web.Request) -> Token:
    """Return the caller that `set_caller` stored in the request object."""
    token: Token = request[_CALLER]
    return token


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the bulk API.

    - `streams`: the maximum number of open streams.
    - `slow_client`: the seconds for which a client may read or send nothing.
    - `stage_bytes`: the maximum size of a stage in bytes.
    - `uploads`: the maximum number of uploads at the same time.
    """

    streams: int = 32
    slow_client: float = 120.0
    stage_bytes: int = 1 << 30
    uploads: int = 32


@dataclass(slots=True)
class Context:
    """State that all calls of the bulk API share. `touch` requests that the pending writes to the store are
    committed at the end of this turn of the event loop.
    """

    manager: QueueManager
    callers: Callers
    touch: Callable[[], None]
    not_ready: Callable[[], str | None]
    refuse: Refuse
    incarnation: int
    start: int  # differs from start to start
    release: str
    limits: Limits = field(default_factory=Limits)
    figures: Figures = field(default_factory=Figures)
    signing: Signing | None = None

    async def settled(self, completion: Completion[T]) -> T:
        """Wait for the operation of `completion` to finish; return its result or raise its error."""
        if not completion.done:
            self.touch()
            waiting = asyncio.get_running_loop().create_future()

            def wake(_: Completion[T]) -> None:
                if not waiting.done():
                    waiting.set_result(None)

            completion.add_done_callback(wake)
            await waiting
        return completion.result()
