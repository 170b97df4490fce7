"""Timers: started and cancelled (the usual end), and run out."""

from __future__ import annotations

from typing import Any

import pytest

from bench.micro import MESSAGES
from msmq_fast._native.wheel import TimerWheel

pytestmark = pytest.mark.benchmark(group=f"wheel, {MESSAGES} timers")


@pytest.mark.parametrize("others", [0, 100_000])
def test_start_and_cancel(benchmark: Any, others: int) -> None:
    wheel = TimerWheel(0)
    for number in range(others):
        wheel.add(1_000 + number * 37)

    def start_and_cancel() -> None:
        handles = [wheel.add(500 + number) for number in range(MESSAGES)]
        for handle in handles:
            wheel.cancel(handle)

    benchmark(start_and_cancel)
    assert wheel.count == others


def test_run_out(benchmark: Any) -> None:
    wheel = TimerWheel(0)

    def run_out() -> int:
        due = wheel.now + 100
        for number in range(MESSAGES):
            wheel.add(due, number)
        return len(wheel.pop(due))

    assert benchmark(run_out) == MESSAGES
