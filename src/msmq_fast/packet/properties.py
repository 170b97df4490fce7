"""MessagePropertiesHeader and DebugHeader (MS-MQMQ 2.2.19.3, 2.2.20.8)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.base import align4, need, padded, utf16z
from msmq_fast.packet.text import decode_text
from msmq_fast.protocol.errors import LabelTooLong, PacketFault, PacketFaultCode

MAX_LABEL = 249  # characters without the NUL


@dataclass(slots=True)
class MessagePropertiesHeader:
    """The message properties that the application sets, and the message body."""

    FIXED: ClassVar[int] = 56

    acknowledge: int = 0
    message_class: int = 0
    correlation_id: bytes = bytes(20)
    body_type: int = 0
    app_specific: int = 0
    allocation_size: int | None = None  # None: the size of the body
    privacy_level: int = 0
    hash_algorithm: int = 0
    encryption_algorithm: int = 0
    label: str = ""
    extension: bytes = b""
    body: bytes = b""
    reserved_flags: int = 0
    message_size: int | None = None  # None: the size of the body; an encrypted one may be longer (AMB-29)

    def encode(self) -> bytes:
        """Returns the header with its padding. Raises LabelTooLong if the label has more than 249 WCHARs."""
        label = utf16z(self.label) if self.label else b""
        if len(label) > 2 * (MAX_LABEL + 1):
            raise LabelTooLong(f"a label can have at most {MAX_LABEL} characters")
        fixed = struct.pack(
            "<BBH20sIIIIIIII",
            self.acknowledge | self.reserved_flags,
            len(label) // 2,
            self.message_class,
            self.correlation_id,
            self.body_type,
            self.app_specific,
            len(self.body) if self.message_size is None else self.message_size,
            len(self.body) if self.allocation_size is None else self.allocation_size,
            self.privacy_level,
            self.hash_algorithm,
            self.encryption_algorithm,
            len(self.extension),
        )
        return padded(b"".join((fixed, label, self.extension, self.body)))

    @classmethod
    def decode(
        cls, data: bytes, offset: int, *, encrypted: bool = False
    ) -> tuple[MessagePropertiesHeader, int]:
        """Returns the header and the offset after its padding. Raises PacketFault if a size does not fit.

        The body of an encrypted message may be longer than MessageSize (AMB-29).
        """
        need(data, offset, cls.FIXED, PacketFaultCode.PROPERTIES_SIZE)
        (
            flags,
            label,
            number,
            correlation,
            body_type,
            app,
            size,
            allocation,
            privacy,
            hashing,
            encryption,
            extension,
        ) = struct.unpack_from("<BBH20sIIIIIIII", data, offset)
        at = offset + cls.FIXED
        if label > MAX_LABEL + 1:
            raise PacketFault(PacketFaultCode.LABEL_LENGTH)
        need(data, at, 2 * label, PacketFaultCode.LABEL_LENGTH)
        text, at = decode_text(bytes(data[at : at + 2 * label])), at + 2 * label
        need(data, at, extension, PacketFaultCode.EXTENSION_SIZE)
        extra, at = bytes(data[at : at + extension]), at + extension
        length = (
            allocation if encrypted and size < allocation and align4(at + allocation) <= len(data) else size
        )
        need(data, 0, align4(at + length), PacketFaultCode.BODY_SIZE)
        header = cls(
            flags & 0x0F,
            number,
            correlation,
            body_type,
            app,
            allocation,
            privacy,
            hashing,
            encryption,
            text,
            extra,
            bytes(data[at : at + length]),
            flags & 0xF0,
            None if length == size else size,
        )
        return header, align4(at + length)


def is_traced(packet: bytes) -> bool:
    """Whether BaseHeader.Flags.TR is set in a UserMessage packet."""
    return bool(packet[3] & 1)


@dataclass(slots=True)
class DebugHeader:
    """The queue that gets a report about each hop of a traced message."""

    queue: UUID | None = None
    reserved: int = 0
    reserved_flags: int = 0

    def encode(self) -> bytes:
        flags = (self.queue is not None) | self.reserved_flags
        return struct.pack("<HH", flags, self.reserved) + (
            self.queue.bytes_le if self.queue is not None else b""
        )

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[DebugHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if the header does not fit into
        `data`, or the value of its field QT is unknown.
        """
        need(data, offset, 4, PacketFaultCode.DEBUG_SIZE)
        flags, reserved = struct.unpack_from("<HH", data, offset)
        if flags & 3 > 1:
            raise PacketFault(PacketFaultCode.DEBUG_TYPE)
        if not flags & 3:
            return cls(None, reserved, flags & 0xFFFC), offset + 4
        need(data, offset, 20, PacketFaultCode.DEBUG_SIZE)
        return cls(
            UUID(bytes_le=bytes(data[offset + 4 : offset + 20])), reserved, flags & 0xFFFC
        ), offset + 20
