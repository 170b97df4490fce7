"""The copy of a domain's objects in memory.

A complete reading takes as long as the domain is large, and the copy is used meanwhile: what is read replaces
what was there, object by object, and what has not been read by the end is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from msmq_fast.directory.filters import Filter
from msmq_fast.directory.index import ObjectIndex
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType

__all__ = ["DomainCopy"]


class DomainCopy:
    """All objects that message queuing uses. `filled` says that a complete reading has ended."""

    def __init__(self) -> None:
        self.filled = False
        self._objects = {kind: ObjectIndex(kind) for kind in ObjectType}
        self._seen: set[bytes] | None = None  # GUIDs of what the current reading has found
        self._changed: set[ObjectType] = set()

    def count(self, kind: ObjectType) -> int:
        """Return how many objects of a type there are."""
        return len(self._objects[kind])

    def search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        """Return the objects that meet the conditions, in the order of their GUIDs."""
        return self._objects[kind].search(conditions)

    def begin(self) -> None:
        """Begin a reading, which may be a complete one."""
        self._seen = set()

    def put(self, item: DirectoryObject) -> None:
        """Add or replace an object."""
        identifier: UUID = item[IDENTIFIER]
        objects = self._objects[item.kind]
        if self._seen is not None:
            self._seen.add(identifier.bytes)
        if objects.get(identifier) != item:
            objects.put(item)
            self._changed.add(item.kind)

    def discard(self, identifier: UUID) -> None:
        """Remove an object, if it is there."""
        for kind, objects in self._objects.items():
            if identifier in objects:
                objects.discard(identifier)
                self._changed.add(kind)

    def end(self, *, complete: bool) -> None:
        """End a reading. Removes what it has not found, if it was `complete`."""
        seen, self._seen = self._seen, None
        if seen is None or not complete:
            return
        for kind, objects in self._objects.items():
            for key in objects.others(seen):
                objects.discard(UUID(bytes=key))
                self._changed.add(kind)
        self.filled = True

    def take_changed(self) -> set[ObjectType]:
        """Return the types of which objects have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed
