"""Message classes as text for people."""

from __future__ import annotations

from msmq_fast.protocol.classes import MessageClass, name_of

__all__ = ["class_text"]

_ABOUT: dict[int, str] = {
    MessageClass.REPORT: "report of a traced message",
    MessageClass.ACK_REACH_QUEUE: "arrived in its queue",
    MessageClass.ORDER_ACK: "receipt of a transactional message",
    MessageClass.ACK_RECEIVE: "received from its queue",
    MessageClass.NACK_BAD_DST_Q: "the queue does not exist",
    MessageClass.NACK_DELETED: "deleted by an administrator before it arrived",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "did not arrive in time",
    MessageClass.NACK_Q_EXCEED_QUOTA: "the queue is full",
    MessageClass.NACK_ACCESS_DENIED: "the sender may not send to the queue",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "passed too many routers",
    MessageClass.NACK_BAD_SIGNATURE: "the signature is wrong or missing",
    MessageClass.NACK_BAD_ENCRYPTION: "could not be decrypted",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "could not be encrypted",
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: "transactional message, queue is not transactional",
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: "message is not transactional, queue is",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "the cryptographic provider is not supported",
    MessageClass.NACK_SOURCE_COMPUTER_GUID_CHANGED: "the GUID of the sending computer has changed",
    MessageClass.NACK_Q_DELETED: "the queue was deleted",
    MessageClass.NACK_Q_PURGED: "the queue was purged",
    MessageClass.NACK_RECEIVE_TIMEOUT: "was not received in time",
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER: "no news of its receipt in time",
    MessageClass.NACK_RECEIVE_REJECTED: "rejected by its receiver",
}
"""The fate of the message that an acknowledgment or a dead letter refers to, by class."""


def class_text(value: int) -> str:
    """Return the name of a message class and its meaning: `NACK_Q_PURGED (the queue was purged)`."""
    name, about = name_of(value), _ABOUT.get(value)
    return f"{name} ({about})" if about else name
