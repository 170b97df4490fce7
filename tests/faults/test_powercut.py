"""Nothing that was acknowledged is lost when everything after the last sync is dropped or torn."""

from __future__ import annotations

import errno
import random
import shutil
from pathlib import Path

import pytest

from msmq_fast._native.tables import StoreError
from tests.faults import powercut

pytestmark = pytest.mark.needs("cc")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return powercut.build_shim(tmp_path_factory.mktemp("shim"))


def cut_often(shim: Path, directory: Path, seed: int, commits: int, cuts: int) -> None:
    done = powercut.run_child(shim, directory, seed, commits)
    assert done.returncode == 0, done.stderr
    disk = powercut.Disk((directory / "log").read_bytes())
    kinds = {kind for kind, _offset, _data in disk.records}
    assert kinds == {b"W", b"D", b"S", b"A"}, "writes, meta pages, syncs and acknowledgments are recorded"
    for run in range(cuts):
        rng = random.Random(seed * 1000 + run)
        image, ledger, place = disk.cut(rng)
        store = directory / f"cut{run}"
        store.mkdir()
        (store / "data.mdb").write_bytes(image)
        try:
            powercut.check_store(store, ledger)
        except StoreError as error:
            raise AssertionError(f"seed {seed}, cut {run} at record {place}: {error}") from error
        shutil.rmtree(store)


@pytest.mark.rule("KV-G2", "DM-106")
def test_power_cuts_lose_nothing(shim: Path, tmp_path: Path) -> None:
    for seed in range(3):
        cut_often(shim, tmp_path / str(seed), seed, commits=40, cuts=5)


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(600)
def test_many_power_cuts_lose_nothing(shim: Path, tmp_path: Path) -> None:
    for seed in range(100, 112):
        cut_often(shim, tmp_path / str(seed), seed, commits=80, cuts=20)
        shutil.rmtree(tmp_path / str(seed))


def test_the_check_notices_a_store_that_does_not_sync(shim: Path, tmp_path: Path) -> None:
    """The same cuts with the syncs taken out of the record must be noticed: otherwise the test above proves
    nothing.
    """
    directory = tmp_path / "unsynced"
    assert powercut.run_child(shim, directory, seed=5, commits=40).returncode == 0
    disk = powercut.Disk((directory / "log").read_bytes())
    first = next(i for i, record in enumerate(disk.records) if record[0] == b"A")
    disk.records = [r for i, r in enumerate(disk.records) if i <= first or r[0] != b"S"]
    noticed = 0
    for run in range(8):
        image, ledger, _place = disk.cut(random.Random(run))
        store = directory / f"cut{run}"
        store.mkdir()
        (store / "data.mdb").write_bytes(image)
        noticed += not powercut.check_apart(store, ledger)  # reading such a file may crash liblmdb
    assert noticed


@pytest.mark.rule("KV-G5")
@pytest.mark.parametrize("what", ["SHIM_FAIL_SYNC", "SHIM_FAIL_WRITE"])
def test_an_io_error_ends_acknowledging(shim: Path, tmp_path: Path, what: str) -> None:
    """A commit whose write or sync failed is reported as failed, and the writer accepts nothing more."""
    trigger = tmp_path / "fail"
    directory = tmp_path / "run"
    done = powercut.run_child(shim, directory, 1, 30, fail_after=3, **{what: str(trigger)})
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == [f"status {errno.EIO} failed True", "refused"]
    ledger = powercut.Ledger()
    for line in (directory / "ledger").read_bytes().splitlines():
        ledger.take(line)
    assert ledger.acknowledged == 3
    powercut.check_store(directory / "store", ledger)
