"""SoapHeader (MS-MQMQ 2.2.20.7), SRMPEnvelopeHeader and CompoundMessageHeader (MS-MQRR 2.2.5.1)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from msmq_fast.packet.base import align4, need, padded, utf16z
from msmq_fast.packet.text import decode_text
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode

_HEADER_SECTION = 0x0320
_BODY_SECTION = 0x0384
_ENVELOPE = 0x0190
_COMPOUND = 0x01F4
_FLAGS, _HTTP = 63, 0x02  # the last byte of UserHeader.Flags, and its bit for these headers


def has_envelope(packet: bytes) -> bool:
    """Whether a UserMessage packet came over HTTP and has an SRMPEnvelopeHeader."""
    return bool(packet[_FLAGS] & _HTTP)


@dataclass(slots=True)
class SoapHeader:
    """SOAP header and body elements that the application adds to a message."""

    header: str = ""
    body: str = ""

    def encode(self) -> bytes:
        """Returns the header section and the body section, each padded to a multiple of 4 bytes."""
        sections = ((_HEADER_SECTION, utf16z(self.header)), (_BODY_SECTION, utf16z(self.body)))
        return b"".join(
            padded(struct.pack("<HHI", number, 0, len(text) // 2) + text) for number, text in sections
        )

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[SoapHeader, int]:
        """Returns the header and the offset after its padding.

        There may be no padding between the first section and the second. Raises PacketFault if a section is
        missing or does not fit into `data`.
        """
        header, at = _section(_HEADER_SECTION, data, offset)
        if data[at : at + 2] != _BODY_SECTION.to_bytes(2, "little") and len(data) - at >= 8:
            at = align4(at)
        body, at = _section(_BODY_SECTION, data, at)
        need(data, 0, align4(at), PacketFaultCode.SOAP_SIZE)
        return cls(header, body), align4(at)


def _section(number: int, data: bytes, offset: int) -> tuple[str, int]:
    need(data, offset, 8, PacketFaultCode.SOAP_SIZE)
    found, _, chars = struct.unpack_from("<HHI", data, offset)
    if found != number:
        raise PacketFault(PacketFaultCode.SOAP_SECTION)
    at = offset + 8
    need(data, at, 2 * chars, PacketFaultCode.SOAP_SIZE)
    return decode_text(bytes(data[at : at + 2 * chars])), at + 2 * chars


@dataclass(slots=True)
class SRMPEnvelopeHeader:
    """The SOAP envelope of a message that came over HTTP."""

    envelope: str = ""
    header_id: int = _ENVELOPE

    def encode(self) -> bytes:
        text = utf16z(self.envelope)
        return padded(struct.pack("<HHI", self.header_id, 0, len(text) // 2) + text)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[SRMPEnvelopeHeader, int]:
        """Returns the header and the offset after its padding. DataLength counts WCHARs, not bytes.

        Raises PacketFault if the header does not fit into `data`.
        """
        need(data, offset, 8, PacketFaultCode.ENVELOPE_SIZE)
        number, _, chars = struct.unpack_from("<HHI", data, offset)
        need(data, offset, align4(8 + 2 * chars), PacketFaultCode.ENVELOPE_SIZE)
        text = decode_text(bytes(data[offset + 8 : offset + 8 + 2 * chars]))
        return cls(text, number), offset + align4(8 + 2 * chars)


@dataclass(slots=True)
class CompoundMessageHeader:
    """The HTTP request in which a message arrived, head and body, and where the message body is in it."""

    data: bytes = b""
    body_offset: int = 0
    body_size: int = 0
    header_id: int = _COMPOUND

    @property
    def body(self) -> bytes:
        """The message body."""
        return self.data[self.body_offset : self.body_offset + self.body_size]

    def encode(self) -> bytes:
        fixed = struct.pack("<HHIII", self.header_id, 0, len(self.data), self.body_size, self.body_offset)
        return padded(fixed + self.data)

    @classmethod
    def decode(cls, data: bytes, offset: int) -> tuple[CompoundMessageHeader, int]:
        """Returns the header and the offset after its padding. Raises PacketFault if the header does not fit
        into `data`, or the message body is not inside the request.
        """
        need(data, offset, 16, PacketFaultCode.COMPOUND_SIZE)
        number, _, size, body_size, body_offset = struct.unpack_from("<HHIII", data, offset)
        need(data, offset, align4(16 + size), PacketFaultCode.COMPOUND_SIZE)
        if body_size + body_offset > size:
            raise PacketFault(PacketFaultCode.COMPOUND_SIZE)
        content = bytes(data[offset + 16 : offset + 16 + size])
        return cls(content, body_offset, body_size, number), offset + align4(16 + size)
