"""The objects of the directory in memory: sorted by GUID, and indexed by the attributes that are
looked up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import Any
from uuid import UUID

from msmq_fast.directory.filters import Condition, Filter, Operator, predicate, wanted_value
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType

_UNSORTED = 1_000  # objects that a later look-up has to sort


class ObjectIndex:
    """All objects of one type. The time of a look-up by an indexed attribute does not depend on the number of
    objects.

    The keys are GUIDs as 16 bytes, whose order is that of enumerations. Most values of indexed attributes
    belong to one object, so that a set is made for the second one only.
    """

    def __init__(self, kind: ObjectType) -> None:
        rules = RULES[kind]
        self._kind = kind
        self._objects: dict[bytes, DirectoryObject] = {}
        self._order: list[bytes] = []
        self._added: list[bytes] = []  # keys that are not yet in the order
        self._by: dict[str, dict[Any, bytes | set[bytes]]] = {
            name: {} for name in (*rules.unique, *rules.indexed)
        }

    def __len__(self) -> int:
        return len(self._objects)

    def __contains__(self, identifier: UUID) -> bool:
        return identifier.bytes in self._objects

    def get(self, identifier: UUID) -> DirectoryObject | None:
        """Return the object with this GUID, None if there is none."""
        return self._objects.get(identifier.bytes)

    def others(self, keys: Collection[bytes]) -> list[bytes]:
        """Return the keys of the objects that are not in `keys`."""
        return list(self._objects.keys() - keys)

    def put(self, item: DirectoryObject) -> bytes:
        """Add an object, or replace the one with the same GUID. Returns its key."""
        key: bytes = item[IDENTIFIER].bytes
        known = self._objects.get(key)
        if known is not None:
            self._unlink(key, known)
        else:
            self._added.append(key)
            if len(self._added) >= _UNSORTED:
                self._arrange()
        self._objects[key] = item
        for name, found in self._by.items():
            for value in self._keys(item, name):
                holders = found.setdefault(value, key)
                if isinstance(holders, set):
                    holders.add(key)
                elif holders != key:
                    found[value] = {holders, key}
        return key

    def discard(self, identifier: UUID) -> None:
        """Remove the object with this GUID, if there is one."""
        key = identifier.bytes
        item = self._objects.pop(key, None)
        if item is not None:
            self._unlink(key, item)
            self._arrange()
            del self._order[bisect_left(self._order, key)]

    def _arrange(self) -> None:
        if self._added:
            self._order += self._added
            self._order.sort()  # two sorted runs are merged in linear time
            self._added = []

    def _unlink(self, key: bytes, item: DirectoryObject) -> None:
        for name, found in self._by.items():
            for value in self._keys(item, name):
                holders = found.get(value)
                if isinstance(holders, set):
                    holders.discard(key)
                    if holders:
                        continue
                found.pop(value, None)

    def _keys(self, item: DirectoryObject, name: str) -> Any:
        value = item.get(name)
        if value is None:
            return ()
        members = ATTRIBUTES[self._kind][name].members(value)
        return (value,) if members == (value,) else members  # the same object, to save memory

    def holder(self, item: DirectoryObject) -> tuple[str, DirectoryObject] | None:
        """Return (attribute, found object) if the index has an object with the same value as `item` in a
        unique attribute, otherwise None.
        """
        for name in RULES[self._kind].unique:
            for value in self._keys(item, name):
                for key in self._holders(name, value):
                    return name, self._objects[key]
        return None

    def _holders(self, name: str, value: Any) -> Collection[bytes]:
        found = self._by[name].get(value, ())
        return (found,) if isinstance(found, bytes) else found

    def search(self, conditions: Filter) -> Iterator[DirectoryObject]:
        """Return the objects that meet all conditions now, in the order of their GUIDs; objects are compared
        as the iterator reaches them. Raises ValueError if a condition does not fit the object type.
        """
        holds = predicate(self._kind, conditions)
        return filter(holds, list(map(self._objects.__getitem__, self._candidates(conditions))))

    def _candidates(self, conditions: Filter) -> Collection[bytes]:
        for condition in conditions:
            if condition.operator is not Operator.EQUALS:
                continue
            if condition.attribute == IDENTIFIER:
                key = wanted_value(self._kind, condition)
                return [key] if key in self._objects else []
            if condition.attribute in self._by:
                return sorted(self._holders(condition.attribute, wanted_value(self._kind, condition)))
        self._arrange()
        after = max((self._first(condition) for condition in conditions), default=0)
        return self._order[after:] if after else self._order

    def _first(self, condition: Condition) -> int:
        """Return the place in the order from which on objects may meet a condition: a page of a long list is
        found without its predecessors.
        """
        if condition.attribute == IDENTIFIER and condition.operator is Operator.GREATER_THAN:
            return bisect_right(self._order, wanted_value(self._kind, condition))
        return 0
