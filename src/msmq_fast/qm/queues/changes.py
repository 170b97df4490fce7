"""Creates, changes and deletes the queues of this computer (DU-09, DU-10, DU-17).

The callers check values and access rights: `operator.queueadmin` for changes by programs and administrators,
`directoryclient` for changes by the directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from msmq_fast._native.tables import StoreError
from msmq_fast.packet.names import QueuePart
from msmq_fast.qm.feed.eventfeed import EventFeed
from msmq_fast.qm.queues import kinds
from msmq_fast.qm.queues.journal import JournalQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties, QueueState, kind_of
from msmq_fast.qm.queues.queuerecords import QueueRecords
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.services import Services
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["QueueChanges"]


class QueueChanges:
    """Creates, changes and deletes queues. Emits `changed` when a queue was created, changed or deleted, and
    `removed` for each deleted queue.
    """

    def __init__(
        self, services: Services, registry: QueueRegistry, records: QueueRecords, events: EventFeed
    ) -> None:
        self._services = services
        self._registry = registry
        self._records = records
        self._events = events
        self.changed: Signal[[]] = Signal()
        self.removed: Signal[[Queue]] = Signal()

    # ---- queues come

    def make(
        self, part: QueuePart, values: QueueProperties, guid: UUID, security: SecurityDescriptor
    ) -> Queue:
        """Create and register a queue; its record and journal are written in the current unit."""
        services = self._services
        kind = kind_of(part)
        queue = Queue(
            services.ledger,
            self._registry.new_ordinal(),
            guid,
            part,
            services.settings.computer_name,
            kind,
            values,
            private_number=self._registry.new_number() if kind is QueueKind.PRIVATE else 0,
            created=services.ledger.now_s,
        )
        queue.security = security
        try:
            services.records.set_queue(queue.ordinal, queue.record())
            self._events.created(queue)
            self.make_journal(queue)
            self._registry.add(queue)
            self.changed()
        except BaseException:
            self._remove(queue, announce=False)  # the caller rolls the unit back
            raise
        return queue

    def make_journal(self, queue: Queue) -> JournalQueue:
        """Create the journal of a queue and write the journal's record in the current unit (DU-10). The
        caller registers the journal.
        """
        services = self._services
        journal = JournalQueue(services.ledger, self._registry.new_ordinal(), services.new_guid(), queue)
        services.records.set_queue(journal.ordinal, journal.record())
        self._events.created(journal)
        return journal

    def undo(self, queue: Queue) -> None:
        """Remove a new queue whose record the store rejected."""
        if queue.state is QueueState.EXISTING:
            self._remove(queue, announce=False)

    def write_new(self, queue: Queue) -> None:
        """Write the record of a new queue. The caller registers the queue only afterwards, so that no other
        part finds it before.
        """
        self._records.write_new(queue, lambda: self._events.created(queue))

    # ---- queues change

    def apply(
        self, queue: Queue, properties: Mapping[str, object], security: SecurityDescriptor | None = None
    ) -> Completion[None]:
        """Change properties, and the security descriptor if `security` is given; the caller has checked the
        values. Resolved when durable.
        """
        before = replace(queue.properties), queue.security, queue.modified
        queue.properties.update(dict(properties))
        if security is not None:
            queue.security = security
        queue.modified = self._services.ledger.now_s
        queue.set_quota()
        try:
            self.changed()
            return self._records.write(queue)
        except (StoreError, MemoryError):
            raise  # it is written when the store accepts changes again
        except BaseException:
            queue.properties, queue.security, queue.modified = before
            queue.set_quota()
            raise

    # ---- queues go

    def drop(self, queue: Queue) -> Completion[None]:
        """Delete a queue and its subqueues; resolved when the deletion is durable."""
        queue.state = QueueState.DELETING
        try:
            done = self._records.write(queue)
        except Exception:
            queue.state = QueueState.EXISTING
            raise
        self._remove(queue)
        return done

    def _remove(self, queue: Queue, *, announce: bool = True) -> None:
        queue.state = QueueState.DELETING
        if queue.journal is not None:
            self._remove(queue.journal, announce=announce)
        for subqueue in list(queue.subqueues.values()):
            self._remove(subqueue, announce=announce)
        if announce:
            self._events.deleted(queue, kinds.kind_of(queue))
        self.removed(queue)
        if queue.part is not None:
            queue.family.subqueues.pop(queue.part.subqueue.casefold(), None)
        self._registry.remove(queue)
        self.changed()
        for handle in list(queue.descriptors):
            handle.orphan()
        queue.descriptors.clear()
        queue.core.abandon()
        self._registry.purging.discard(queue)
        self._registry.reaping.add(queue.ordinal)
