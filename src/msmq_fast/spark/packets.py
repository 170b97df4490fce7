"""Converts UserMessage packets to the values of the message columns, in plain Python.

It is used for captures, and for stores if no native module is available. Tests compare the native encoder
with this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from msmq_fast.packet import fields
from msmq_fast.packet.base import INFINITE, BaseHeader
from msmq_fast.packet.fields import QueueField
from msmq_fast.packet.multi import Element
from msmq_fast.packet.session import SessionHeader
from msmq_fast.packet.soapparts import soap_part
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import PacketFault

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SHIFT: Final = 1_000_000
PACKET_VERSION: Final = 0x10
CLASS_NAMES: Final = {int(one): one.name for one in MessageClass}


def clean(text: str) -> str:
    """Returns the text with lone surrogates, which UTF-8 cannot represent, replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def cut(data: bytes) -> tuple[int, bytes]:
    """Returns (size in bytes of the UserMessage at the beginning of `data`, its packet as a store keeps it,
    that is without SessionHeader).

    Uses the server's native parser if it is built, otherwise the Python codec. Raises PacketFault.
    """
    if _parse is None:
        return plainly_cut(data)
    try:
        parsed = _parse(data)
    except _BadPacket as fault:
        raise PacketFault(fault.code) from None
    return parsed.wire_size, parsed.kept()


def plainly_cut(data: bytes) -> tuple[int, bytes]:
    """Returns the same as `cut`, always with the Python codec."""
    packet, end = UserMessagePacket.decode(data)
    if packet.session is None:
        return end, data[:end]
    kept = bytearray(data[: end - SessionHeader.SIZE])
    kept[2] &= ~BaseHeader.SESSION
    kept[8:12] = len(kept).to_bytes(4, "little")
    return end, bytes(kept)


try:
    from msmq_fast._native.framing import BadPacket as _BadPacket
    from msmq_fast._native.framing import parse as _parse
except ImportError:  # an executor that has only Python code
    _parse = None  # type: ignore[assignment]


def values(packet: UserMessagePacket, names: Iterable[str], raw: bytes = b"") -> dict[str, Any]:
    """Returns the values of those columns in `names` that depend only on a packet. Timestamps are Unix
    microseconds. `raw` is the value of the column `raw_packet`.
    """
    return {name: _COLUMNS[name](packet) for name in names if name in _COLUMNS} | (
        {"raw_packet": raw} if "raw_packet" in names else {}
    )


def signed(value: int, bits: int = 32) -> int:
    """Returns the signed number that has the same `bits` bits as an unsigned number of a packet."""
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _seconds(value: int) -> int | None:
    return None if value == INFINITE else value


def _name(field: QueueField, packet: UserMessagePacket) -> str | None:
    """Returns the format name of the queue in a field of the UserHeader; None if the field is absent. A
    direct format name keeps its spelling.
    """
    user = packet.user
    match field.kind:
        case fields.NONE:
            return None
        case fields.SAME_AS_ADMIN:
            return None if field is user.admin else _name(user.admin, packet)
        case fields.PRIVATE_ON_SOURCE:
            return _private(user.source, field.wire)
        case fields.PRIVATE_ON_DESTINATION:
            return _private(user.destination_manager, field.wire)
        case fields.PRIVATE_ON_ADMIN_HOST:
            host = _admin_host(packet)
            return None if host is None else _private(host, field.wire)
        case fields.PUBLIC:
            return f"PUBLIC={UUID(bytes_le=field.wire)}"
        case fields.PRIVATE_ON_OTHER:
            return _private(UUID(bytes_le=field.wire[:16]), field.wire[16:])
        case _:
            return "DIRECT=" + clean(fields.direct_text(field.wire))


def _admin_host(packet: UserMessagePacket) -> UUID | None:
    user = packet.user
    match user.admin.kind:
        case fields.PRIVATE_ON_SOURCE:
            return user.source
        case fields.PRIVATE_ON_DESTINATION:
            return user.destination_manager
        case fields.PRIVATE_ON_OTHER:
            return UUID(bytes_le=user.admin.wire[:16])
        case _:
            return None


def _private(host: UUID, number: bytes) -> str:
    return f"PRIVATE={host}\\{int.from_bytes(number[:4], 'little'):08x}"


def _names(elements: list[Element]) -> str | None:
    return clean(",".join(str(element.name()) for element in elements)) or None


