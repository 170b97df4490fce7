"""MultiQueueFormatHeader (MS-MQMQ 2.2.20.1 to 2.2.20.3) and its elements (2.2.18.1.4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from msmq_fast.packet.base import align4, need, padded, utf16z
from msmq_fast.packet.names import FormatName, NameKind, direct_from_wire
from msmq_fast.packet.text import decode_name
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode, UnsupportedFormatNameOperation

DESTINATION = 0x0064
ADMINISTRATION = 0x00C8
RESPONSE = 0x012C
SIGNATURE = 0x015E


@dataclass(frozen=True, slots=True)
class Element:
    """One MQFFormatNameElement: its type and the content of its name, without alignment."""

    kind: int  # 1 public, 2 private, 3 direct, 6 distribution list
    content: bytes  # the structure of that type; for direct names the string with its NUL

    @classmethod
    def of(cls, name: FormatName) -> Element:
        """Returns the element for a format name. Raises UnsupportedFormatNameOperation if an element cannot
        hold this kind of name.
        """
        match name.kind:
            case NameKind.DIRECT | NameKind.SUBQUEUE if not name.read_only:
                return cls(3, utf16z(name.text))
            case NameKind.PUBLIC | NameKind.DL if name.guid is not None and not name.read_only:
                return cls(1 if name.kind is NameKind.PUBLIC else 6, name.guid.bytes_le)
            case NameKind.PRIVATE if name.guid is not None and not name.read_only:
                return cls(2, name.guid.bytes_le + struct.pack("<I", name.number))
            case _:
                raise UnsupportedFormatNameOperation(
                    f"{name} cannot be an element of a multiple-element format name"
                )

    def name(self) -> FormatName:
        """Returns the format name that the element denotes."""
        if self.kind == 3:
            return direct_from_wire(decode_name(self.content))
        guid = UUID(bytes_le=self.content[:16])
        if self.kind == 2:
            return FormatName(NameKind.PRIVATE, guid, int.from_bytes(self.content[16:20], "little"))
        return FormatName(NameKind.PUBLIC if self.kind == 1 else NameKind.DL, guid)


@dataclass(slots=True)
class MQFAddressHeader:
    """One list of queue names in a MultiQueueFormatHeader; `section` is its kind, such as DESTINATION."""

    section: int
    elements: list[Element] = field(default_factory=list)
    reserved: int = 0

    def encode(self) -> bytes:
        """Returns the bytes of the header; HeaderSize counts everything but the final padding."""
        content = bytearray(12)
        for element in self.elements:
            content += struct.pack("<H", element.kind)
            if element.kind != 3:
                content += bytes(-len(content) % 4)
            content += element.content
        struct.pack_into("<IHHI", content, 0, len(content), self.section, self.reserved, len(self.elements))
        return padded(bytes(content))

    @classmethod
    def decode(cls, section: int, data: bytes, offset: int) -> tuple[MQFAddressHeader, int]:
        """Returns the list of the kind `section` at `offset`, and the offset after the list.

        `data` begins at the start of the packet, and `offset` must be a multiple of 4. Raises PacketFault if
        the kind of the list or of an element is wrong, or if a size does not fit.
        """
        need(data, offset, 12, PacketFaultCode.MQF_SIZE)
        size, identifier, reserved, count = struct.unpack_from("<IHHI", data, offset)
        if size < 12:
            raise PacketFault(PacketFaultCode.MQF_SIZE)
        need(data, offset, align4(size), PacketFaultCode.MQF_SIZE)
        if identifier != section:
            raise PacketFault(PacketFaultCode.MQF_SECTION)
        header, at, end = cls(section, reserved=reserved), offset + 12, offset + size
        for _ in range(count):
            element, at = _element(data, at, end)
            header.elements.append(element)
        return header, offset + align4(size)


def _element(data: bytes, at: int, end: int) -> tuple[Element, int]:
    if end - at < 4:
        raise PacketFault(PacketFaultCode.MQF_ELEMENT)
    kind = int.from_bytes(data[at : at + 2], "little")
    at += 2
    if kind == 3:
        stop = at
        while data[stop : stop + 2] != b"\0\0" or stop + 2 > end:
            stop += 2
            if stop + 2 > end:
                raise PacketFault(PacketFaultCode.MQF_ELEMENT)
        return Element(kind, bytes(data[at : stop + 2])), stop + 2
    size = {1: 16, 2: 20, 6: 16}.get(kind)
    at = align4(at)
    if size is None or at + size > end:
        raise PacketFault(PacketFaultCode.MQF_ELEMENT)
    return Element(kind, bytes(data[at : at + size])), at + size


@dataclass(slots=True)
class MQFSignatureHeader:
    """The MSMQ 3.0 signature of a message with several destinations."""

    SIZE: ClassVar[int] = 8

    signature: bytes = b""
    reserved: int = 0

    def encode(self) -> bytes:
        return padded(struct.pack("<HHI", SIGNATURE, self.reserved, len(self.signature)) + self.signature)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[MQFSignatureHeader, int]:
        """Returns the header and the offset after its padding. Raises PacketFault if the header does not fit
        into `data`, or is not an MQFSignatureHeader.
        """
        need(data, offset, cls.SIZE, PacketFaultCode.MQF_SIZE)
        identifier, reserved, size = struct.unpack_from("<HHI", data, offset)
        if identifier != SIGNATURE:
            raise PacketFault(PacketFaultCode.MQF_SECTION)
        need(data, offset, align4(8 + size), PacketFaultCode.MQF_SIZE)
        return cls(bytes(data[offset + 8 : offset + 8 + size]), reserved), offset + align4(8 + size)


@dataclass(slots=True)
class MultiQueueFormatHeader:
    """All destinations of a message that was sent to several queues, its lists of admin and response queues,
    and its signature.
    """

    destination: MQFAddressHeader = field(default_factory=lambda: MQFAddressHeader(DESTINATION))
    administration: MQFAddressHeader = field(default_factory=lambda: MQFAddressHeader(ADMINISTRATION))
    response: MQFAddressHeader = field(default_factory=lambda: MQFAddressHeader(RESPONSE))
    signature: MQFSignatureHeader = field(default_factory=MQFSignatureHeader)

    def encode(self) -> bytes:
        parts = (self.destination, self.administration, self.response, self.signature)
        return b"".join(part.encode() for part in parts)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[MultiQueueFormatHeader, int]:
        """Returns the header and the offset after it. Raises PacketFault if a part is malformed."""
        destination, at = MQFAddressHeader.decode(DESTINATION, data, offset)
        administration, at = MQFAddressHeader.decode(ADMINISTRATION, data, at)
        response, at = MQFAddressHeader.decode(RESPONSE, data, at)
        signature, at = MQFSignatureHeader.decode(data, at)
        return cls(destination, administration, response, signature), at
