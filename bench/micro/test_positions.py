"""Position lists: arrival and removal at the head, at several depths."""

from __future__ import annotations

from typing import Any

import pytest

from bench.micro import MESSAGES
from msmq_fast._native.positions import PositionList

pytestmark = pytest.mark.benchmark(group=f"positions, {MESSAGES} messages")


@pytest.mark.parametrize("depth", [0, 100_000, 1_000_000])
def test_in_and_out(benchmark: Any, depth: int) -> None:
    positions = PositionList()
    for key in range(1, depth + 1):
        positions.add(key)
    last = depth

    def in_and_out() -> None:
        nonlocal last
        for _ in range(MESSAGES):
            last += 1
            positions.add(last)
        for _ in range(MESSAGES):
            positions.discard(positions.first() or 0)

    benchmark(in_and_out)
    assert len(positions) == depth


def test_find_in_a_million(benchmark: Any) -> None:
    positions = PositionList()
    for key in range(1, 1_000_001):
        positions.add(key)

    def find() -> int:
        return sum(positions.state(key * 15_000 + 1) for key in range(MESSAGES))

    assert benchmark(find) == MESSAGES
