"""The session packets that carry no message, and the ping datagram (MS-MQQB 2.2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.base import NULL_GUID, BaseHeader, InternalHeader, need
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode

OS_MARK = 0x10  # low byte of OperatingSystem
OS_NO_PING = 0x0100  # SE: no ping was sent for this session
OS_SERVER = 0x0200  # OS: the initiator is a server
OS_QUALITY = 0x0400  # QS: quality of service


def _internal(
    data: bytes, packet_type: int, size: int, fault: PacketFaultCode
) -> tuple[BaseHeader, InternalHeader]:
    base, at = BaseHeader.decode(data)
    if not base.internal:
        raise PacketFault(PacketFaultCode.PACKET_TYPE)
    header, _ = InternalHeader.decode(data, at)
    if header.packet_type != packet_type:
        raise PacketFault(PacketFaultCode.PACKET_TYPE)
    if base.packet_size != size:
        raise PacketFault(fault)
    need(data, 0, size, PacketFaultCode.TRUNCATED)
    return base, header


@dataclass(slots=True)
class EstablishConnection:
    """The first packet that each side of a session sends (2.2.3). `client` is the GUID of the initiator,
    `server` the GUID of the acceptor.

    `timestamp` is the time in ms since the start of the initiator's computer.
    """

    SIZE: ClassVar[int] = 572

    client: UUID
    server: UUID = NULL_GUID
    timestamp: int = 0
    operating_system: int = OS_MARK | OS_NO_PING | OS_SERVER
    refused: bool = False
    reserved: int = 0
    padding: bytes = b"\x5a" * 512
    base: BaseHeader | None = None  # as received; None: the header that we send

    def encode(self) -> bytes:
        base = self.base or BaseHeader(packet_size=self.SIZE, internal=True)
        return b"".join(
            (
                base.encode(),
                InternalHeader(InternalHeader.ESTABLISH_CONNECTION, self.refused).encode(),
                self.client.bytes_le,
                self.server.bytes_le,
                struct.pack("<IHH", self.timestamp, self.operating_system, self.reserved),
                self.padding,
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> EstablishConnection:
        """Parse the packet; the padding is ignored. Raises PacketFault unless `data` is one
        EstablishConnection packet.
        """
        base, internal = _internal(
            data, InternalHeader.ESTABLISH_CONNECTION, cls.SIZE, PacketFaultCode.ESTABLISH_SIZE
        )
        client, server, timestamp, system, reserved, padding = struct.unpack_from("<16s16sIHH512s", data, 20)
        return cls(
            UUID(bytes_le=client),
            UUID(bytes_le=server),
            timestamp,
            system,
            internal.refused,
            reserved,
            padding,
            base,
        )


@dataclass(slots=True)
class ConnectionParameters:
    """The second packet that each side of a session sends: time-outs in ms, window in messages (2.2.2)."""

    SIZE: ClassVar[int] = 32

    recoverable_ack_timeout: int
    ack_timeout: int
    window_size: int
    refused: bool = False
    reserved: int = 0
    base: BaseHeader | None = None

    def encode(self) -> bytes:
        base = self.base or BaseHeader(packet_size=self.SIZE, internal=True)
        internal = InternalHeader(InternalHeader.CONNECTION_PARAMETERS, self.refused)
        return (
            base.encode()
            + internal.encode()
            + struct.pack(
                "<IIHH", self.recoverable_ack_timeout, self.ack_timeout, self.reserved, self.window_size
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> ConnectionParameters:
        """Parse the packet; values are not checked. Raises PacketFault unless `data` is one
        ConnectionParameters packet.
        """
        base, internal = _internal(
            data, InternalHeader.CONNECTION_PARAMETERS, cls.SIZE, PacketFaultCode.PARAMETERS_SIZE
        )
        recoverable, ack, reserved, window = struct.unpack_from("<IIHH", data, 20)
        return cls(recoverable, ack, window, internal.refused, reserved, base)


@dataclass(slots=True)
class SessionHeader:
    """The acknowledgment state of one direction of a session (MS-MQMQ 2.2.20.4)."""

    SIZE: ClassVar[int] = 16

    ack_sequence: int = 0
    recoverable_ack_sequence: int = 0
    recoverable_ack_flags: int = 0
    user_sequence: int = 0
    recoverable_sequence: int = 0
    window_size: int = 64
    reserved: int = 0

    def encode(self) -> bytes:
        return struct.pack(
            "<HHIHHHH",
            self.ack_sequence,
            self.recoverable_ack_sequence,
            self.recoverable_ack_flags,
            self.user_sequence,
            self.recoverable_sequence,
            self.window_size,
            self.reserved,
        )

    @classmethod
    def decode(cls, data: bytes, offset: int = 0) -> tuple[SessionHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if it does not fit into `data`."""
        need(data, offset, cls.SIZE, PacketFaultCode.TRUNCATED)
        return cls(*struct.unpack_from("<HHIHHHH", data, offset)), offset + cls.SIZE


@dataclass(slots=True)
class SessionAck:
    """A packet that contains only a SessionHeader; PacketSize includes the SessionHeader (2.2.6)."""

    SIZE: ClassVar[int] = 36

    header: SessionHeader
    base: BaseHeader | None = None

    def encode(self) -> bytes:
        base = self.base or BaseHeader(packet_size=self.SIZE, internal=True, session=True)
        return base.encode() + InternalHeader(InternalHeader.SESSION_ACK).encode() + self.header.encode()

    @classmethod
    def decode(cls, data: bytes) -> SessionAck:
        """Parse the packet. Raises PacketFault unless `data` is one SessionAck packet."""
        base, _ = _internal(data, InternalHeader.SESSION_ACK, cls.SIZE, PacketFaultCode.SESSION_ACK_SIZE)
        if not base.session:
            raise PacketFault(PacketFaultCode.SESSION_ACK_NO_HEADER)
        header, _ = SessionHeader.decode(data, 20)
        return cls(header, base)


@dataclass(slots=True)
class Ping:
    """The UDP datagram that asks a host whether it would accept a session, and its answer (2.2.7)."""

    SIZE: ClassVar[int] = 24
    SIGNATURE: ClassVar[int] = 0x5548

    cookie: int
    manager: UUID
    client_class: bool = False  # RC: the initiator is not a server
    refused: bool = False  # RF: a session would be refused now
    other_flags: int = 0

    def encode(self) -> bytes:
        flags = self.client_class | self.refused << 1 | self.other_flags
        return struct.pack("<HHI16s", flags, self.SIGNATURE, self.cookie, self.manager.bytes_le)

    @classmethod
    def decode(cls, data: bytes) -> Ping | None:
        """Parse a datagram; returns None if it is not a ping and must be ignored."""
        if len(data) != cls.SIZE:
            return None
        flags, signature, cookie, manager = struct.unpack("<HHI16s", data)
        if signature != cls.SIGNATURE:
            return None
        return cls(cookie, UUID(bytes_le=manager), bool(flags & 1), bool(flags & 2), flags & 0xFFFC)
