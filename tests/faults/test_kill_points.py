"""A store with a redo log is killed in the middle of an apply, of a segment switch, of its replay, and of the
replay of that; an external ledger knows what was acknowledged.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import powercut

pytestmark = pytest.mark.needs("cc")

CHILD = Path(__file__).parent / "powercut_child.py"
LOG_SIZE = 1 << 18  # two segments of 128 KiB: a load goes through them many times
LATEST = {"data": 120, "segment": 150, "head": 8}
"""Up to which write or sync of its kind a load is killed in."""
LATEST_OF_REPLAY = 8


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return powercut.build_shim(tmp_path_factory.mktemp("shim"))


def written(ledger: Path) -> int:
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def kill_load(shim: Path, store: Path, seed: int, ledger: Path, point: str, rng: random.Random) -> bool:
    """Runs a load that is killed at the point; False: it ended before."""
    environment = {**os.environ, "LD_PRELOAD": str(shim)}
    if point != "time":
        environment["SHIM_KILL"] = f"{point} {rng.randint(1, LATEST[point])}"
    commits = 150 if point != "time" else 3_000  # far more than there are before the kill
    lines = 2 * rng.randint(1, 150)
    arguments = [store, str(seed), str(commits), ledger, str(LOG_SIZE)]
    with subprocess.Popen([sys.executable, CHILD, *arguments], env=environment) as child:
        if point == "time":
            while child.poll() is None and written(ledger) < lines:
                time.sleep(0.001)
            child.kill()
        code = child.wait(120)
    assert code in (0, -signal.SIGKILL), f"the load ended with {code}"
    return code != 0


def kill_at_points(shim: Path, directory: Path, seeds: range) -> Counter[str]:
    """One store for all seeds: each kills the load, then two replays, then checks what is there. Returns how
    many kills of each kind there were.
    """
    store = directory / "store"
    store.mkdir()
    ledger, kills = powercut.Ledger(), Counter[str]()
    for seed in seeds:
        rng = random.Random(seed)
        point = ("time", *LATEST)[seed % 4]
        lines = directory / f"ledger{seed}"
        kills[point] += kill_load(shim, store, seed, lines, point, rng)
        for line in lines.read_bytes().split(b"\n")[:-1] if lines.exists() else ():
            ledger.take(line)
        killed = 0
        for _ in range(2):
            target = f"data {rng.randint(1, LATEST_OF_REPLAY)}"
            code = powercut.recover(shim, store, SHIM_KILL=target)
            assert code in (0, -signal.SIGKILL), f"seed {seed}: the replay ended with {code}"
            killed += code != 0
        kills["replay"] += killed > 0
        kills["replay of a replay"] += killed > 1
        powercut.check_store(store, ledger)
    return kills


def test_kills_at_chosen_points_lose_nothing(shim: Path, tmp_path: Path) -> None:
    kills = kill_at_points(shim, tmp_path, range(4))
    assert kills["time"]
    assert kills["replay"]


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(100, 348, 31))
def test_many_kills_at_chosen_points_lose_nothing(shim: Path, tmp_path: Path, first: int) -> None:
    """248 seeds in all, 31 for each store."""
    kills = kill_at_points(shim, tmp_path, range(first, first + 31))
    for point in ("time", *LATEST, "replay of a replay"):
        assert kills[point] >= 4, kills
