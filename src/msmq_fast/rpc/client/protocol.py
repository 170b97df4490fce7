"""The asyncio side of a client's connection: moves bytes, decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from msmq_fast.rpc.client.connection import ClientConnection

__all__ = ["ClientProtocol"]

_NOWHERE: Final = memoryview(bytearray(1 << 16))  # for bytes that arrive after the end; nobody reads it


class ClientProtocol(asyncio.BufferedProtocol):
    """One per connection. `touch` is called before anything in which deadlines may change."""

    def __init__(
        self, connection: ClientConnection, loop: asyncio.AbstractEventLoop, touch: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._loop = loop
        self._touch = touch
        self._transport: asyncio.Transport | None = None
        self._scheduled = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection stands."""
        self._transport = cast(asyncio.Transport, transport)
        self._connection.wake.connect(self._wake)
        self._connection.connected()
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """asyncio: where the kernel may write."""
        return _NOWHERE if self._connection.closing else self._connection.buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """asyncio: the kernel wrote."""
        if not self._connection.closing:
            self._touch()
            self._connection.received(nbytes)

    def eof_received(self) -> bool:
        """asyncio: the server is done; a half-open connection is of no use here."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: it is over."""
        self._transport = None
        self._touch()
        self._connection.lost(str(exc) if exc is not None else "the connection was closed")

    def _wake(self) -> None:
        # Once per tick, so that all requests of a tick go out in one write.
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        transport = self._transport
        if transport is None:
            return
        output = self._connection.take_output()
        if output:
            transport.writelines(output)
        if self._connection.closing:
            transport.close()
