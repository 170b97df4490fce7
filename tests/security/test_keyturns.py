"""One budget for the operations with keys that peers ask for, with equal shares for their addresses."""

from __future__ import annotations

import contextlib

import pytest

from msmq_fast.security.keyturns import KeyNeeded, KeyTurns, TooManyWait, Turn


class Keys:
    """A tenth of a core, operations of 1 ms, and who had one when."""

    def __init__(self, **more: int) -> None:
        self.calculated = 0.0
        self.turns = KeyTurns(0.1, 0.01, clock=lambda: self.calculated, **more)
        self.had: list[tuple[str, float]] = []
        self.now = 100.0

    def operation(self) -> str:
        self.calculated += 0.001
        return "key"

    def bad(self) -> None:
        self.calculated += 0.001
        raise ValueError("padding")

    def ask(self, address: str, *, bad: bool = False) -> Turn | None:
        def act(now: float) -> None:
            self.had.append((address, now))
            with contextlib.suppress(ValueError):
                self.turns.run(self.bad if bad else self.operation, now)

        turn = self.turns.ask(address, act, self.now)
        if turn is None:
            self.turns.take(address, lambda: act(self.now))
        return turn

    def until(self, end: float) -> None:
        while (due := self.turns.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.turns.expire(self.now)
        self.now = end


def test_outside_of_a_turn_there_is_no_operation() -> None:
    keys = Keys()
    with pytest.raises(KeyNeeded):
        keys.turns.run(keys.operation, 100.0)
    assert keys.calculated == 0
    assert keys.turns.take("192.0.2.1", lambda: keys.turns.run(keys.operation, 100.0)) == "key"
    with pytest.raises(KeyNeeded):
        keys.turns.take("192.0.2.1", lambda: [keys.turns.run(keys.operation, 100.0) for _ in range(2)])
    with pytest.raises(KeyNeeded):
        keys.turns.run(keys.operation, 100.0)


def test_what_is_asked_for_takes_a_tenth_of_a_core_however_much_it_is() -> None:
    keys = Keys()
    for number in range(2000):
        keys.ask(f"10.0.{number % 40}.1")
    assert len(keys.had) == 2, "in one turn of the loop, whatever the budget has left"
    keys.until(105.0)
    assert len(keys.had) == pytest.approx(510, abs=3)
    assert keys.calculated < 0.01 + 5 * 0.1 + 0.0015
    assert keys.turns.spent == keys.calculated


def test_who_asks_seldom_does_not_wait() -> None:
    keys = Keys()
    for _ in range(50):
        assert keys.ask("192.0.2.1") is None
        keys.until(keys.now + 0.011)
    assert keys.turns.next_deadline() is None


def test_each_address_has_its_turn_before_one_has_its_second() -> None:
    """A host with many sessions waits with itself; IPv6 addresses of one network are one host."""
    keys = Keys()
    for number in range(1000):
        keys.ask(f"2001:db8::{number:x}")
    before = keys.now
    assert keys.ask("192.0.2.1") is not None
    assert keys.ask("192.0.2.2") is not None
    keys.until(before + 1)
    waited = {address: at - before for address, at in keys.had if address.startswith("192")}
    assert max(waited.values()) < 0.05


def test_whose_operations_fail_comes_after_all_others() -> None:
    keys = Keys()
    for number in range(200):
        keys.ask(f"10.0.0.{number % 20}", bad=True)
    keys.until(103.0)
    for number in range(200):
        keys.ask(f"10.0.0.{number % 20}", bad=True)
    asked = [f"192.0.2.{number}" for number in range(30)]
    for address in asked:
        keys.ask(address)
    del keys.had[:]
    keys.until(104.0)
    assert [address for address, _ in keys.had[:30]] == asked
    assert len(keys.had) > 60, "the others had what was left"


def test_a_request_that_was_cancelled_takes_nothing() -> None:
    keys = Keys()
    turns = [keys.ask("192.0.2.1") for _ in range(20)]
    had = len(keys.had)
    for turn in turns[had:]:
        assert turn is not None
        turn.cancel()
    keys.until(110.0)
    assert len(keys.had) == had


def test_requests_are_bounded_for_an_address_and_in_all() -> None:
    keys = Keys(per_group=5, in_all=12)
    while keys.ask("192.0.2.1") is None:
        pass
    waiting = [keys.ask("192.0.2.1") for _ in range(4)]
    with pytest.raises(TooManyWait):
        keys.ask("192.0.2.1")
    for number in range(7):
        keys.ask(f"10.0.0.{number}")
    with pytest.raises(TooManyWait):
        keys.ask("10.0.1.1")
    assert waiting[0] is not None
    waiting[0].cancel()
    keys.ask("10.0.1.1")


def test_what_cannot_wait_overdraws_the_budget_and_not_without_end() -> None:
    keys = Keys()
    had = 0
    with contextlib.suppress(KeyNeeded):
        while keys.turns.at_once(lambda: keys.turns.run(keys.operation, keys.now)):
            had += 1
    assert 20 <= had <= 21
    assert keys.ask("192.0.2.1") is not None
    keys.until(100.095)
    assert keys.had == []
    keys.until(100.12)
    assert len(keys.had) == 1


def test_one_turn_of_the_loop_does_little_even_if_all_may_go() -> None:
    calculated = 0.0
    turns = KeyTurns(1.0, 1.0, clock=lambda: calculated)
    done: list[float] = []

    def operation() -> None:
        nonlocal calculated
        calculated += 0.001
        done.append(calculated)

    for _ in range(1000):
        turns.take("a", lambda: turns.run(operation, 0.0))
    for _ in range(100):
        turns.ask("a", lambda now: turns.run(operation, now), 0.0)
    del done[:]
    turns.expire(1000.0)
    assert 2 <= len(done) <= 3
