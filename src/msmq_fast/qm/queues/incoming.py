"""What protocols take in: how they look at messages for queues of this computer, and incoming transactional
transfers as management sees them (MS-MQDMPR 3.1.1.5)."""

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
"""What is kept of a packet that arrives at a queue: decrypted, its sender verified, as one from another
computer; or the class of its refusal."""


FinalAcks = Callable[[bytes, int], bool]
"""Sends the sender of a transactional message (packet, class of the end) its final state, if possible."""


@dataclass(frozen=True, slots=True)
class IncomingTransfer:
    """IncomingTransactionalTransferInfo: a stream of transactional messages from one sender by one name."""

    queue: int
    """Ordinal of QueueReference, 0 if the queue does not exist."""
    format_name: str
    sender: UUID
    sequence_id: int
    """TimeStamp << 32 | Ordinal"""
    sequence_number: int
    """The last one that is kept."""
    last_access: int
    """Unix seconds"""
    reject_count: int


class Receipts(Protocol):
    """What messages that came over HTTP ask for, inside the unit of its cause."""

    def acknowledge(self, packet: bytes, original: Message, reason: int) -> bool:
        """A message reached its queue, or left it; whether an acknowledgment went out."""

    def finish(self, packet: bytes, original: Message, reason: int) -> bool:
        """A transactional message left its queue; whether its sender is told."""

    def answer_to(self, name: FormatName) -> FormatName | None:
        """The outgoing queue for acknowledgments to an HTTP name that a message of another computer gives;
        None: they must not go there.
        """


class IncomingProtocols:
    """The protocols that receive messages. Each registers its functions; where one answer is needed, the
    protocol that was registered last gives it.
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
        """Add a protocol."""
        self._arrivals += [] if arrival is None else [arrival]
        self._final_acks += [] if final_acks is None else [final_acks]
        self._receipts += [] if receipts is None else [receipts]
        self._transfers += [] if transfers is None else [transfers]

    def judge(self, queue: Queue, packet: bytes) -> bytes | MessageClass | None:
        """See `Arrival`; None: there is no protocol that judges."""
        return self._arrivals[-1](queue, packet) if self._arrivals else None

    def final_ack(self, packet: bytes, reason: int) -> bool:
        """See `FinalAcks`."""
        return bool(self._final_acks) and self._final_acks[-1](packet, reason)

    @property
    def receipts(self) -> Receipts | None:
        """For messages that came over HTTP."""
        return self._receipts[-1] if self._receipts else None

    def transfers(self) -> list[IncomingTransfer]:
        """The incoming streams of all protocols."""
        return [transfer for listed in self._transfers for transfer in listed()]
