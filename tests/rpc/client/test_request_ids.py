"""dwRequestID: unique among all reads under way."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.rpc.client.sessions import RequestIds


@pytest.mark.rule("QP-216")
@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0xFFFF_FFF0, 0xFFFF_FFFF))
def test_none_is_given_again_before_its_read_is_over(steps: list[int], start: int) -> None:
    """Also when the numbers begin again at 1, with reads under way that are that old."""
    ids = RequestIds()
    under_way = [ids.take() for _ in range(5)]
    ids._numbers = count(start)  # as after four thousand million reads
    for step in steps:
        if step < len(under_way):
            ids.release(under_way.pop(step))
        else:
            number = ids.take()
            assert 0 < number <= 0xFFFF_FFFF
            assert number not in under_way
            under_way.append(number)
        assert len(ids) == len(under_way)
