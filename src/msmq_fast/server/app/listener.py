"""Connections of programs: over the Unix socket, where the kernel identifies the peer, and over TCP, where a
token does.
"""

from __future__ import annotations

import asyncio
import pwd
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, cast

from msmq_fast.app.auth import Identity
from msmq_fast.app.protocol import AppProtocol
from msmq_fast.app.service import Service
from msmq_fast.logfields import Refuse
from msmq_fast.server.net.accepting import Acceptors
from msmq_fast.server.net.connections import Slot, Standing

__all__ = ["AppListener"]

_WHAT = "app connection"
_CREDENTIALS = struct.Struct("iII")  # struct ucred: pid, uid, gid


def _peer(connection: socket.socket) -> Identity:
    """Return the user at the other end of a Unix socket. Raises OSError if the connection is already
    closed.
    """
    _, uid, _ = _CREDENTIALS.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return Identity(name, uid)


class _Connection(AppProtocol):
    """An AppProtocol that the listener counts. It calls `touch` of the commit loop before it processes
    data.
    """

    def __init__(
        self, owner: AppListener, service: Service, loop: asyncio.AbstractEventLoop, slot: Slot
    ) -> None:
        # Peers may break connections off as often as they like: the owner bounds the lines in the log.
        super().__init__(service, None, loop, slot.address, self._broken_off)
        self._owner = owner
        self._slot = slot

    def _broken_off(self, detail: str) -> None:
        self._owner.refuse(_WHAT, "broken off", detail, peer=self._slot.address)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = cast(socket.socket, transport.get_extra_info("socket"))
        stream = cast(asyncio.Transport, transport)
        if connection.family == socket.AF_UNIX:
            try:
                self.engine.identity = _peer(connection)
            except OSError:
                # The program hung up between connecting and this callback, for example while the server was
                # still starting. Without an identity it gets nothing; there is nothing to report.
                stream.abort()
                return
        super().connection_made(transport)
        self._slot.follow(self._standing, stream.abort, self._described)
        self._owner.opened(self)
        if self.engine.identity is None:
            self._loop.call_later(self._owner.handshake_timeout, self._check_identity, stream)

    def _standing(self) -> Standing:
        return Standing.IDLE if self.engine.identity is None else Standing.SETTLED

    def _described(self) -> dict[str, Any]:
        identity, usage = self.engine.identity, self.engine.usage
        return {
            "state": "handshake" if usage is None else "open",
            "user": "" if identity is None else identity.name,
            "queues": 0 if usage is None else usage[0],
            "transactions": 0 if usage is None else usage[1],
        }

    def _check_identity(self, transport: asyncio.Transport) -> None:
        """Close the connection if the peer has not presented a valid token by now."""
        if self.engine.identity is None and not transport.is_closing():
            self._owner.refuse("app connection", "handshake timeout", peer=self._slot.address)
            transport.abort()

    def buffer_updated(self, nbytes: int) -> None:
        self._owner.touch()
        super().buffer_updated(nbytes)

    def resume_writing(self) -> None:
        self._owner.touch()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.touch()
        super().connection_lost(exc)
        self._slot.leave()
        self._owner.closed(self)


class AppListener:
    """Accepts programs on any number of sockets."""

    def __init__(
        self,
        acceptors: Acceptors,
        handshake_timeout: float,
        touch: Callable[[], None],
        refuse: Refuse,
    ) -> None:
        self.handshake_timeout = handshake_timeout
        self.touch = touch
        self.refuse = refuse
        self._acceptors = acceptors
        table = acceptors.table
        self._local = table.programs.share(_WHAT)
        self._remote = table.network.share(_WHAT, table.limits.programs)
        self._open: set[_Connection] = set()
        self._stop_accepting: list[Callable[[], None]] = []

    def set_limits(self, handshake_timeout: float) -> None:
        """Apply the limits that the connection table now has for programs over TCP. A program must present
        its token within `handshake_timeout` seconds.
        """
        self.handshake_timeout = handshake_timeout
        self._remote.resize(self._acceptors.table.limits.programs)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def listen(self, listener: socket.socket, service: Service, tls: ssl.SSLContext | None = None) -> None:
        """Accept on a bound socket."""
        loop = asyncio.get_running_loop()
        local = listener.family == socket.AF_UNIX
        self._stop_accepting.append(
            self._acceptors.accept(
                listener,
                self._local if local else self._remote,
                lambda slot: _Connection(self, service, loop, slot),
                tls=tls,
                reserved=local,
            )
        )

    def opened(self, connection: _Connection) -> None:
        """Record an open connection."""
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Record that a connection has ended."""
        self._open.discard(connection)

    def stop_accepting(self) -> None:
        """Close the listening sockets."""
        for stop in self._stop_accepting:
            stop()
        self._stop_accepting.clear()

    def close(self) -> None:
        """Close every connection once its pending output is written."""
        for connection in tuple(self._open):
            connection.close()
