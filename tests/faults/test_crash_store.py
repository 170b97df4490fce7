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


LOGS = pytest.mark.parametrize("log_size", [0, 1 << 18])


def kill_often(directory: Path, seed: int, kills: int, log_size: int) -> int:
    """Runs, kills and checks; returns how many commits were acknowledged."""
    rng = random.Random(seed)
    store = directory / "store"
    store.mkdir()
    ledger = Ledger()
    for round_ in range(kills):
        path = directory / f"ledger{round_}"
        child = subprocess.Popen(
            [sys.executable, CHILD, store, str(seed + round_), "100000", path, str(log_size)]
        )
        while not path.exists() or path.stat().st_size == 0:
            assert child.poll() is None
            time.sleep(0.01)
        time.sleep(rng.random() * 0.25)
        assert child.poll() is None
        child.kill()
        child.wait()
        for line in path.read_bytes().split(b"\n")[:-1]:  # the last line may be cut off
            ledger.take(line)
        check_store(store, ledger)
    return ledger.acknowledged


@LOGS
def test_kills_lose_nothing(tmp_path: Path, log_size: int) -> None:
    assert kill_often(tmp_path, seed=1, kills=6, log_size=log_size) > 20


@LOGS
@pytest.mark.long(seconds=180)
@pytest.mark.timeout(600)
def test_many_kills_lose_nothing(tmp_path: Path, log_size: int) -> None:
    assert kill_often(tmp_path, seed=1000, kills=120, log_size=log_size) > 400


FULL_DISK = """
import resource, signal, sys
from msmq_fast._native.lmdbstore import LmdbTables, status_is_full
from msmq_fast._native.lmdbthreads import LmdbWriter
from tests.faults.powercut_child import add, start_log
from tests.support.worlds.stores import commit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
tables = LmdbTables(sys.argv[1], map_size=1 << 30)
writer = LmdbWriter(tables)
if int(sys.argv[2]):
    start_log(tables, writer, int(sys.argv[2]))
resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, resource.RLIM_INFINITY))
kept, status = 0, 0
while status == 0:
    add(writer, kept + 1, 9000)
    status = commit(writer)
    kept += status == 0
    assert kept < 1000
assert status_is_full(status), status
assert not writer.failed
assert tables.count(1) == tables.count(2) == kept > 100
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
add(writer, kept + 1, 9000)
assert commit(writer) == 0
assert tables.count(1) == kept + 1
writer.close()
"""


@LOGS
def test_a_full_disk_stops_nothing_for_good(tmp_path: Path, log_size: int) -> None:
    """A write that the disk refuses, in part or whole, fails its batch only; when there is room again it goes
    on.
    """
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path, str(log_size)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
