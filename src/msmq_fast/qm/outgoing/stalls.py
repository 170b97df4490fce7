"""Explains to operators why an outgoing queue sends nothing.

The explanation comes, in this order, from: 1. what an operator or the mode of the queue manager forbids;
2. transactional messages that were sent and wait for the receiver; 3. the channel, which knows the connection
that is being opened or used; 4. the latest failure of a connection.
"""

from __future__ import annotations

from typing import Final

from msmq_fast.protocol.text import counted, noun_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.stall import FLOWING, Stall, StallCause

__all__ = ["failure_of", "stall_of"]

_HERE: Final = StallCause.NO_SOCKET, "this computer cannot open a connection to {peer}{detail}"
_REFUSED: Final = (
    StallCause.REFUSED,
    "{peer} refused the connection{detail}: no queue manager listens there, or a firewall rejects it",
)

_BY_ERROR: Final = {
    0x8007274D: _REFUSED,
    0x8007274C: (
        StallCause.TIMED_OUT,
        "{peer} did not answer the connection{detail}: the host is down, or a firewall drops its packets",
    ),
    0x80072743: (StallCause.UNREACHABLE, "there is no network route to {peer}{detail}"),
    0x80072751: (StallCause.UNREACHABLE, "the host {peer} cannot be reached{detail}"),
}
"""By the HRESULT of a connection that could not be opened."""

_BY_STATUS: Final = {
    ConnectionStatus.UNKNOWN_FAILURE: (StallCause.SESSION_FAILED, "the session with {peer} failed{detail}"),
    ConnectionStatus.PING_FAILURE: (
        StallCause.PING,
        "{peer} did not answer a ping{detail}: its UDP port is closed, or it accepts no session now",
    ),
    ConnectionStatus.SOCKET_CREATE_FAILURE: _HERE,
    ConnectionStatus.SOCKET_BIND_FAILURE: _HERE,
    ConnectionStatus.SOCKET_CONNECT_FAILURE: (
        StallCause.FAILED,
        "the connection to {peer} could not be opened{detail}",
    ),
    ConnectionStatus.TCP_NOT_ENABLED: _HERE,
    ConnectionStatus.SOCKET_SEND_FAILURE: (StallCause.LOST, "the connection to {peer} was lost{detail}"),
    ConnectionStatus.CONNECTION_NOT_READY: (
        StallCause.NO_ANSWER,
        "{peer} accepted the connection and did not answer on it{detail}",
    ),
    ConnectionStatus.DNS_FAILURE: (
        StallCause.NAME,
        "the name of the host could not be resolved{detail}: check DNS, or use DIRECT=TCP:",
    ),
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: (
        StallCause.CERTIFICATE,
        "a certificate or key for {peer} is missing or not valid{detail}",
    ),
    ConnectionStatus.CONNECTION_LIMIT_REACHED: _HERE,
    ConnectionStatus.CONNECTION_REFUSED: (
        StallCause.SESSION_REFUSED,
        "the queue manager at {peer} refused the session{detail}: its log has the reason",
    ),
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: (
        StallCause.ROUTE,
        "the destination has no route{detail}: add one to [[routes]], or the computer to the directory",
    ),
    ConnectionStatus.LOW_RESOURCE: _HERE,
}
"""By the status of a failed connection. {peer} is its address, {detail} the error in parentheses."""

_OWN_HOST: Final = (
    StallCause.NO_QUEUE,
    "the destination is this computer, which has no such queue: create it, or correct the name",
)


def stall_of(queue: OutgoingQueue) -> Stall:
    """Returns why a queue sends nothing; `FLOWING` if it holds no messages, or sends them."""
    if not queue.messages:
        return FLOWING
    return _forbidden(queue) or _awaited(queue) or _unconnected(queue)


def failure_of(event: ConnectionEvent) -> Stall:
    """Returns the cause and the description of a failed connection."""
    if event.status is ConnectionStatus.UNKNOWN_FAILURE and not event.error and not event.detail:
        return Stall(*_OWN_HOST)
    opening = (ConnectionStatus.SOCKET_CONNECT_FAILURE, ConnectionStatus.CONNECTION_REFUSED)
    by_error = _BY_ERROR.get(event.error) if event.status in opening else None
    cause, text = by_error or _BY_STATUS[event.status]
    peer = ", ".join(event.addresses) or "the destination"
    return Stall(cause, text.format(peer=peer, detail=f" ({event.detail})" if event.detail else ""))


def _forbidden(queue: OutgoingQueue) -> Stall | None:
    if queue.outgoing_state is OutgoingState.ON_HOLD:
        by = f" by {queue.held_by}" if queue.held_by else ""
        return Stall(StallCause.ON_HOLD, f"on hold, paused{by}: `msmq-fast outgoing resume` ends that")
    if queue.outgoing_state is OutgoingState.LOCKED:
        return Stall(StallCause.LOCKED, "in hardened mode, this queue manager sends only by HTTP")
    if not queue.online:
        return Stall(
            StallCause.OFFLINE,
            "this queue manager is stopping, or a management tool took it offline: a restart, or CONNECT of "
            "such a tool, ends that",
        )
    if not queue.channels:
        return Stall(
            StallCause.NO_TRANSPORT,
            "the transport for this kind of name is off: see `srmp.sending` and `pgm.enabled`",
        )
    return None


def _awaited(queue: OutgoingQueue) -> Stall | None:
    sequence = queue.core.sequence
    if sequence is None or queue.core.positions.available:
        return None
    if sequence.sent:
        return Stall(
            StallCause.UNACKNOWLEDGED,
            f"the receiver has not acknowledged {counted(sequence.unordered, 'message')} in order: "
            "they are sent again at `next_attempt`; its log tells whether it refuses them",
        )
    if sequence.finals:
        return Stall(
            StallCause.UNREAD,
            counted(sequence.finals, "message arrived, and waits", "messages arrived, and wait")
            + " at the receiver until a program receives "
            + noun_of(sequence.finals, "it", "them"),
        )
    return None


def _unconnected(queue: OutgoingQueue) -> Stall:
    for channel in queue.channels:
        obstacle = channel.obstacle()
        if obstacle.cause:
            return obstacle
    if queue.outgoing_state is OutgoingState.CONNECTED:
        return FLOWING
    if queue.attempts and queue.failure is not None:
        return failure_of(queue.failure)
    if queue.history and queue.history[-1].status is ConnectionStatus.IN_PROCESS:
        addresses = ", ".join(queue.history[-1].addresses)
        return Stall(StallCause.CONNECTING, f"connecting to {addresses}" if addresses else "connecting")
    return FLOWING
