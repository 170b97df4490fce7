"""The whole queue manager against a naive model of it: see driver.py and model.py."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .driver import Driver
from .visible import Disagreement

ROOT = Path(__file__).parents[2]
SEEDS = 200
PART = 20  # seeds of one long test
OPERATIONS = 20_000


@pytest.mark.rule("DM-100", "DM-141", "DM-252", "X-33", "X-54", "X-56")
@pytest.mark.parametrize("seed", range(3))
def test_a_short_run(seed: int) -> None:
    driver = Driver(seed)
    try:
        driver.run(2_000)
    except Disagreement as error:
        tail = "\n".join(driver.log)
        how = f"to see it again: python -m tests.model {seed}"
        pytest.fail(f"{tail}\noperation {driver.count}: {error}\n{how}", pytrace=False)


def _run(seed: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.model", str(seed), str(OPERATIONS)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long(seconds=40)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_long_runs(first: int) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(zip(range(first, first + PART), pool.map(_run, range(first, first + PART)), strict=True))
    failed = [
        f"{run.stdout}{run.stderr}\nto see it again: python -m tests.model {seed}"
        for seed, run in runs
        if run.returncode
    ]
    if failed:
        pytest.fail("\n\n".join(failed), pytrace=False)
