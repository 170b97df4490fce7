"""A store's process is killed within a write: some of its sectors are in the file, the others are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.slowdisk import Cut, environment
from tests.faults.powercut import Ledger, check_store

CHILD = Path(__file__).parent / "powercut_child.py"
LOGS = pytest.mark.parametrize("log_size", [0, 1 << 18])
WRITES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.pwrite(file, b"a" * 4096, 0)
os.pwritev(file, [b"b" * 1000, b"c" * 1000], 300)
os.pwrite(file, b"d" * 4096, 4096)
"""
pytestmark = pytest.mark.needs("cc")


def run_until_cut(command: list[str], library: Path, cut: Cut) -> None:
    done = subprocess.run([sys.executable, *command], env=os.environ | environment(0, library, cut=cut))
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("seed", range(8))
def test_a_torn_write_ends_at_a_sector(tmp_path: Path, seed: int) -> None:
    store = tmp_path / "store"
    store.mkdir()
    run_until_cut(["-c", WRITES, str(store / "file")], tmp_path, Cut(store, 2, seed))
    found = (store / "file").read_bytes()
    whole = bytearray(b"a" * 4096)
    possible = [bytes(whole)]
    for start, end in ((300, 512), (512, 1024), (1024, 1536), (1536, 2048)):
        whole[start:end] = (b"b" * 1000 + b"c" * 1000)[start - 300 : end - 300]
        possible.append(bytes(whole))
    assert found in possible


def test_seeds_choose_different_sectors(tmp_path: Path) -> None:
    found = set()
    for seed in range(8):
        store = tmp_path / str(seed)
        store.mkdir()
        run_until_cut(["-c", WRITES, str(store / "file")], tmp_path, Cut(store, 3, seed))
        found.add((store / "file").stat().st_size)
    assert len(found) > 2
    assert all(4096 <= size < 8192 and size % 512 == 0 for size in found)


def lose_nothing(directory: Path, seed: int, writes: range, log_size: int) -> None:
    for write in writes:
        store, path = directory / f"store{write}", directory / f"ledger{write}"
        store.mkdir()
        run_until_cut(
            [str(CHILD), str(store), str(seed), "100000", str(path), str(log_size)],
            directory,
            Cut(store, write, seed),
        )
        ledger = Ledger()
        for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
            ledger.take(line)
        check_store(store, ledger)


@LOGS
def test_torn_writes_lose_nothing(tmp_path: Path, log_size: int) -> None:
    lose_nothing(tmp_path, 1, range(20, 120, 25), log_size)


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(2, 6))
@LOGS
def test_every_torn_write_loses_nothing(tmp_path: Path, seed: int, log_size: int) -> None:
    lose_nothing(tmp_path, seed, range(2, 62, 2), log_size)  # the first write makes the data file
