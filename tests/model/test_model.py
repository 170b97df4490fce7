"""The whole queue manager against a naive model of it: see driver.py and model.py."""

from __future__ import annotations

import pytest

from .driver import Disagreement, Driver

SEEDS = 200
PART = 20  # seeds of one long test


def run(seed: int, operations: int) -> None:
    driver = Driver(seed)
    try:
        driver.run(operations)
    except Exception as error:
        tail = "\n".join(driver.log)
        how = f"to see it again: python -m tests.model {seed} {driver.count}"
        what = str(error) if isinstance(error, Disagreement) else repr(error)
        pytest.fail(f"{tail}\noperation {driver.count}: {what}\n{how}", pytrace=False)


@pytest.mark.rule("DM-252", "X-54", "X-56", "X-57", "DM-094", "DM-141")
@pytest.mark.parametrize("seed", range(3))
def test_a_short_run(seed: int) -> None:
    run(seed, 2_000)


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_long_runs(first: int) -> None:
    for seed in range(first, first + PART):
        run(seed, 20_000)
