"""Administration acknowledgments as messages (MS-MQQB 3.1.7.15)."""

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
"""Classes that reveal to strangers which queues exist and their rights (SendInsecureNacks)."""


def asked_for(message_class: int) -> Acknowledge:
    """The flag that an acknowledgment of this class answers (3.1.5.8.10, 3.1.7.2.1)."""
    if is_negative(message_class):
        receiving = about_receiving(message_class)
        return Acknowledge.NEGATIVE_RECEIVE if receiving else Acknowledge.NEGATIVE_ARRIVAL
    receiving = about_receiving(message_class)
    return Acknowledge.POSITIVE_RECEIVE if receiving else Acknowledge.POSITIVE_ARRIVAL


def answer_queue(original: Message, manager: UUID) -> FormatName | None:
    """The queue for acknowledgments of a message; None: it gets none.

    A private queue "of the destination" (AQ 3) is one of `manager`, which got the message, where the
    destination is a direct name and so names no computer.
    """
    name = original.admin_queue
    if name is not None and name.kind is NameKind.PRIVATE and name.guid == NULL_GUID:
        return FormatName(NameKind.PRIVATE, manager, name.number)
    return name


SHORTEST, LONGEST = 600, 86_400
"""Seconds that an acknowledgment waits for its administration queue: at least, and at most."""


def lifetime(original: Message, now_s: int) -> int:
    """TimeToReachQueue of the acknowledgment of a message: what is left of the message's own, at most a day.

    Where it goes is what the sender says, so it must not wait for ever for a place that does not exist. At
    least ten minutes: a message that was too late, or was read long after it had come, is answered too.
    """
    reach = original.time_to_reach_queue
    left = LONGEST if reach == INFINITE else original.sent_time + reach - now_s
    return min(max(left, SHORTEST), LONGEST)


def acknowledgment(
    original: Message, message_class: int, manager: UUID, time_to_reach_queue: int = INFINITE
) -> Message:
    """The acknowledgment of a message that names a queue for it.

    `manager` is the queue manager that sends it; `time_to_reach_queue` is `lifetime` for messages of others.
    MessageID and SentTime are for the sender to set.
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
    """An OBJECTID: source queue manager and ordinal, 20 bytes as on the wire."""
    return message.source_machine.bytes_le + message.message_id.to_bytes(4, "little")


def _returns_body(original: Message, message_class: int) -> bool:
    """A negative acknowledgment brings back what was sent, unless it is a secret."""
    return is_negative(message_class) and not _encrypted(original)


def _encrypted(message: Message) -> bool:
    security = message.security
    return message.privacy_level != 0 or (security is not None and security.encrypted)
