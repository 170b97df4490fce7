"""RequestIds against a set of Python."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msmq_fast._native.requestids import RequestIds

_IDS = st.one_of(st.integers(0, 40), st.integers(0, 0xFFFF_FFFF), st.just(0xFFFF_FFFF))


@given(st.lists(st.tuples(st.booleans(), _IDS), max_size=200))
def test_it_is_a_set(steps: list[tuple[bool, int]]) -> None:
    """Added twice, removed twice, and found again after others before it have left."""
    ids, model = RequestIds(), set[int]()
    for add, number in steps:
        if add:
            ids.add(number)
            model.add(number)
        else:
            ids.discard(number)
            model.discard(number)
        assert len(ids) == len(model)
        assert all((seen in ids) == (seen in model) for _, seen in steps)


def test_it_grows_and_empties() -> None:
    """Many ids of one stride, whose places may be the same, leave in another order than they came."""
    ids = RequestIds()
    numbers = [i * 4096 & 0xFFFF_FFFF for i in range(5000)]
    for number in numbers:
        ids.add(number)
    assert len(ids) == len(numbers)
    for number in reversed(numbers):
        assert number in ids
        ids.discard(number)
    assert len(ids) == 0
    assert not any(number in ids for number in numbers)
