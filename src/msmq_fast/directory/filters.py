"""The conditions of a read and the sort order of an enumeration (MS-MQDMPR 3.1.7.1.20, .21).

How values compare depends on the attribute: text without regard to case, GUIDs byte by byte, numbers and
flags as numbers, blobs byte by byte. A condition on a list is met if one member meets it, so EQUALS means
"contains". The exception is NOT_EQUALS, which means that no member is equal. A condition on an attribute that
is not set is never met.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from msmq_fast.directory.objects import DirectoryObject, attribute_kind
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.values import Value


class Operator(Enum):
    """The six operators of a condition."""

    EQUALS = "="
    NOT_EQUALS = "!="
    LESS_THAN = "<"
    GREATER_THAN = ">"
    LESS_THAN_OR_EQUAL = "<="
    GREATER_THAN_OR_EQUAL = ">="


_COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUALS: operator.eq,
    Operator.NOT_EQUALS: operator.ne,
    Operator.LESS_THAN: operator.lt,
    Operator.GREATER_THAN: operator.gt,
    Operator.LESS_THAN_OR_EQUAL: operator.le,
    Operator.GREATER_THAN_OR_EQUAL: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One attribute-filter expression: attribute, operator, value. For a list attribute, `value` is a single
    member.
    """

    attribute: str
    operator: Operator
    value: Value


Filter = Sequence[Condition]  # all must hold; an empty one holds for every object


def equals(attribute: str, value: Value) -> Condition:
    """Return the condition that `attribute` equals `value`."""
    return Condition(attribute, Operator.EQUALS, value)


def wanted_value(kind: ObjectType, condition: Condition) -> Any:
    """Return the value of a condition in comparable form. Raises ValueError if the value does not fit the
    attribute.
    """
    known = attribute_kind(kind, condition.attribute)
    if known.many:
        (member,) = known.check((condition.value,))
        return known.order(member)
    return known.order(known.check(condition.value))


def predicate(kind: ObjectType, conditions: Filter) -> Callable[[DirectoryObject], bool]:
    """Return a function that returns whether an object meets all conditions. Raises ValueError if a condition
    does not fit the object type.
    """
    tests = [_test(kind, condition) for condition in conditions]

    def hold(item: DirectoryObject) -> bool:
        for test in tests:  # noqa: SIM110 - all() would take twice as long
            if not test(item):
                return False
        return True

    return hold


def _test(kind: ObjectType, condition: Condition) -> Callable[[DirectoryObject], bool]:
    """Return the test of one condition. It prepares what it can: a domain may have 100,000 objects."""
    name = condition.attribute
    known = attribute_kind(kind, name)
    wanted = wanted_value(kind, condition)
    compare = _COMPARE[condition.operator]
    order, members = known.order, known.members

    def holds(item: DirectoryObject) -> bool:
        value = item.get(name)
        return value is not None and compare(order(value), wanted)

    def holds_for_a_member(item: DirectoryObject) -> bool:
        value = item.get(name)
        return value is not None and any(compare(member, wanted) for member in members(value))

    def holds_for_each_member(item: DirectoryObject) -> bool:
        value = item.get(name)
        return value is not None and all(compare(member, wanted) for member in members(value))

    if not known.many:
        return holds
    return holds_for_each_member if condition.operator is Operator.NOT_EQUALS else holds_for_a_member


@dataclass(frozen=True, slots=True)
class Sort:
    """An attribute-sort-order value. Priority 0 means that the attribute does not affect the order. The
    attribute with the highest priority is the primary sort key.
    """

    attribute: str
    priority: int
    ascending: bool = True


def arrange(
    kind: ObjectType, items: Iterable[DirectoryObject], order: Sequence[Sort]
) -> Iterable[DirectoryObject]:
    """Return the objects in the requested order; `items` itself if none is requested. The sort is stable.

    An object without the attribute sorts before every other. Raises ValueError if the type does not have an
    attribute to sort by.
    """
    sorts = sorted((sort for sort in order if sort.priority), key=lambda sort: sort.priority)
    if not sorts:
        return items
    arranged = list(items)
    for sort in sorts:
        known = attribute_kind(kind, sort.attribute)

        def key(item: DirectoryObject, name: str = sort.attribute, known: Any = known) -> tuple[bool, Any]:
            value = item.get(name)
            return (False, ()) if value is None else (True, known.sort_key(value))

        arranged.sort(key=key, reverse=not sort.ascending)
    return arranged
