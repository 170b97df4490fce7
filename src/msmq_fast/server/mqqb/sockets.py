"""MS-MQQB on sockets: one accepted or dialled connection, and the ping port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msmq_fast._native.batch import Writer
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.protocol import SessionProtocol
from msmq_fast.mqqb.session import Session, Wake
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.server.net.connections import Slot, Standing

__all__ = ["AcceptedSession", "DialledSession", "PingResponder", "SocketContext"]

_PATIENCE = 60.0  # seconds of silence after which an open session makes room for another connection
_PENDING_BYTES = 3 << 20  # on their way to the disk; above that, peers that bring much wait


@dataclass(frozen=True, slots=True)
class SocketContext:
    """The objects that the sockets of all sessions share. `monotonic` returns seconds."""

    endpoint: Endpoint
    loop: asyncio.AbstractEventLoop
    monotonic: Callable[[], float]
    writer: Writer
    touch: Callable[[], None]


class _CountedSession(SessionProtocol):
    """A SessionProtocol that occupies a slot in the table of connections."""

    def __init__(
        self, context: SocketContext, slot: Slot, open_session: Callable[[str, Wake], Session | None]
    ) -> None:
        super().__init__(
            open_session, context.loop, context.monotonic, context.writer, _PENDING_BYTES, context.touch
        )
        self._slot = slot

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the connection is closed."""
        super().connection_lost(exc)
        self._slot.leave()


class AcceptedSession(_CountedSession):
    """A connection of another queue manager."""

    def __init__(self, context: SocketContext, slot: Slot) -> None:
        def accept(address: str, wake: Wake) -> Session:
            now = context.monotonic()
            session = context.endpoint.accept(address, now, wake, crowded=slot.crowded)
            slot.follow(
                lambda: _standing(session, now, context.monotonic()), self.evict, lambda: _described(session)
            )
            return session

        super().__init__(context, slot, accept)


class DialledSession(_CountedSession):
    """A connection to another queue manager, opened because the transfer engine requested it for
    its link number `link`.
    """

    def __init__(self, context: SocketContext, slot: Slot, link: int) -> None:
        def connected(_: str, wake: Wake) -> Session | None:
            session = context.endpoint.connected(link, context.monotonic(), wake)
            if session is not None:
                slot.follow(None, self.evict, lambda: _described(session))
            return session

        super().__init__(context, slot, connected)


def _standing(session: Session, accepted_at: float, now: float) -> Standing:
    if session.opened_at is None:
        silent = session.state is SessionState.WAITING_EC_MSG and session.heard_at <= accepted_at
        return Standing.SILENT if silent else Standing.IDLE
    return Standing.IDLE if session.idle(now, _PATIENCE) else Standing.BUSY


def _described(session: Session) -> dict[str, Any]:
    """Return the fields of SessionInfo of a session."""
    return {
        "state": "handshake" if session.opened_at is None else session.state.value,
        "manager": str(session.peer_guid) if session.peer_guid.int else "",
    }


class PingResponder(asyncio.DatagramProtocol):
    """Answers pings at the UDP ping port."""

    def __init__(
        self, endpoint: Endpoint, monotonic: Callable[[], float], allowed: Callable[[str], bool]
    ) -> None:
        self._endpoint = endpoint
        self._allowed = allowed
        self._monotonic = monotonic
        self._transport: asyncio.DatagramTransport | None = None
        self._port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio: the socket is bound."""
        self._transport = transport  # type: ignore[assignment]  # a datagram endpoint has a datagram transport
        self._port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a ping. An address that may not open sessions gets no answer."""
        if not self._allowed(addr[0]):
            return
        answer = self._endpoint.answer_ping(data, addr[0], addr[1], self._port, self._monotonic())
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)
