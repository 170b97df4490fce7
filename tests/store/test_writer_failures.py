"""Failures of the batch writers: commits, full maps, bad calls, and listeners that raise."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from msmq_fast._native.lmdbstore import LmdbTables, status_is_full
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store.schema import Table
from tests.support.worlds.stores import commit


def test_the_feed_has_no_hole_after_a_failed_commit() -> None:
    writer = MemoryWriter()
    for status in (0, errno.ENOSPC, 0):
        writer.add_entry(Table.FEED, bytes(56))
        writer.submit()
        writer.complete_one(status)
    keys = [int.from_bytes(key, "big") for key, _ in writer.tables.scan(Table.FEED)]
    assert keys == [1, 2]


@pytest.mark.rule("KV-G5")
def test_an_io_error_is_final_and_a_full_disk_is_not() -> None:
    writer = MemoryWriter()
    told: list[int] = []
    failures: list[int] = []
    writer.on_failure.connect(failures.append)
    writer.fail_commit(1, errno.ENOSPC)
    writer.put_record(0, b"a", b"1")
    writer.when_durable(told.append)
    writer.complete_all()
    assert told == [errno.ENOSPC]
    assert status_is_full(told[0])
    assert not failures
    writer.put_record(0, b"b", b"1")
    writer.complete_all()
    assert writer.tables.tables[0] == {b"b": b"1"}
    writer.put_record(0, b"c", b"1")
    writer.submit()
    writer.put_record(0, b"d", b"1")
    writer.when_durable(told.append)
    writer.complete_one(errno.EIO)
    assert writer.failed
    assert failures == [errno.EIO]
    with pytest.raises(StoreError, match="accepts nothing more"):
        writer.put_record(0, b"e", b"1")
    writer.complete_one()
    assert told[1] != 0, "what was gathered before fails too"
    assert writer.tables.tables[0] == {b"b": b"1"}
    assert failures == [errno.EIO], "told once"


def test_every_call_can_be_made_to_fail() -> None:
    writer = MemoryWriter()
    writer.fail_call(3)
    writer.begin_unit()
    writer.put_record(0, b"a", b"1")
    with pytest.raises(StoreError):
        writer.put_record(0, b"b", b"1")
    writer.roll_back()
    writer.complete_all()
    assert writer.tables.tables[0] == {}


def test_a_listener_that_raises_does_not_harm_the_others() -> None:
    writer = MemoryWriter()
    told: list[int] = []

    def fail(_status: int) -> None:
        raise RuntimeError("broken listener")

    writer.when_durable(fail)
    writer.when_durable(told.append)
    writer.submit()
    with pytest.raises(RuntimeError, match="broken listener"):
        writer.complete_one()
    assert told == [0]


@pytest.mark.rule("KV-G3")
def test_a_full_map_fails_the_batch_and_later_ones_succeed(tmp_path: Path) -> None:
    tables = LmdbTables(tmp_path, map_size=1 << 20)
    writer = LmdbWriter(tables)
    content_id, status = 0, 0
    while status == 0:
        content_id += 1
        writer.put_content(content_id, bytes(50_000))
        status = commit(writer)
        assert content_id < 100
    assert status_is_full(status)
    assert not writer.failed
    assert tables.count(Table.CONTENT) == content_id - 1
    for gone in range(1, content_id):
        writer.delete_content(gone, 50_000)
    assert commit(writer) == 0
    writer.put_record(Table.META, b"next", b"")  # freed pages are reused from the commit after the next on
    assert commit(writer) == 0
    writer.put_content(content_id + 1, bytes(50_000))
    assert commit(writer) == 0
    writer.close()
    tables.close()


def test_bad_calls_are_refused(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    for key in (b"", bytes(512)):
        with pytest.raises(ValueError, match="511"):
            writer.put_record(0, key, b"")
    for table in (-1, len(Table)):
        with pytest.raises(ValueError, match="table"):
            writer.put_record(table, b"k", b"")
        with pytest.raises(ValueError, match="table"):
            tables.get(table, b"k")
    with pytest.raises(ValueError, match="have numbered entries"):
        writer.add_entry(0, bytes(56))
    writer.add_entry(3, bytes(56))
    with pytest.raises(ValueError, match="the same length"):
        writer.add_entry(3, bytes(55))
    with pytest.raises(RuntimeError):
        writer.keep_unit()
    with pytest.raises(StoreError, match="closed first"):
        tables.close()
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.put_record(0, b"k", b"")
    tables.close()
    with pytest.raises(StoreError, match="closed"):
        tables.get(0, b"k")


def test_one_who_waits_for_room_and_raises_does_not_harm_the_others() -> None:
    writer = MemoryWriter()
    told: list[int] = []

    def bad() -> None:
        raise ZeroDivisionError

    writer.when_room(0, bad)
    writer.when_room(0, lambda: told.append(1))
    writer.when_durable(told.append)
    writer.submit()
    with pytest.raises(ZeroDivisionError):
        writer.complete_one()
    assert sorted(told) == [0, 1]


def test_a_failure_handler_that_raises_keeps_nobody_from_being_told() -> None:
    writer = MemoryWriter()
    told: list[int] = []

    def bad(_status: int) -> None:
        raise ZeroDivisionError

    writer.on_failure.connect(bad)
    writer.when_durable(told.append)
    writer.submit()
    with pytest.raises(ZeroDivisionError):
        writer.complete_one(errno.EIO)
    assert told == [errno.EIO]


def test_a_fault_before_the_seal_keeps_nothing_from_the_disk() -> None:
    writer = MemoryWriter()

    def before_seal() -> None:
        raise ZeroDivisionError

    writer.before_seal.connect(before_seal)
    writer.put_record(0, b"a", b"1")
    with pytest.raises(ZeroDivisionError):
        writer.submit()
    assert writer.flying
