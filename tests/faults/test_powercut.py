"""Nothing that was acknowledged is lost when everything after the last sync is dropped or torn."""

from __future__ import annotations

import copy
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


LOGS = pytest.mark.parametrize("log_size", [0, 1 << 18])


def cut_often(shim: Path, directory: Path, seed: int, commits: int, cuts: int, log_size: int) -> None:
    done = powercut.run_child(shim, directory, seed, commits, log_size=log_size)
    assert done.returncode == 0, done.stderr
    disk = powercut.Disk((directory / "log").read_bytes())
    seen = {(kind, file) for kind, file, _offset, _data in disk.records}
    logged = {(b"T", 1), (b"T", 2), (b"W", 1), (b"W", 2), (b"S", 1), (b"S", 2)}
    # Writes, meta pages, syncs and acknowledgments are recorded.
    assert seen == {(b"W", 0), (b"D", 0), (b"S", 0), (b"A", 0), *(logged if log_size else ())}
    for run in range(cuts):
        rng = random.Random(seed * 1000 + run)
        images, ledger, place = disk.cut(rng)
        store = directory / f"cut{run}"
        powercut.write_images(images, store)
        try:
            if log_size:
                cut_again(shim, directory / f"again{run}", images, ledger, rng)
            powercut.check_store(store, ledger)
        except StoreError as error:
            raise AssertionError(f"seed {seed}, cut {run} at record {place}: {error}") from error
        shutil.rmtree(store)


def cut_again(
    shim: Path, directory: Path, images: powercut.Images, ledger: powercut.Ledger, rng: random.Random
) -> None:
    """The power goes out while the store is opened after a cut, twice."""
    directory.mkdir()
    for number in range(2):
        store = directory / str(number)
        powercut.write_images(images, store)
        assert powercut.recover(shim, store, SHIM_LOG=str(directory / f"record{number}")) == 0
        images, _, _ = powercut.Disk((directory / f"record{number}").read_bytes(), images).cut(rng, 0)
    store = directory / "end"
    powercut.write_images(images, store)
    powercut.check_store(store, copy.deepcopy(ledger))
    shutil.rmtree(directory)


@LOGS
@pytest.mark.rule("KV-G2", "DM-106")
def test_power_cuts_lose_nothing(shim: Path, tmp_path: Path, log_size: int) -> None:
    for seed in range(3):
        cut_often(shim, tmp_path / str(seed), seed, commits=40, cuts=5, log_size=log_size)


@pytest.mark.long(seconds=240)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("log_size", "first", "loads"), [(0, 100, 12), *((1 << 18, 112 + 5 * i, 5) for i in range(10))]
)
def test_many_power_cuts_lose_nothing(
    shim: Path, tmp_path: Path, log_size: int, first: int, loads: int
) -> None:
    """1,000 cuts of a store with a redo log, each followed by two cuts of its replay; 240 without a log."""
    for seed in range(first, first + loads):
        cut_often(shim, tmp_path / str(seed), seed, commits=80, cuts=20, log_size=log_size)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("log_size", [0, 1 << 22])  # most commits stand in a large log until the cut
def test_the_check_notices_a_store_that_does_not_sync(shim: Path, tmp_path: Path, log_size: int) -> None:
    """The same cuts with the syncs taken out of the record must be noticed: otherwise the test above proves
    nothing.
    """
    directory = tmp_path / "unsynced"
    assert powercut.run_child(shim, directory, seed=5, commits=40, log_size=log_size).returncode == 0
    disk = powercut.Disk((directory / "log").read_bytes())
    first = next(i for i, record in enumerate(disk.records) if record[0] == b"A")
    disk.records = [
        (kind, file, offset, data)
        for i, (kind, file, offset, data) in enumerate(disk.records)
        if i <= first or kind != b"S" or (file == 0 and log_size)
    ]
    noticed = 0
    for run in range(8):
        images, ledger, _place = disk.cut(random.Random(run))
        store = directory / f"cut{run}"
        powercut.write_images(images, store)
        noticed += not powercut.check_apart(store, ledger)  # reading such a file may crash liblmdb
    assert noticed


@pytest.mark.rule("KV-G5")
@LOGS
@pytest.mark.parametrize("what", ["SHIM_FAIL_SYNC", "SHIM_FAIL_WRITE"])
def test_an_io_error_ends_acknowledging(shim: Path, tmp_path: Path, what: str, log_size: int) -> None:
    """A commit whose write or sync failed is reported as failed, and the writer accepts nothing more."""
    trigger = tmp_path / "fail"
    directory = tmp_path / "run"
    done = powercut.run_child(shim, directory, 1, 30, log_size=log_size, fail_after=3, **{what: str(trigger)})
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == [f"status {errno.EIO} failed True", "refused"]
    ledger = powercut.Ledger()
    for line in (directory / "ledger").read_bytes().splitlines():
        ledger.take(line)
    assert ledger.acknowledged == 3
    powercut.check_store(directory / "store", ledger)
