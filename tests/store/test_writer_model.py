"""The batch writers against a dict, with batches that fail."""

from __future__ import annotations

import errno
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast._native.memorystore import MemoryTables, MemoryWriter
from msmq_fast.store.schema import Table
from tests.support.worlds.stores import commit

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
