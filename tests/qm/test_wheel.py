"""TimerWheel against a plain dictionary of deadlines."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from msmq_fast._native.wheel import TimerWheel

STEPS = st.one_of(st.integers(0, 70), st.integers(0, 5000), st.integers(0, 1 << 24), st.integers(0, 1 << 48))


class AgainstDict(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000
        self.wheel = TimerWheel(self.now)
        self.timers: dict[int, tuple[int, int]] = {}
        self.last = 0

    @rule(ahead=STEPS, late=st.booleans(), count=st.integers(1, 20))
    def start(self, ahead: int, late: bool, count: int) -> None:
        for number in range(count):
            deadline = max(0, self.now - ahead if late else self.now + ahead + number)
            self.last += 1
            self.timers[self.last] = (deadline, self.wheel.add(deadline, self.last, 7))

    @precondition(lambda self: self.timers)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.timers)))
        self.wheel.cancel(self.timers.pop(number)[1])

    @rule(step=STEPS, limit=st.integers(1, 30))
    def forward(self, step: int, limit: int) -> None:
        self.now += step
        self._pop(limit)

    @rule(step=STEPS)
    def clock_set_back(self, step: int) -> None:
        self.now = max(0, self.now - step)
        self._pop(1000)

    def _pop(self, limit: int) -> None:
        due = {number for number, (deadline, _) in self.timers.items() if deadline <= self.now}
        popped = self.wheel.pop(self.now, limit)
        assert len(popped) == min(limit, len(due))
        for deadline, number, second in popped:
            assert second == 7
            assert number in due
            assert self.timers.pop(number)[0] == deadline

    @invariant()
    def next_deadline_is_never_late(self) -> None:
        assert len(self.wheel) == len(self.timers)
        deadline = self.wheel.next_deadline()
        if not self.timers:
            assert deadline is None
        else:
            assert deadline is not None
            assert deadline <= max(self.now, min(deadline for deadline, _ in self.timers.values()))


TestAgainstDict = AgainstDict.TestCase
TestAgainstDict.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_next_deadline_comes_closer_until_it_is_exact() -> None:
    wheel = TimerWheel(0)
    wheel.add(1_000_003)
    now, looks = 0, 0
    while not (fired := wheel.pop(now)):
        deadline = wheel.next_deadline()
        assert deadline is not None
        assert deadline > now
        now, looks = deadline, looks + 1
    assert now == 1_000_003
    assert fired == [(1_000_003, 0, 0)]
    assert looks <= 11


def test_a_million_timers_fire() -> None:
    wheel = TimerWheel(0)
    for number in range(1_000_000):
        wheel.add(number * 7 % 400_000 + 1, number)
    assert len(wheel.pop(200_000)) + len(wheel.pop(400_001)) == 1_000_000


def test_a_handle_that_never_was_is_refused() -> None:
    with pytest.raises(ValueError):
        TimerWheel(0).cancel(5)
