"""Duplicate detection with a full table: every new identifier evicts an old one."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from bench.micro import MESSAGES
from msmq_fast._native.history import NEW, DuplicateHistory

pytestmark = pytest.mark.benchmark(group=f"history, {MESSAGES} messages")


def test_check_and_add(benchmark: Any) -> None:
    history = DuplicateHistory()
    source, numbers = bytes(range(16)), count()
    for _ in range(10_000):
        history.add(source + next(numbers).to_bytes(4, "little"), 1_000)

    def check_and_add() -> int:
        new = 0
        for _ in range(MESSAGES):
            identifier = source + next(numbers).to_bytes(4, "little")
            new += history.check(identifier, 1_000) == NEW
            history.add(identifier, 1_000)
        return new

    assert benchmark(check_and_add) == MESSAGES
