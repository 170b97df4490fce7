"""The event feed as columns, beside the decoder in plain Python."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.columnstore import Contents
from msmq_fast._native.memorystore import MemoryTables
from msmq_fast._native.tables import StoreError
from msmq_fast.bulk.reader import CLASSES, KINDS, TRANSPORTS, BulkReader, EventsGone
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.columns import EVENT_COLUMNS, chosen_events
from msmq_fast.store import decode
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import Table
from tests.support.bulk import model
from tests.support.bulk.events import CONSTANTS, EVER, OLD, QUEUES, encoder, event, packed
from tests.support.worlds.cores import Core, dicts
from tests.support.worlds.queue_manager import World


def expected(event: FeedEvent) -> dict[str, Any]:
    """An event in the columns, by the words of its definition."""
    name, guid, kind = QUEUES.get(event.queue, (None, None, None))
    about_queue = event.kind in (EventKind.QUEUE_CREATED, EventKind.QUEUE_DELETED)
    if guid is None and about_queue:
        guid = str(UUID(bytes_le=event.source))
    queued = bool(event.lookup_id)
    message = queued or event.kind in (EventKind.NACKED, EventKind.DUPLICATE)
    placed = message and event.sequence_number and event.kind != EventKind.MOVED
    source = UUID(bytes_le=event.source)
    return CONSTANTS | {
        "feed_seq": event.number,
        "event": KINDS.get(event.kind),
        "event_time": model.EPOCH + model.timedelta(microseconds=event.time_us),
        "queue": name,
        "queue_guid": guid,
        "queue_kind": kind,
        "origin_queue": QUEUES.get(event.origin, (None,))[0],
        "message_id": f"{{{source}}}\\{event.ordinal}" if message else None,
        "lookup_id": event.lookup_id if queued else None,
        "arrival_seq": event.arrival_seq if queued else None,
        "class": event.message_class if message else None,
        "priority": 7 - (event.lookup_id >> 56) if queued else None,
        "packet_size": event.size if message else None,
        "source_machine": str(source) if message else None,
        "transport": TRANSPORTS.get(event.flags) if message else None,
        "seq_id": event.sequence_id if placed else None,
        "seq_no": event.sequence_number if placed else None,
        "prev_seq_no": event.previous_number if placed else None,
        "abort_count": event.abort_count if message else None,
        "reason": CLASSES.get(event.reason) if event.reason else None,
    }


ORDINALS = st.sampled_from([0, 2, 300, 70_000, 5, 1 << 31])
EVENTS = st.builds(
    FeedEvent,
    number=st.just(0),
    kind=st.integers(0, 20),
    flags=st.integers(0, 5),
    message_class=st.sampled_from([0, 2, 0xC000, 0x1234]),
    queue=ORDINALS,
    arrival_seq=st.integers(0, (1 << 56) - 1),
    lookup_id=st.one_of(st.just(0), st.integers(1, (1 << 59) - 1)),
    time_us=st.integers(0, 1 << 52),
    source=st.binary(min_size=16, max_size=16),
    ordinal=st.integers(0, (1 << 32) - 1),
    size=st.integers(0, (1 << 32) - 1),
    sequence_id=st.one_of(ORDINALS, st.integers(0, (1 << 62) - 1)),
    sequence_number=st.one_of(st.just(0), st.integers(0, (1 << 32) - 1)),
    abort_count=st.integers(0, 0xFFFF),
    reason=st.sampled_from([0, 0, int(MessageClass.NACK_Q_PURGED), 0x4321]),
)
RECORDS = st.lists(
    st.tuples(st.lists(EVENTS, min_size=1, max_size=6), st.sampled_from([OLD.size, 72, 80])), max_size=8
)


def feed_of(records: list[tuple[list[FeedEvent], int]], begin: int) -> dict[bytes, bytes]:
    """Records of the feed by their keys."""
    table, number = {}, begin
    for events, size in records:
        table[number.to_bytes(8, "big")] = packed(events, size)
        number += len(events)
    return table


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    core = Core(tmp_path_factory.mktemp("feed") / "store")
    yield core
    core.close()


def check(contents: Contents, table: dict[bytes, bytes], start: int, stop: int, step: int) -> None:
    events = [event for key, value in sorted(table.items()) for event in decode.feed(key, value)]
    wanted = [expected(event) for event in events if start <= event.number < stop]
    made = encoder(contents)
    rows: list[dict[str, Any]] = []
    position = start
    for _ in range(200):
        encoded = made.encode(position, stop, step)
        assert encoded.rows <= step
        assert encoded.damaged == 0
        assert encoded.first == (wanted[len(rows)]["feed_seq"] if encoded.rows else 0)
        rows += dicts(EVENT_COLUMNS, encoded)
        assert encoded.next >= position
        position = encoded.next
        if encoded.finished:
            break
    assert rows == wanted


@settings(max_examples=20, deadline=None)
@given(RECORDS, st.integers(1, 5), st.integers(0, 12), st.integers(0, 30), st.integers(1, 7))
def test_events_are_what_the_decoder_says(
    disk: Core,
    records: list[tuple[list[FeedEvent], int]],
    begin: int,
    start: int,
    length: int,
    step: int,
) -> None:
    table = feed_of(records, begin)
    memory = MemoryTables()
    memory.tables[Table.FEED].update(table)
    check(Contents(memory), table, start, start + length, step)
    for key, _ in disk.tables.scan(Table.FEED):
        disk.writer.delete_record(Table.FEED, key)
    for key, value in table.items():
        disk.writer.put_record(Table.FEED, key, value)
    disk.settle()
    check(disk.contents, table, start, start + length, step)


DAMAGES = {
    "empty": b"",
    "head": b"\1\0\x48",
    "version": b"\2" + packed([event(1)], 72)[1:],
    "short": packed([event(1)], 72)[:-1],
    "entry size": struct.pack("<BBHI", 1, 0, 8, 1) + bytes(8),
    "count": struct.pack("<BBHI", 1, 0, 72, 0xFFFFFFFF) + bytes(72),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_damaged_record_is_passed_over_and_counted(tmp_path: Path, damage: str, place: str) -> None:
    core = Core(tmp_path / "store" if place == "disk" else None)
    table = feed_of([([event(n)] * 3, 72) for n in range(3)], 1)
    table[(4).to_bytes(8, "big")] = DAMAGES[damage]
    for key, value in table.items():
        core.writer.put_record(Table.FEED, key, value)
    core.settle()
    encoded = encoder(core.contents).encode(1, EVER, 100)
    assert [row["feed_seq"] for row in dicts(EVENT_COLUMNS, encoded)] == [1, 2, 3, 7, 8, 9]
    assert (encoded.damaged, encoded.finished) == (1, True)
    core.close()


def test_a_store_that_is_closed_cannot_be_read() -> None:
    core = Core()
    core.contents.close()
    with pytest.raises(StoreError, match="closed"):
        encoder(core.contents).encode(1, 2, 1)


def table_of(world: World, start: int, stop: int, columns: str = "all") -> pa.Table:
    """The feed of a queue manager through its reader."""

    async def read() -> bytes:
        return b"".join([bytes(part) async for part in reader.events(start, stop, chosen_events(columns))])

    async def settle() -> int:
        return int(world.finish(world.manager.bounds.settled()))

    reader = BulkReader(world.manager, settle, incarnation=9, share=0)
    try:
        table = pa.ipc.open_stream(asyncio.run(read())).read_all()
    finally:
        reader.close()
    table.validate(full=True)
    return table


def test_the_feed_of_a_queue_manager_with_the_names_of_its_queues() -> None:
    world = World()
    world.create(journaling=True)
    key = world.send(b"one", priority=5)
    world.receive()
    world.create("brief")
    world.send(b"two", "brief")
    world.finish(world.manager.delete_queue("brief"))
    world.run()
    rows = table_of(world, 1, EVER).to_pylist()
    assert [row["feed_seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {row["incarnation"] for row in rows} == {9}
    names = {r"HOST\private$\orders", r"HOST\private$\orders;JOURNAL"}
    told = [(row["event"], row["queue"], row["lookup_id"]) for row in rows if row["queue"] in names]
    assert ("arrived", r"HOST\private$\orders", key) in told
    assert ("received", r"HOST\private$\orders", key) in told
    assert "journaled" in {name for name, queue, _ in told if queue.endswith("JOURNAL")}
    assert r"HOST\private$\brief" in {row["queue"] for row in rows}  # although it is gone
    (one,) = table_of(world, 3, 4, "feed_seq,event").to_pylist()
    assert one == {"feed_seq": 3, "event": rows[2]["event"]}


def test_queues_that_come_during_a_stream_are_known() -> None:
    world = World()

    async def read() -> list[str | None]:
        stream = reader.events(1, EVER, chosen_events("queue"))
        pieces = [bytes(await anext(stream))]
        await reader._worker.run(int)
        world.create("new")
        pieces += [bytes(part) async for part in stream]
        first: list[str | None] = pa.ipc.open_stream(b"".join(pieces)).read_all()["queue"].to_pylist()
        return first

    async def settle() -> int:
        return 0

    reader = BulkReader(world.manager, settle, share=0)
    asyncio.run(read())
    reader.close()
    assert r"HOST\private$\new" in table_of(world, 1, EVER)["queue"].to_pylist()


def test_events_that_are_gone_are_named_before_the_stream_begins() -> None:
    world = World()
    world.create()
    for _ in range(5):
        world.send(b"x")
    first = int.from_bytes(world.store.tables.scan(Table.FEED, b"", None, 2)[1][0], "big")
    world.store.writer.delete_record(Table.FEED, world.store.tables.scan(Table.FEED, b"", None, 1)[0][0])
    world.run()
    with pytest.raises(EventsGone) as gone:
        table_of(world, 1, EVER)
    assert gone.value.first == first
    assert table_of(world, first, EVER)["feed_seq"][0].as_py() == first
    assert table_of(world, 1 << 40, EVER).num_rows == 0
