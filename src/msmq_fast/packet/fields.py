"""Queue names in packets: converts the fields of the UserHeader from and to format names (MS-MQMQ
2.2.18.1).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from msmq_fast.packet.base import need, padded, utf16z
from msmq_fast.packet.names import FormatName, NameKind, direct_from_wire
from msmq_fast.packet.text import MAX_NAME, decode_name
from msmq_fast.protocol.errors import (
    IllegalFormatName,
    PacketFault,
    PacketFaultCode,
    UnsupportedFormatNameOperation,
)

NONE = 0
SAME_AS_ADMIN = 1  # response queue only
PRIVATE_ON_SOURCE = 2
PRIVATE_ON_DESTINATION = 3
PRIVATE_ON_ADMIN_HOST = 4  # response queue only
PUBLIC = 5
PRIVATE_ON_OTHER = 6
DIRECT = 7

LONGEST = 2 * MAX_NAME + 8
"""Maximum size in bytes of a valid field, including its count, its NUL and its padding."""

_SIZES = {
    NONE: 0,
    SAME_AS_ADMIN: 0,
    PRIVATE_ON_SOURCE: 4,
    PRIVATE_ON_DESTINATION: 4,
    PRIVATE_ON_ADMIN_HOST: 4,
}
_SIZES |= {PUBLIC: 16, PRIVATE_ON_OTHER: 20}


def direct_wire(text: str) -> bytes:
    """Returns the DirectQueueFormatName (2.2.18.1.5.2) of a direct name, padded to a multiple of 4 bytes.

    `text` is the name without `DIRECT=`. Raises IllegalFormatName if the name is too long.
    """
    name = utf16z(text)
    if len(name) > 0xFFFE:
        raise IllegalFormatName("the direct format name is too long for a packet")
    return padded(struct.pack("<H", len(name)) + name)


def direct_text(wire: bytes | memoryview) -> str:
    """Returns the direct name, without `DIRECT=`, in a DirectQueueFormatName that was validated."""
    count = int.from_bytes(wire[:2], "little")
    return decode_name(wire[2 : 2 + count])


@dataclass(frozen=True, slots=True)
class QueueField:
    """One queue name of a UserHeader: its type value (DQ, AQ or RQ) and its bytes, padding included."""

    kind: int
    wire: bytes = b""

    @classmethod
    def decode(cls, kind: int, data: bytes, offset: int) -> tuple[QueueField, int]:
        """Returns the field with the type value `kind` at `offset`, and the offset after the field. Raises
        PacketFault if the field does not fit into `data`.
        """
        if kind == DIRECT:
            need(data, offset, 2, PacketFaultCode.QUEUE_NAME_SIZE)
            count = int.from_bytes(data[offset : offset + 2], "little")
            size = (2 + count + 3) & ~3
            need(data, offset, size, PacketFaultCode.QUEUE_NAME_SIZE)
            if count < 2 or count & 1 or data[offset + count : offset + count + 2] != b"\0\0":
                raise PacketFault(PacketFaultCode.QUEUE_NAME)
        else:
            size = _SIZES[kind]
            need(data, offset, size, PacketFaultCode.QUEUE_NAME_SIZE)
        return cls(kind, bytes(data[offset : offset + size])), offset + size


@dataclass(frozen=True, slots=True)
class Hosts:
    """The source and the destination of a packet: the queue managers to which the names in the packet that
    contain no computer refer.
    """

    source: UUID
    destination: UUID


def destination_field(name: FormatName) -> QueueField:
    """Returns the field for the destination of a packet; `manager_of` returns the QueueManagerAddress.

    Raises UnsupportedFormatNameOperation if a single packet cannot be addressed to this kind of name.
    """
    if name.read_only:
        raise UnsupportedFormatNameOperation(f"{name} cannot be sent to")
    match name.kind:
        case NameKind.DIRECT | NameKind.SUBQUEUE:
            return QueueField(DIRECT, direct_wire(name.text))
        case NameKind.PRIVATE:
            return QueueField(PRIVATE_ON_DESTINATION, struct.pack("<I", name.number))
        case NameKind.PUBLIC:
            return QueueField(PUBLIC, _guid(name).bytes_le)
        case _:
            raise UnsupportedFormatNameOperation(f"{name} cannot be the destination of a packet")


def sent_field(name: FormatName) -> QueueField:
    """Returns `destination_field` for a message that this computer sends.

    The field is empty for a multicast address, which no field can hold: the outgoing queue determines where
    the packet goes.
    """
    return QueueField(0) if name.kind is NameKind.MULTICAST else destination_field(name)


def manager_of(name: FormatName) -> UUID:
    """Returns UserHeader.QueueManagerAddress for a packet to this destination.

    It is the GUID in a private format name, and the NULL GUID for all other kinds of names.
    """
    return _guid(name) if name.kind is NameKind.PRIVATE else UUID(int=0)


def reply_field(name: FormatName | None, hosts: Hosts) -> QueueField:
    """Returns the field for an administration or response queue, empty for None.

    Raises UnsupportedFormatNameOperation if the name cannot be written as a field.
    """
    if name is None:
        return QueueField(NONE)
    if name.kind is NameKind.PRIVATE and not name.read_only:
        number = struct.pack("<I", name.number)
        if name.guid == hosts.source:
            return QueueField(PRIVATE_ON_SOURCE, number)
        if name.guid == hosts.destination:
            return QueueField(PRIVATE_ON_DESTINATION, number)
        return QueueField(PRIVATE_ON_OTHER, _guid(name).bytes_le + number)
    return destination_field(name)


def field_name(field: QueueField, hosts: Hosts, admin: FormatName | None = None) -> FormatName | None:
    """Returns the format name that a field denotes; None if it denotes no queue.

    The types 1 and 4 of a response queue refer to the admin queue of the packet, `admin`. Type 4 denotes no
    queue if the admin queue is not a private queue, because then no host is known.
    """
    match field.kind:
        case 0:
            return None
        case 1:
            return admin
        case 2:
            return FormatName(NameKind.PRIVATE, hosts.source, _number(field.wire))
        case 3:
            return FormatName(NameKind.PRIVATE, hosts.destination, _number(field.wire))
        case 4:
            if admin is None or admin.kind is not NameKind.PRIVATE:
                return None
            return FormatName(NameKind.PRIVATE, admin.guid, _number(field.wire))
        case 5:
            return FormatName(NameKind.PUBLIC, UUID(bytes_le=field.wire))
        case 6:
            return FormatName(NameKind.PRIVATE, UUID(bytes_le=field.wire[:16]), _number(field.wire[16:]))
        case _:
            return direct_from_wire(direct_text(field.wire))


def _number(wire: bytes) -> int:
    return int.from_bytes(wire[:4], "little")


def _guid(name: FormatName) -> UUID:
    if name.guid is None:
        raise IllegalFormatName(f"{name} has no identifier")
    return name.guid
