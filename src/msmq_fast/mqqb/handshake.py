"""The rules of session establishment in both roles (MS-MQQB 3.1.5.2–3.1.5.4).

The packets are in packet.session.
"""

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
    """Returns the OperatingSystem field of a request (2.2.3.1).

    It tells the peer that this side is a server, and whether a ping preceded the request.
    """
    return OS_MARK | OS_SERVER | (0 if pinged else OS_NO_PING)


def answer_system(requested: int) -> int:
    """Returns the OperatingSystem field of a response.

    The server and ping bits are copied from the request; all other bits are clear.
    """
    return OS_MARK | (requested & (OS_SERVER | OS_NO_PING))


def in_range(packet: ConnectionParameters) -> bool:
    """Whether both time-outs of a ConnectionParameters packet are within the limits of 2.2.2.1."""
    return (
        RECOVERABLE_ACK_MIN_MS <= packet.recoverable_ack_timeout <= RECOVERABLE_ACK_MAX_MS
        and ACK_TIMEOUT_MIN_MS <= packet.ack_timeout <= ACK_TIMEOUT_MAX_MS
    )


def clamped(packet: ConnectionParameters) -> ConnectionParameters:
    """Returns the packet with both time-outs clamped to their ranges."""
    return ConnectionParameters(
        min(max(packet.recoverable_ack_timeout, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS),
        min(max(packet.ack_timeout, ACK_TIMEOUT_MIN_MS), ACK_TIMEOUT_MAX_MS),
        packet.window_size,
    )


def recoverable_ack_timeout(uptime_ms: int, echoed: int) -> int:
    """Returns eight times the round trip in milliseconds, clamped to 500 … 120,000 (3.1.5.3.2).

    The round trip is the time from `echoed`, the timestamp of our request that the peer has returned, to
    `uptime_ms`; both count milliseconds since the start of this computer, `echoed` modulo 2^32.
    """
    round_trip = (uptime_ms - echoed) & 0xFFFFFFFF
    return min(max(8 * round_trip, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS)


def session_ack(header: bytes) -> bytes:
    """Returns the SessionAck packet (2.2.6) for the 16 bytes of a SessionHeader."""
    return _ACK_PREFIX + header
