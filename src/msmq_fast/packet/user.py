"""UserHeader, TransactionHeader and SecurityHeader (MS-MQMQ 2.2.19.2, 2.2.20.5, 2.2.20.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.base import INFINITE, NULL_GUID, need, padded, utf16z
from msmq_fast.packet.fields import QueueField
from msmq_fast.packet.text import decode_text
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode


@dataclass(slots=True)
class UserHeader:
    """The source and destination of a message; its presence flags name the headers that follow."""

    FIXED: ClassVar[int] = 48

    source: UUID = NULL_GUID
    destination_manager: UUID = NULL_GUID
    time_to_be_received: int = INFINITE
    sent_time: int = 0
    message_id: int = 0
    hops: int = 0
    delivery: int = 0
    journal_negative: bool = False
    journal_positive: bool = False
    security: bool = False
    transaction: bool = False
    properties: bool = True
    multi_queue: bool = False
    http: bool = False
    soap: bool = False
    destination: QueueField = QueueField(0)  # noqa: RUF009 - immutable
    admin: QueueField = QueueField(0)  # noqa: RUF009 - immutable
    response: QueueField = QueueField(0)  # noqa: RUF009 - immutable
    connector: UUID | None = None
    reserved_flags: int = 0

    @property
    def flags(self) -> int:
        """The value of UserHeader.Flags, computed from the other attributes."""
        return (
            (self.hops & 0x1F)
            | (self.delivery & 3) << 5
            | self.journal_negative << 8
            | self.journal_positive << 9
            | self.destination.kind << 10
            | self.admin.kind << 13
            | self.response.kind << 16
            | self.security << 19
            | self.transaction << 20
            | self.properties << 21
            | (self.connector is not None) << 22
            | self.multi_queue << 23
            | self.http << 25
            | self.soap << 28
            | self.reserved_flags
        )

    def encode(self) -> bytes:
        fixed = struct.pack(
            "<16s16sIIII",
            self.source.bytes_le,
            self.destination_manager.bytes_le,
            self.time_to_be_received,
            self.sent_time,
            self.message_id,
            self.flags,
        )
        names = self.destination.wire + self.admin.wire + self.response.wire
        return fixed + names + (self.connector.bytes_le if self.connector is not None else b"")

    @classmethod
    def decode(cls, data: bytes, offset: int = 16) -> tuple[UserHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if a flag has an illegal value or a
        size does not fit.
        """
        need(data, offset, cls.FIXED, PacketFaultCode.USER_SIZE)
        source, manager, ttbr, sent, ordinal, flags = struct.unpack_from("<16s16sIIII", data, offset)
        if flags >> 5 & 3 > 1:
            raise PacketFault(PacketFaultCode.DELIVERY)
        if flags >> 10 & 7 not in (0, 3, 5, 7):
            raise PacketFault(PacketFaultCode.DESTINATION_TYPE)
        if flags >> 13 & 7 in (1, 4):
            raise PacketFault(PacketFaultCode.ADMIN_TYPE)
        if flags >> 20 & 1 and not flags >> 5 & 3:
            raise PacketFault(PacketFaultCode.TRANSACTION_EXPRESS)
        if not flags >> 21 & 1:
            raise PacketFault(PacketFaultCode.NO_PROPERTIES)
        at = offset + cls.FIXED
        destination, at = QueueField.decode(flags >> 10 & 7, data, at)
        admin, at = QueueField.decode(flags >> 13 & 7, data, at)
        response, at = QueueField.decode(flags >> 16 & 7, data, at)
        connector = None
        if flags >> 22 & 1:
            need(data, at, 16, PacketFaultCode.USER_SIZE)
            connector, at = UUID(bytes_le=data[at : at + 16]), at + 16
        header = cls(
            UUID(bytes_le=source),
            UUID(bytes_le=manager),
            ttbr,
            sent,
            ordinal,
            hops=flags & 0x1F,
            delivery=flags >> 5 & 3,
            journal_negative=bool(flags >> 8 & 1),
            journal_positive=bool(flags >> 9 & 1),
            security=bool(flags >> 19 & 1),
            transaction=bool(flags >> 20 & 1),
            properties=True,
            multi_queue=bool(flags >> 23 & 1),
            http=bool(flags >> 25 & 1),
            soap=bool(flags >> 28 & 1),
            destination=destination,
            admin=admin,
            response=response,
            connector=connector,
            reserved_flags=flags & 0xED000080,
        )
        return header, at


