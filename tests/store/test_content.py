"""Contents of every size, written, read back and deleted; positions without bodies."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.lmdbstore import LmdbTables, status_text
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.memorystore import MemoryReader, MemoryWriter
from msmq_fast._native.tables import StoreError
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.worlds.stores import commit, read

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
