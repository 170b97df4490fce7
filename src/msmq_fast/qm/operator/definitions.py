"""Queues of this computer come, change and go (DM-055 … DM-068, DU-09, DU-10, DU-17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from msmq_fast._native.batch import StoreError
from msmq_fast.packet.errors import (
    IllegalQueuePathName,
    PropertyError,
    QueueExists,
    UnsupportedFormatNameOperation,
)
from msmq_fast.packet.names import QueuePart, Scope
from msmq_fast.packet.text import quoted
from msmq_fast.qm.queues.journal import JournalQueue
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties, QueueState, kind_of
from msmq_fast.qm.records import followed_by
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager


class Definitions:
    """What a QueueManager does to the definitions of its queues."""

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager

    def create(
        self,
        path: str,
        *,
        guid: UUID | None = None,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[Queue]:
        """Create a queue of this computer; resolved when it is durable (DM-055 … DM-063, DU-10).

        `token` is who asks, None for the queue manager itself; without `security` the queue gets the default
        descriptor. Raises ILLEGAL_QUEUE_PATHNAME, QUEUE_EXISTS, PROPERTY, ILLEGAL_PROPERTY_VALUE,
        ACCESS_DENIED. A public queue ends with what the directory says against it.
        """
        self._manager.serving()
        self._manager.guard.create(token)
        part = self._manager.registry.part_of_path(path)
        if part.scope is Scope.SYSTEM or part.subqueue or part.journal:
            raise IllegalQueuePathName(f"{quoted(path)} is not the path of a queue that can be created")
        if part.key in self._manager.registry:
            raise QueueExists(f"a queue {part} exists")
        values = QueueProperties.build(dict(properties))
        descriptor = self._manager.guard.new_descriptor(
            token, security, self._manager.publication.machine_sid
        )
        if values.transactional and values.multicast_address:
            raise PropertyError("a transactional queue cannot have a multicast address")
        if kind_of(part) is QueueKind.PUBLIC:
            return self._manager.publication.create_queue(
                part, values, descriptor, guid, lambda guid: self._make(part, values, guid, descriptor)
            )
        made: list[Queue] = []
        guid = guid or UUID(bytes=self._manager.random_bytes(16), version=4)

        def fill() -> None:
            made[:] = [self._make(part, values, guid, descriptor)]

        try:
            done = self._manager.records.unit(fill)
        except BaseException:
            for queue in made:
                self.undo(queue)
            raise
        (queue,) = made
        done.add_done_callback(lambda done: None if done.exception() is None else self.undo(queue))
        return followed_by(done, queue)

    def _make(
        self, part: QueuePart, values: QueueProperties, guid: UUID, security: SecurityDescriptor
    ) -> Queue:
        """A queue and, in the current unit, its record."""
        kind = kind_of(part)
        queue = Queue(
            self._manager.ledger,
            self._manager.registry.new_ordinal(),
            guid,
            part,
            self._manager.settings.computer_name,
            kind,
            values,
            private_number=self._manager.registry.new_number() if kind is QueueKind.PRIVATE else 0,
            created=self._manager.ledger.now_s,
        )
        queue.security = security
        try:
            self._manager.records.set_queue(queue.ordinal, queue.record())
            self._manager.events.created(queue)
            self.make_journal(queue)
            self._manager.registry.add(queue)
            self._changed()
        except BaseException:
            self._remove(queue, told=False)  # the caller takes the unit back
            raise
        return queue

    def make_journal(self, queue: Queue) -> JournalQueue:
        """The journal of a queue, not registered yet, and, in the current unit, its record (DU-10)."""
        guid = UUID(bytes=self._manager.random_bytes(16), version=4)
        journal = JournalQueue(self._manager.ledger, self._manager.registry.new_ordinal(), guid, queue)
        self._manager.records.set_queue(journal.ordinal, journal.record())
        self._manager.events.created(journal)
        return journal

    def undo(self, queue: Queue) -> None:
        """A queue whose record was not kept does not exist."""
        if queue.state is QueueState.EXISTING:
            self._remove(queue, told=False)

    def set_properties(
        self,
        queue: Queue,
        *,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[None]:
        """Change properties, and the parts of the descriptor that `security` has; resolved when durable
        (DU-17).

        PROPERTY: `transactional` never changes. ACCESS_DENIED: `token` may not change all of it.
        """
        self._manager.serving()
        if queue.kind in (QueueKind.SUBQUEUE, QueueKind.JOURNAL):
            raise UnsupportedFormatNameOperation("a subqueue or journal has the properties of its queue")
        if properties or security is None:
            self._manager.guard.write_properties(token, queue)
        if security is not None:
            security = self._manager.guard.change_permissions(token, queue, security)
        if "transactional" in properties:
            raise PropertyError("whether a queue is transactional is decided when it is created")
        if queue.transactional and properties.get("multicast_address"):
            raise PropertyError("a transactional queue cannot have a multicast address")
        changed = replace(queue.properties)
        changed.update(dict(properties))
        if queue.kind is not QueueKind.PUBLIC:
            return self.apply_properties(queue, properties, security)
        return self._manager.publication.write_queue(
            queue,
            changed,
            security or queue.security,
            lambda: self.apply_properties(queue, properties, security),
        )

    def apply_properties(
        self, queue: Queue, properties: Mapping[str, object], security: SecurityDescriptor | None = None
    ) -> Completion[None]:
        """Take over properties that were checked; resolved when durable."""
        before = replace(queue.properties), queue.security, queue.modified
        queue.properties.update(dict(properties))
        if security is not None:
            queue.security = security
        queue.modified = self._manager.ledger.now_s
        queue.set_quota()
        try:
            self._changed()
            return self._manager.write(queue)
        except (StoreError, MemoryError):
            raise  # it is written when the store takes something again
        except BaseException:
            queue.properties, queue.security, queue.modified = before
            queue.set_quota()
            raise

    def _changed(self) -> None:
        if self._manager.on_changed is not None:
            self._manager.on_changed()

    def set_security(self, queue: Queue | None, descriptor: SecurityDescriptor) -> Completion[None]:
        """Replace the descriptor of a queue, of the queue manager for None; resolved when durable.

        `guard.change_permissions` has seen it before.
        """
        self._manager.serving()
        if queue is not None:
            return self.set_properties(queue, security=descriptor)
        self._manager.guard.machine = descriptor
        return self._manager.records.unit(
            lambda: self._manager.records.set_meta(MetaName.SECURITY, descriptor.encoded)
        )

    def delete(self, path: str, *, token: Token | None = None) -> Completion[None]:
        """Delete a queue and its messages.

        Resolved when nothing can bring it back (DM-064 … DM-068, DU-09).
        """
        self._manager.serving()
        queue = self._manager.find(path)
        if isinstance(queue, OutgoingQueue):
            self._manager.guard.administer(token, "delete an outgoing queue")
            return self._manager.retirement.retire(queue)
        if queue.kind not in (QueueKind.PRIVATE, QueueKind.PUBLIC):
            raise UnsupportedFormatNameOperation(f"{queue.name} cannot be deleted")
        self._manager.guard.delete(token, queue)
        if queue.kind is QueueKind.PUBLIC:
            return self._manager.publication.delete_queue(queue, lambda: self.drop(queue))
        return self.drop(queue)

    def drop(self, queue: Queue) -> Completion[None]:
        """Delete a queue, its subqueues with it; resolved when that is durable."""
        queue.state = QueueState.DELETING
        try:
            done = self._manager.write(queue)
        except Exception:
            queue.state = QueueState.EXISTING
            raise
        self._remove(queue)
        return done

    def _remove(self, queue: Queue, *, told: bool = True) -> None:
        queue.state = QueueState.DELETING
        if queue.journal is not None:
            self._remove(queue.journal, told=told)
        for subqueue in list(queue.subqueues.values()):
            self._remove(subqueue, told=told)
        if told:
            self._manager.events.deleted(queue)
        self._manager.leases.forget(queue)
        if queue.part is not None:
            queue.family.subqueues.pop(queue.part.subqueue.casefold(), None)
        self._manager.registry.remove(queue)
        self._changed()
        for handle in list(queue.descriptors):
            handle.orphan()
        queue.descriptors.clear()
        queue.core.abandon()
        self._manager.purging.discard(queue)
        self._manager.reaping.add(queue.ordinal)
