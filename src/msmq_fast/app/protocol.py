"""The asyncio adapter of a connection of the application protocol: moves bytes between transport
and engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msmq_fast.adapter import Adapter
from msmq_fast.app.auth import Identity
from msmq_fast.app.engine import AppEngine
from msmq_fast.app.service import Service

WRITE_HIGH = 1_048_576  # bytes in the transport at which it calls pause_writing


class AppProtocol(Adapter, asyncio.BufferedProtocol):
    """Serves one connection. `identity` is None if the token in the hello identifies the user."""

    def __init__(
        self,
        service: Service,
        identity: Identity | None,
        loop: asyncio.AbstractEventLoop,
        address: str = "",
        broken: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(loop)
        self.engine = AppEngine(service, identity, self._wake, address, broken)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio when the connection is established."""
        super().connection_made(transport)
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=WRITE_HIGH)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called by asyncio: return the buffer for received bytes."""
        return self.engine.room()

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio after `nbytes` bytes were received into the buffer."""
        self.engine.received(nbytes)
        if not self._reading or not self.engine.reading:
            self._wake()

    def pause_writing(self) -> None:
        """Called by asyncio when the write buffer of the transport is full."""
        self.engine.pause_writing()
        self._wake()

    def resume_writing(self) -> None:
        """Called by asyncio when the transport accepts data again."""
        self.engine.resume_writing()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio when the connection has ended."""
        self._transport = None
        self.engine.connection_lost()

    def close(self) -> None:
        """Close from our side once pending writes are flushed."""
        if self._transport is not None:
            self._look()
            if self._transport is not None:
                self._transport.close()

    def _look(self) -> None:
        transport = self._transport
        if transport is None:
            return
        output = self.engine.take_output()
        if output:
            transport.writelines(output)
            self.engine.written()
        if self.engine.closing:
            transport.close()
            return
        if self.engine.reading != self._reading:
            self._read(self.engine.reading)
