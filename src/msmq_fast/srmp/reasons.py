"""Reasons why a message that arrived by SRMP was not accepted, and the status of the answer (1.1, 3.3)."""

from __future__ import annotations

from enum import Enum, IntEnum

from msmq_fast.protocol.classes import MessageClass

__all__ = ["Reason", "Status"]


class Status(IntEnum):
    """The status of the HTTP answer."""

    OK = 200  # it is kept, or was before, or its time is over: its sender forgets it
    REJECTED = 400  # it will never be taken: its sender forgets it, or makes it a dead letter
    LATER = 500  # its sender keeps it and tries again


class Reason(Enum):
    """Why a message was not accepted, for counters and logs: (text, status of the answer, message class).

    A reason with a message class is final; the event feed reports the class, as for messages of MS-MQQB.
    """

    MALFORMED = "malformed message", Status.REJECTED
    FOREIGN_HOST = "message for another computer", Status.REJECTED
    NO_WAY = "cannot be passed on", Status.REJECTED
    HOPS = "too many hops", Status.REJECTED, MessageClass.NACK_HOP_COUNT_EXCEEDED
    UNKNOWN_QUEUE = "unknown queue", Status.REJECTED, MessageClass.NACK_BAD_DST_Q
    NOT_TRANSACTIONAL = (
        "stream message for a queue that is not transactional",
        Status.REJECTED,
        MessageClass.NACK_NOT_TRANSACTIONAL_Q,
    )
    TRANSACTIONAL = (
        "transactional queue, but the message is not part of a stream",
        Status.REJECTED,
        MessageClass.NACK_NOT_TRANSACTIONAL_MSG,
    )
    UNTYPED = "of no type", Status.REJECTED
    SIGNATURE = "bad or missing signature", Status.REJECTED, MessageClass.NACK_BAD_SIGNATURE
    PRIVACY = "not encrypted", Status.REJECTED, MessageClass.NACK_BAD_ENCRYPTION
    ACCESS_DENIED = "access denied", Status.REJECTED, MessageClass.NACK_ACCESS_DENIED
    QUEUE_QUOTA = "queue quota", Status.REJECTED, MessageClass.NACK_Q_EXCEED_QUOTA
    TOO_LARGE = "too large", Status.REJECTED
    EXPIRED = "expired", Status.OK, MessageClass.NACK_REACH_QUEUE_TIMEOUT
    DEAD_LETTERS = (
        "expired; its sender keeps the dead letter",
        Status.REJECTED,
        MessageClass.NACK_REACH_QUEUE_TIMEOUT,
    )
    DUPLICATE = "duplicate", Status.OK
    OUT_OF_ORDER = "out of order", Status.OK
    MACHINE_QUOTA = "computer quota", Status.LATER
    TOO_MANY_STREAMS = "too many streams", Status.LATER
    RECEIPT = "receipt to a host other than the sender", Status.REJECTED
    KEYS = "too many signatures wait to be verified", Status.LATER
    NOT_STORED = "not stored", Status.LATER
    STOPPING = "stopping", Status.LATER
    NO_GROUP = "no queue has this multicast address", Status.OK
    MULTICAST_STREAM = "stream over multicast", Status.OK

    def __init__(self, text: str, status: Status, message_class: MessageClass | None = None) -> None:
        self.text = text
        self.status = status
        self.message_class = message_class
