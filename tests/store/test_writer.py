"""The batch writers: when batches leave, what listeners are told and when, and how writers close."""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time
import weakref

import pytest

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store.schema import Table
from tests.support.worlds.stores import settle


def test_listeners_hear_in_order_and_only_when_durable(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    heard: list[tuple[int, bool]] = []
    for number in range(20):
        writer.put_record(Table.META, b"key%d" % number, b"value")
        writer.when_durable(
            lambda status, number=number: heard.append((number, tables.get(0, b"key%d" % number) is not None))
        )
        if number == 7:
            writer.submit()
    assert not heard
    settle(writer, heard, 20)  # type: ignore[arg-type]
    assert heard == [(number, True) for number in range(20)]
    assert writer.statistics()["batches"] == 2
    writer.close()


def test_a_busy_writer_gathers_until_it_completes() -> None:
    writer = MemoryWriter()
    writer.put_record(0, b"a", b"1")
    writer.submit()
    writer.put_record(0, b"b", b"2")
    writer.submit()
    assert writer.pending_ops == 1
    assert writer.pending_units == 2
    writer.complete_one()
    assert writer.flying, "complete hands the gathered batch over"
    assert writer.tables.tables[0] == {b"a": b"1"}
    writer.complete_one()
    assert writer.tables.tables[0] == {b"a": b"1", b"b": b"2"}
    assert writer.pending_units == 0
    assert writer.pending_bytes == 0


def test_before_seal_may_add_to_the_batch_that_leaves() -> None:
    writer = MemoryWriter()
    writer.before_seal.connect(lambda: writer.put_record(0, b"late", b"1") if writer.needs_commit else None)
    writer.put_record(0, b"a", b"1")
    writer.submit()
    writer.complete_one()
    assert writer.tables.tables[0] == {b"a": b"1", b"late": b"1"}


def test_a_unit_is_never_split_and_full_batches_leave_between_units() -> None:
    writer = MemoryWriter(max_bytes=1000, max_units=3)
    for unit in range(4):
        writer.begin_unit()
        for part in range(5):
            writer.put_record(0, b"%d.%d" % (unit, part), bytes(500))
        writer.keep_unit()
    writer.submit()
    seen = []
    while writer.complete_one():
        seen.append(len(writer.tables.tables[0]))
    assert seen == [5, 10, 15, 20]
    for unit in range(7):
        writer.begin_unit()
        writer.put_record(5, b"%d" % unit, b"")
        writer.keep_unit()
    writer.complete_all()
    assert writer.statistics()["units_per_batch"][2] == 2  # two batches of three units
    assert writer.tables.count(5) == 7


def test_entries_that_ride_cause_no_commit() -> None:
    writer = MemoryWriter()
    assert writer.add_entry(Table.FEED, bytes(56), lazy=True) == 1
    writer.submit()
    assert not writer.flying
    assert not writer.needs_commit
    writer.put_record(0, b"a", b"1")
    assert writer.add_entry(Table.FEED, bytes(56), lazy=True) == 2
    writer.submit()
    writer.complete_one()
    assert writer.tables.next_number(Table.FEED) == 3
    writer.add_entry(Table.HISTORY, bytes(24), lazy=True)
    writer.flush()
    assert writer.complete_one()
    assert writer.tables.next_number(Table.HISTORY) == 2


def test_closing_commits_what_listeners_add_and_drops_an_open_unit(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    told: list[int] = []

    def follow(status: int) -> None:
        writer.put_record(Table.META, b"second", b"")
        writer.when_durable(told.append)

    writer.put_record(Table.META, b"first", b"")
    writer.when_durable(follow)
    writer.begin_unit()
    writer.put_record(Table.META, b"half", b"")
    writer.close()
    assert told == [0]
    assert [key for key, _ in tables.scan(Table.META)] == [b"first", b"second"]


def test_closing_tells_of_a_batch_that_has_just_ended_while_listeners_may_add(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    told: list[int] = []
    writer.put_record(Table.META, b"first", b"")
    writer.when_durable(lambda _status: writer.when_durable(told.append))
    writer.submit()
    select.select([writer.fileno()], [], [])
    while writer.busy:
        pass
    writer.close()
    assert told == [0]


def test_a_writer_in_a_cycle_is_collected_before_its_environment(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    reader = LmdbReader(tables)
    second: dict[str, object] = {}
    first = {"second": second, "writer": writer, "reader": reader}
    second["first"] = first
    writer.on_failure.connect(first)
    writer.put_record(Table.META, b"key", b"value")
    writer.submit()
    del writer, reader, first, second
    gc.collect()
    tables.close()  # refused as long as a writer or reader holds it


def test_an_environment_is_not_closed_while_it_is_copied(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    writer.put_record(Table.META, b"key", bytes(1 << 20))
    writer.close()
    source, sink = os.pipe()
    copy = threading.Thread(target=tables.copy, args=(sink,))
    copy.start()
    try:
        os.read(source, 1)  # a full pipe holds it up
        with pytest.raises(StoreError, match="copy"):
            tables.close()
    finally:
        while select.select([source], [], [], 0.05)[0] or copy.is_alive():
            os.read(source, 1 << 20)
        copy.join()
        os.close(source)
        os.close(sink)
    tables.close()


def test_entries_that_ride_leave_when_they_are_many_or_in_the_way() -> None:
    writer = MemoryWriter(max_bytes=560)
    for _ in range(9):
        writer.add_entry(Table.FEED, bytes(56), lazy=True)
    writer.submit()
    assert not writer.flying
    writer.add_entry(Table.FEED, bytes(56), lazy=True)
    writer.submit()
    assert writer.complete_one()
    told: list[int] = []
    writer.add_entry(Table.FEED, bytes(56), lazy=True)
    writer.when_room(0, lambda: told.append(1))
    writer.submit()
    assert writer.complete_one()
    assert told == [1]


def test_a_writer_that_is_thrown_away_drops_its_listeners(tables: LmdbTables) -> None:
    class Listener:
        def __call__(self, _status: int) -> None:
            raise AssertionError("told by a writer that nobody holds")

    references = []
    for writer in (LmdbWriter(tables), MemoryWriter()):
        for submitted in (True, False):
            listener = Listener()
            references.append(weakref.ref(listener))
            writer.put_record(Table.META, b"key", b"value")
            writer.when_durable(listener)
            del listener
            if submitted:
                writer.submit()
    del writer
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
    tables.close()


@pytest.mark.rule("KV-G1")
def test_a_commit_never_waits_for_the_interpreter(tables: LmdbTables) -> None:
    """It ends while Python code runs that does not let go of the interpreter."""
    writer = LmdbWriter(tables)
    statuses: list[int] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        for number in range(5):
            writer.put_record(Table.META, b"%d" % number, b"\1")
            writer.when_durable(statuses.append)
            writer.submit()
            end = time.monotonic() + 5
            while writer.busy and time.monotonic() < end:
                pass
            writer.complete()
            assert len(statuses) == number + 1
    finally:
        sys.setswitchinterval(interval)
    writer.close()
