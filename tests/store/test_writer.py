"""The batch writers against a dict, with failures; what is told to listeners, and when."""

from __future__ import annotations

import errno
import gc
import os
import select
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.lmdbstore import LmdbTables, status_is_full, status_text
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.worlds.stores import commit, read, settle

KEYS = st.binary(min_size=1, max_size=12)
VALUES = st.binary(max_size=40)
PUT = st.tuples(st.just("put"), st.sampled_from([0, 1, 5, 8]), KEYS, VALUES)
DELETE = st.tuples(st.just("delete"), st.sampled_from([0, 1, 5, 8]), KEYS, st.just(b""))
ENTRY = st.tuples(st.just("entry"), st.just(3), st.just(b""), st.binary(min_size=56, max_size=56))
UNIT = st.tuples(st.lists(st.one_of(PUT, DELETE, ENTRY), max_size=6), st.booleans())
BATCHES = st.lists(
    st.tuples(st.lists(UNIT, max_size=6), st.sampled_from([0, 0, 0, errno.ENOSPC])), max_size=6
)

Operation = tuple[str, int, bytes, bytes]


class Model:
    """What a store must hold: plain dicts and a list."""

    def __init__(self) -> None:
        self.tables: dict[int, dict[bytes, bytes]] = {table: {} for table in (0, 1, 5, 8)}
        self.entries: list[bytes] = []

    def apply(self, operations: list[Operation]) -> None:
        for kind, table, key, value in operations:
            if kind == "entry":
                self.entries.append(value)
            elif kind == "put":
                self.tables[table][key] = value
            else:
                self.tables[table].pop(key, None)

    def check(self, tables: LmdbTables | MemoryTables) -> None:
        for table, expected in self.tables.items():
            assert dict(tables.scan(table, b"", None, 10_000)) == expected
            assert [key for key, _ in tables.scan(table, b"", None, 10_000)] == sorted(expected)
        entries, number = [], 1
        for key, value in tables.scan(Table.FEED, b"", None, 10_000):
            assert int.from_bytes(key, "big") == number
            count = int.from_bytes(value[4:8], "little")
            entries += [value[8 + 56 * i : 64 + 56 * i] for i in range(count)]
            number += count
        assert entries == self.entries
        assert tables.next_number(Table.FEED) == number


def perform(writer: LmdbWriter | MemoryWriter, operations: list[Operation], abandon: bool) -> None:
    writer.begin_unit()
    for kind, table, key, value in operations:
        if kind == "entry":
            writer.add_entry(table, value)
        elif kind == "put":
            writer.put_record(table, key, value)
        else:
            writer.delete_record(table, key)
    if abandon:
        writer.roll_back()
    else:
        writer.keep_unit()


@given(BATCHES)
@settings(max_examples=150, deadline=None)
def test_memory_writer_is_a_dict_that_loses_failed_batches(
    batches: list[tuple[list[tuple[list[Operation], bool]], int]],
) -> None:
    model, writer = Model(), MemoryWriter()
    for units, status in batches:
        told: list[int] = []
        for operations, abandon in units:
            perform(writer, operations, abandon)
            if not abandon and status == 0:
                model.apply(operations)
        writer.when_durable(told.append)
        writer.submit()
        assert not told
        assert writer.complete_one(status)
        assert told == [status]
        model.check(writer.tables)
    model.check(writer.crash())


@given(st.lists(st.lists(UNIT, max_size=6), max_size=5), st.sampled_from([1, 200, 1 << 20]))
@settings(max_examples=25, deadline=None)
def test_lmdb_writer_is_a_dict(batches: list[list[tuple[list[Operation], bool]]], max_bytes: int) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as directory:
        tables = LmdbTables(directory, map_size=1 << 26)
        writer = LmdbWriter(tables, max_bytes=max_bytes)
        for units in batches:
            for operations, abandon in units:
                perform(writer, operations, abandon)
                if not abandon:
                    model.apply(operations)
            assert commit(writer) == 0
            model.check(tables)
        writer.close()
        tables.close()
        tables = LmdbTables(directory, map_size=1 << 26)
        model.check(tables)
        tables.close()


@pytest.fixture
def tables(tmp_path: Path) -> LmdbTables:
    return LmdbTables(tmp_path, map_size=1 << 30)


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


SIZES = [
    0,
    1,
    decode.WHOLE_BYTES,
    decode.WHOLE_BYTES + 1,
    2 * decode.CHUNK_BYTES,
    2 * decode.CHUNK_BYTES + 1,
    4 << 20,
]


