"""An application server in the test's own event loop, over a store in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msmq_fast.app.auth import Identity
from msmq_fast.app.protocol import AppProtocol
from tests.support.worlds.app import World


class RealClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall_us(self) -> int:
        return time.time_ns() // 1000


class CommittingProtocol(AppProtocol):
    """Commits at the end of every turn in which something was received, and runs deadlines."""

    server: Server

    def buffer_updated(self, nbytes: int) -> None:
        self.server.world.manager.tick()
        super().buffer_updated(nbytes)
        self._loop.call_soon(self._commit)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.server.protocols.discard(self)
        self._loop.call_soon(self._commit)

    def _commit(self) -> None:
        self.server.world.commit()
        deadline = self.server.world.manager.next_deadline()
        if deadline is not None:
            self._loop.call_later(max(deadline - time.monotonic(), 0.001), self._expire)

    def _expire(self) -> None:
        self.server.world.manager.expire(self.server.world.manager.monotonic())
        self._commit()


class Server:
    """A world behind a Unix socket, and behind TCP if users with tokens are given."""

    def __init__(self, path: Path, **limits: int) -> None:
        self.path = str(path)
        self.world = World(clock=RealClock(), **limits)
        self.protocols: set[CommittingProtocol] = set()
        self.port = 0
        self._servers: list[asyncio.Server] = []

    def _protocol(self, identity: Identity | None) -> AppProtocol:
        protocol = CommittingProtocol(self.world.service, identity, asyncio.get_running_loop())
        protocol.server = self
        self.protocols.add(protocol)
        return protocol

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        identity = Identity("tester", uid=0)
        self._servers.append(await loop.create_unix_server(lambda: self._protocol(identity), self.path))
        tcp = await loop.create_server(lambda: self._protocol(None), "127.0.0.1", 0)
        self.port = tcp.sockets[0].getsockname()[1]
        self._servers.append(tcp)

    def drop(self) -> None:
        """Close all connections."""
        for protocol in list(self.protocols):
            protocol.close()

    async def stop(self) -> None:
        self.drop()
        for server in self._servers:
            server.close()


@asynccontextmanager
async def running(path: Path, **limits: int) -> AsyncIterator[Server]:
    server = Server(path, **limits)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
