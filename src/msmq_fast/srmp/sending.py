"""Functions for sending that HTTP and PGM share, and the effect of stream receipts on outgoing queues
(MC-MQSRM 3.1.5.1.8, 3.1.5.1.9).
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
"""Reports a sent packet that has BaseHeader.Flags.TR set: called with the packet and the address that it is
sent to.
"""


def url_of(queue: OutgoingQueue) -> Url:
    """Returns the URL of an outgoing queue. Raises ValueError if its name is not a URL."""
    return parse_url(split(queue.destination.text)[0])


def too_late(core: QueueCore, packet: bytes) -> bool:
    """Return whether the time of a message to reach its queue is over (SR-193)."""
    reach, sent = _TIMES.unpack_from(packet)
    return bool(reach != INFINITE and core.ledger.now_s - sent > reach)


class StreamReceipts:
    """Applies receipts to the streams that this queue manager sends. Call the methods inside a unit of work.
    Times are monotonic seconds.
    """

    def __init__(self, guid: UUID, sequences: OutgoingSequences) -> None:
        self._guid = guid
        self._sequences = sequences

    def stream_receipt(self, sender: UUID, sequence: int, last_ordinal: int, now: float) -> None:
        """Process a stream receipt: all messages of the stream `sequence` up to the number `last_ordinal`
        have arrived (3.1.5.1.8). Has no effect for a stream that another queue manager sends.
        """
        if sender == self._guid and 0 < last_ordinal <= _LAST:
            ack = OrderAck(sequence & _LAST, sequence >> 32, last_ordinal)
            self._sequences.order_ack(ack, now)

    def final_receipt(
        self, sender: UUID, sequence: int, ordinal: int, message: int, message_class: int, now: float
    ) -> None:
        """Process a final receipt: the outcome of one message of a stream (3.1.5.1.9); `message` is the
        number in the identifier of the message.
        """
        if sender == self._guid and 0 < ordinal <= _LAST:
            ack = FinalAck(
                sequence & _LAST, sequence >> 32, ordinal, ordinal - 1, sender, message, message_class
            )
            self._sequences.final_ack(ack, now)