def test_content_of_every_size_is_read_back_and_deleted(tables: LmdbTables) -> None:
    writer, reader = LmdbWriter(tables), LmdbReader(tables)
    packets = [bytes([i]) * size for i, size in enumerate(SIZES)]
    for content_id in (3, 9, 1, 5, 2, 8, 4):  # in no order: not every put is an append
        writer.put_content(content_id, packets[(3, 9, 1, 5, 2, 8, 4).index(content_id)])
    assert commit(writer) == 0
    wanted = list(zip((3, 9, 1, 5, 2, 8, 4), SIZES, strict=True))
    assert read(reader, wanted) == [(packet, 0) for packet in packets]
    assert [tables.read_content(*one) for one in wanted] == packets
    chunks: dict[int, list[bytes]] = {}
    for key, value in tables.scan(Table.CONTENT):
        chunks.setdefault(decode.content_key(key)[0], []).append(value)
    assert [decode.content(chunks[content_id], size) for content_id, size in wanted] == packets
    for content_id, size in wanted:
        writer.delete_content(content_id, size)
    assert commit(writer) == 0
    assert tables.count(Table.CONTENT) == 0
    assert writer.statistics()["missing_deletes"] == 0
    missing, wrong = read(reader, [(3, 0), (9, 1)])
    assert missing[0] is None
    assert wrong[0] is None
    assert "NOTFOUND" in status_text(missing[1])
    writer.close()
    reader.close()


CONTENT = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 6), st.sampled_from([0, 9, 70_000])),
    st.tuples(st.just("delete"), st.integers(1, 6), st.sampled_from([9, 70_000])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CONTENT, max_size=12), max_size=4))
def test_what_comes_and_goes_within_a_batch_leaves_what_a_dict_would(
    batches: list[list[tuple[str, int, int]]],
) -> None:
    """Puts of new contents that the same batch deletes are left out; no other put or delete is."""
    memory = MemoryWriter()
    with tempfile.TemporaryDirectory() as directory:
        tables = LmdbTables(Path(directory), map_size=1 << 26)
        writer = LmdbWriter(tables)
        for number, batch in enumerate(batches):
            for step, (kind, content_id, size) in enumerate(batch):
                for target in (memory, writer):
                    if kind == "put":
                        target.put_content(content_id, bytes([number, step % 256]) * (size // 2))
                    else:
                        target.delete_content(content_id, size)
            commit(writer)
            memory.complete_all()
            assert tables.scan(Table.CONTENT, b"", None, 99) == memory.tables.scan(
                Table.CONTENT, b"", None, 99
            )
        writer.close()
        tables.close()


def test_the_reader_refuses_a_size_that_is_not_the_stored_one(tables: LmdbTables) -> None:
    writer, reader = LmdbWriter(tables), LmdbReader(tables)
    writer.put_content(1, bytes(100))
    commit(writer)
    for size in (99, 101, decode.WHOLE_BYTES + 1):
        body, status = read(reader, [(1, size)])[0]
        assert body is None
        assert "CORRUPTED" in status_text(status)
    writer.close()
    reader.close()


def test_memory_reader_answers_like_the_real_one() -> None:
    writer = MemoryWriter()
    reader = MemoryReader(writer.tables)
    packets = [bytes([i]) * size for i, size in enumerate(SIZES)]
    for content_id, packet in enumerate(packets, 1):
        writer.put_content(content_id, packet)
    writer.complete_all()
    found: list[tuple[bytes | None, int]] = []
    for content_id, size in enumerate([*SIZES, 5], 1):
        reader.read(content_id, size, lambda body, status: found.append((body, status)))
    assert not found
    reader.complete()
    assert found[:-1] == [(packet, 0) for packet in packets]
    assert found[-1][0] is None


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
    with pytest.raises(ValueError, match="packed"):
        writer.add_entry(0, bytes(56))
    writer.add_entry(3, bytes(56))
    with pytest.raises(ValueError, match="one length"):
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


def test_positions_come_in_key_order_without_bodies(tables: LmdbTables) -> None:
    writer = LmdbWriter(tables)
    expected: dict[int, bytes] = {}
    for queue, lookup in ((2, 9), (1, 3 << 56), (1, 7), (300, 1)):
        record = bytes([1]) + bytes([queue & 0xFF]) * 87
        writer.put_record(Table.POSITION, decode.POSITION_KEY.pack(queue, lookup), record)
        expected[queue] = expected.get(queue, b"")
    commit(writer)
    packed = tables.pack_positions()
    assert list(packed) == [1, 2, 300]
    assert [int.from_bytes(packed[1][at : at + 8], "little") for at in (0, 96)] == [7, 3 << 56]
    assert packed[2] == (9).to_bytes(8, "little") + bytes([1]) + bytes([2]) * 87
    writer.put_record(Table.POSITION, b"short", b"\x01")
    commit(writer)
    with pytest.raises(StoreError, match="damaged position"):
        tables.pack_positions()
    writer.close()


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


def test_a_fault_before_the_seal_keeps_nothing_from_the_disk() -> None:
    writer = MemoryWriter()

    def before_seal() -> None:
        raise ZeroDivisionError

    writer.before_seal.connect(before_seal)
    writer.put_record(0, b"a", b"1")
    with pytest.raises(ZeroDivisionError):
        writer.submit()
    assert writer.flying
