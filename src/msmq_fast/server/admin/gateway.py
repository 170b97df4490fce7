"""Connections of the application protocol inside the process, for the management API and the console."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.app.auth import Identity
from msmq_fast.app.protocol import AppProtocol
from msmq_fast.app.service import Service
from msmq_fast.client.channel import Channel
from msmq_fast.client.connection import Connection
from msmq_fast.client.transport import Link
from msmq_fast.protocol.errors import ServiceNotAvailable
from msmq_fast.protocol.frames import PROTOCOL_VERSION, Frame
from msmq_fast.security.callers import Caller
from msmq_fast.server.admin.memory_link import connect

__all__ = ["AppGateway"]

MOST: Final = 64  # connections that are kept
_IDLE: Final = 60.0  # seconds after which an unused connection is closed


class _LocalProtocol(AppProtocol):
    """The server's end: calls `touch` of the commit loop before it processes data."""

    def __init__(
        self,
        service: Service,
        identity: Identity,
        loop: asyncio.AbstractEventLoop,
        address: str,
        touch: Callable[[], None],
    ) -> None:
        super().__init__(service, identity, loop, address)
        self._touch = touch

    def buffer_updated(self, nbytes: int) -> None:
        self._touch()
        super().buffer_updated(nbytes)

    def resume_writing(self) -> None:
        self._touch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._touch()
        super().connection_lost(exc)


@dataclass(slots=True)
class _Kept:
    connection: Connection
    used: float  # when it was last used
    users: int = 0


class AppGateway:
    """Opens and keeps one connection for each caller and address; implements `admin.api.gateway.Gateway`.

    A caller is known by its token too, so that a change of its groups takes effect with its next call. The
    entries of the audit name the address.
    """

    def __init__(self, service: Service, loop: asyncio.AbstractEventLoop, touch: Callable[[], None]) -> None:
        self._service = service
        self._loop = loop
        self._touch = touch
        self._kept: dict[tuple[Caller, str], _Kept] = {}  # the least recently used first
        self._lock = asyncio.Lock()
        self._sweep: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._stopped = False

    @asynccontextmanager
    async def client(self, caller: Caller) -> AsyncIterator[Connection]:
        """Return a connection with the identity of `caller`, which other calls of the same caller may share.
        Raises ServiceNotAvailable while the server stops.
        """
        kept = await self._open(caller)
        kept.users += 1
        try:
            yield kept.connection
        finally:
            kept.users -= 1
            kept.used = self._loop.time()

    async def _open(self, caller: Caller) -> _Kept:
        async with self._lock:
            if self._stopped:
                raise ServiceNotAvailable("the server stops")
            key = (caller, caller.token.address)  # two tokens are equal whatever their addresses
            kept = self._kept.pop(key, None)
            if kept is None or not kept.connection.connected:
                kept = _Kept(await self._connect(caller), self._loop.time())
            self._kept[key] = kept
            self._drop(lambda one: False)
            if self._sweep is None:
                self._sweep = self._loop.call_later(_IDLE, self._swept)
            return kept

    async def _connect(self, caller: Caller) -> Connection:
        async def dial(ended: Callable[[], None]) -> tuple[Link, dict[str, Any]]:
            link = Link(ended)
            identity = Identity(caller.name, caller.uid, caller.groups)
            address = caller.token.address
            protocol = _LocalProtocol(self._service, identity, self._loop, address, self._touch)
            connect(protocol, link, self._loop)
            hello = {"version": PROTOCOL_VERSION, "client": "management API"}
            return link, await link.request(Frame.HELLO, hello)

        return Connection(await Channel.open(dial, None))

    def _swept(self) -> None:
        now = self._loop.time()
        self._drop(lambda one: now - one.used >= _IDLE)
        self._sweep = self._loop.call_later(_IDLE, self._swept) if self._kept else None

    def _drop(self, old: Callable[[_Kept], bool]) -> None:
        """Close unused connections: those that are old, and the least recently used ones above the limit."""
        for key, kept in list(self._kept.items()):
            if not kept.users and (old(kept) or len(self._kept) > MOST):
                del self._kept[key]
                task = self._loop.create_task(kept.connection.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all connections; later calls raise ServiceNotAvailable."""
        self._stopped = True
        if self._sweep is not None:
            self._sweep.cancel()
        kept, self._kept = self._kept, {}
        for one in kept.values():
            await one.connection.close()
        if self._closing:
            await asyncio.wait(self._closing)
