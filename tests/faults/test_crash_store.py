"""A store's process is killed at random moments, again and again; an external ledger knows what was
acknowledged.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.powercut import Ledger, check_store

CHILD = Path(__file__).parent / "powercut_child.py"


def kill_often(directory: Path, seed: int, kills: int) -> int:
    """Runs, kills and checks; returns how many commits were acknowledged."""
    rng = random.Random(seed)
    store = directory / "store"
    store.mkdir()
    ledger = Ledger()
    for round_ in range(kills):
        path = directory / f"ledger{round_}"
        child = subprocess.Popen([sys.executable, CHILD, store, str(seed + round_), "100000", path])
        while not path.exists() or path.stat().st_size == 0:
            assert child.poll() is None
            time.sleep(0.01)
        time.sleep(rng.random() * 0.25)
        child.kill()
        child.wait()
        for line in path.read_bytes().split(b"\n")[:-1]:  # the last line may be cut off
            ledger.take(line)
        check_store(store, ledger)
    return ledger.acknowledged


def test_kills_lose_nothing(tmp_path: Path) -> None:
    assert kill_often(tmp_path, seed=1, kills=6) > 20


@pytest.mark.long(seconds=90)
@pytest.mark.timeout(300)
def test_many_kills_lose_nothing(tmp_path: Path) -> None:
    assert kill_often(tmp_path, seed=1000, kills=120) > 400
