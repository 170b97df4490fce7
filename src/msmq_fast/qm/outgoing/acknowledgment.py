"""Builds administration acknowledgments, which are messages (MS-MQQB 3.1.7.15)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmq_fast.packet.base import INFINITE, NULL_GUID
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.classes import MessageClass, about_receiving, is_negative
from msmq_fast.protocol.properties import Acknowledge, Delivery

INSECURE: Final = frozenset(
    (
        MessageClass.NACK_BAD_DST_Q,
        MessageClass.NACK_BAD_ENCRYPTION,
        MessageClass.NACK_BAD_SIGNATURE,
        MessageClass.NACK_ACCESS_DENIED,
        MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    )
)
"""Classes that would reveal to unauthenticated peers which queues exist and their rights
(SendInsecureNacks).
"""


def asked_for(message_class: int) -> Acknowledge:
    """Returns the flag with which a sender requests an acknowledgment of this class (3.1.5.8.10,
    3.1.7.2.1).
    """
    if is_negative(message_class):
        receiving = about_receiving(message_class)
        return Acknowledge.NEGATIVE_RECEIVE if receiving else Acknowledge.NEGATIVE_ARRIVAL
    receiving = about_receiving(message_class)
    return Acknowledge.POSITIVE_RECEIVE if receiving else Acknowledge.POSITIVE_ARRIVAL


def answer_queue(original: Message, manager: UUID) -> FormatName | None:
    """Returns the administration queue, to which acknowledgments of a message are sent; None if the message
    names none.

    The header can name a private queue "of the destination" (AQ 3). If the destination of the message is a
    direct name, which does not identify a queue manager, this is a queue of `manager`, which received the
    message.
    """
    name = original.admin_queue
    if name is not None and name.kind is NameKind.PRIVATE and name.guid == NULL_GUID:
        return FormatName(NameKind.PRIVATE, manager, name.number)
    return name


SHORTEST, LONGEST = 600, 86_400
"""Bounds, in seconds, for how long an acknowledgment waits to reach its administration queue."""


def lifetime(original: Message, now_s: int) -> int:
    """Returns the TimeToReachQueue of an acknowledgment in seconds: what remains of the message's own
    TimeToReachQueue, but at least ten minutes and at most a day.

    The sender chooses the administration queue, so the acknowledgment must not wait without limit for a queue
    that does not exist. The minimum allows acknowledgments of messages that arrived too late, or were read
    long after their arrival.
    """
    reach = original.time_to_reach_queue
    left = LONGEST if reach == INFINITE else original.sent_time + reach - now_s
    return min(max(left, SHORTEST), LONGEST)


def acknowledgment(
    original: Message, message_class: int, manager: UUID, time_to_reach_queue: int = INFINITE
) -> Message:
    """Returns the acknowledgment of a message that names an administration queue.

    `manager` is the queue manager that sends the acknowledgment. `time_to_reach_queue` is the result of
    `lifetime` if the message is of another queue manager. The caller sets MessageID and SentTime of the
    acknowledgment.
    """
    return Message(
        body=original.body if _returns_body(original, message_class) else b"",
        destination=answer_queue(original, manager),
        delivery=Delivery(original.delivery),
        correlation_id=identifier(original),
        message_class=message_class,
        response_queue=original.destination,
        time_to_reach_queue=time_to_reach_queue,
        time_to_be_received=INFINITE,
        source_machine=manager,
    )


def identifier(message: Message) -> bytes:
    """Returns the message identifier as an OBJECTID: source queue manager and ordinal, 20 bytes as on the
    wire.
    """
    return message.source_machine.bytes_le + message.message_id.to_bytes(4, "little")


def _returns_body(original: Message, message_class: int) -> bool:
    """Whether an acknowledgment returns the body: only a negative one, and only if the message is not
    encrypted.
    """
    return is_negative(message_class) and not _encrypted(original)


def _encrypted(message: Message) -> bool:
    security = message.security
    return message.privacy_level != 0 or (security is not None and security.encrypted)
