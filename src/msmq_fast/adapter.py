"""Base class of the asyncio side of all connections: it owns the transport, pauses reads, and writes output
once per turn of the loop.

To add a protocol: derive from `Adapter` and from `asyncio.BufferedProtocol` (or `asyncio.Protocol`), pass the
received bytes to the protocol engine in `buffer_updated`, and write its output in `_look`. Set `_transport`
to None in `connection_lost`: after that, nothing is read or written.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

__all__ = ["NOWHERE", "Adapter"]

NOWHERE: Final = memoryview(bytearray(1 << 16))
"""Buffer for bytes that arrive after a connection has ended; nothing reads it."""


class Adapter:
    """The glue between one connection's transport and its protocol engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._look_due = False
        self._reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def eof_received(self) -> bool:
        """asyncio: the peer has closed its half of the connection. Returns False, so that asyncio closes the
        other half, too: half-open connections are not supported.
        """
        return False

    def _wake(self) -> None:
        """Schedule one call of `_look` for the next turn of the loop, however often this method is called
        before that turn.

        All output that is produced in one turn is then sent with one write.
        """
        if not self._look_due:
            self._look_due = True
            self._loop.call_soon(self._woken)

    def _woken(self) -> None:
        self._look_due = False
        self._look()

    def _look(self) -> None:
        """Write the output of the protocol engine; each subclass implements this."""
        raise NotImplementedError

    def _read(self, wanted: bool) -> None:
        """Resume reading from the transport if `wanted`, else pause it."""
        transport = self._transport
        if wanted == self._reading or transport is None or transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()
