"""What the dissector ought to show for a packet, according to our own decoders."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

from msmq_fast.packet.base import BaseHeader
from msmq_fast.packet.fields import QueueField, direct_text
from msmq_fast.packet.multi import Element, MultiQueueFormatHeader
from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, SessionAck, SessionHeader
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, UserHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.security.sid import Sid

Shown = dict[str, list[Any]]


def of_packet(data: bytes) -> Shown:
    """Fields and their values for the packet that `data` is; PacketFault if it is malformed."""
    base, _ = BaseHeader.decode(data)
    found = of_base(base)
    if not base.internal:
        return found | of_message(UserMessagePacket.decode(data)[0])
    kind = data[18] & 0x0F
    if kind == 1:
        ack = SessionAck.decode(data)
        return found | of_session(ack.header) | of_internal(1, False)
    if kind == 2:
        establish = EstablishConnection.decode(data)
        return found | of_establish(establish) | of_internal(2, establish.refused)
    parameters = ConnectionParameters.decode(data)
    return (
        found
        | of_internal(kind, parameters.refused)
        | {
            "mqqb.parameters.recoverable_ack_timeout": [parameters.recoverable_ack_timeout],
            "mqqb.parameters.ack_timeout": [parameters.ack_timeout],
            "mqqb.parameters.reserved": [parameters.reserved],
            "mqqb.parameters.window": [parameters.window_size],
        }
    )


def of_base(base: BaseHeader) -> Shown:
    return {
        "mqqb.version": [0x10],
        "mqqb.reserved": [base.reserved],
        "mqqb.flags.priority": [base.priority],
        "mqqb.flags.internal": [base.internal],
        "mqqb.flags.session": [base.session],
        "mqqb.flags.debug": [base.debug],
        "mqqb.flags.trace": [base.trace],
        "mqqb.signature": ["LIOR"],
        "mqqb.size": [base.packet_size],
        "mqqb.time_to_reach_queue": [base.time_to_reach_queue],
    }


def of_internal(kind: int, refused: bool) -> Shown:
    return {"mqqb.internal.type": [kind], "mqqb.internal.refused": [refused]}


def of_establish(packet: EstablishConnection) -> Shown:
    system = packet.operating_system
    return {
        "mqqb.establish.client": [packet.client],
        "mqqb.establish.server": [packet.server],
        "mqqb.establish.timestamp": [packet.timestamp],
        "mqqb.establish.system": [system],
        "mqqb.establish.system.no_ping": [system >> 8 & 1],
        "mqqb.establish.system.server": [system >> 9 & 1],
        "mqqb.establish.system.quality": [system >> 10 & 1],
        "mqqb.establish.reserved": [packet.reserved],
        "mqqb.establish.padding": [packet.padding],
    }


def of_session(header: SessionHeader) -> Shown:
    return {
        "mqqb.session.ack": [header.ack_sequence],
        "mqqb.session.recoverable_ack": [header.recoverable_ack_sequence],
        "mqqb.session.recoverable_flags": [header.recoverable_ack_flags],
        "mqqb.session.messages": [header.user_sequence],
        "mqqb.session.recoverable": [header.recoverable_sequence],
        "mqqb.session.window": [header.window_size],
        "mqqb.session.reserved": [header.reserved],
    }


def of_message(packet: UserMessagePacket) -> Shown:
    found = of_user(packet.user) | of_properties(packet)
    if packet.transaction is not None:
        found |= of_transaction(packet.transaction)
    if packet.security is not None:
        found |= of_security(packet.security)
    if packet.debug is not None:
        found["mqqb.debug.flags.type"] = [packet.debug.queue is not None]
        found["mqqb.debug.reserved"] = [packet.debug.reserved]
        found["mqqb.debug.queue"] = _present(packet.debug.queue)
    if packet.envelope is not None and packet.compound is not None:
        found |= {
            "mqqb.envelope.id": [packet.envelope.header_id],
            "mqqb.envelope.text": [packet.envelope.envelope],
            "mqqb.compound.id": [packet.compound.header_id],
            "mqqb.compound.http_size": [len(packet.compound.data)],
            "mqqb.compound.body_size": [packet.compound.body_size],
            "mqqb.compound.body_offset": [packet.compound.body_offset],
            "mqqb.compound.data": _present(packet.compound.data),
        }
    if packet.soap is not None:
        found["mqqb.soap.header"] = [packet.soap.header]
        found["mqqb.soap.body"] = [packet.soap.body]
    if packet.multi is not None:
        found |= of_multi(packet.multi)
    if packet.session is not None:
        found |= of_session(packet.session)
    return found


def of_user(user: UserHeader) -> Shown:
    return {
        "mqqb.user.source": [user.source],
        "mqqb.user.manager": [user.destination_manager],
        "mqqb.user.time_to_be_received": [user.time_to_be_received],
        "mqqb.user.sent": [user.sent_time],
        "mqqb.user.message_id": [user.message_id],
        "mqqb.user.flags.hops": [user.hops],
        "mqqb.user.flags.delivery": [user.delivery],
        "mqqb.user.flags.journal_negative": [user.journal_negative],
        "mqqb.user.flags.journal_positive": [user.journal_positive],
        "mqqb.user.flags.destination": [user.destination.kind],
        "mqqb.user.flags.admin": [user.admin.kind],
        "mqqb.user.flags.response": [user.response.kind],
        "mqqb.user.flags.security": [user.security],
        "mqqb.user.flags.transaction": [user.transaction],
        "mqqb.user.flags.properties": [True],
        "mqqb.user.flags.connector": [user.connector is not None],
        "mqqb.user.flags.multi_queue": [user.multi_queue],
        "mqqb.user.flags.http": [user.http],
        "mqqb.user.flags.soap": [user.soap],
        "mqqb.user.destination": _queue(user.destination, user),
        "mqqb.user.admin": _queue(user.admin, user),
        "mqqb.user.response": _queue(user.response, user),
        "mqqb.user.connector": _present(user.connector),
    }


def of_transaction(header: TransactionHeader) -> Shown:
    return {
        "mqqb.transaction.flags.connector": [header.connector_manager is not None],
        "mqqb.transaction.flags.final_ack": [header.final_ack],
        "mqqb.transaction.flags.first": [header.first],
        "mqqb.transaction.flags.last": [header.last],
        "mqqb.transaction.id": [header.transaction_id],
        "mqqb.transaction.sequence_id": [header.sequence_id],
        "mqqb.transaction.sequence_ordinal": [header.sequence_ordinal],
        "mqqb.transaction.sequence_timestamp": [header.sequence_timestamp],
        "mqqb.transaction.number": [header.sequence_number],
        "mqqb.transaction.previous": [header.previous_number],
        "mqqb.transaction.connector": _present(header.connector_manager),
    }


def of_security(header: SecurityHeader) -> Shown:
    return {
        "mqqb.security.flags.sender_type": [header.sender_id_type],
        "mqqb.security.flags.authenticated": [header.authenticated],
        "mqqb.security.flags.encrypted": [header.encrypted],
        "mqqb.security.flags.default_provider": [header.default_provider],
        "mqqb.security.flags.security_data": [header.security_data],
        "mqqb.security.flags.signature_type": [header.authentication_level],
        "mqqb.security.sender_id_size": [len(header.sender_id)],
        "mqqb.security.key_size": [len(header.encryption_key)],
        "mqqb.security.signature_size": [len(header.signature)],
        "mqqb.security.certificate_size": [len(header.certificate)],
        "mqqb.security.provider_size": [len(header.provider_info)],
        "mqqb.security.sender_id": _present(header.sender_id),
        "mqqb.security.sid": _sid(header),
        "mqqb.security.key": _present(header.encryption_key),
        "mqqb.security.signature": _present(header.signature),
        "mqqb.security.certificate": _present(header.certificate),
        "mqqb.security.provider": _present(header.provider_info),
    }


def of_properties(packet: UserMessagePacket) -> Shown:
    header = packet.properties
    return {
        "mqqb.properties.flags.arrival": [header.acknowledge & 1],
        "mqqb.properties.flags.receive": [header.acknowledge >> 1 & 1],
        "mqqb.properties.flags.no_arrival": [header.acknowledge >> 2 & 1],
        "mqqb.properties.flags.no_receive": [header.acknowledge >> 3 & 1],
        "mqqb.properties.class": [header.message_class],
        "mqqb.properties.correlation_id": [header.correlation_id],
        "mqqb.properties.body_type": [header.body_type],
        "mqqb.properties.application_tag": [header.app_specific],
        "mqqb.properties.body_size": [len(header.body)],
        "mqqb.properties.allocation_size": [header.allocation_size],
        "mqqb.properties.privacy_level": [header.privacy_level],
        "mqqb.properties.hash": [header.hash_algorithm],
        "mqqb.properties.cipher": [header.encryption_algorithm],
        "mqqb.properties.extension_size": [len(header.extension)],
        "mqqb.properties.label": _present(header.label),
        "mqqb.properties.extension": _present(header.extension),
        "mqqb.properties.body": _present(header.body),
    }


def of_multi(header: MultiQueueFormatHeader) -> Shown:
    lists = (header.destination, header.administration, header.response)
    return {
        "mqqb.multi.section": [*(part.section for part in lists), 0x015E],
        "mqqb.multi.count": [len(part.elements) for part in lists],
        "mqqb.multi.type": [element.kind for part in lists for element in part.elements],
        "mqqb.multi.destination": [_element(element) for element in header.destination.elements],
        "mqqb.multi.admin": [_element(element) for element in header.administration.elements],
        "mqqb.multi.response": [_element(element) for element in header.response.elements],
        "mqqb.multi.signature_size": [len(header.signature.signature)],
        "mqqb.multi.signature": _present(header.signature.signature),
    }


def _present(value: Any) -> list[Any]:
    return [] if value is None or value in ("", b"") else [value]


def _private(host: object, number: bytes) -> str:
    return f"PRIVATE={host}\\{struct.unpack('<I', number)[0]:08x}"


def _queue(field: QueueField, user: UserHeader) -> list[str]:
    match field.kind:
        case 0 | 1:
            return []
        case 5:
            return [f"PUBLIC={UUID(bytes_le=field.wire)}"]
        case 6:
            return [_private(UUID(bytes_le=field.wire[:16]), field.wire[16:])]
        case 7:
            return ["DIRECT=" + direct_text(field.wire)]
        case kind:
            host = {2: user.source, 3: user.destination_manager}.get(kind, "administration queue's host")
            return [_private(host, field.wire)]


def _element(element: Element) -> str:
    if element.kind == 3:
        return "DIRECT=" + element.content.decode("utf-16-le", "surrogatepass").removesuffix("\0")
    guid = UUID(bytes_le=element.content[:16])
    if element.kind == 2:
        return _private(guid, element.content[16:])
    return f"{'PUBLIC' if element.kind == 1 else 'DL'}={guid}"


def _sid(header: SecurityHeader) -> list[str]:
    if header.sender_id_type != 1 or not header.sender_id:
        return []
    try:
        return [str(Sid.from_bytes(header.sender_id))]
    except ValueError:
        return []


FIELDS = sorted(
    {
        name
        for part in (
            of_base(BaseHeader()),
            of_internal(0, False),
            of_establish(EstablishConnection(UUID(int=0))),
            of_session(SessionHeader()),
            of_user(UserHeader()),
            of_transaction(TransactionHeader(0, 0, 0)),
            of_security(SecurityHeader()),
            of_properties(UserMessagePacket()),
            of_multi(MultiQueueFormatHeader()),
        )
        for name in part
    }
    | {f"mqqb.parameters.{name}" for name in ("recoverable_ack_timeout", "ack_timeout", "reserved", "window")}
    | {"mqqb.debug.flags.type", "mqqb.debug.reserved", "mqqb.debug.queue"}
    | {"mqqb.envelope.id", "mqqb.envelope.text", "mqqb.soap.header", "mqqb.soap.body"}
    | {f"mqqb.compound.{name}" for name in ("id", "http_size", "body_size", "body_offset", "data")}
)
"""Every field that takes part in a comparison."""


def difference(shown: dict[str, list[str]], expected: Shown) -> dict[str, tuple[list[str], list[Any]]]:
    """The fields in which what tshark printed is not what is expected."""
    found = {}
    for name in FIELDS:
        wanted = expected.get(name, [])
        printed = shown[name]
        if len(printed) != len(wanted) or not all(map(_equal, printed, wanted)):
            found[name] = (printed, wanted)
    return found


def _equal(printed: str, wanted: Any) -> bool:
    if isinstance(wanted, bool):
        return printed in (("1", "True") if wanted else ("0", "False"))
    if isinstance(wanted, int):
        return {"True": 1, "False": 0}.get(printed) == wanted or int(printed, 0) == wanted
    if isinstance(wanted, bytes):
        return printed == wanted.hex()
    text = str(wanted)
    return printed == text or not text.isprintable()  # tshark escapes the others in its own way
