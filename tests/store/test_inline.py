"""Lone batches, which the loop commits to the redo log itself; real time, a real disk."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast.store import records
from msmq_fast.store.schema import MetaName, Table
from tests.support.worlds.stores import commit

LOG = 4 << 20
QUICK = 10_000_000
"""Microseconds: no commit of a test takes longer."""


class Load:
    """A writer, and what it told."""

    def __init__(self, directory: Path, inline_us: int, *, log: bool = True) -> None:
        self.tables = LmdbTables(directory, map_size=1 << 26)
        self.writer = LmdbWriter(self.tables, inline_us=inline_us)
        self.writer.put_record(Table.META, MetaName.SCHEMA, records.cold(1))
        assert commit(self.writer) == 0
        if log:
            self.tables.start_log(LOG)
        self.told: list[int] = []
        self.number = 0

    def gather(self, units: int, size: int = 100) -> None:
        for _ in range(units):
            self.number += 1
            with self.writer.unit():
                self.writer.put_record(Table.META, b"n%08d" % self.number, bytes(size))
                self.writer.when_durable(self.told.append)

    def commit(self, units: int = 1, size: int = 100) -> bool:
        """Whether it was committed when the call returned; it is waited for otherwise."""
        wanted = len(self.told) + units
        self.gather(units, size)
        self.writer.submit_or_commit()
        here = len(self.told) == wanted
        while len(self.told) < wanted:
            select.select([self.writer.fileno()], [], [])
            self.writer.complete()
        assert not any(self.told)
        return here

    @property
    def inline_commits(self) -> int:
        return self.writer.statistics()["log"]["inline_commits"]

    def close(self) -> None:
        self.writer.close()
        self.tables.close()


def settled(load: Load) -> None:
    """Nothing is being applied: it would be in the way."""
    load.tables.settle()


def test_lone_batches_are_committed_at_once(tmp_path: Path) -> None:
    load = Load(tmp_path, QUICK)
    assert [load.commit() for _ in range(3)] == [False] * 3, "the first one was that of the schema version"
    settled(load)
    assert load.commit()
    assert load.inline_commits == 1
    load.close()
    tables = LmdbTables(tmp_path, read_only=True)
    assert tables.count(Table.META) >= 5
    assert tables.get(Table.META, b"n%08d" % 4) == bytes(100)
    tables.close()


@pytest.mark.parametrize(("units", "size"), [(5, 100), (1, 40_000)])
def test_others_go_to_the_thread(tmp_path: Path, units: int, size: int) -> None:
    load = Load(tmp_path, QUICK)
    for _ in range(3):
        load.commit()
    settled(load)
    assert not load.commit(units, size)
    settled(load)
    assert not load.commit(), "one of them shows that there is other work"
    assert load.inline_commits == 0
    load.close()


@pytest.mark.parametrize(("inline_us", "log"), [(0, True), (1, True), (QUICK, False)])
def test_a_slow_disk_and_a_store_without_a_log_leave_all_to_the_thread(
    tmp_path: Path, inline_us: int, log: bool
) -> None:
    load = Load(tmp_path, inline_us, log=log)
    for _ in range(10):
        assert not load.commit()
        settled(load)
    assert load.inline_commits == 0
    load.close()


def test_plain_submit_leaves_all_to_the_thread(tmp_path: Path) -> None:
    load = Load(tmp_path, QUICK)
    for _ in range(3):
        load.commit()
    settled(load)
    load.gather(1)
    load.writer.submit()
    assert len(load.told) == 3
    load.close()
    assert len(load.told) == 4


def test_a_commit_that_fails_here_fails_as_elsewhere(tmp_path: Path) -> None:
    load = Load(tmp_path, QUICK)
    for _ in range(3):
        load.commit()
    settled(load)
    load.gather(1)
    load.writer.fail_batch(28)
    load.writer.submit_or_commit()
    assert load.told == [0, 0, 0, 28]
    load.told.clear()
    settled(load)
    assert load.commit(), "a lack of space ends nothing"
    load.close()
