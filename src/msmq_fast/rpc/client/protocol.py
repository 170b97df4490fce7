"""The asyncio adapter of a client's connection: passes bytes between the transport and the
ClientConnection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msmq_fast.adapter import NOWHERE, Adapter
from msmq_fast.rpc.client.connection import ClientConnection

__all__ = ["ClientProtocol"]


class ClientProtocol(Adapter, asyncio.BufferedProtocol):
    """The adapter of one connection. `touch` is called before any action that may change deadlines."""

    def __init__(
        self, connection: ClientConnection, loop: asyncio.AbstractEventLoop, touch: Callable[[], None]
    ) -> None:
        super().__init__(loop)
        self._connection = connection
        self._touch = touch

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the bind of the connection; asyncio calls this when the transport is open."""
        super().connection_made(transport)
        self._connection.wake.connect(self._wake)
        self._connection.connected()
        self._wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns the buffer into which asyncio must write received bytes."""
        return NOWHERE if self._connection.closing else self._connection.buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Processes the `nbytes` bytes that asyncio has received into the buffer."""
        if not self._connection.closing:
            self._touch()
            self._connection.received(nbytes)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the ClientConnection that the transport is lost; asyncio calls this."""
        self._transport = None
        self._touch()
        self._connection.lost(str(exc) if exc is not None else "the connection was closed")

    def _look(self) -> None:
        transport = self._transport
        if transport is None:
            return
        output = self._connection.take_output()
        if output:
            transport.writelines(output)
        if self._connection.closing:
            transport.close()
