"""BaseHeader (MS-MQMQ 2.2.19.1) and InternalHeader (MS-MQQB 2.2.1), and helpers that all headers use."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.text import encode_text
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode

MAX_PACKET = 0x00400000
INFINITE = 0xFFFFFFFF  # a time in seconds or milliseconds that never ends
NULL_GUID = UUID(int=0)
SIGNATURE = 0x524F494C
VERSION = 0x10


def align4(value: int) -> int:
    return (value + 3) & ~3


def padded(data: bytes) -> bytes:
    """Returns `data` padded with zeros to a multiple of 4."""
    return data + bytes(-len(data) % 4)


def need(data: bytes, offset: int, size: int, fault: PacketFaultCode) -> None:
    """Raises a PacketFault with the code `fault` unless `data` has `size` bytes at `offset`."""
    if size > len(data) - offset:
        raise PacketFault(fault)


def utf16z(text: str) -> bytes:
    """Returns the text as UTF-16LE with a NUL at the end."""
    return encode_text(text + "\0")


@dataclass(slots=True)
class BaseHeader:
    """The 16 bytes that start every packet of a session. Times are in seconds; 0xFFFFFFFF is infinite."""

    SIZE: ClassVar[int] = 16
    INTERNAL: ClassVar[int] = 0x0008
    SESSION: ClassVar[int] = 0x0010
    DEBUG: ClassVar[int] = 0x0020
    TRACE: ClassVar[int] = 0x0100

    packet_size: int = 0
    priority: int = 3
    internal: bool = False
    session: bool = False
    debug: bool = False
    trace: bool = False
    time_to_reach_queue: int = INFINITE
    reserved: int = 0
    reserved_flags: int = 0

    def encode(self) -> bytes:
        flags = (
            (self.priority & 7)
            | self.INTERNAL * self.internal
            | self.SESSION * self.session
            | self.DEBUG * self.debug
            | self.TRACE * self.trace
            | self.reserved_flags
        )
        return struct.pack(
            "<BBHIII", VERSION, self.reserved, flags, SIGNATURE, self.packet_size, self.time_to_reach_queue
        )

    @classmethod
    def decode(cls, data: bytes, offset: int = 0) -> tuple[BaseHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault on a wrong version, signature
        or size.
        """
        need(data, offset, cls.SIZE, PacketFaultCode.TRUNCATED)
        version, reserved, flags, signature, size, ttrq = struct.unpack_from("<BBHIII", data, offset)
        if version != VERSION:
            raise PacketFault(PacketFaultCode.VERSION)
        if signature != SIGNATURE:
            raise PacketFault(PacketFaultCode.SIGNATURE)
        if not 20 <= size <= MAX_PACKET:
            raise PacketFault(PacketFaultCode.PACKET_SIZE)
        header = cls(
            packet_size=size,
            priority=flags & 7,
            internal=bool(flags & cls.INTERNAL),
            session=bool(flags & cls.SESSION),
            debug=bool(flags & cls.DEBUG),
            trace=bool(flags & cls.TRACE),
            time_to_reach_queue=ttrq,
            reserved=reserved,
            reserved_flags=flags & 0xFEC0,
        )
        return header, offset + cls.SIZE


@dataclass(slots=True)
class InternalHeader:
    """The 4 bytes that follow the BaseHeader of session packets that carry no message."""

    SIZE: ClassVar[int] = 4
    SESSION_ACK: ClassVar[int] = 1
    ESTABLISH_CONNECTION: ClassVar[int] = 2
    CONNECTION_PARAMETERS: ClassVar[int] = 3

    packet_type: int
    refused: bool = False
    reserved: int = 0
    reserved_flags: int = 0

    def encode(self) -> bytes:
        return struct.pack("<HH", self.reserved, self.packet_type | self.refused << 4 | self.reserved_flags)

    @classmethod
    def decode(cls, data: bytes, offset: int = 16) -> tuple[InternalHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault on an unknown packet type."""
        need(data, offset, cls.SIZE, PacketFaultCode.TRUNCATED)
        reserved, flags = struct.unpack_from("<HH", data, offset)
        if flags & 0x0F not in (1, 2, 3):
            raise PacketFault(PacketFaultCode.PACKET_TYPE)
        return cls(flags & 0x0F, bool(flags & 0x10), reserved, flags & 0xFFE0), offset + cls.SIZE
