"""What the asyncio sides of all connections share: the transport, its reading, one look per turn of the loop.

To add a protocol: derive from `Adapter` and from `asyncio.BufferedProtocol` (or `asyncio.Protocol`), feed the
engine in `buffer_updated`, and write what it has to say in `_look`. Set `_transport` to None in
`connection_lost`: nothing is written, read or looked at afterwards.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

__all__ = ["NOWHERE", "Adapter"]

NOWHERE: Final = memoryview(bytearray(1 << 16))
"""Room for bytes that arrive after a connection has ended; nothing reads it."""


class Adapter:
    """One connection, between its transport and its engine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._look_due = False
        self._reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: the connection is established."""
        self._transport = cast(asyncio.Transport, transport)

    def eof_received(self) -> bool:
        """asyncio: the peer has closed its half; a half-open connection is of no use."""
        return False

    def _wake(self) -> None:
        """Look at the engine once in the next turn of the loop, however often this is called before.

        What completes in one turn then goes out in one write.
        """
        if not self._look_due:
            self._look_due = True
            self._loop.call_soon(self._woken)

    def _woken(self) -> None:
        self._look_due = False
        self._look()

    def _look(self) -> None:
        """Write what the engine has to say."""
        raise NotImplementedError

    def _read(self, wanted: bool) -> None:
        """Go on reading, or pause."""
        transport = self._transport
        if wanted == self._reading or transport is None or transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()
