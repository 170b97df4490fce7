"""The objects of the directory in memory: sorted by GUID, and indexed by the attributes that are
looked up.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from msmq_fast.directory.filters import Filter, Operator, predicate, wanted_value
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType


class ObjectIndex:
    """All objects of one type. The time of a look-up by an indexed attribute does not depend on the number of
    objects.
    """

    def __init__(self, kind: ObjectType) -> None:
        rules = RULES[kind]
        self._kind = kind
        self._objects: dict[UUID, DirectoryObject] = {}
        self._order: list[bytes] = []
        self._by: dict[str, defaultdict[Any, set[UUID]]] = {
            name: defaultdict(set) for name in (*rules.unique, *rules.indexed)
        }

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, identifier: UUID) -> bool:
        return identifier in self._objects

    def get(self, identifier: UUID) -> DirectoryObject | None:
        """Return the object with this GUID, None if there is none."""
        return self._objects.get(identifier)

    def put(self, item: DirectoryObject) -> None:
        """Add an object, or replace the one with the same GUID."""
        identifier: UUID = item[IDENTIFIER]
        if identifier in self._objects:
            self._unlink(self._objects[identifier])
        else:
            insort(self._order, identifier.bytes)
        self._objects[identifier] = item
        for name, found in self._by.items():
            for key in self._keys(item, name):
                found[key].add(identifier)

    def discard(self, identifier: UUID) -> None:
        """Remove the object with this GUID, if there is one."""
        item = self._objects.pop(identifier, None)
        if item is not None:
            self._unlink(item)
            del self._order[bisect_left(self._order, identifier.bytes)]

    def _unlink(self, item: DirectoryObject) -> None:
        for name, found in self._by.items():
            for key in self._keys(item, name):
                found[key].discard(item[IDENTIFIER])
                if not found[key]:
                    del found[key]

    def _keys(self, item: DirectoryObject, name: str) -> Any:
        value = item.get(name)
        return () if value is None else ATTRIBUTES[self._kind][name].members(value)

    def holder(self, item: DirectoryObject) -> tuple[str, DirectoryObject] | None:
        """Return (attribute, found object) if the index has an object with the same value as `item` in a
        unique attribute, otherwise None.
        """
        for name in RULES[self._kind].unique:
            for key in self._keys(item, name):
                for identifier in self._by[name].get(key, ()):
                    return name, self._objects[identifier]
        return None

    def search(self, conditions: Filter) -> Iterator[DirectoryObject]:
        """Yield the objects that meet all conditions, in the order of their GUIDs. Raises ValueError if a
        condition does not fit the object type.
        """
        holds = predicate(self._kind, conditions)
        for key in self._candidates(conditions):
            item = self._objects.get(UUID(bytes=key))
            if item is not None and holds(item):
                yield item

    def _candidates(self, conditions: Filter) -> list[bytes]:
        for condition in conditions:
            if condition.operator is not Operator.EQUALS:
                continue
            if condition.attribute == IDENTIFIER:
                return [wanted_value(self._kind, condition)]
            if condition.attribute in self._by:
                found = self._by[condition.attribute].get(wanted_value(self._kind, condition), ())
                return sorted(identifier.bytes for identifier in found)
        return self._order
