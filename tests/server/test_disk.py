"""The disk guard: when the intake stops, and when it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.server.runtime.disk import DiskGuard
from msmq_fast.server.runtime.memory import available_memory
from msmq_fast.store.watermark import SpaceFigures


@pytest.mark.rule("DM-211", "DM-212")
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
        guard.expire(now)
        assert told == expected
        now += 2.0
        assert guard.next_deadline() == now
    assert not guard.low
    failures[0] += 1
    guard.expire(now)
    assert told == [True, False, True]  # a commit found the disk full
    guard.expire(now)
    assert told == [True, False, True, False]


def test_a_full_disk_is_told_once_not_with_every_trial(caplog: pytest.LogCaptureFixture) -> None:
    """Without a mark the intake opens after each interval to try: that is not worth two lines each time."""
    failures, told = [0], []
    space = SpaceFigures(1, 1, 0, 65_536)
    guard = DiskGuard(0, 2.0, lambda: 0.0, lambda: space, lambda: failures[0], told.append)
    caplog.set_level("INFO")
    for _ in range(5):
        failures[0] += 1
        guard.expire(0.0)
        guard.expire(0.0)
    assert told == [True, False] * 5
    assert [record.message for record in caplog.records] == [
        "the disk is full: a commit failed, the server accepts no messages"
    ]
    guard.expire(0.0)
    assert caplog.records[-1].message == "the disk has space again: commits succeed"
    guard.expire(0.0)
    assert len(caplog.records) == 2


def test_the_memory_of_a_container_counts(tmp_path: Path) -> None:
    limit, unlimited = tmp_path / "limit", tmp_path / "unlimited"
    limit.write_text("1048576\n")
    unlimited.write_text("max\n")
    machine = available_memory((unlimited, tmp_path / "missing"))
    assert machine > 1 << 26
    assert available_memory((unlimited, limit)) == 1 << 20
