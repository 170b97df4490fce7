"""The disk guard: when the intake stops, and when it goes on."""

from __future__ import annotations

from msmq_fast.server.disk import DiskGuard
from msmq_fast.store.watermark import SpaceFigures


def test_the_intake_stops_below_the_mark_and_resumes_with_some_slack() -> None:
    now, told = 0.0, []
    available, failures = [1000], [0]

    def measure() -> SpaceFigures:
        if available[0] < 0:
            raise OSError("gone")
        return SpaceFigures(1, 1, 0, available[0])

    guard = DiskGuard(800, 2.0, lambda: now, measure, lambda: failures[0], told.append)
    assert guard.next_deadline() == 0.0
    for left, expected in ((1000, []), (799, [True]), (850, [True]), (-1, [True]), (900, [True, False])):
        available[0] = left
        guard.expire()
        assert told == expected
        now += 2.0
        assert guard.next_deadline() == now
    assert not guard.low
    failures[0] += 1
    guard.expire()
    assert told == [True, False, True]  # a commit found the disk full
    guard.expire()
    assert told == [True, False, True, False]
