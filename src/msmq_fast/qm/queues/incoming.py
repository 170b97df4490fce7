"""The interface of the protocols by which messages arrive: how they process messages for local queues, and
which incoming transactional transfers they show to operators (MS-MQDMPR 3.1.1.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.queues.queue import Queue

__all__ = ["Arrival", "FinalAcks", "IncomingProtocols", "IncomingTransfer", "Receipts"]

Arrival = Callable[[Queue, bytes], bytes | MessageClass]
"""Processes a packet for a queue as if it came from another computer.

Returns the packet to store, decrypted and with its sender verified; or the class of the refusal.
"""


FinalAcks = Callable[[bytes, int], bool]
"""Sends a FinalAck: takes the packet of a transactional message and the class that says how it ended.

Returns whether the sender could be notified.
"""


@dataclass(frozen=True, slots=True)
class IncomingTransfer:
    """IncomingTransactionalTransferInfo: the stream of transactional messages that one queue manager sends to
    a queue by one of the queue's names.
    """

    queue: int
    """Ordinal of QueueReference, 0 if the queue does not exist."""
    format_name: str
    sender: UUID
    sequence_id: int
    """TimeStamp << 32 | Ordinal"""
    sequence_number: int
    """The last sequence number that is stored."""
    last_access: int
    """Unix seconds"""
    reject_count: int


class Receipts(Protocol):
    """Sends the acknowledgments that messages received over HTTP request, inside the unit that stores or
    removes the message.
    """

    def acknowledge(self, packet: bytes, original: Message, reason: int) -> bool:
        """Acknowledge that a message reached its queue or left it, as `reason` says; returns whether an
        acknowledgment was sent.
        """

    def finish(self, packet: bytes, original: Message, reason: int) -> bool:
        """Report that a transactional message left its queue; returns whether its sender is notified."""

    def answer_to(self, name: FormatName) -> FormatName | None:
        """Returns the name of the outgoing queue for acknowledgments to `name`, an HTTP name that a message
        of another computer requests as administration queue.

        None if acknowledgments must not be sent to this name.
        """


class IncomingProtocols:
    """The protocols by which messages arrive. Each registers the functions that it implements.

    If several protocols register the same function, the last one is called; only `transfers` are collected
    from all.
    """

    def __init__(self) -> None:
        self._arrivals: list[Arrival] = []
        self._final_acks: list[FinalAcks] = []
        self._receipts: list[Receipts] = []
        self._transfers: list[Callable[[], Iterable[IncomingTransfer]]] = []

    def register(
        self,
        *,
        arrival: Arrival | None = None,
        final_acks: FinalAcks | None = None,
        receipts: Receipts | None = None,
        transfers: Callable[[], Iterable[IncomingTransfer]] | None = None,
    ) -> None:
        """Register the functions of a protocol; None for functions that it does not implement."""
        self._arrivals += [] if arrival is None else [arrival]
        self._final_acks += [] if final_acks is None else [final_acks]
        self._receipts += [] if receipts is None else [receipts]
        self._transfers += [] if transfers is None else [transfers]

    def judge(self, queue: Queue, packet: bytes) -> bytes | MessageClass | None:
        """Returns the result of the registered `Arrival` function for a packet: the packet to store, or the
        class of the refusal. None if no protocol has registered such a function.
        """
        return self._arrivals[-1](queue, packet) if self._arrivals else None

    def final_ack(self, packet: bytes, reason: int) -> bool:
        """Send a FinalAck with the registered `FinalAcks` function. Returns whether the sender could be
        notified; False if no protocol has registered such a function.
        """
        return bool(self._final_acks) and self._final_acks[-1](packet, reason)

    @property
    def receipts(self) -> Receipts | None:
        """The receipts interface for messages that came over HTTP; None if no protocol has registered one."""
        return self._receipts[-1] if self._receipts else None

    def transfers(self) -> list[IncomingTransfer]:
        """Returns the incoming streams of all protocols."""
        return [transfer for listed in self._transfers for transfer in listed()]
