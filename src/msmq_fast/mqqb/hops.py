"""Next hops of outgoing queues, and the progress of the connections to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from msmq_fast.mqqb.handshake import NULL_GUID

__all__ = ["Progress", "Target"]


@dataclass(frozen=True, slots=True)
class Target:
    """A next hop: the queue manager to which messages are sent, as an intermediate hop or as the destination.

    `host` is a name or a literal address, empty if only the GUID is known; `guid` is NULL_GUID for direct
    names.
    """

    host: str
    guid: UUID = NULL_GUID


class Progress(Enum):
    """The progress of a connection, as reported to the queues that send on it.

    The values are the connection statuses of MS-MQDMPR 3.1.1.3 that apply to outgoing queues.
    """

    RESOLVING = "resolving"
    IN_PROCESS = "in process"
    ANSWERED = "answered"
    ESTABLISHED = "established"
    DNS_FAILURE = "name not resolved"
    ROUTE_FAILURE = "no route"
    PING_FAILURE = "ping failed"
    CONNECT_FAILURE = "connection failed"
    TIMED_OUT = "connection timed out"
    UNREACHABLE = "host unreachable"
    REFUSED = "the peer refused the connection"
    CREATE_FAILURE = "no socket"
    BIND_FAILURE = "socket not bound"
    NOT_ENABLED = "no route for this address family"
    LOW_RESOURCE = "out of resources"
    NOT_READY = "the peer did not finish the handshake"
    SEND_FAILURE = "connection lost while sending"
    FAILURE = "session failed"
    OWN_HOST = "the host name leads to this computer"
    DISCONNECTING = "disconnecting"
    DISCONNECTED = "disconnected"
    GONE = "disconnected after disconnecting"
