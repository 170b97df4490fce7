"""What the columns of a message are, in plain Python over the codec of packet/: a dict for each message."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from msmq_fast.packet.fields import DIRECT, SAME_AS_ADMIN, Hosts, QueueField, field_name
from msmq_fast.packet.multi import Element, MQFAddressHeader
from msmq_fast.packet.names import FormatName
from msmq_fast.packet.soapparts import soap_part
from msmq_fast.packet.text import decode_text
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.classes import MessageClass

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INFINITE = 0xFFFFFFFF
SEQUENCE = (1 << 56) - 1


def text(value: str) -> str:
    """What is left of UTF-16 text in UTF-8."""
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value)


def seconds(value: int) -> datetime:
    return EPOCH + timedelta(seconds=value)


def _duration(value: int) -> int | None:
    return None if value == INFINITE else value


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _list(header: MQFAddressHeader) -> str | None:
    return ",".join(_element(element) for element in header.elements) or None


def _element(element: Element) -> str:
    return _direct(element.content) if element.kind == 3 else str(element.name())


def _direct(wire: bytes) -> str:
    """Columns carry direct names as content, whether they keep to the rules for names or not."""
    return text("DIRECT=" + decode_text(wire))


def _field(field: QueueField, hosts: Hosts, admin: FormatName | None = None) -> str | None:
    return _direct(field.wire[2:]) if field.kind == DIRECT else _name(field_name(field, hosts, admin))


def _name(value: Any) -> str | None:
    return None if value is None else text(str(value))


def row(
    key: int,
    packet: bytes,
    *,
    arrived_us: int,
    abort_count: int = 0,
    move_count: int = 0,
    reason: int = 0,
    moved_s: int = 0,
    holder: str | None = None,
) -> dict[str, Any]:
    """The columns that follow from a message, its place and its history; those of the queue are not there."""
    found, _ = UserMessagePacket.decode(packet)
    user, properties, security, tx = found.user, found.properties, found.security, found.transaction
    hosts = Hosts(user.source, user.destination_manager)
    admin = field_name(user.admin, hosts)
    number = reason or properties.message_class
    known = number in {int(value) for value in MessageClass}
    sequence = bool(tx is not None and tx.sequence_id)
    return {
        "arrival_seq": key & SEQUENCE,
        "lookup_id": key,
        "priority": 7 - (key >> 56),
        "message_id": f"{{{user.source}}}\\{user.message_id}",
        "correlation_id": properties.correlation_id,
        "class": number,
        "class_name": MessageClass(number).name if known else None,
        "label": text(properties.label),
        "app_specific": properties.app_specific,
        "body_type": _signed(properties.body_type),
        "body_size": len(found.body),
        "body": found.body,
        "extension": properties.extension,
        "sent_time": seconds(user.sent_time),
        "arrived_time": EPOCH + timedelta(microseconds=arrived_us),
        "time_to_reach_queue": _duration(found.base.time_to_reach_queue),
        "time_to_be_received": _duration(user.time_to_be_received),
        "delivery": user.delivery,
        "acknowledge": properties.acknowledge,
        "journal": user.journal_negative + 2 * user.journal_positive,
        "destination_queue": _field(user.destination, hosts),
        "response_queue": _field(
            user.admin if user.response.kind == SAME_AS_ADMIN else user.response, hosts, admin
        ),
        "admin_queue": _field(user.admin, hosts),
        "source_machine": str(user.source),
        "abort_count": abort_count,
        "move_count": move_count,
        "message_version": 16,
        "auth_level": security.authentication_level if security else 0,
        "encrypted": bool(security and security.encrypted),
        "trace": found.base.trace,
        "destination_queues": _list(found.multi.destination) if found.multi else None,
        "response_queues": _list(found.multi.response) if found.multi else None,
        "sender_id": (security.sender_id if security else b"") or None,
        "sender_id_type": security.sender_id_type if security else 0,
        "hash_algorithm": _signed(properties.hash_algorithm),
        "encryption_algorithm": _signed(properties.encryption_algorithm),
        "xact_id": f"{{{user.source}}}\\{tx.transaction_id}" if tx else None,
        "xact_seq_id": _signed(tx.sequence_id, 64) if tx and sequence else None,
        "xact_seq_no": (tx.sequence_number or None) if tx and sequence else None,
        "xact_prev_no": tx.previous_number if tx and sequence else None,
        "first_in_xact": tx.first if tx else None,
        "last_in_xact": tx.last if tx else None,
        "connector_type": _guid(user.connector),
        "last_move_time": seconds(moved_s) if moved_s else None,
        "lease_holder": holder,
        "soap_envelope": text(found.envelope.envelope) if found.envelope else None,
        "compound_body": found.compound.data if found.compound else None,
        "soap_header": _name(soap_part(found, "Header")),
        "soap_body": _name(soap_part(found, "Body")),
        "sender_cert": (security.certificate if security else b"") or None,
        "signature": (security.signature if security else b"") or None,
        "raw_packet": packet,
    }


def _guid(value: UUID | None) -> str | None:
    return None if value is None else str(value)
