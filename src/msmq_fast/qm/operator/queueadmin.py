"""Creates, changes and deletes the queues of this computer (DM-055 … DM-068, DU-09, DU-10, DU-17). Audits
each of these changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from msmq_fast.packet.names import QueuePart, Scope
from msmq_fast.protocol.errors import (
    IllegalQueuePathName,
    PropertyError,
    QueueExists,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.text import quoted
from msmq_fast.qm.audit.trail import AuditTrail
from msmq_fast.qm.outgoing.queues import OutgoingQueues
from msmq_fast.qm.queues.changes import QueueChanges
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties, kind_of
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.records import followed_by
from msmq_fast.qm.services import Services
from msmq_fast.security.acts import permission_changes
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName


class QueueAdmin:
    """Creates, changes and deletes queues for programs and administrators."""

    def __init__(
        self,
        services: Services,
        registry: QueueRegistry,
        changes: QueueChanges,
        guard: Guard,
        directory: DirectoryClient,
        outgoing: OutgoingQueues,
        audit: AuditTrail,
    ) -> None:
        self._services = services
        self._registry = registry
        self._changes = changes
        self._guard = guard
        self._directory = directory
        self._outgoing = outgoing
        self._audit = audit

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

        `token` is the caller, None for the queue manager itself; without `security` the queue gets the
        default security descriptor. Raises ILLEGAL_QUEUE_PATHNAME, QUEUE_EXISTS, PROPERTY,
        ILLEGAL_PROPERTY_VALUE, ACCESS_DENIED. For a public queue, the completion fails with the error of the
        directory, if any.
        """
        part, values, descriptor = self.check_new(path, token, security, properties)
        name = self._registry.path_of(part)
        if kind_of(part) is QueueKind.PUBLIC:
            published = self._directory.create_queue(
                part,
                values,
                descriptor,
                guid,
                lambda guid: self._changes.make(part, values, guid, descriptor),
            )
            return self._audit.recorded(published, token, "create queue", name, lambda _: "")
        made: list[Queue] = []
        guid = guid or self._services.new_guid()

        def fill() -> None:
            made[:] = [self._changes.make(part, values, guid, descriptor)]

        try:
            done = self._services.records.unit(fill)
        except BaseException:
            for queue in made:
                self._changes.undo(queue)
            raise
        (queue,) = made
        done.add_done_callback(lambda done: None if done.exception() is None else self._changes.undo(queue))
        self._audit.recorded(done, token, "create queue", name)
        return followed_by(done, queue)

    def check_new(
        self,
        path: str,
        token: Token | None,
        security: SecurityDescriptor | None,
        properties: Mapping[str, object],
    ) -> tuple[QueuePart, QueueProperties, SecurityDescriptor]:
        """Return what `create` makes of its arguments. Raises as `create`; changes nothing."""
        self._services.require_ready()
        self._guard.create(token)
        part = self._registry.part_of_path(path)
        if part.scope is Scope.SYSTEM or part.subqueue or part.journal:
            raise IllegalQueuePathName(
                f"{quoted(path)} cannot be created: it is not the path of a public or private queue"
            )
        if part.key in self._registry:
            raise QueueExists(f"a queue {part} already exists")
        values = QueueProperties.build(dict(properties))
        descriptor = self._guard.new_descriptor(token, security, self._directory.machine_sid)
        if values.transactional and values.multicast_address:
            raise PropertyError("a transactional queue cannot have a multicast address")
        return part, values, descriptor

    def set_properties(
        self,
        queue: Queue,
        *,
        token: Token | None = None,
        security: SecurityDescriptor | None = None,
        **properties: object,
    ) -> Completion[None]:
        """Change the given properties of a queue, and those parts of its security descriptor that `security`
        contains; resolved when durable (DU-17).

        Raises PROPERTY for `transactional`, which cannot change; ACCESS_DENIED if `token` may not make all
        the changes.
        """
        changed, security = self.check_change(queue, token, security, properties)
        what = [f"{name} = {value}" for name, value in properties.items()]
        if security is not None:
            what.append(permission_changes(queue.security, security))
        result = ", ".join(what) or "no change"
        operation = "set properties" if properties or security is None else "change permissions"
        if queue.kind is not QueueKind.PUBLIC:
            done = self._changes.apply(queue, properties, security)
            return self._audit.recorded(done, token, operation, queue.name, result)
        done = self._directory.write_queue(
            queue,
            changed,
            security or queue.security,
            lambda: self._changes.apply(queue, properties, security),
        )
        return self._audit.recorded(done, token, operation, queue.name, lambda _: result)

    def check_change(
        self,
        queue: Queue,
        token: Token | None,
        security: SecurityDescriptor | None,
        properties: Mapping[str, object],
    ) -> tuple[QueueProperties, SecurityDescriptor | None]:
        """Return the properties of a queue after `set_properties`, and its security descriptor if that is
        changed. Raises as `set_properties`; changes nothing.
        """
        self._services.require_ready()
        if queue.kind in (QueueKind.SUBQUEUE, QueueKind.JOURNAL):
            raise UnsupportedFormatNameOperation(
                "the properties of a subqueue or journal are those of its queue; change the queue"
            )
        if properties or security is None:
            self._guard.write_properties(token, queue)
        if security is not None:
            security = self._guard.change_permissions(token, queue, security)
        if "transactional" in properties:
            raise PropertyError("transactional cannot be changed after the queue is created")
        if queue.transactional and properties.get("multicast_address"):
            raise PropertyError("a transactional queue cannot have a multicast address")
        changed = replace(queue.properties)
        changed.update(dict(properties))
        return changed, security

    def set_security(
        self, queue: Queue | None, given: SecurityDescriptor, *, token: Token | None = None
    ) -> Completion[SecurityDescriptor]:
        """Replace parts of the security descriptor of `queue`, or of the queue manager if `queue` is None:
        the parts that `given` contains. Resolved with the new descriptor when it is durable.

        Raises ACCESS_DENIED, ILLEGAL_PROPERTY_VALUE: see `Guard.change_permissions`.
        """
        self._services.require_ready()
        if queue is not None:
            done = self.set_properties(queue, token=token, security=given)
            return done.then(lambda _: Completion.of(queue.security))
        old = self._guard.machine
        new = self._guard.change_permissions(token, None, given)
        self._guard.machine = new
        written = self._services.records.unit(
            lambda: self._services.records.set_meta(MetaName.SECURITY, new.encoded)
        )
        changes = permission_changes(old, new)
        self._audit.recorded(written, token, "change permissions", "the queue manager", changes)
        return followed_by(written, new)

    def delete(self, path: str, *, token: Token | None = None) -> Completion[None]:
        """Delete a queue and its messages; resolved when the deletion is durable (DM-064 … DM-068, DU-09)."""
        self._services.require_ready()
        queue = self._registry.named(path)
        if isinstance(queue, OutgoingQueue):
            self._guard.administer(token, "delete an outgoing queue")
            done = self._outgoing.delete(queue)
            return self._audit.recorded(done, token, "delete outgoing queue", queue.name)
        if queue.kind not in (QueueKind.PRIVATE, QueueKind.PUBLIC):
            raise UnsupportedFormatNameOperation(
                f"{queue.name} cannot be deleted: only public, private and outgoing queues can"
            )
        self._guard.delete(token, queue)
        result = f"deleted messages: {queue.messages}"
        if queue.kind is QueueKind.PUBLIC:
            done = self._directory.delete_queue(queue, lambda: self._changes.drop(queue))
            return self._audit.recorded(done, token, "delete queue", queue.name, lambda _: result)
        done = self._changes.drop(queue)
        return self._audit.recorded(done, token, "delete queue", queue.name, result)
