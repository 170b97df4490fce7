"""Converts a `Message` that is sent to an `Envelope` ([MC-MQSRM] 3.1.7.2.4; 4.7, 4.8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msmq_fast.packet.acks import BODY_SIZE, ORDERING_LABEL, FinalAck
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.packet.user import parse_provider_info
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.srmp.classify import NEGATIVE_DECISIONS
from msmq_fast.srmp.model import (
    LABEL_PREFIX,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Eod,
    MsmqPart,
    Provider,
    SignaturePart,
    StreamPart,
    StreamReceipt,
)
from msmq_fast.srmp.values import END_OF_TIME, Nonconforming, write_message_id

__all__ = ["NO_STREAM", "Place", "Spelling", "to_envelope"]

Place = tuple[int, int, int]
"""The place of a message in its stream: (identifier of the stream, number of the message, previous number).

Zeros if the message has no stream.
"""

NO_STREAM: Final = (0, 0, 0)

_DECIDED: Final = NEGATIVE_DECISIONS | {MessageClass.ACK_RECEIVE}


@dataclass(frozen=True, slots=True)
class Spelling:
    """How to write elements for which the specification and MSMQ on Windows differ. The defaults follow
    Windows.

    - `stream` is the name of the stream element (A-05).
    - `literal_expiry` determines which time limit is written into expiresAt. True: the limit to reach the
      queue, which is also in TTrq. False: the limit to be received (A-07).
    """

    stream: str = "Stream"
    literal_expiry: bool = False


def to_envelope(
    message: Message,
    to: str,
    place: Place,
    receipts_to: Callable[[str], str],
    spelling: Spelling,
    signature: SignaturePart | None = None,
) -> Envelope:
    """Return the envelope of a message to the URL `to`, or to `MSMQ:MULTICAST=address:port`.

    `place` is the place of the message in its stream. `receipts_to` returns, for the URL of a destination,
    the URL to which stream receipts are sent.

    A message with the class of an acknowledgment becomes a receipt. Its correlation identifier names the
    original message; its body holds the place of the original message in the stream, in the layout of MS-MQQB
    acknowledgments. Raises Nonconforming if such a body is malformed.
    """
    sent = message.sent_time
    reached = _limit(sent, message.time_to_reach_queue)
    until = reached if spelling.literal_expiry else _limit(sent, message.time_to_be_received)
    delivered, decided, acknowledged = receipts = _receipts(message)
    is_receipt = any(each is not None for each in receipts)
    recoverable = not is_receipt and (message.delivery is Delivery.RECOVERABLE or place != NO_STREAM)
    delivery_to, commitment_to = (None, None) if is_receipt else _wanted(message)
    return Envelope(
        action=LABEL_PREFIX + message.label,
        to=to,
        id=write_message_id(message.source_machine, message.message_id),
        via=None if message.response_queue is None else _via(message.response_queue),
        expires_at=until,
        sent_at=sent,
        services=recoverable or delivery_to is not None or commitment_to is not None,
        durable=recoverable,
        delivery_to=delivery_to,
        commitment_to=commitment_to,
        positive_only=commitment_to is not None and Acknowledge.POSITIVE_RECEIVE in message.acknowledge,
        negative_only=commitment_to is not None and Acknowledge.NEGATIVE_RECEIVE in message.acknowledge,
        stream=_stream(message.source_machine, place, to, receipts_to) if place[0] else None,
        msmq=_msmq(message, reached),
        delivery_receipt=delivered,
        commitment_receipt=decided,
        stream_receipt=acknowledged,
        signature=signature,
    )


def _limit(sent: int, seconds: int) -> int:
    """Return the Unix time at which a limit of `seconds` after `sent` ends (A-90)."""
    return END_OF_TIME if seconds == INFINITE else min(sent + seconds, END_OF_TIME)


def _url(name: FormatName) -> str | None:
    """Return the URL in a direct format name of HTTP or HTTPS; None for other format names."""
    scheme, colon, rest = name.text.partition(":")
    is_http = name.direct is not None and scheme.lower() in ("http", "https")
    return f"{scheme.lower()}{colon}{rest}" if is_http else None


def _via(name: FormatName) -> str:
    return _url(name) or f"{LABEL_PREFIX}{name}"


def _wanted(message: Message) -> tuple[str | None, str | None]:
    """Returns the URLs to which a delivery and a commitment receipt are to be sent, None for each receipt
    that is not requested. No receipt is possible if the admin queue is not named by a URL (SR-064, SR-066).
    """
    admin = None if message.admin_queue is None else _url(message.admin_queue)
    arrival = Acknowledge.POSITIVE_ARRIVAL in message.acknowledge
    receiving = message.acknowledge & (Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE)
    return admin if arrival else None, admin if receiving else None


def _stream(sender: UUID, place: Place, to: str, receipts_to: Callable[[str], str]) -> StreamPart:
    sequence, current, previous = place
    return StreamPart(
        sender=sender,
        sequence=sequence,
        current=current,
        previous=previous or None,
        receipts_to=receipts_to(to) if current == 1 else None,
        start=current == 1,
    )


def _receipts(
    message: Message,
) -> tuple[DeliveryReceipt | None, CommitmentReceipt | None, StreamReceipt | None]:
    """Return the receipt elements of a message, None for each that it does not have."""
    kind, at = message.message_class, message.sent_time
    if kind == MessageClass.ORDER_ACK:
        return None, None, _stream_receipt(message)
    original = write_message_id(
        UUID(bytes_le=message.correlation_id[:16]), int.from_bytes(message.correlation_id[16:], "little")
    )
    if kind == MessageClass.ACK_REACH_QUEUE:
        return DeliveryReceipt(at, original), None, None
    if kind not in _DECIDED:
        return None, None, None
    decided = CommitmentReceipt(at, kind == MessageClass.ACK_RECEIVE, original)
    final = message.label == ORDERING_LABEL and len(message.body) == BODY_SIZE
    return None, decided, _stream_receipt(message) if final else None


def _stream_receipt(message: Message) -> StreamReceipt:
    try:
        ack = FinalAck.decode_body(message.body, message.message_class)
    except ValueError as problem:
        raise Nonconforming(str(problem)) from None
    return StreamReceipt(ack.source, ack.sequence_timestamp << 32 | ack.sequence_ordinal, ack.sequence_number)


def _msmq(message: Message, reached: int) -> MsmqPart:
    """Return the Msmq element; fields that are zero are omitted (A-80)."""
    security = message.security
    provider = None
    if security is not None and security.provider_info:
        provider = Provider(*parse_provider_info(security.provider_info))
    return MsmqPart(
        message_class=int(message.message_class),
        priority=message.priority,
        journal=Journal.JOURNAL in message.journal,
        deadletter=Journal.DEADLETTER in message.journal,
        correlation=message.correlation_id if any(message.correlation_id) else None,
        trace=message.trace,
        connector_type=message.connector_type,
        app=message.app_specific or None,
        body_type=message.body_type,
        hash_algorithm=message.hash_algorithm or None,
        eod=_eod(message),
        provider=provider,
        source_qm=message.source_machine,
        destination_mqf=_names(message.destinations),
        admin_mqf=_names(message.admin_queues),
        response_mqf=_names(message.response_queues),
        ttrq=reached,
    )


def _eod(message: Message) -> Eod | None:
    header = message.transaction
    if header is None or not (header.first or header.last or header.connector_manager is not None):
        return None
    return Eod(header.first, header.last, header.connector_manager)


def _names(names: tuple[FormatName, ...]) -> tuple[str, ...]:
    return tuple(text for text in (_url(name) or str(name) for name in names) if len(text.split()) == 1)
