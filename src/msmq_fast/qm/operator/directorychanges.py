"""Changes that administrators make to directory objects. A change to a local queue's object changes the
queue.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.filters import Filter
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.provider import Join
from msmq_fast.directory.results import generic
from msmq_fast.qm.operator.queueadmin import QueueAdmin
from msmq_fast.qm.queues.directoryclient import DirectoryClient, properties_of, security_of
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.store.completion import Completion

__all__ = ["DirectoryChanges"]


class DirectoryChanges:
    """Changes directory objects for administrators; implements `document.Changes`. To change the object of a
    local public queue, it changes the queue, so that the object and the queue stay equal.
    """

    def __init__(self, directory: DirectoryClient, registry: QueueRegistry, queues: QueueAdmin) -> None:
        self._directory = directory
        self._registry = registry
        self._queues = queues

    def create(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[UUID]:
        """Create a directory object; if it is the object of a local queue, create the queue."""
        path = item.get("Pathname")
        if item.kind is not ObjectType.QUEUE or not self._directory.is_own_path(path):
            return self._directory.create(item, attributes, join=join)
        made = self._queues.create(
            str(path), guid=item.identifier, security=security_of(item), **properties_of(item)
        )
        return made.then(lambda queue: Completion.of(queue.guid))

    def write(
        self, item: DirectoryObject, attributes: Collection[str] | None = None, *, join: Join | None = None
    ) -> Completion[None]:
        """Change a directory object; if it is the object of a local queue, change the queue."""
        queue = self._named_queue(item)
        if queue is None:
            return self._directory.write(item, attributes, join=join)
        given = item.only(attributes)
        values = properties_of(given)
        values.pop("transactional", None)
        return self._queues.set_properties(queue, security=security_of(given), **values)

    def delete(self, item: DirectoryObject, *, join: Join | None = None) -> Completion[None]:
        """Delete a directory object; if it is the object of a local queue, delete the queue and its
        messages.
        """
        if item.kind is ObjectType.QUEUE_MANAGER and item.identifier == self._directory.guid:
            return failed(generic("the object is the running queue manager itself", item.kind))
        queue = self._named_queue(item)
        if queue is None:
            return self._directory.events.delete(item, join=join)
        return self._queues.delete(queue.name)

    def read(
        self,
        kind: ObjectType,
        conditions: Filter = (),
        attributes: Collection[str] | None = None,
        *,
        force: bool = False,
    ) -> Completion[DirectoryObject]:
        """Read the directory object that matches the conditions."""
        return self._directory.read(kind, conditions, attributes, force=force)

    def _named_queue(self, item: DirectoryObject) -> Queue | None:
        if item.kind is not ObjectType.QUEUE:
            return None
        if item.identifier is not None:
            return self._directory.own_queue(item)
        path = item.get("Pathname")
        if not self._directory.is_own_path(path):
            return None
        return self._registry.by_key(str(path).partition("\\")[2].casefold())
