"""Shared by all transports for sending; effects of stream receipts on outgoing queues (MC-MQSRM 3.1.5.1.8,
3.1.5.1.9).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

from msmq_fast._native.queue import QueueCore
from msmq_fast.packet.acks import FinalAck, OrderAck
from msmq_fast.packet.base import INFINITE
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.srmp.returnpath import split
from msmq_fast.srmp.urls import Url, parse_url

__all__ = ["Report", "StreamReceipts", "too_late", "url_of"]

_TIMES: Final = struct.Struct("<12xI36xI")  # TimeToReachQueue and SentTime of a UserMessage packet
_LAST: Final = 0xFFFFFFFF  # number of a message in a stream

Report = Callable[[bytes, str], None]
"""Told of a packet with BaseHeader.Flags.TR that leaves, and of the address that it goes to."""


def url_of(queue: OutgoingQueue) -> Url:
    """Returns the URL of an outgoing queue. Raises ValueError."""
    return parse_url(split(queue.destination.text)[0])


def too_late(core: QueueCore, packet: bytes) -> bool:
    """SR-193: its time to reach the queue is over."""
    reach, sent = _TIMES.unpack_from(packet)
    return bool(reach != INFINITE and core.ledger.now_s - sent > reach)


class StreamReceipts:
    """Receipts for streams that this queue manager sends. To be called in a unit of work; times are monotonic
    seconds.
    """

    def __init__(self, guid: UUID, sequences: OutgoingSequences) -> None:
        self._guid = guid
        self._sequences = sequences

    def stream_receipt(self, sender: UUID, sequence: int, last_ordinal: int, now: float) -> None:
        """Everything of a stream up to a number has arrived (3.1.5.1.8); of another sender's: no effect."""
        if sender == self._guid and 0 < last_ordinal <= _LAST:
            ack = OrderAck(sequence & _LAST, sequence >> 32, last_ordinal)
            self._sequences.order_ack(ack, now)

    def final_receipt(
        self, sender: UUID, sequence: int, ordinal: int, message: int, message_class: int, now: float
    ) -> None:
        """Applies the final state of one message of a stream (3.1.5.1.9); `message` is the number in its
        identifier.
        """
        if sender == self._guid and 0 < ordinal <= _LAST:
            ack = FinalAck(
                sequence & _LAST, sequence >> 32, ordinal, ordinal - 1, sender, message, message_class
            )
            self._sequences.final_ack(ack, now)
