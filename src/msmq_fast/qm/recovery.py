"""Recovery of the queue manager from the store at start: REC-02 … REC-10.

A part of the queue manager that stores records of its own reads them in a method `recover`, and is in the
list of such parts in manager.py. store/schema.py describes the steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from msmq_fast._native.recovery import Loader
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.text import counted
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.outgoing.sequences import OutgoingStreams
from msmq_fast.qm.queues.connector import ConnectorQueue
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.journal import JournalQueue
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import NOBODY, Queue, QueueKind, QueueProperties, QueueState, stored_part
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.subqueue import Subqueues
from msmq_fast.qm.queues.system import DEADLETTER, DEADXACT, JOURNAL, SYSTEM_QUEUES, SystemQueue
from msmq_fast.qm.services import Services
from msmq_fast.qm.settings import UNLIMITED
from msmq_fast.qm.transactions.transaction import Transactions
from msmq_fast.store.schema import MetaName


class Recoverable(Protocol):
    """A part of the queue manager with records of its own."""

    def recover(self) -> None:
        """Read the records. Queues and messages are already loaded. If `QueueRegistry.by_ordinal` does not
        know an ordinal, its queue was being deleted. Writes of this method belong to the current batch.
        """


class Recovery:
    """Restores what the parts of the queue manager have stored."""

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        guard: Guard,
        events: EventFeed,
        subqueues: Subqueues,
        outgoing: OutgoingQueues,
        streams: OutgoingStreams,
        transactions: Transactions,
        parts: Iterable[Recoverable],
    ) -> None:
        self._services = services
        self._ledger = services.ledger
        self._registry = registry
        self._guard = guard
        self._events = events
        self._subqueues = subqueues
        self._outgoing = outgoing
        self._streams = streams
        self._transactions = transactions
        self._parts = tuple(parts)

    def run(self) -> None:
        """Restore everything that was durable; the writes of the recovery belong to the current batch.

        If the server crashes at any point, the next recovery gives the same result: recovery only reserves
        numbers and adds missing records.
        """
        deleting, silent = self._load_queues()
        self._streams.load()
        transactions = self._transactions.load()
        self._load_positions(deleting, silent, transactions.held)
        self._transactions.recover(transactions)
        for part in self._parts:
            part.recover()
        self._system_queues()

    def _load_queues(self) -> tuple[set[int], set[int]]:
        """Load the queues (REC-03), except those that were being deleted when the server stopped: their
        messages are deleted later (DU-09).

        Returns (ordinals of the queues that were being deleted, ordinals of all journals). Deleted messages
        of journals cause no events or acknowledgments.
        """
        system = {queue.ordinal for queue in SYSTEM_QUEUES}
        deleting: set[int] = set()
        silent: set[int] = set()
        loaded: dict[int, Queue] = {}
        for ordinal, record in self._services.records.queues(self._services.report_corrupt):
            try:
                if record["kind"] == QueueKind.JOURNAL:
                    silent.add(ordinal)
                if record["state"] == QueueState.DELETING:
                    deleting.add(ordinal)
                elif record["kind"] == QueueKind.SUBQUEUE:
                    self._load_subqueue(ordinal, record, loaded.get(record["parent"]), deleting)
                elif record["kind"] == QueueKind.JOURNAL:
                    self._load_journal(ordinal, record, loaded.get(record["parent"]), deleting)
                elif record["kind"] == QueueKind.OUTGOING:
                    self._outgoing.add(self._load_outgoing(ordinal, record))
                elif record["kind"] == QueueKind.CONNECTOR:
                    self._registry.add(ConnectorQueue.load_connector(self._ledger, ordinal, record))
                elif ordinal in system or record["kind"] != QueueKind.SYSTEM:
                    loaded[ordinal] = self._load_local(ordinal, record)
                    self._registry.add(loaded[ordinal])
            except (KeyError, TypeError, ValueError, AttributeError, MSMQError) as error:
                self._services.report_corrupt("queue", f"the record of queue {ordinal} is damaged: {error!r}")
        self._registry.reaping.update(deleting)
        return deleting, silent

    def _load_subqueue(
        self, ordinal: int, record: dict[str, Any], parent: Queue | None, deleting: set[int]
    ) -> None:
        """Load a subqueue. Its parent queue has a lower ordinal and was loaded before; None means that the
        parent was being deleted, and then the subqueue is deleted, too.
        """
        if parent is None:
            deleting.add(ordinal)
        else:
            self._subqueues.load(ordinal, record, parent)

    def _load_journal(
        self, ordinal: int, record: dict[str, Any], parent: Queue | None, deleting: set[int]
    ) -> None:
        """Load a journal. If its queue was being deleted (`parent` is None), the journal is deleted, too."""
        if parent is None:
            deleting.add(ordinal)
        else:
            self._registry.add(JournalQueue.load_journal(self._ledger, ordinal, record, parent))

    def _load_outgoing(self, ordinal: int, record: dict[str, Any]) -> OutgoingQueue:
        return OutgoingQueue.load_outgoing(
            self._ledger, ordinal, record, self._services.settings.history_length, self._outgoing
        )

    def _load_local(self, ordinal: int, record: dict[str, Any]) -> Queue:
        """Load a local queue."""
        stored_part(record["part"])
        queue = Queue.load(self._ledger, ordinal, record, self._services.settings.computer_name)
        if queue.security is NOBODY and queue.kind is not QueueKind.SYSTEM:
            queue.security = self._guard.new_descriptor(None, None)
        return queue

    def _load_positions(self, deleting: set[int], silent: set[int], held: frozenset[tuple[int, int]]) -> None:
        """Make all stored messages available, and continue pending purges (REC-04, REC-07, REC-08).

        A message that cannot be added to a queue stays in the store and is reported.
        """
        purges = {queue.ordinal: queue.purged_to for queue in self._registry.queues() if queue.purged_to}
        loader = Loader(self._ledger, purges, deleting, silent, held=held)
        loader.run(self._services.store.tables)
        for key in loader.damaged:
            self._services.report_corrupt(
                "position", f"the position record with the key {key.hex()} is damaged"
            )
        for ordinal, count in loader.orphans.items():
            self._services.report_corrupt(
                "orphan",
                f"{counted(count, 'message belongs', 'messages belong')} to queue {ordinal}, "
                "which has no record",
                count,
            )
        stored = int(self._services.records.meta(MetaName.SEQUENCE_HW, 0))
        self._ledger.sequence = self._ledger.sequence_limit = max(stored, loader.highest_sequence)
        self._registry.purging.update(queue for queue in self._registry.queues() if queue.purged_to)

    def _system_queues(self) -> None:
        """Create missing system queues (REC-10); existing ones keep their messages (DA-056).

        The quotas of system queues always come from the settings, not from the store: no command can change
        them.
        """
        stored = {queue.ordinal: queue for queue in self._registry.queues()}
        for system in SYSTEM_QUEUES:
            queue = stored.get(system.ordinal)
            if queue is not None:
                queue.properties = replace(queue.properties, quota_kb=self._quota_kb(system))
                queue.set_quota()
            else:
                queue = self._create(system)
                self._services.records.set_queue(queue.ordinal, queue.record())
                self._events.created(queue)
                self._registry.add(queue)

    def _create(self, system: SystemQueue) -> Queue:
        return Queue(
            self._ledger,
            system.ordinal,
            self._services.new_guid(),
            system.part,
            self._services.settings.computer_name,
            QueueKind.SYSTEM,
            QueueProperties(transactional=system.transactional, quota_kb=self._quota_kb(system)),
            private_number=system.number,
            created=self._ledger.now_s,
        )

    def _quota_kb(self, system: SystemQueue) -> int:
        if system is JOURNAL:
            return self._services.settings.journal_quota_kb
        return self._services.settings.deadletter_quota_kb if system in (DEADLETTER, DEADXACT) else UNLIMITED
