"""Failed log-ons: what slows down, what is locked, and who is not concerned."""

from __future__ import annotations

import pytest

from msmq_fast.security import logons
from msmq_fast.security.logons import LogonLimits

ATTACKER, HOME = "10.0.0.66", "10.0.0.1"


class Desk:
    """A limit under a clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.limits = LogonLimits(lambda: self.now)

    def right(self, account: str = "alice", address: str = HOME) -> bool:
        return self.limits.admit(account, address, proven=True) is None

    def wrong(self, account: str = "alice", address: str = ATTACKER) -> str:
        reason = self.limits.admit(account, address, proven=False)
        assert reason is not None
        return reason


def test_five_failures_are_free_and_the_sixth_waits_twice_as_long_each_time() -> None:
    desk = Desk()
    for _ in range(4):
        desk.wrong(address=HOME)
    assert desk.right()  # who mistypes four times is let in, and begins anew
    for _ in range(5):
        assert desk.wrong(address=HOME) == "wrong name or secret"
    for seconds in (1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300):
        assert not desk.right()
        desk.now += seconds - 0.5
        assert not desk.right()
        desk.now += 0.6
        desk.wrong(address=HOME)
    desk.now += 301
    assert desk.right()
    assert desk.right()


def test_attempts_during_a_lock_do_not_lengthen_it() -> None:
    desk = Desk()
    for _ in range(5):
        desk.wrong(address=HOME)
    for _ in range(1000):
        assert "locked for 1 s after 5 failures" in desk.wrong(address=HOME)
    desk.now += 1.1
    assert desk.right()


def test_a_guesser_does_not_lock_the_user_out_elsewhere() -> None:
    desk = Desk()
    for _ in range(500):
        desk.wrong(address=ATTACKER)
    assert desk.right(address=HOME)
    assert desk.right(address="2001:db8::1")
    assert not desk.right(address=ATTACKER)


def test_one_secret_tried_with_many_names_locks_the_address() -> None:
    desk = Desk()
    assert desk.right("bob", ATTACKER)  # a neighbour behind the same NAT, who is at work
    for number in range(20):
        desk.wrong(f"user{number}")
    assert "the address is locked" in desk.wrong("carol")
    assert not desk.right("carol", ATTACKER)
    assert desk.right("bob", ATTACKER)
    assert desk.right("carol", HOME)


def test_an_ipv6_network_is_one_address() -> None:
    desk = Desk()
    for number in range(5):
        desk.wrong(address=f"2001:db8::{number:x}")
    assert "locked" in desk.wrong(address="2001:db8::ffff")
    assert desk.right(address="2001:db8:1::1")


def test_a_guesser_with_many_addresses_is_slowed_down() -> None:
    desk = Desk()
    assert desk.right()
    tried = 0
    for second in range(100):
        for number in range(100):
            tried += desk.wrong(address=f"10.{second}.{number}.1") == "wrong name or secret"
        desk.now += 1
    assert tried == pytest.approx(100 + 99 * 10, abs=15)
    assert desk.right()  # has logged on from there before


def test_names_that_do_not_exist_push_nothing_out() -> None:
    desk = Desk()
    for _ in range(5):
        desk.wrong()
    for number in range(30_000):
        desk.now += 0.2 if number % 2 else 0.0
        desk.limits.admit("", f"10.{number >> 8 & 255}.{number & 255}.2", proven=False)
    assert len(desk.limits._pairs) <= 10_000
    assert len(desk.limits._groups) <= 10_000


def test_what_was_long_ago_is_forgotten() -> None:
    desk = Desk()
    for _ in range(12):
        desk.wrong()
        desk.now += 301
    desk.now += logons.MEMORY + 1
    for _ in range(4):
        desk.wrong()
    assert desk.right(address=ATTACKER)


def test_an_address_that_is_locked_is_known_before_its_secrets_are_verified() -> None:
    desk = Desk()
    assert desk.right()
    for number in range(logons.FREE_IN_ALL):
        assert not desk.limits.bars(f"other-{number}", ATTACKER)
        desk.limits.admit(f"other-{number}", ATTACKER, proven=False)
    assert desk.limits.bars("alice", ATTACKER)
    assert desk.limits.bars("", ATTACKER)
    assert not desk.limits.bars("", "10.77.0.1")
    desk.now += 400
    assert not desk.limits.bars("alice", ATTACKER)


def test_whether_an_account_is_locked_shows_in_no_duration() -> None:
    desk = Desk()
    for _ in range(logons.FREE):
        desk.limits.admit("alice", ATTACKER, proven=False)
    assert "locked" in (desk.limits.admit("alice", ATTACKER, proven=True) or "")
    assert not desk.limits.bars("alice", ATTACKER)
