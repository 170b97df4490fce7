"""PositionList against a plain dictionary."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast._native.positions import PositionList
from tests.support.worlds.queue_manager import World

AVAILABLE, LOCKED, PENDING, PURGE_PENDING = 1, 2, 3, 4
STATES = st.sampled_from([AVAILABLE, LOCKED, PENDING, PURGE_PENDING])
KEYS = st.builds(lambda band, number: band << 56 | number, st.sampled_from([0, 3, 4, 7]), st.integers(1, 300))


class AgainstDict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.list = PositionList()
        self.model: dict[int, int] = {}
        self.next = 1000

    @rule(band=st.sampled_from([0, 3, 4, 7]), state=STATES, count=st.integers(1, 80))
    def append(self, band: int, state: int, count: int) -> None:
        for _ in range(count):
            self.next += 1
            key = band << 56 | self.next
            self.list.add(key, state)
            self.model[key] = state

    @rule(key=KEYS, state=STATES)
    def insert(self, key: int, state: int) -> None:
        if key in self.model:
            with pytest.raises(ValueError):
                self.list.add(key, state)
        else:
            self.list.add(key, state)
            self.model[key] = state

    @precondition(lambda self: self.model)
    @rule(data=st.data(), state=STATES)
    def change(self, data: st.DataObject, state: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        self.list.change(key, state)
        self.model[key] = state

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        assert self.list.discard(key)
        del self.model[key]

    @rule(count=st.integers(1, 60), claim=st.booleans())
    def drain(self, count: int, claim: bool) -> None:
        for _ in range(count):
            key = self.list.first()
            assert key == min((k for k, s in self.model.items() if s == AVAILABLE), default=None)
            if key is None:
                return
            if claim:
                self.list.change(key, LOCKED)
                self.model[key] = LOCKED
            else:
                self.list.discard(key)
                del self.model[key]

    @rule(key=KEYS)
    def around(self, key: int) -> None:
        available = sorted(k for k, s in self.model.items() if s == AVAILABLE)
        assert self.list.after(key) == next((k for k in available if k > key), None)
        assert self.list.before(key) == next((k for k in reversed(available) if k < key), None)
        assert self.list.state(key) == self.model.get(key, 0)

    @invariant()
    def same(self) -> None:
        assert self.list.keys() == sorted(self.model)
        available = [k for k, s in self.model.items() if s == AVAILABLE]
        pending = [k for k, s in self.model.items() if s == PENDING]
        assert self.list.first() == min(available, default=None)
        assert self.list.last() == max(available, default=None)
        assert self.list.first(True) == min(available + pending, default=None)
        assert (self.list.live, self.list.available, self.list.pending) == (
            len(self.model),
            len(available),
            len(pending),
        )
        assert self.list.purge_pending == list(self.model.values()).count(PURGE_PENDING)


TestAgainstDict = AgainstDict.TestCase
TestAgainstDict.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_million_positions_take_72_bytes_each() -> None:
    positions = PositionList()
    for key in range(1, (1 << 20) + 1):
        positions.add(key)
    assert positions.allocated_bytes() == 72 << 20


def test_a_key_outside_the_bands_is_refused() -> None:
    with pytest.raises(ValueError):
        PositionList().add(8 << 56 | 1)


def test_memory_of_a_list_that_is_used_as_a_queue_stays_small() -> None:
    positions = PositionList()
    for key in range(1, 100_000):
        positions.add(key)
        if key > 100:
            positions.discard(key - 100)
    assert positions.allocated_bytes() <= 72 * 1024


def test_one_old_position_does_not_keep_the_removed_ones_behind_it() -> None:
    positions = PositionList()
    positions.add(1, LOCKED)
    for key in range(2, 100_000):
        positions.add(key)
        positions.discard(key - 1) if key > 2 else None
    assert positions.allocated_bytes() <= 72 * 1024
    assert positions.first() == 99_999


def test_bad_state_and_unknown_key() -> None:
    positions = PositionList()
    with pytest.raises(ValueError):
        positions.add(1, 0)
    with pytest.raises(KeyError):
        positions.change(1, LOCKED)
    assert not positions.discard(1)


def test_the_oldest_position_is_the_first_to_have_arrived_whatever_its_priority() -> None:
    world = World()
    assert world.create().core.positions.oldest() == 0
    queue = world.manager.find("orders")
    arrivals = []
    for priority in (0, 7, 3):
        arrivals.append(world.manager.ledger.now_us)
        world.send(b"x", priority=priority)
        world.advance(1.0)
    assert queue.core.positions.oldest() == arrivals[0]
    assert [world.receive() for _ in range(2)] == [b"x", b"x"]  # the two with a higher priority
    assert queue.core.positions.oldest() == arrivals[0]
    world.receive()
    assert queue.core.positions.oldest() == 0
