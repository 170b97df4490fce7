"""Callbacks at points in time."""

from __future__ import annotations

from msmq_fast.rpc.client.timers import Timers


class Clock:
    now = 100.0


def test_they_happen_in_their_order_and_once() -> None:
    clock, seen = Clock(), []
    timers = Timers(lambda: clock.now)
    timers.after(3, lambda: seen.append("late"))
    timers.after(1, lambda: seen.append("soon"))
    assert timers.next_deadline() == 101
    timers.expire(clock.now)
    assert seen == []
    clock.now = 103
    timers.expire(clock.now)
    timers.expire(clock.now)
    assert seen == ["soon", "late"]
    assert timers.next_deadline() is None


def test_cancelled_ones_do_not_happen_and_are_forgotten() -> None:
    clock, seen = Clock(), []
    timers = Timers(lambda: clock.now)
    kept = timers.after(1000, lambda: seen.append("kept"))
    for _ in range(10_000):
        timers.after(300, lambda: seen.append("cancelled")).cancel()
    assert len(timers._heap) < 200
    assert timers.next_deadline() == 1100
    clock.now = 2000
    timers.expire(clock.now)
    assert seen == ["kept"]
    kept.cancel()


def test_a_callback_may_start_another() -> None:
    clock, seen = Clock(), []
    timers = Timers(lambda: clock.now)
    timers.after(1, lambda: timers.after(0, lambda: seen.append("second")))
    clock.now = 101
    timers.expire(clock.now)
    assert seen == ["second"]
