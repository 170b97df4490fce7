"""The rules of session establishment in both roles (MS-MQQB 3.1.5.2–3.1.5.4); the packets stand in
packet.session."""

from msmq_fast.mqqb.timers import (
    ACK_TIMEOUT_MAX_MS,
    ACK_TIMEOUT_MIN_MS,
    RECOVERABLE_ACK_MAX_MS,
    RECOVERABLE_ACK_MIN_MS,
)
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.session import (
    OS_MARK,
    OS_NO_PING,
    OS_SERVER,
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)

__all__ = [
    "NULL_GUID",
    "ConnectionParameters",
    "EstablishConnection",
    "answer_system",
    "clamped",
    "in_range",
    "recoverable_ack_timeout",
    "request_system",
    "session_ack",
]

_ACK_PREFIX = SessionAck(SessionHeader()).encode()[: -SessionHeader.SIZE]


def request_system(pinged: bool) -> int:
    """OperatingSystem of a request: a server, and whether a ping preceded it (2.2.3.1)."""
    return OS_MARK | OS_SERVER | (0 if pinged else OS_NO_PING)


def answer_system(requested: int) -> int:
    """OperatingSystem of a response: what the request said of server and ping, other bits clear."""
    return OS_MARK | (requested & (OS_SERVER | OS_NO_PING))


def in_range(packet: ConnectionParameters) -> bool:
    """Whether both time-outs keep the limits of 2.2.2.1."""
    return (
        RECOVERABLE_ACK_MIN_MS <= packet.recoverable_ack_timeout <= RECOVERABLE_ACK_MAX_MS
        and ACK_TIMEOUT_MIN_MS <= packet.ack_timeout <= ACK_TIMEOUT_MAX_MS
    )


def clamped(packet: ConnectionParameters) -> ConnectionParameters:
    """The same with both time-outs moved into their range."""
    return ConnectionParameters(
        min(max(packet.recoverable_ack_timeout, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS),
        min(max(packet.ack_timeout, ACK_TIMEOUT_MIN_MS), ACK_TIMEOUT_MAX_MS),
        packet.window_size,
    )


def recoverable_ack_timeout(uptime_ms: int, echoed: int) -> int:
    """Eight round trips in milliseconds, between 500 and 120,000 (3.1.5.3.2); `echoed` wraps at 32 bits."""
    round_trip = (uptime_ms - echoed) & 0xFFFFFFFF
    return min(max(8 * round_trip, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS)


def session_ack(header: bytes) -> bytes:
    """The SessionAck packet (2.2.6) around the 16 bytes of a SessionHeader."""
    return _ACK_PREFIX + header
