"""The interval of snapshots: a real store and a directory as object storage, with a clock of its own."""

from __future__ import annotations

import json
import queue
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.server.runtime.snapshot_schedule import RETRY_S, SnapshotSchedule
from msmq_fast.store.objects.catalogue import owner_of
from msmq_fast.store.objects.storage import ObjectStorage
from msmq_fast.store.snapshots import Snapshots
from msmq_fast.store.store import Store, StoreOptions

pytestmark = pytest.mark.needs(modules=("obstore",))

HOUR = 3600.0


class Rig:
    """A schedule that runs every hour; `step` runs it once and waits for what it has started."""

    def __init__(self, directory: Path) -> None:
        self.place = directory / "objects"
        self.place.mkdir()
        self.now = 1_800_000_000.0
        self._delivered: queue.Queue[Callable[[], object]] = queue.Queue()
        self._store = Store.open(
            directory / "data",
            now_s=int(self.now),
            random=random.Random(1),
            options=StoreOptions(map_size=64 << 20, force_place=True),
        )
        self._storage = ObjectStorage(f"file://{self.place}", directory / "data" / "snapshot.tmp", keep=9)
        self.restart()

    def restart(self) -> None:
        self.snapshots = Snapshots(
            cast(LmdbTables, self._store.tables), lambda: int(self.now), self._delivered.put, self._storage
        )
        owner = owner_of(self._store.guid)
        self.schedule = SnapshotSchedule(self.snapshots, HOUR, owner, lambda: self.now, lambda: self.now)

    def step(self) -> float:
        """Seconds until the next attempt."""
        due = self.schedule.next_deadline()
        assert due is not None
        self.now = max(self.now, due)
        self.schedule.expire(self.now)
        if self.schedule.next_deadline() is None:
            self._delivered.get(timeout=30)()
        after = self.schedule.next_deadline()
        assert after is not None
        return after - self.now

    @property
    def stored(self) -> int:
        return len(list(self.place.glob("*/manifest.json")))

    def close(self) -> None:
        self.snapshots.close()
        self._store.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def test_a_snapshot_each_hour_from_the_start_on(rig: Rig) -> None:
    assert (rig.step(), rig.stored) == (0, 0)  # the look-up
    for count in (1, 2, 3):
        assert (rig.step(), rig.stored) == (HOUR, count)


def test_a_restart_continues_the_interval(rig: Rig) -> None:
    rig.step()
    rig.step()
    rig.now += 1000
    rig.restart()
    assert rig.step() == HOUR - 1000
    assert rig.stored == 1
    assert (rig.step(), rig.stored) == (HOUR, 2)
    rig.now += 5 * HOUR
    rig.restart()
    assert rig.step() == 0


def test_a_clock_that_was_set_back_does_not_postpone_snapshots(rig: Rig) -> None:
    rig.step()
    rig.step()
    rig.now -= 100 * HOUR
    rig.restart()
    assert rig.step() == HOUR


def test_after_failures_it_tries_again_sooner(rig: Rig) -> None:
    away = rig.place.with_name("away")
    rig.place.rename(away)
    assert rig.step() == RETRY_S  # no look-up
    away.rename(rig.place)
    rig.step()
    rig.place.rename(away)
    assert rig.step() == RETRY_S  # no snapshot
    assert rig.snapshots.failed == 1
    away.rename(rig.place)
    assert (rig.step(), rig.stored) == (HOUR, 1)


def test_a_damaged_snapshot_does_not_stop_the_schedule(rig: Rig) -> None:
    rig.step()
    rig.step()
    (manifest,) = rig.place.glob("*/manifest.json")
    manifest.write_text(json.dumps({"format": 1}))
    rig.restart()
    assert rig.step() == 0
