"""Converts messages that arrive by SRMP to the UserMessage packets that are stored ([MC-MQSRM] 3.1.5.1.1).

The packet holds the request as received in its CompoundMessageHeader and the envelope in its
SRMPEnvelopeHeader (MS-MQRR 2.2.5.1.2). The message body is in the CompoundMessageHeader only, so that it is
stored once. All other fields have the meaning that they have in a message of MS-MQQB.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

from msmq_fast._native.packetbuild import PacketTooLarge, build_user_message
from msmq_fast.packet.base import INFINITE, NULL_GUID
from msmq_fast.packet.fields import DIRECT, Hosts, QueueField, direct_wire, reply_field
from msmq_fast.packet.multi import (
    ADMINISTRATION,
    DESTINATION,
    RESPONSE,
    Element,
    MQFAddressHeader,
    MultiQueueFormatHeader,
)
from msmq_fast.packet.names import FormatName, direct_from_wire, parse_format_name
from msmq_fast.packet.properties import DebugHeader
from msmq_fast.packet.soap import CompoundMessageHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, provider_info
from msmq_fast.protocol.errors import (
    IllegalFormatName,
    InsufficientResources,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.srmp.compound import Compound
from msmq_fast.srmp.model import LABEL_PREFIX, Envelope, MsmqPart, StreamPart
from msmq_fast.srmp.values import END_OF_TIME, Nonconforming

__all__ = ["to_packet"]

_HTTP: Final = 1 << 25  # UserHeader.Flags.AH
_MULTI: Final = 1 << 23
_TRACED: Final = 0x0120  # BaseHeader.Flags: TR and DH
_MOST_KNOWN: Final = 512  # characters of a URL that is remembered
_SHA1: Final = 0x8004
_BOM: Final = "\ufeff"


def to_packet(compound: Compound, raw: bytes, arrival_s: int, *, overdue: bool = False) -> bytes:
    """Return the packet of a message.

    - `raw` is the whole request or APDU, head included.
    - `compound` is the message that was read from the last `compound.size` bytes of `raw`.
    - `arrival_s` is the arrival time in Unix seconds; it replaces a missing sentAt (A-09).
    - `overdue`: time limits that ended before the arrival are ignored, so that an expired message is kept
      like any other (A-08).

    Raises Nonconforming if a name in the envelope is invalid, InsufficientResources if the packet would be
    larger than 4 MiB.
    """
    envelope = compound.envelope
    msmq = envelope.msmq or MsmqPart(NULL_GUID, envelope.expires_at)
    source, ordinal = envelope.identifier
    sent = _u32(arrival_s if envelope.sent_at is None else envelope.sent_at)
    over = arrival_s if overdue else None
    destination = _destination(envelope)
    response = _response(envelope, source)
    admin = envelope.delivery_to or envelope.commitment_to
    admin_wire = _direct(admin) if admin is not None else None
    try:
        return build_user_message(
            destination.wire or None,
            destination.kind,
            label=envelope.label,
            extension=compound.extension,
            priority=0 if envelope.stream is not None else msmq.priority,
            delivery=int(envelope.recoverable),
            time_to_reach_queue=_limit(msmq.ttrq, sent, over),
            time_to_be_received=_limit(_received_until(envelope), sent, over),
            sent_time=sent,
            message_id=ordinal,
            source=source.bytes_le,
            admin=admin_wire,
            admin_type=DIRECT if admin_wire is not None else 0,
            response=response.wire or None,
            response_type=response.kind,
            connector=msmq.connector_type.bytes_le if msmq.connector_type is not None else None,
            base_flags=_TRACED if msmq.trace else 0,
            user_flags=_user_flags(msmq),
            acknowledge=_acknowledge(envelope),
            message_class=msmq.message_class,
            correlation_id=msmq.correlation,
            body_type=msmq.body_type,
            app_specific=msmq.app or 0,
            hash_algorithm=_SHA1 if msmq.hash_algorithm is None else msmq.hash_algorithm,
            transaction=_transaction(envelope.stream, msmq),
            security=_security(msmq),
            trailer=_trailer(compound, raw, msmq),
        )
    except PacketTooLarge as problem:
        raise InsufficientResources(f"a message of {len(raw)} bytes does not fit into a packet") from problem


def _u32(value: int) -> int:
    return min(max(value, 0), INFINITE)


def _direct(url: str) -> bytes:
    try:
        return direct_wire(url)
    except IllegalFormatName as problem:
        raise Nonconforming(str(problem)) from None


def _destination(envelope: Envelope) -> QueueField:
    """Return the field for DestinationQueueFormatName (SR-136), without a name if the destination is a
    multicast group: no field of a packet can hold a multicast address.
    """
    if envelope.multicast is not None:
        return QueueField(0)
    to = envelope.to
    return _known_destination(to) if len(to) <= _MOST_KNOWN else QueueField(DIRECT, _direct(to))


@lru_cache(maxsize=256)
def _known_destination(to: str) -> QueueField:
    return QueueField(DIRECT, _direct(to))


def _format_name(address: str) -> FormatName:
    """Return the format name of a URL, or of a format name with or without the prefix `MSMQ:`."""
    if address[:8].lower().startswith(("http://", "https://")):
        return direct_from_wire(address)
    text = address[len(LABEL_PREFIX) :] if address[: len(LABEL_PREFIX)].upper() == LABEL_PREFIX else address
    try:
        return parse_format_name(text)
    except IllegalFormatName as problem:
        raise Nonconforming(str(problem)) from None


def _response(envelope: Envelope, source: UUID) -> QueueField:
    if envelope.via is None:
        return QueueField(0)
    try:
        return reply_field(_format_name(envelope.via), Hosts(source, NULL_GUID))
    except UnsupportedFormatNameOperation:
        return QueueField(0)  # a name, but none that a packet can carry: it stays in the envelope
    except IllegalFormatName as problem:
        raise Nonconforming(str(problem)) from None


def _received_until(envelope: Envelope) -> int | None:
    """Return the Unix time until which the message must be received; None for no limit.

    This is expiresAt if the envelope has the Msmq element (A-07). In other envelopes, expiresAt is the limit
    to reach the queue.
    """
    forever = envelope.msmq is None or envelope.expires_at >= END_OF_TIME
    return None if forever else envelope.expires_at


def _limit(end: int | None, sent: int, over: int | None) -> int:
    """Return the seconds from `sent` to `end`; INFINITE if `end` is None, or if it is not after `over`."""
    return INFINITE if end is None or (over is not None and end <= over) else _u32(end - sent)


def _acknowledge(envelope: Envelope) -> Acknowledge:
    ack_flags = Acknowledge.NONE
    if envelope.delivery_to is not None:
        ack_flags |= Acknowledge.POSITIVE_ARRIVAL
    if envelope.positive_only:
        ack_flags |= Acknowledge.POSITIVE_RECEIVE
    if envelope.negative_only:
        ack_flags |= Acknowledge.NEGATIVE_RECEIVE
    return ack_flags


def _user_flags(msmq: MsmqPart) -> int:
    lists = bool(msmq.destination_mqf or msmq.admin_mqf or msmq.response_mqf)
    return _HTTP | _MULTI * lists | msmq.deadletter << 8 | msmq.journal << 9


def _transaction(stream: StreamPart | None, msmq: MsmqPart) -> bytes | None:
    """Return the TransactionHeader for the place of the message in its stream; None without a stream.

    It requests a final stream receipt if the sender asked for a dead letter (SR-123).
    """
    if stream is None:
        return None
    header = TransactionHeader(
        sequence_ordinal=stream.sequence & 0xFFFFFFFF,
        sequence_timestamp=stream.sequence >> 32,
        sequence_number=stream.current,
        previous_number=stream.before,
        final_ack=msmq.deadletter,
    )
    if msmq.eod is not None:
        header.first, header.last = msmq.eod.first, msmq.eod.last
        header.connector_manager = msmq.eod.connector
    return header.encode()


def _security(msmq: MsmqPart) -> bytes | None:
    """Return the SecurityHeader with the name of the cryptographic provider, None if the envelope names none.

    It holds no signature: signatures are in the envelope.
    """
    if msmq.provider is None:
        return None
    return SecurityHeader(provider_info=provider_info(msmq.provider.type, msmq.provider.name)).encode()


def _trailer(compound: Compound, raw: bytes, msmq: MsmqPart) -> bytes:
    """Return the headers that follow the MessagePropertiesHeader in the packet."""
    body = compound.body or b""
    at = len(raw) - compound.size + compound.body_offset if body else 0
    envelope = compound.envelope_xml.decode("utf-8").removeprefix(_BOM)
    parts = [
        SRMPEnvelopeHeader(envelope).encode(),
        CompoundMessageHeader(raw, at, len(body)).encode(),
    ]
    if msmq.trace:
        parts.insert(0, DebugHeader().encode())
    if msmq.destination_mqf or msmq.admin_mqf or msmq.response_mqf:
        lists = (
            _address(DESTINATION, msmq.destination_mqf),
            _address(ADMINISTRATION, msmq.admin_mqf),
            _address(RESPONSE, msmq.response_mqf),
        )
        parts.append(MultiQueueFormatHeader(*lists).encode())
    return b"".join(parts)


def _address(section: int, names: tuple[str, ...]) -> MQFAddressHeader:
    """Return the header for a list of queue names.

    Names that are invalid, or that a packet cannot hold, are omitted (A-82).
    """
    elements = []
    for name in names:
        try:
            elements.append(Element.of(_format_name(name)))
        except (Nonconforming, UnsupportedFormatNameOperation):
            continue
    return MQFAddressHeader(section, elements)
