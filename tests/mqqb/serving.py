"""The asyncio adapter of sessions on a listening socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.protocol import SessionProtocol
from tests.support.worlds.hosts import Host


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what other callbacks bring about, for five seconds at most."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


class Serving:
    """An endpoint on a loopback port; the disk is quick unless told otherwise."""

    def __init__(self, pending_bytes: int = 1 << 30, **context: object) -> None:
        self.host = Host(**context)  # type: ignore[arg-type]
        self.endpoint = Endpoint(self.host.session_context, lambda _: None, time.monotonic())
        self.pending_bytes = pending_bytes
        self.quick = True

    def touch(self) -> None:
        if self.quick:
            asyncio.get_running_loop().call_later(0.01, self.host.commit)

    async def start(self) -> int:
        loop = asyncio.get_running_loop()

        def protocol() -> SessionProtocol:
            return SessionProtocol(
                lambda address, wake: self.endpoint.accept(address, time.monotonic(), wake),
                loop,
                time.monotonic,
                self.host.writer,
                self.pending_bytes,
                self.touch,
            )

        self.server = await loop.create_server(protocol, "127.0.0.1", 0)
        return int(self.server.sockets[0].getsockname()[1])
