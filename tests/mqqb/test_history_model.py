"""The duplicate history against an ordered dict."""

from __future__ import annotations

import struct
from collections import OrderedDict
from errno import ENOSPC

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmq_fast._native.batch import MemoryTables, MemoryWriter
from msmq_fast._native.history import DURABLE, NEW, PENDING, DuplicateHistory


def identifier(number: int) -> bytes:
    return struct.pack("<QQI", number % 3, 7, number)


operations = st.lists(
    st.tuples(
        st.sampled_from(["check", "add", "add pending", "submit", "commit", "fail", "expire", "wait"]),
        st.integers(0, 30),
    ),
    max_size=200,
)


@pytest.mark.rule("QB-078", "QB-080", "QB-224", "QB-228", "QB-316")
@given(operations, st.sampled_from([1, 3, 16]))
@example([("add", 9), ("check", 18)], 3)  # messages of one sender, side by side in the table
@settings(max_examples=250, deadline=None)
def test_history(steps: list[tuple[str, int]], capacity: int) -> None:
    history = DuplicateHistory(capacity, 100)
    writer = MemoryWriter(MemoryTables(), max_units=2)
    model: OrderedDict[bytes, list[int]] = OrderedDict()  # identifier -> [seen, batch or 0]
    gathering, units, now = 1, 0, 1_000
    under_way: list[int] = []
    settled = 0

    def leave() -> None:
        nonlocal gathering, units
        under_way.append(gathering)
        gathering, units = gathering + 1, 0

    for step, value in steps:
        key = identifier(value)
        if step == "check":
            expected = NEW
            if key in model:
                expected = PENDING if model[key][1] > settled else DURABLE
                model[key][0] = now
                model.move_to_end(key)
            assert history.check(key, now) == expected
        elif step.startswith("add"):
            pending = step == "add pending"
            if pending and units == 2:  # a full batch leaves, though others are under way
                leave()
            units += pending
            if key not in model and len(model) == capacity:
                model.popitem(last=False)
            model[key] = [now, gathering if pending else 0]
            model.move_to_end(key)
            if pending:
                writer.begin_unit()
                history.add(key, now, writer)
                writer.end_unit()
            else:
                history.add(key, now)
        elif step == "submit":
            writer.submit()
            if units and not under_way:
                leave()
        elif step in ("commit", "fail") and under_way:
            settled = under_way.pop(0)
            writer.complete_one(ENOSPC if step == "fail" else 0)
            if units and not under_way:
                leave()
            if step == "fail":
                model = OrderedDict((k, v) for k, v in model.items() if v[1] != settled)
        elif step == "expire":
            gone = [k for k, v in model.items() if now - v[0] > 100]
            for k in gone:
                del model[k]
            assert history.expire(now) == len(gone)
        elif step == "wait":
            now += value
        assert len(history) == len(model)
    assert history.identifiers() == [(k, v[0]) for k, v in model.items()]


@pytest.mark.rule("QB-078", "QB-228")
def test_the_10001st_identifier_evicts_the_earliest() -> None:
    history = DuplicateHistory()
    for number in range(10_000):
        history.add(identifier(number), 1)
    assert history.check(identifier(0), 2) == DURABLE  # refreshed: now 1 is the earliest
    history.add(identifier(10_000), 3)
    assert history.check(identifier(1), 3) == NEW
    assert history.check(identifier(0), 3) == DURABLE
    assert len(history) == 10_000


@pytest.mark.rule("QB-106", "QB-224")
def test_a_failed_commit_makes_no_false_duplicate() -> None:
    history = DuplicateHistory()
    writer = MemoryWriter(MemoryTables())
    history.add(identifier(1), 1, writer)
    assert history.check(identifier(1), 1) == PENDING
    writer.submit()
    writer.complete_all(5)
    assert history.check(identifier(1), 1) == NEW


@pytest.mark.parametrize("size", [0, 19, 21])
def test_an_identifier_has_twenty_bytes(size: int) -> None:
    history = DuplicateHistory()
    with pytest.raises(ValueError):
        history.check(bytes(size), 1)
    with pytest.raises(ValueError):
        history.add(bytes(size), 1)
