"""Whole servers that crash, in a network that fails: see simulation.py. A failing seed says how to see it
again.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .simulation import Simulation

ROOT = Path(__file__).parents[2]
SEEDS = 50
HTTP_SEEDS = 10
LONG_SEEDS = 1_000
LONG_HTTP_SEEDS = 500
PART = 50  # seeds of one long test


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """What the servers say of lost connections and full disks would fill the memory of the test run."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.rule("QB-099", "QB-106", "QB-117", "QB-199", "QB-224", "QB-298", "QB-337", "DU-13")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_everything_arrives_as_it_was_promised(seed: int) -> None:
    simulation = Simulation(seed)
    try:
        simulation.run()
    except Exception as error:
        pytest.fail(
            f"{error!r} after {simulation.timeline.now:.3f} s of simulated time\n{simulation.summary()}\n"
            f"to see it again: python -m tests.simulator --seed {seed} --trace"
        )


def test_the_runs_have_trouble_of_every_kind() -> None:
    """A simulator in which nothing goes wrong proves nothing."""
    seen = dict.fromkeys(("crashes", "cuts", "stalls", "severed", "full disks", "duplicates", "relayed"), 0)
    for seed in range(0, SEEDS, 7):
        simulation = Simulation(seed)
        simulation.run()
        seen["crashes"] += simulation.crashes
        seen["cuts"] += simulation.cuts
        seen["stalls"] += simulation.stalls
        seen["severed"] += simulation.severed
        seen["full disks"] += simulation.full
        seen["duplicates"] += simulation.account.repeated
        seen["relayed"] += simulation.relayed
    assert all(seen.values()), seen


@pytest.mark.rule("SR-062", "SR-072", "SR-108", "SR-126", "SR-208", "SR-210")
@pytest.mark.parametrize("seed", range(HTTP_SEEDS))
def test_everything_arrives_over_http(seed: int) -> None:
    """Messages and streams by SRMP; beside all other trouble, servers that answer 500, before or after they
    have taken a message, and slowly.
    """
    simulation = Simulation(seed, http=True)
    try:
        simulation.run()
    except Exception as error:
        pytest.fail(
            f"{error!r} after {simulation.timeline.now:.3f} s of simulated time\n{simulation.summary()}\n"
            f"to see it again: python -m tests.simulator --http --seed {seed} --trace"
        )


def test_the_runs_over_http_have_trouble_of_every_kind() -> None:
    seen = dict.fromkeys(("crashes", "cuts", "answers", "duplicates"), 0)
    for seed in range(0, HTTP_SEEDS, 3):
        simulation = Simulation(seed, http=True)
        simulation.run()
        seen["crashes"] += simulation.crashes
        seen["cuts"] += simulation.cuts
        seen["answers"] += sum(computer.web.seen for computer in simulation.computers)
        seen["duplicates"] += simulation.account.repeated
    assert all(seen.values()), seen


def _run(seed: int, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulator", *options, "--seed", str(seed)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def _run_all(seeds: range, *options: str) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(zip(seeds, pool.map(lambda seed: _run(seed, *options), seeds), strict=True))
    failed = [
        f"{run.stdout[-3000:]}{run.stderr[-3000:]}\n"
        f"to see it again: python -m tests.simulator {' '.join(options)} --seed {seed}"
        for seed, run in runs
        if run.returncode
    ]
    if failed:
        pytest.fail("\n\n".join(failed), pytrace=False)


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, PART))
def test_a_thousand_seeds(first: int) -> None:
    _run_all(range(first, first + PART), "--long")


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("first", range(0, LONG_HTTP_SEEDS, PART))
def test_five_hundred_seeds_over_http(first: int) -> None:
    _run_all(range(first, first + PART), "--http")
