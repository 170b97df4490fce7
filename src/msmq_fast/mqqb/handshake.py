"""Session establishment: EstablishConnection and ConnectionParameters in both roles (MS-MQQB 3.1.5.2–3.1.5.4)."""

import struct
from dataclasses import dataclass
from uuid import UUID

from msmq_fast.mqqb.timers import (
    ACK_TIMEOUT_MAX_MS,
    ACK_TIMEOUT_MIN_MS,
    RECOVERABLE_ACK_MAX_MS,
    RECOVERABLE_ACK_MIN_MS,
)

BASE_HEADER = struct.Struct("<BBH4sII")
INTERNAL_HEADER = struct.Struct("<HH")
ESTABLISH_HEADER = struct.Struct("<16s16sIHH")
PARAMETERS_HEADER = struct.Struct("<IIHH")

SIGNATURE = b"LIOR"
VERSION = 0x10
FLAG_INTERNAL = 0x08
FLAG_SESSION_HEADER = 0x10
DEFAULT_PRIORITY = 3
NEVER = 0xFFFFFFFF

TYPE_SESSION_ACK = 1
TYPE_ESTABLISH = 2
TYPE_PARAMETERS = 3
REFUSED = 0x10

ESTABLISH_SIZE = 572
PARAMETERS_SIZE = 32
SESSION_ACK_SIZE = 36

SYSTEM = 0x10
SYSTEM_NO_PING = 0x100
SYSTEM_SERVER = 0x200
PADDING = b"\x5a" * 512
NULL_GUID = UUID(int=0)


def _internal(packet_type: int, size: int, refused: bool = False, flags: int = 0) -> bytes:
    base = BASE_HEADER.pack(VERSION, 0, DEFAULT_PRIORITY | FLAG_INTERNAL | flags, SIGNATURE, size, NEVER)
    return base + INTERNAL_HEADER.pack(0, packet_type | (REFUSED if refused else 0))


@dataclass(frozen=True, slots=True)
class EstablishConnection:
    """The EstablishConnection packet (2.2.3); `time_stamp` is milliseconds of uptime, cut to 32 bits."""

    client: UUID
    server: UUID
    time_stamp: int
    no_ping: bool
    server_system: bool = True
    refused: bool = False

    def encode(self) -> bytes:
        """The 572 bytes of the packet."""
        system = (
            SYSTEM | (SYSTEM_NO_PING if self.no_ping else 0) | (SYSTEM_SERVER if self.server_system else 0)
        )
        header = ESTABLISH_HEADER.pack(self.client.bytes_le, self.server.bytes_le, self.time_stamp, system, 0)
        return _internal(TYPE_ESTABLISH, ESTABLISH_SIZE, self.refused) + header + PADDING

    @classmethod
    def decode(cls, packet: bytes) -> "EstablishConnection":
        """Read a packet whose size and type framing has checked."""
        _, flags = INTERNAL_HEADER.unpack_from(packet, BASE_HEADER.size)
        client, server, stamp, system, _ = ESTABLISH_HEADER.unpack_from(packet, 20)
        return cls(
            UUID(bytes_le=client),
            UUID(bytes_le=server),
            stamp,
            bool(system & SYSTEM_NO_PING),
            bool(system & SYSTEM_SERVER),
            bool(flags & REFUSED),
        )


@dataclass(frozen=True, slots=True)
class ConnectionParameters:
    """The ConnectionParameters packet (2.2.2); time-outs in milliseconds."""

    recoverable_ack_timeout: int
    ack_timeout: int
    window: int
    refused: bool = False

    def encode(self) -> bytes:
        """The 32 bytes of the packet."""
        return _internal(TYPE_PARAMETERS, PARAMETERS_SIZE) + PARAMETERS_HEADER.pack(
            self.recoverable_ack_timeout, self.ack_timeout, 0, self.window
        )

    @classmethod
    def decode(cls, packet: bytes) -> "ConnectionParameters":
        """Read a packet whose size and type framing has checked."""
        _, flags = INTERNAL_HEADER.unpack_from(packet, BASE_HEADER.size)
        recoverable, ack, _, window = PARAMETERS_HEADER.unpack_from(packet, 20)
        return cls(recoverable, ack, window, bool(flags & REFUSED))

    @property
    def in_range(self) -> bool:
        """Whether both time-outs keep the limits of 2.2.2.1."""
        return (
            RECOVERABLE_ACK_MIN_MS <= self.recoverable_ack_timeout <= RECOVERABLE_ACK_MAX_MS
            and ACK_TIMEOUT_MIN_MS <= self.ack_timeout <= ACK_TIMEOUT_MAX_MS
        )

    def clamped(self) -> "ConnectionParameters":
        """The same with both time-outs moved into their range."""
        return ConnectionParameters(
            min(max(self.recoverable_ack_timeout, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS),
            min(max(self.ack_timeout, ACK_TIMEOUT_MIN_MS), ACK_TIMEOUT_MAX_MS),
            self.window,
        )


def recoverable_ack_timeout(uptime_ms: int, echoed: int) -> int:
    """Eight round trips in milliseconds, between 500 and 120,000 (3.1.5.3.2); `echoed` wraps at 32 bits."""
    round_trip = (uptime_ms - echoed) & 0xFFFFFFFF
    return min(max(8 * round_trip, RECOVERABLE_ACK_MIN_MS), RECOVERABLE_ACK_MAX_MS)


def session_ack(header: bytes) -> bytes:
    """The SessionAck packet (2.2.6) around the 16 bytes of a SessionHeader."""
    return _internal(TYPE_SESSION_ACK, SESSION_ACK_SIZE, flags=FLAG_SESSION_HEADER) + header
