"""The interface of a session that the session tables and the transfer use."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from msmq_fast._native.window import SendWindow
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState

__all__ = ["PeerSession"]


class PeerSession(Protocol):
    """The members of `session.Session` for use by modules that `session` itself imports."""

    @property
    def peer_address(self) -> str:
        """The address of the peer."""

    @property
    def peer_guid(self) -> UUID:
        """The queue manager that the peer claims to be; NULL_GUID before the handshake."""

    @property
    def server_guid(self) -> UUID:
        """The queue manager for which the session was dialled; NULL_GUID: any."""

    @property
    def initiator(self) -> bool:
        """Whether this side has opened the connection of the session."""

    @property
    def state(self) -> SessionState:
        """The state of the handshake, and whether the session has ended."""

    @property
    def heard_at(self) -> float:
        """When the latest bytes arrived from the peer, in monotonic seconds."""

    @property
    def opened_at(self) -> float | None:
        """When the handshake was complete, in monotonic seconds; None if it never was."""

    @property
    def reason(self) -> CloseReason | None:
        """The reason why the session has ended; None while it has not."""

    @property
    def detail(self) -> str:
        """Text for people that supplements the reason."""

    @property
    def sent(self) -> SendWindow:
        """The messages in flight to the peer."""

    @property
    def serves(self) -> bool:
        """Whether an outgoing queue sends on the session."""

    def attach(self, channel: OutgoingChannel) -> None:
        """Let an outgoing queue send on the session."""

    def detach(self, channel: OutgoingChannel) -> None:
        """Take no more messages from an outgoing queue."""

    def pause(self) -> None:
        """Called when the only queue that sends on the session was paused."""

    def resume(self) -> None:
        """Called when a queue that sends on the session was resumed after a call of `pause`."""

    def pump(self, now: float) -> None:
        """Send the acknowledgments and messages that may be sent now."""

    def wake(self) -> None:
        """Ask the transport to take the output."""

    def close(self, reason: CloseReason, now: float, detail: str = "") -> None:
        """End the session."""
