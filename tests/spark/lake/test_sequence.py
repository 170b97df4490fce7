"""One transactional sequence against a naive model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.spark.lake.sequence import Arrival, Numbers


def follow(
    numbers: list[int], *, expected: int = 1, withdrawn: tuple[int, ...] = ()
) -> list[tuple[str, int, int]]:
    followed = Numbers(expected)
    found = list(followed.arrive(Arrival(number, -1, at) for at, number in enumerate(numbers)))
    followed.withdraw(withdrawn)
    return [(item.kind, item.first, item.last) for item in [*found, *followed.missing()]]


def naive(numbers: list[int], withdrawn: set[int]) -> set[tuple[str, int]]:
    """What is wrong, number by number."""
    wrong, seen = set(), set()
    for number in numbers:
        if number in seen:
            wrong.add(("duplicate", number))
        elif seen and number < max(seen):
            wrong.add(("reorder", number))
        seen.add(number)
    missing = set(range(1, max(seen, default=0) + 1)) - seen - withdrawn
    return wrong | {("gap", number) for number in missing}


@given(st.lists(st.integers(1, 30), max_size=40), st.sets(st.integers(1, 30)))
def test_it_finds_what_the_model_finds(numbers: list[int], withdrawn: set[int]) -> None:
    unseen = tuple(withdrawn - set(numbers))
    found = follow(numbers, withdrawn=unseen)
    each = {(kind, number) for kind, first, last in found for number in range(first, last + 1)}
    assert each == naive(numbers, set(unseen))


def test_a_gap_is_one_range_until_it_is_filled() -> None:
    assert follow([1, 2, 10, 11]) == [("gap", 3, 9)]
    assert follow([1, 2, 10, 5]) == [("reorder", 5, 5), ("gap", 3, 4), ("gap", 6, 9)]


def test_a_sequence_that_was_joined_in_its_middle_has_no_gap_before() -> None:
    assert follow([7, 8], expected=7) == []
    assert follow([7, 8]) == [("gap", 1, 6)]


def test_the_number_before_explains_a_jump() -> None:
    followed = Numbers(3)
    assert list(followed.arrive([Arrival(9, 2, 0), Arrival(12, 10, 1)])) == []
    assert [(gap.first, gap.last) for gap in followed.missing()] == [(10, 10)]
    assert followed.expected == 13