def _transaction(packet: UserMessagePacket) -> str | None:
    """Returns the identifier of the packet's transaction, made of the sender's GUID and a number of 20 bits;
    None if the message is not transactional.
    """
    header = packet.transaction
    return None if header is None else f"{{{packet.user.source}}}\\{header.transaction_id}"


def _place(packet: UserMessagePacket, attribute: str) -> int | None:
    """Returns an attribute of the packet's position in a transactional sequence; None if the packet has no
    such position (yet).
    """
    header = packet.transaction
    return getattr(header, attribute) if header is not None and header.sequence_id else None


def _of(part: str, attribute: str, otherwise: Any = None) -> Callable[[UserMessagePacket], Any]:
    """Returns a function that reads an attribute of the optional header `part` of a packet; it returns
    `otherwise` if the packet does not have this header.
    """

    def column(packet: UserMessagePacket) -> Any:
        header = getattr(packet, part)
        return otherwise if header is None else getattr(header, attribute)

    return column


def _clean(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _bytes_of(attribute: str) -> Callable[[UserMessagePacket], bytes | None]:
    column = _of("security", attribute)
    return lambda packet: column(packet) or None


_COLUMNS: Final[dict[str, Callable[[UserMessagePacket], Any]]] = {
    "priority": lambda packet: packet.base.priority,
    "message_id": lambda packet: f"{{{packet.user.source}}}\\{packet.user.message_id}",
    "correlation_id": lambda packet: packet.properties.correlation_id,
    "class": lambda packet: packet.properties.message_class,
    "class_name": lambda packet: CLASS_NAMES.get(packet.properties.message_class),
    "label": lambda packet: clean(packet.properties.label),
    "app_specific": lambda packet: packet.properties.app_specific,
    "body_type": lambda packet: signed(packet.properties.body_type),
    "body_size": lambda packet: len(packet.body),
    "body": lambda packet: packet.body,
    "extension": lambda packet: packet.properties.extension,
    "sent_time": lambda packet: packet.user.sent_time * _SHIFT,
    "time_to_reach_queue": lambda packet: _seconds(packet.base.time_to_reach_queue),
    "time_to_be_received": lambda packet: _seconds(packet.user.time_to_be_received),
    "delivery": lambda packet: packet.user.delivery,
    "acknowledge": lambda packet: packet.properties.acknowledge,
    "journal": lambda packet: packet.user.journal_negative | packet.user.journal_positive << 1,
    "destination_queue": lambda packet: _name(packet.user.destination, packet),
    "response_queue": lambda packet: _name(packet.user.response, packet),
    "admin_queue": lambda packet: _name(packet.user.admin, packet),
    "source_machine": lambda packet: str(packet.user.source),
    "message_version": lambda packet: PACKET_VERSION,
    "auth_level": _of("security", "authentication_level", 0),
    "encrypted": _of("security", "encrypted", False),
    "trace": lambda packet: packet.base.trace,
    "destination_queues": lambda packet: packet.multi and _names(packet.multi.destination.elements),
    "response_queues": lambda packet: packet.multi and _names(packet.multi.response.elements),
    "sender_id": _bytes_of("sender_id"),
    "sender_id_type": _of("security", "sender_id_type", 0),
    "hash_algorithm": lambda packet: signed(packet.properties.hash_algorithm),
    "encryption_algorithm": lambda packet: signed(packet.properties.encryption_algorithm),
    "xact_id": _transaction,
    "xact_seq_id": lambda packet: signed(_place(packet, "sequence_id") or 0, 64) or None,
    "xact_seq_no": lambda packet: _place(packet, "sequence_number") or None,
    "xact_prev_no": lambda packet: _place(packet, "previous_number"),
    "first_in_xact": _of("transaction", "first"),
    "last_in_xact": _of("transaction", "last"),
    "connector_type": lambda packet: packet.user.connector and str(packet.user.connector),
    "soap_envelope": lambda packet: packet.envelope and clean(packet.envelope.envelope),
    "compound_body": lambda packet: packet.compound and packet.compound.data,
    "soap_header": lambda packet: _clean(soap_part(packet, "Header")),
    "soap_body": lambda packet: _clean(soap_part(packet, "Body")),
    "sender_cert": _bytes_of("certificate"),
    "signature": _bytes_of("signature"),
}

KNOWN: Final = frozenset(_COLUMNS)
"""The columns that depend only on a packet."""
