"""The UserMessage packet header by header (MS-MQMQ 2.2.20): a complete but slow codec.

Code that runs for each message uses native code instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msmq_fast.packet.base import BaseHeader
from msmq_fast.packet.multi import MultiQueueFormatHeader
from msmq_fast.packet.properties import DebugHeader, MessagePropertiesHeader
from msmq_fast.packet.session import SessionHeader
from msmq_fast.packet.soap import CompoundMessageHeader, SoapHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, UserHeader
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode


@dataclass(slots=True)
class UserMessagePacket:
    """All headers of one packet. `encode` computes presence flags and PacketSize."""

    base: BaseHeader = field(default_factory=BaseHeader)
    user: UserHeader = field(default_factory=UserHeader)
    transaction: TransactionHeader | None = None
    security: SecurityHeader | None = None
    properties: MessagePropertiesHeader = field(default_factory=MessagePropertiesHeader)
    debug: DebugHeader | None = None
    envelope: SRMPEnvelopeHeader | None = None
    compound: CompoundMessageHeader | None = None
    soap: SoapHeader | None = None
    multi: MultiQueueFormatHeader | None = None
    session: SessionHeader | None = None

    @property
    def body(self) -> bytes:
        """The message body: that of the MessagePropertiesHeader, unless this is empty.

        If it is empty and the message is not encrypted, the body is the part of the HTTP request that the
        CompoundMessageHeader marks as the body (MS-MQRR 2.2.5.1.2.2).
        """
        encrypted = self.security is not None and self.security.encrypted
        if self.properties.body or self.compound is None or encrypted:
            return self.properties.body
        return self.compound.body

    def encode(self, *, count_session: bool = False) -> bytes:
        """Returns the bytes of the packet. `count_session`: PacketSize includes the SessionHeader, as some
        senders write it.
        """
        if (self.envelope is None) != (self.compound is None):
            raise ValueError("a packet needs both an SRMP envelope and a compound message, or neither")
        user = replace(
            self.user,
            transaction=self.transaction is not None,
            security=self.security is not None,
            multi_queue=self.multi is not None,
            http=self.envelope is not None,
            soap=self.soap is not None,
        )
        headers = (
            user,
            self.transaction,
            self.security,
            self.properties,
            self.debug,
            self.envelope,
            self.compound,
            self.soap,
            self.multi,
        )
        content = b"".join(header.encode() for header in headers if header is not None)
        trailer = self.session.encode() if self.session is not None else b""
        base = replace(
            self.base,
            packet_size=BaseHeader.SIZE + len(content) + len(trailer) * count_session,
            session=self.session is not None,
            debug=self.debug is not None,
        )
        return base.encode() + content + trailer

    @classmethod
    def decode(cls, data: bytes) -> tuple[UserMessagePacket, int]:
        """Returns (packet, size in bytes) for the packet at the start of `data`. Raises PacketFault if the
        packet is malformed.
        """
        base, at = BaseHeader.decode(data)
        if base.internal:
            raise PacketFault(PacketFaultCode.INTERNAL)
        if base.packet_size > len(data):
            raise PacketFault(PacketFaultCode.TRUNCATED)
        whole, data = data, data[: base.packet_size]
        user, at = UserHeader.decode(data, at)
        packet = cls(base, user)
        if user.transaction:
            packet.transaction, at = TransactionHeader.decode(data, at)
        if user.security:
            packet.security, at = SecurityHeader.decode(data, at)
        packet.properties, at = MessagePropertiesHeader.decode(
            data, at, encrypted=packet.security is not None and packet.security.encrypted
        )
        if base.debug:
            packet.debug, at = DebugHeader.decode(data, at)
        if user.http:
            packet.envelope, at = SRMPEnvelopeHeader.decode(data, at)
            packet.compound, at = CompoundMessageHeader.decode(data, at)
        if user.soap:
            packet.soap, at = SoapHeader.decode(data, at)
        if user.multi_queue:
            packet.multi, at = MultiQueueFormatHeader.decode(data, at)
        if base.session and at in (len(data), len(data) - SessionHeader.SIZE):
            packet.session, at = SessionHeader.decode(whole, at)
            return packet, at
        if at != len(data):
            raise PacketFault(PacketFaultCode.LENGTH_MISMATCH)
        return packet, at
