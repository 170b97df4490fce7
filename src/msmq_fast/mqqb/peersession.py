"""A session as the tables of all sessions and the transfer see it."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState

__all__ = ["PeerSession"]


class PeerSession(Protocol):
    """What those need of a session that a session itself needs: `session.Session` imports them."""

    @property
    def peer_address(self) -> str:
        """The address that the connection leads to."""

    @property
    def peer_guid(self) -> UUID:
        """The queue manager that the peer says it is; NULL_GUID before the handshake."""

    @property
    def server_guid(self) -> UUID:
        """The queue manager that the session was dialled for; NULL_GUID: any."""

    @property
    def initiator(self) -> bool:
        """Whether this side dialled."""

    @property
    def state(self) -> SessionState:
        """The state of the handshake, and whether the session has ended."""

    @property
    def heard_at(self) -> float:
        """When something came from the peer, in monotonic seconds."""

    @property
    def opened_at(self) -> float | None:
        """When the handshake was complete; None: it was not."""

    @property
    def reason(self) -> CloseReason | None:
        """Why the session has ended."""

    @property
    def detail(self) -> str:
        """Text for people beside the reason."""

    @property
    def serves(self) -> bool:
        """Whether an outgoing queue sends on it."""

    def attach(self, channel: OutgoingChannel) -> None:
        """Let an outgoing queue send on it."""

    def detach(self, channel: OutgoingChannel) -> None:
        """Take nothing more from an outgoing queue."""

    def pause(self) -> None:
        """The only queue that sends on it was paused."""

    def resume(self) -> None:
        """Called when that queue was resumed."""

    def pump(self, now: float) -> None:
        """Send what is due."""

    def wake(self) -> None:
        """Ask the transport to take the output."""

    def close(self, reason: CloseReason, now: float, detail: str = "") -> None:
        """End it."""
