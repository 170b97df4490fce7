"""Transactional sequences to other queue managers (MS-MQQB 3.1.1.5): allocates their identifiers, restores
them at start, and describes their state for operators.
"""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast._native.outbound import resume_sequence, settle_sequence
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.qm.ids import QUEUE_BLOCK, Ordinals
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.store.schema import MetaName, Table, outgoing_stream_key


class OutgoingStreams:
    """Allocates the identifiers of transactional sequences: TxSequenceIDs, each of a TimeStamp and an
    Ordinal.

    An identifier is never used twice, not even by a server that runs on a copy of the store: the copy gets a
    greater TimeStamp (AMB-41).
    """

    def __init__(self, services: Services, registry: QueueRegistry) -> None:
        self._services = services
        self._registry = registry
        records = services.records
        self.ordinals = Ordinals(records, MetaName.TX_SEQUENCE_HW, block=QUEUE_BLOCK)
        self._stamp = int(records.meta(MetaName.TX_TIMESTAMP, 0))

    def new(self) -> int:
        """Returns the identifier of a new sequence: TimeStamp << 32 | Ordinal. Returns 0 if the store has not
        reserved an ordinal yet.
        """
        try:
            return (self._stamp << 32) + self.ordinals.take()  # greater, also behind the last ordinal
        except InsufficientResources:
            return 0

    def load(self) -> None:
        """Read the state of every sequence; call before the messages of the queues are loaded (REC-09)."""
        tables = self._services.store.tables
        for queue in self._registry.outgoing():
            try:
                resume_sequence(queue.core, tables.get(Table.SEQUENCE, outgoing_stream_key(queue.ordinal)))
            except ValueError as error:
                self._services.report_corrupt(
                    "sequence", f"the sequence of queue {queue.ordinal} is damaged: {error}"
                )

    def settle(self) -> None:
        """Determine the next sequence number of every sequence. Call inside a unit, when the messages of the
        queues are loaded and ordinals are reserved.
        """
        for queue in self._registry.outgoing():
            settle_sequence(queue.core, self._stamp)


@dataclass(frozen=True, slots=True)
class SequenceInfo:
    """SEQUENCE_INFO: the number of a message in a sequence, and the number of the message before it in this
    sequence.
    """

    sequence_id: int
    number: int
    previous: int

    def __str__(self) -> str:
        return f"{self.sequence_id >> 32}.{self.sequence_id & 0xFFFFFFFF}:{self.number} after {self.previous}"


@dataclass(frozen=True, slots=True)
class TransferInfo:
    """OutgoingTransferInfo (MS-MQDMPR 3.1.1.3, QB-214): the EOD (exactly-once delivery) properties of an
    outgoing queue.

    Times are in Unix seconds, 0 for never; intervals are in seconds.
    """

    first_non_ack: SequenceInfo | None
    last_non_ack: SequenceInfo | None
    next_sequence: SequenceInfo
    last_ack: SequenceInfo | None
    last_ack_time: int
    last_ack_count: int
    no_ack_count: int
    no_read_count: int
    resend_count: int
    resend_interval: int
    resend_time: int


def transfer_info(queue: OutgoingQueue) -> TransferInfo:
    """Returns the present state of the sequence of an outgoing queue."""
    sequence = queue.core.sequence
    assert sequence is not None  # noqa: S101 - every outgoing queue has one
    identifier = sequence.alias or sequence.identifier  # as receivers know it

    def place(found: tuple[int, int] | None) -> SequenceInfo | None:
        return None if found is None else known(*found)

    def known(number: int, previous: int) -> SequenceInfo:
        return SequenceInfo(identifier, number - sequence.base, max(previous - sequence.base, 0))

    number = min(sequence.next_number, 0xFFFFFFFF)
    return TransferInfo(
        first_non_ack=place(sequence.first_unordered),
        last_non_ack=place(sequence.last_unordered),
        next_sequence=known(number, number - 1),
        last_ack=place((sequence.last_ack, sequence.last_ack - 1)) if sequence.last_ack else None,
        last_ack_time=sequence.last_ack_s,
        last_ack_count=sequence.ack_count,
        no_ack_count=sequence.unordered,
        no_read_count=sequence.finals,
        resend_count=sequence.resend_index,
        resend_interval=sequence.resend_interval,
        resend_time=sequence.resend_s,
    )
