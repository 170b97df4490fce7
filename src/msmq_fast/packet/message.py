"""A message as applications and the queue manager use it (MS-MQDMPR 3.1.1.12), and its conversion from and to
a packet.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from msmq_fast._native.framing import BadPacket, ParsedMessage, parse
from msmq_fast._native.packetbuild import PacketTooLarge, build_user_message
from msmq_fast.packet import fields
from msmq_fast.packet.base import INFINITE, MAX_PACKET, NULL_GUID
from msmq_fast.packet.fields import Hosts, QueueField
from msmq_fast.packet.multi import (
    ADMINISTRATION,
    DESTINATION,
    RESPONSE,
    Element,
    MQFAddressHeader,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from msmq_fast.packet.names import FormatName
from msmq_fast.packet.properties import MAX_LABEL, DebugHeader
from msmq_fast.packet.soap import SoapHeader
from msmq_fast.packet.text import utf16_units
from msmq_fast.packet.user import SecurityHeader, TransactionHeader
from msmq_fast.protocol.classes import MessageClass, message_class
from msmq_fast.protocol.errors import (
    IllegalPropertyValue,
    InsufficientResources,
    LabelTooLong,
    PacketFault,
)
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal

DEFAULT_TIME_TO_REACH_QUEUE = 345_600  # seconds: LongLiveTime, 4 days


@dataclass(slots=True)
class Message:
    """The attributes of a message that its packet contains.

    Times are in seconds; `sent_time` counts from 1970 UTC.
    """

    body: bytes = b""
    label: str = ""
    destination: FormatName | None = None
    priority: int = 3
    delivery: Delivery = Delivery.EXPRESS
    body_type: int = 0
    app_specific: int = 0
    extension: bytes = b""
    correlation_id: bytes = bytes(20)
    message_class: int = MessageClass.NORMAL
    acknowledge: Acknowledge = Acknowledge.NONE
    admin_queue: FormatName | None = None
    response_queue: FormatName | None = None
    journal: Journal = Journal.NONE
    time_to_reach_queue: int = DEFAULT_TIME_TO_REACH_QUEUE
    time_to_be_received: int = INFINITE
    # Set by the queue manager that accepts the message.
    source_machine: UUID = NULL_GUID
    message_id: int = 0
    sent_time: int = 0
    destination_manager: UUID = NULL_GUID
    hops: int = 0
    trace: bool = False
    trace_queue: UUID | None = None
    connector_type: UUID | None = None
    privacy_level: int = 0
    hash_algorithm: int = 0x8004
    encryption_algorithm: int = 0x6801
    transaction: TransactionHeader | None = None
    security: SecurityHeader | None = None
    soap: SoapHeader | None = None
    destinations: tuple[FormatName, ...] = ()
    admin_queues: tuple[FormatName, ...] = ()
    response_queues: tuple[FormatName, ...] = ()
    multi_signature: bytes = b""

    @property
    def transactional(self) -> bool:
        return self.transaction is not None

    @property
    def identifier(self) -> str:
        """The message identifier, `{guid}\\ordinal`, unique across all queue managers (M-02)."""
        return f"{{{self.source_machine}}}\\{self.message_id}"

    def to_packet(self) -> bytes:
        """Returns the UserMessage packet, without a SessionHeader.

        Raises LabelTooLong; InsufficientResources if the packet is larger than 4 MiB; IllegalPropertyValue if
        a value is out of range; UnsupportedFormatNameOperation if one of the queue names has a kind that a
        packet cannot hold.
        """
        if not 0 <= self.priority <= 7:
            raise IllegalPropertyValue(f"priority {self.priority} is not in 0..7")
        if len(self.correlation_id) != 20:
            raise IllegalPropertyValue("a correlation identifier must have 20 bytes")
        if len(self.label) > MAX_LABEL or utf16_units(self.label) > MAX_LABEL:
            raise LabelTooLong(f"a label can have at most {MAX_LABEL} characters")
        destination = fields.destination_field(self.destination) if self.destination else QueueField(0)
        manager = self.destination_manager
        if manager == NULL_GUID and self.destination is not None:
            manager = fields.manager_of(self.destination)
        hosts = Hosts(self.source_machine, manager)
        admin = fields.reply_field(self.admin_queue, hosts)
        response = fields.reply_field(self.response_queue, hosts)
        transactional = self.transaction is not None
        user_flags, base_flags, trailer = self._trailer()
        user_flags |= self.hops & 0x1F
        user_flags |= (int(self.journal) & 3) << 8
        try:
            return build_user_message(
                destination.wire,
                destination.kind,
                body=self.body,
                label=self.label,
                extension=self.extension,
                priority=0 if transactional else self.priority,
                delivery=Delivery.RECOVERABLE if transactional else self.delivery,
                time_to_reach_queue=self.time_to_reach_queue,
                time_to_be_received=self.time_to_be_received,
                sent_time=self.sent_time,
                message_id=self.message_id,
                source=self.source_machine.bytes_le,
                destination_manager=manager.bytes_le,
                admin=admin.wire,
                admin_type=admin.kind,
                response=response.wire,
                response_type=response.kind,
                connector=self.connector_type.bytes_le if self.connector_type is not None else None,
                base_flags=base_flags,
                user_flags=user_flags,
                acknowledge=int(self.acknowledge),
                message_class=self.message_class,
                correlation_id=self.correlation_id,
                body_type=self.body_type,
                app_specific=self.app_specific,
                privacy_level=self.privacy_level,
                hash_algorithm=self.hash_algorithm,
                encryption_algorithm=self.encryption_algorithm,
                transaction=self.transaction.encode() if self.transaction is not None else None,
                security=self.security.encode() if self.security is not None else None,
                trailer=trailer,
            )
        except PacketTooLarge as problem:
            raise InsufficientResources(
                f"the message is larger than a packet of {MAX_PACKET} bytes"
            ) from problem
        except OverflowError as problem:
            raise IllegalPropertyValue(f"a number is out of its range: {problem}") from problem

    def _trailer(self) -> tuple[int, int, bytes | None]:
        """Returns (flags of the UserHeader, flags of the BaseHeader, headers) for the headers that follow the
        MessagePropertiesHeader; the headers are None if there are none.
        """
        user_flags = base_flags = 0
        parts = []
        if self.trace:
            base_flags = 0x0120
            parts.append(DebugHeader(self.trace_queue).encode())
        if self.soap is not None:
            user_flags |= 1 << 28
            parts.append(self.soap.encode())
        if self.destinations or self.admin_queues or self.response_queues or self.multi_signature:
            user_flags |= 1 << 23
            parts.append(
                MultiQueueFormatHeader(
                    _address(DESTINATION, self.destinations),
                    _address(ADMINISTRATION, self.admin_queues),
                    _address(RESPONSE, self.response_queues),
                    MQFSignatureHeader(self.multi_signature),
                ).encode()
            )
        return user_flags, base_flags, b"".join(parts) or None

    @classmethod
    def from_packet(cls, data: bytes) -> Message:
        """Returns the message in a UserMessage packet; a SessionHeader in the packet is ignored.

        Raises PacketFault if the packet is malformed. Direct queue names that violate MS-MQMQ 2.1 are kept
        unchanged.
        """
        try:
            parsed = parse(data)
        except BadPacket as problem:
            raise PacketFault(problem.code) from None
        return _message(cls, parsed)


def _address(section: int, names: tuple[FormatName, ...]) -> MQFAddressHeader:
    return MQFAddressHeader(section, [Element.of(name) for name in names])


def _names(header: MQFAddressHeader) -> tuple[FormatName, ...]:
    return tuple(element.name() for element in header.elements)


def _message(cls: type[Message], parsed: ParsedMessage) -> Message:
    packet, at = parsed.packet, parsed.fields()
    flags = at["user_flags"]
    hosts = Hosts(UUID(bytes_le=parsed.source), UUID(bytes_le=parsed.destination_manager))
    wire = QueueField(at["dest_type"], bytes(parsed.destination))
    admin = fields.field_name(QueueField(at["admin_type"], bytes(parsed.admin)), hosts)
    response = fields.field_name(QueueField(at["response_type"], bytes(parsed.response)), hosts, admin)
    properties = at["properties_offset"]
    message = cls(
        body=bytes(parsed.body),
        label=parsed.label,
        destination=fields.field_name(wire, hosts),
        priority=at["priority"],
        delivery=Delivery(at["delivery"]),
        body_type=at["body_type"],
        app_specific=at["app_specific"],
        extension=bytes(parsed.extension),
        correlation_id=parsed.correlation_id,
        message_class=message_class(at["message_class"]),
        acknowledge=Acknowledge(at["ack_flags"]),
        admin_queue=admin,
        response_queue=response,
        journal=Journal(flags >> 8 & 3),
        time_to_reach_queue=at["time_to_reach_queue"],
        time_to_be_received=at["time_to_be_received"],
        source_machine=hosts.source,
        message_id=at["message_id"],
        sent_time=at["sent_time"],
        destination_manager=hosts.destination,
        hops=flags & 0x1F,
        trace=bool(at["base_flags"] & 0x0100),
        privacy_level=_u32(packet, properties + 40),
        hash_algorithm=_u32(packet, properties + 44),
        encryption_algorithm=_u32(packet, properties + 48),
    )
    if at["connector_offset"]:
        start = at["connector_offset"]
        message.connector_type = UUID(bytes_le=packet[start : start + 16])
    if at["transaction_offset"]:
        message.transaction, _ = TransactionHeader.decode(packet, at["transaction_offset"])
    if at["security_offset"]:
        message.security, _ = SecurityHeader.decode(packet, at["security_offset"])
    if at["debug_offset"]:
        message.trace_queue = DebugHeader.decode(packet, at["debug_offset"])[0].queue
    if at["soap_offset"]:
        message.soap, _ = SoapHeader.decode(packet, at["soap_offset"])
    if at["mqf_offset"]:
        multi, _ = MultiQueueFormatHeader.decode(packet, at["mqf_offset"])
        message.destinations = _names(multi.destination)
        message.admin_queues = _names(multi.administration)
        message.response_queues = _names(multi.response)
        message.multi_signature = multi.signature.signature
    return message


def _u32(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")
