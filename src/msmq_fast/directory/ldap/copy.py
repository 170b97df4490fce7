"""The copy of a domain's objects in memory.

A complete reading takes as long as the domain is large, and the copy is used meanwhile: what is read replaces
what was there, object by object, and what has not been read by the end is removed. An object that this server
changes or deletes meanwhile may have been read before that: what was read of it does not count.

Another domain controller may not have got the latest changes yet. After a change of the controller, what has
changed within the last RECENT_S therefore stays as it is, unless the other controller has a later version: an
object that was created is not removed, one that was deleted does not come back, and one that was changed
keeps its values. Versions are compared by ModifyTime, since each controller counts changes for itself.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from msmq_fast.directory.filters import Filter
from msmq_fast.directory.index import ObjectIndex
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType

__all__ = ["RECENT_S", "DomainCopy"]

RECENT_S: Final = 900.0
"""Seconds within which a change may be missing at another domain controller: sites replicate four times an
hour at most.
"""
_MAX_RECENT: Final = 10_000


class DomainCopy:
    """All objects that message queuing uses. `filled` says that a complete reading has ended. `monotonic`
    returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.filled = False
        self._monotonic = monotonic
        self._recent: OrderedDict[bytes, float] = OrderedDict()  # GUIDs, with the time of the change
        self._other = False
        self._held = False
        self._begun = 0.0
        self._objects = {kind: ObjectIndex(kind) for kind in ObjectType}
        self._seen: set[bytes] | None = None  # GUIDs of what the current reading has found
        self._changed: set[ObjectType] = set()

    def count(self, kind: ObjectType) -> int:
        """Return how many objects of a type there are."""
        return len(self._objects[kind])

    def search(self, kind: ObjectType, conditions: Filter) -> Iterable[DirectoryObject]:
        """Return the objects that meet the conditions, in the order of their GUIDs."""
        return self._objects[kind].search(conditions)

    def begin(self, other: bool = False) -> None:
        """Begin a complete reading. `other`: by another domain controller than what is here."""
        self._seen = set()
        self._begun = self._monotonic()
        self._other = other
        self._held = False

    def touch(self, identifier: UUID) -> None:
        """Note that an object changes now, or is deleted, at the domain controller in use."""
        key = identifier.bytes
        self._recent.pop(key, None)
        self._recent[key] = self._monotonic()
        if len(self._recent) > _MAX_RECENT:
            self._recent.popitem(last=False)

    def _is_newer(self, key: bytes, known: DirectoryObject | None, read: DirectoryObject | None) -> bool:
        """Whether what is here counts, and not what another domain controller says."""
        if not self._other or self._monotonic() >= self._recent.get(key, float("-inf")) + RECENT_S:
            return False
        if known is not None and read is not None:
            before, now = known.get("ModifyTime"), read.get("ModifyTime")
            if before is not None and now is not None and now >= before:
                return False
        self._held = True
        return True

    def change(self, item: DirectoryObject) -> None:
        """Add or replace an object that this server has changed."""
        self.touch(item[IDENTIFIER])
        self._put(item)

    def put(self, item: DirectoryObject) -> None:
        """Add or replace an object that has been read."""
        key = item[IDENTIFIER].bytes
        if self._seen is not None and self._recent.get(key, float("-inf")) >= self._begun:
            self._seen.add(key)
        else:
            self._put(item)

    def _put(self, item: DirectoryObject) -> None:
        identifier: UUID = item[IDENTIFIER]
        objects = self._objects[item.kind]
        key = identifier.bytes
        known = objects.get(identifier)
        held = self._seen is not None and self._is_newer(key, known, item)
        if known != item and not held:
            key = objects.put(item)  # the same object in both, to save memory
            self._changed.add(item.kind)
        if self._seen is not None:
            self._seen.add(key)

    def discard(self, identifier: UUID) -> None:
        """Remove an object, if it is there."""
        for kind, objects in self._objects.items():
            if identifier in objects:
                objects.discard(identifier)
                self._changed.add(kind)

    def end(self, *, complete: bool, partly: bool = False) -> bool:
        """End a reading. Removes what it has not found, if it was `complete`, unless only some of the domains
        were read: `partly`. Returns whether something that the domain controller says does not count yet.
        """
        seen, self._seen = self._seen, None
        if seen is None or not complete:
            return False
        self.filled = True
        if partly:
            return self._held
        for kind, objects in self._objects.items():
            for key in objects.others(seen):
                if not self._is_newer(key, objects.get(UUID(bytes=key)), None):
                    objects.discard(UUID(bytes=key))
                    self._changed.add(kind)
        return self._held

    def take_changed(self) -> set[ObjectType]:
        """Return the types of which objects have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed
