"""SourceTable against a counter."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast._native.sources import SourceTable

GUIDS = st.integers(0, 60).map(lambda number: bytes([number]) * 16)


class AgainstCounter(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = SourceTable(7)
        self.model: Counter[bytes] = Counter()
        self.numbers: dict[bytes, int] = {}

    @rule(guid=GUIDS, times=st.integers(1, 3))
    def add(self, guid: bytes, times: int) -> None:
        for _ in range(times):
            number = self.table.add(guid)
            assert self.numbers.setdefault(guid, number) == number
        self.model[guid] += times

    @precondition(lambda self: self.numbers)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        guid = data.draw(st.sampled_from(sorted(self.numbers)))
        self.table.drop(self.numbers[guid])
        self.model[guid] -= 1
        if not self.model[guid]:
            with pytest.raises(KeyError):
                self.table.drop(self.numbers.pop(guid))

    @invariant()
    def same(self) -> None:
        assert self.table.live == len(self.numbers)
        assert len(set(self.numbers.values())) == len(self.numbers)
        for guid, number in self.numbers.items():
            assert number > 0
            assert self.table.get(number) == guid


TestAgainstCounter = AgainstCounter.TestCase
TestAgainstCounter.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)


def test_a_flood_of_sources_leaves_nothing_behind() -> None:
    table = SourceTable()
    for number in range(10_000):
        table.drop(table.add(number.to_bytes(16, "big")))
    assert table.live == 0
    assert table.add(bytes(16)) < 16


def test_what_is_no_guid_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        SourceTable().add(b"short")
