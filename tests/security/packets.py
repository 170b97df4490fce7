"""Messages to sign and to encrypt."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.security.sid import sid

SOURCE = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
TARGET = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
SENDER = sid("S-1-5-21-1-2-3-1000")


def message(**properties: Any) -> Message:
    """One with a value in every field that a signature covers."""
    given: dict[str, Any] = {
        "body": b"the body of the message",
        "label": "a label",
        "destination": parse_format_name(f"PRIVATE={TARGET}\\00000007"),
        "destination_manager": TARGET,
        "source_machine": SOURCE,
        "admin_queue": parse_format_name("DIRECT=OS:here\\private$\\acks"),
        "response_queue": parse_format_name(f"PUBLIC={SOURCE}"),
        "acknowledge": Acknowledge.NEGATIVE_ARRIVAL | Acknowledge.POSITIVE_RECEIVE,
        "correlation_id": bytes(range(20)),
        "app_specific": 0x01020304,
        "extension": b"extension",
        "priority": 5,
        "delivery": Delivery.RECOVERABLE,
        "journal": Journal.DEADLETTER,
        "body_type": 8,
        "message_id": 77,
        "sent_time": 1_700_000_000,
        "connector_type": UUID(int=99),
        "hash_algorithm": 0x800E,
    }
    return Message(**given | properties)


def parsed(packet: bytes | Message) -> ParsedMessage:
    """The fields of a packet."""
    return parse(packet.to_packet() if isinstance(packet, Message) else packet)


def header(**values: Any) -> SecurityHeader:
    """A SecurityHeader that names the sender."""
    return SecurityHeader(**{"sender_id_type": 1, "sender_id": SENDER.data} | values)