@dataclass(slots=True)
class TransactionHeader:
    """The place of a message in its transactional sequence."""

    sequence_ordinal: int
    sequence_timestamp: int
    sequence_number: int
    previous_number: int = 0
    transaction_id: int = 0  # 20 bits
    final_ack: bool = False
    first: bool = False
    last: bool = False
    connector_manager: UUID | None = None
    reserved_flags: int = 0

    @property
    def sequence_id(self) -> int:
        """The TxSequenceID as one number, by which sequences are compared."""
        return self.sequence_timestamp << 32 | self.sequence_ordinal

    def encode(self) -> bytes:
        flags = (
            (self.connector_manager is not None)
            | self.final_ack << 1
            | self.first << 2
            | self.last << 3
            | (self.transaction_id & 0xFFFFF) << 4
            | self.reserved_flags
        )
        fixed = struct.pack(
            "<IIIII",
            flags,
            self.sequence_ordinal,
            self.sequence_timestamp,
            self.sequence_number,
            self.previous_number,
        )
        return fixed + (self.connector_manager.bytes_le if self.connector_manager is not None else b"")

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[TransactionHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if it does not fit into `data`."""
        need(data, offset, 20, PacketFaultCode.TRANSACTION_SIZE)
        flags, ordinal, timestamp, number, previous = struct.unpack_from("<IIIII", data, offset)
        at = offset + 20
        connector = None
        if flags & 1:
            need(data, at, 16, PacketFaultCode.TRANSACTION_SIZE)
            connector, at = UUID(bytes_le=data[at : at + 16]), at + 16
        header = cls(
            ordinal,
            timestamp,
            number,
            previous,
            flags >> 4 & 0xFFFFF,
            bool(flags & 2),
            bool(flags & 4),
            bool(flags & 8),
            connector,
            flags & 0xFF000000,
        )
        return header, at


@dataclass(slots=True)
class SecurityHeader:
    """The sender of a message, and the data with which it is signed and encrypted. Byte fields are carried
    unchanged.
    """

    FIXED: ClassVar[int] = 16

    sender_id_type: int = 0  # 0 none, 1 SID, 2 queue manager GUID
    encrypted: bool = False
    default_provider: bool = False
    security_data: bool = False  # AI: informative only, the sizes tell which items there are
    authenticated: bool = False  # 0 on the wire
    authentication_level: int = 0  # AS: 0 on the wire; 1, 3 or 5 after verification
    sender_id: bytes = b""
    encryption_key: bytes = b""
    signature: bytes = b""
    certificate: bytes = b""
    provider_info: bytes = b""
    reserved_flags: int = 0

    def encode(self) -> bytes:
        flags = (
            (self.sender_id_type & 0x0F)
            | self.authenticated << 4
            | self.encrypted << 5
            | self.default_provider << 6
            | self.security_data << 7
            | (self.authentication_level & 0x0F) << 8
            | self.reserved_flags
        )
        fixed = struct.pack(
            "<HHHHII",
            flags,
            len(self.sender_id),
            len(self.encryption_key),
            len(self.signature),
            len(self.certificate),
            len(self.provider_info),
        )
        items = (self.sender_id, self.encryption_key, self.signature, self.certificate, self.provider_info)
        return fixed + b"".join(padded(item) for item in items)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[SecurityHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if a size does not fit or
        contradicts the flags.
        """
        need(data, offset, cls.FIXED, PacketFaultCode.SECURITY_SIZE)
        flags, *sizes = struct.unpack_from("<HHHHII", data, offset)
        if not flags & 0x0F and sizes[0]:
            raise PacketFault(PacketFaultCode.SENDER_ID)
        if sizes[3] > 0xFFFF:
            raise PacketFault(PacketFaultCode.CERTIFICATE_SIZE)
        if 0 < sizes[4] < 6:
            raise PacketFault(PacketFaultCode.PROVIDER_SIZE)
        at = offset + cls.FIXED
        items: list[bytes] = []
        for size in sizes:
            need(data, at, (size + 3) & ~3, PacketFaultCode.SECURITY_SIZE)
            items.append(bytes(data[at : at + size]))
            at += (size + 3) & ~3
        header = cls(
            sender_id_type=flags & 0x0F,
            encrypted=bool(flags & 0x20),
            default_provider=bool(flags & 0x40),
            security_data=bool(flags & 0x80),
            authenticated=bool(flags & 0x10),
            authentication_level=flags >> 8 & 0x0F,
            sender_id=items[0],
            encryption_key=items[1],
            signature=items[2],
            certificate=items[3],
            provider_info=items[4],
            reserved_flags=flags & 0xF000,
        )
        return header, at


def provider_info(provider_type: int, name: str) -> bytes:
    """Returns SecurityHeader.ProviderInfo: the type and the NUL-terminated name of the provider."""
    return struct.pack("<I", provider_type) + utf16z(name)


def parse_provider_info(data: bytes) -> tuple[int, str]:
    """Returns (type, name) of a cryptographic provider. Raises PacketFault if the data is too short for
    both.
    """
    need(data, 0, 6, PacketFaultCode.PROVIDER_SIZE)
    name = data[4 : 4 + (len(data) - 4) // 2 * 2]
    return int(struct.unpack_from("<I", data)[0]), decode_text(name)
