"""Determines the kind of message that an envelope describes ([MC-MQSRM] 3.1.5.1.5)."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msmq_fast.protocol.classes import CUSTOM_MASK, MessageClass
from msmq_fast.protocol.classes import message_class as named
from msmq_fast.srmp.model import ORDERING_ACTION, Envelope

__all__ = ["NEGATIVE_DECISIONS", "Kind", "classify"]

NEGATIVE_DECISIONS: Final = frozenset(
    (
        MessageClass.NACK_DELETED,
        MessageClass.NACK_Q_DELETED,
        MessageClass.NACK_Q_PURGED,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_REJECTED,  # is sent (3.1.7.3) and so has to be taken
    )
)
"""Classes of negative commitment receipts and negative final stream receipts."""


class Kind(Enum):
    """How the receive pipeline handles a message."""

    USER = "user message"
    DELIVERY_RECEIPT = "delivery receipt"
    COMMITMENT_RECEIPT = "commitment receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"


def classify(envelope: Envelope) -> Kind | None:
    """Return the kind of the message; None for an unknown kind, which must be ignored (SR-158, A-36)."""
    message_class = envelope.message_class
    delivery, stream = envelope.delivery_receipt, envelope.stream_receipt
    commitment = envelope.commitment_receipt
    if delivery is not None:
        alone = stream is None and commitment is None
        return Kind.DELIVERY_RECEIPT if alone and message_class == MessageClass.ACK_REACH_QUEUE else None
    if commitment is not None:
        if commitment.positive:
            decided = message_class == MessageClass.ACK_RECEIVE
        else:
            decided = message_class in NEGATIVE_DECISIONS
        if not decided:
            return None
        if stream is None:
            return Kind.COMMITMENT_RECEIPT
        return Kind.FINAL_STREAM_RECEIPT if envelope.action == ORDERING_ACTION else None
    if stream is not None:
        ordering = message_class == MessageClass.ORDER_ACK and envelope.action == ORDERING_ACTION
        return Kind.STREAM_RECEIPT if ordering else None
    if message_class == MessageClass.NORMAL or _is_custom(message_class):
        return Kind.USER
    return None


def _is_custom(message_class: int) -> bool:
    """Return whether an application defined the message class."""
    return not isinstance(named(message_class), MessageClass) and not message_class & ~CUSTOM_MASK
