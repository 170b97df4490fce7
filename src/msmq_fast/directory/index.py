"""The objects of the directory in memory: by GUID in order, and by the attributes that are looked up."""

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
    """All objects of one type. Look-up by an indexed attribute does not depend on how many there are."""

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
        """The object with a GUID."""
        return self._objects.get(identifier)

    def put(self, item: DirectoryObject) -> None:
        """Add an object, or put it in the place of the one with its GUID."""
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
        """Take an object out, if it is there."""
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
        """The object that has a unique key of `item`, and the attribute that is the key."""
        for name in RULES[self._kind].unique:
            for key in self._keys(item, name):
                for identifier in self._by[name].get(key, ()):
                    return name, self._objects[identifier]
        return None

    def search(self, conditions: Filter) -> Iterator[DirectoryObject]:
        """The objects that meet all conditions, by GUID; ValueError for a condition that makes no sense."""
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
