"""Filters, sorting and enumeration against a naive model, and look-up among many objects."""

from __future__ import annotations

import operator
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.directory.filters import Condition, Operator, Sort, equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from tests.support.timing import processor_time
from tests.support.worlds.directories import World, everything, queue

GUIDS = st.integers(0, 5).map(lambda number: UUID(int=number << 60 | number))
VALUES = {
    "Label": st.sampled_from(["", "a", "A", "b", "ab", "Straße", "STRASSE"]),
    "Quota": st.integers(0, 4),
    "BasePriority": st.integers(-2, 2),
    "Journaling": st.booleans(),
    "Type": GUIDS,
    "Security": st.sampled_from([b"", b"a", b"a\0", b"b"]),
    "PrivacyLevel": st.integers(0, 2),
}
ROWS = st.lists(
    st.fixed_dictionaries({}, optional=VALUES),  # type: ignore[arg-type]
    max_size=12,
)
CONDITIONS = st.lists(
    st.sampled_from(sorted(VALUES)).flatmap(
        lambda name: st.builds(Condition, st.just(name), st.sampled_from(Operator), VALUES[name])
    ),
    max_size=3,
)
ORDER = st.lists(
    st.builds(Sort, st.sampled_from(sorted(VALUES)), st.integers(0, 3), st.booleans()),
    max_size=3,
    unique_by=lambda sort: sort.attribute,
)
MODEL = {
    Operator.EQUALS: operator.eq,
    Operator.NOT_EQUALS: operator.ne,
    Operator.LESS_THAN: operator.lt,
    Operator.GREATER_THAN: operator.gt,
    Operator.LESS_THAN_OR_EQUAL: operator.le,
    Operator.GREATER_THAN_OR_EQUAL: operator.ge,
}


def comparable(value: Any) -> Any:
    match value:
        case str():
            return value.casefold()
        case UUID():
            return value.bytes
        case _:
            return value


def meets(row: dict[str, Any], conditions: list[Condition]) -> bool:
    return all(
        condition.attribute in row
        and MODEL[condition.operator](comparable(row[condition.attribute]), comparable(condition.value))
        for condition in conditions
    )


def compare(left: dict[str, Any], right: dict[str, Any], order: list[Sort]) -> int:
    for sort in sorted(order, key=lambda sort: -sort.priority):
        if not sort.priority:
            continue
        a, b = (
            (sort.attribute in row, comparable(row[sort.attribute]) if sort.attribute in row else None)
            for row in (left, right)
        )
        if a != b:
            less = a < b if a[0] and b[0] else not a[0]
            return -1 if less == sort.ascending else 1
    return 0


@pytest.mark.rule("DM-156", "DM-161", "DS-03", "DS-23", "DS-24")
@given(rows=ROWS, conditions=CONDITIONS, order=ORDER, seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_enumerations_equal_those_of_a_naive_model(
    rows: list[dict[str, Any]], conditions: list[Condition], order: list[Sort], seed: int
) -> None:
    world = World()
    random = Random(seed)
    guids = [UUID(int=random.getrandbits(128)) for _ in rows]
    stored = [row | {IDENTIFIER: guid} for row, guid in zip(rows, guids, strict=True)]
    for row in random.sample(stored, len(stored)):
        world.directory.create(queue(rf"BETA\{row[IDENTIFIER]}", **row))
    world.run()
    expected = [row for row in sorted(stored, key=lambda row: row[IDENTIFIER]) if meets(row, conditions)]
    # A priority that two attributes share says nothing of their order among each other.
    ranks = [sort.priority for sort in order if sort.priority]
    order = order if len(set(ranks)) == len(ranks) else []
    expected.sort(key=_by(lambda left, right: compare(left, right, order)))
    handle = world.directory.begin(ObjectType.QUEUE, conditions, None, order).result()
    found = [world.directory.next(handle).result().identifier for _ in expected]
    assert found == [row[IDENTIFIER] for row in expected]
    assert world.directory.next(handle).exception() is not None


def _by(function: Callable[[Any, Any], int]) -> Any:
    from functools import cmp_to_key

    return cmp_to_key(function)


@pytest.mark.rule("DS-26")
def test_looking_up_does_not_take_longer_among_many() -> None:
    def lookups(count: int) -> float:
        world = World()
        items = [
            (
                queue(rf"M{number}\q", Identifier=UUID(int=2 * number + 1)),
                DirectoryObject(ObjectType.QUEUE_MANAGER, {"ComputerName": f"M{number}"}),
                DirectoryObject(ObjectType.USER, {"SecurityIdentifier": f"S-1-5-21-{number}"}),
            )
            for number in range(count)
        ]
        for group in items:
            for item in group:
                world.directory.create(item)
        world.run()
        return min(round_of_lookups(world, count) for _ in range(5))

    def round_of_lookups(world: World, count: int) -> float:
        read = world.directory.read
        with processor_time() as spent:
            for number in range(0, count, count // 100):
                read(ObjectType.QUEUE, (equals("Pathname", rf"m{number}\Q"),)).result()
                read(ObjectType.QUEUE, (equals(IDENTIFIER, UUID(int=2 * number + 1)),)).result()
                read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", f"m{number}"),)).result()
                read(ObjectType.USER, (equals("SecurityIdentifier", f"S-1-5-21-{number}"),)).result()
        return spent.seconds

    assert lookups(4000) < 10 * lookups(100)  # a search through all would take 40 times as long


def test_users_are_found_by_a_certificate_digest() -> None:
    world = World()
    digests = (b"a" * 16, b"b" * 16)
    values = {"SecurityIdentifier": "S-1-5-7", "CertificateDigestList": digests}
    world.finish(world.directory.create(DirectoryObject(ObjectType.USER, values)))
    for digest in digests:
        found = world.directory.read(ObjectType.USER, (equals("CertificateDigestList", digest),))
        assert found.result()["SecurityIdentifier"] == "S-1-5-7"
    world.finish(
        world.directory.write(DirectoryObject(ObjectType.USER, values | {"CertificateDigestList": ()}))
    )
    assert world.directory.read(ObjectType.USER, (equals("CertificateDigestList", digests[0]),)).exception()


def test_more_objects_than_one_page_of_the_store_survive_a_restart() -> None:
    world = World()
    for number in range(2500):
        world.directory.create(queue(rf"BETA\q{number}"))
    world.run()
    before = everything(world.directory, ObjectType.QUEUE)
    world.restart()
    assert everything(world.directory, ObjectType.QUEUE) == before
    assert len(before) == 2500
