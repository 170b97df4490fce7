"""Writes the golden records and the golden store of this schema version.

Run it with `python -m tests.support.worlds.golden_store`,
once for each schema version; files of older versions stay, since the program must go on reading them.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.store import decode, records
from msmq_fast.store.schema import SCHEMA_VERSION, EventKind, MetaName, Table, outgoing_stream_key
from msmq_fast.store.store import Store, StoreOptions
from tests.support.worlds.stores import history_entry, reserve_now

HERE = Path(__file__).parents[2] / "store" / "golden"
GUID = bytes(range(16))
POSITION = decode.Position(
    3, 6, 0x35, 0x8002, 0xC001, 0x0102030405060708, 4321, 1_700_000_000, 1_700_000_001_234_567, 345_600,
    0xFFFFFFFF, GUID, 77, 2, 0x1112131415161718, 3, 1_700_000_002, 9, 5,
)  # fmt: skip
NUMBERED = POSITION._replace(
    flags=0x13, ack_flags=0x70, sequence_id=1_700_000_000 << 32 | 7, sequence_number=4_000_000_001
)
STREAM = decode.OutgoingStream(3, 4_000_000_000, 1_700_000_000 << 32 | 7, 4_000_000_002, 2, 1_700_000_003)
EVENT = decode.FeedEvent(
    100, EventKind.RECEIVED, 1, 0x4000, 7, 55, 0x0100000000000037, 1_700_000_000_000_001, GUID, 8, 1024
)
WHOLE_EVENT = EVENT._replace(
    kind=EventKind.ARRIVED, sequence_id=1_700_000_000 << 32 | 7, sequence_number=4_000_000_001, abort_count=3,
    reason=0xC002,
)  # fmt: skip
ITEM = decode.HistoryItem(500, GUID, 99, 1_700_000_000)
MARKED = ITEM._replace(fingerprint=0x0123456789ABCDEF)
QUEUE = {
    "path": ".\\private$\\größe",
    "quota": None,
    "kind": 3,
    "flags": [True, False, -1, -40000],
    "id": GUID,
}
PACKETS = {1: b"", 2: b"packet", 3: bytes(range(256)) * 300}


def golden_records() -> dict[str, list[str]]:
    """Key and value, in hexadecimal, of one record of each kind."""
    old = decode.FIRST_FEED_ENTRY  # as it was written before events had places in sequences
    old_events = decode.PACK_HEAD.pack(1, 0, old.size, 2) + b"".join(
        old.pack(*event[1:11]) for event in (EVENT, EVENT._replace(kind=EventKind.SENT))
    )
    events = decode.PACK_HEAD.pack(1, 0, decode.FEED_ENTRY.size, 1) + records.feed_entry(WHOLE_EVENT)
    first = decode.FIRST_HISTORY_ENTRY  # as it was written before identifiers had fingerprints
    old_history = decode.PACK_HEAD.pack(1, 0, first.size, 1) + first.pack(*ITEM[1:4])
    history = decode.PACK_HEAD.pack(1, 0, decode.HISTORY_ENTRY.size, 1) + history_entry(MARKED)
    pairs = {
        "position": (decode.POSITION_KEY.pack(7, 0x0100000000000037), records.position(POSITION)),
        "position_numbered": (decode.POSITION_KEY.pack(7, 0x0700000000000038), records.position(NUMBERED)),
        "outgoing_stream": (outgoing_stream_key(7), records.outgoing_stream(STREAM)),
        "content": (decode.CONTENT_KEY.pack(2, 0), records.content(b"packet")[0]),
        "feed": (decode.NUMBER_KEY.pack(100), old_events),
        "feed_whole": (decode.NUMBER_KEY.pack(100), events),
        "history": (decode.NUMBER_KEY.pack(500), old_history),
        "history_marked": (decode.NUMBER_KEY.pack(500), history),
        "queue": (decode.ORDINAL_KEY.pack(7), records.cold(QUEUE)),
        "meta": (MetaName.GUID, records.cold(GUID)),
    }
    return {name: [key.hex(), value.hex()] for name, (key, value) in pairs.items()}


def fill(store: Store) -> None:
    """What the golden store holds."""
    with store.unit() as writer:
        for message, packet in PACKETS.items():
            writer.put_content(message, packet)
            position = POSITION._replace(content_id=message, content_bytes=len(packet))
            writer.put_record(
                Table.POSITION, decode.POSITION_KEY.pack(7, message), records.position(position)
            )
            writer.add_entry(Table.FEED, records.feed_entry(EVENT))
            writer.add_entry(Table.HISTORY, history_entry(ITEM))
        writer.put_record(Table.QUEUE, decode.ORDINAL_KEY.pack(7), records.cold(QUEUE))


class Clock:
    """Stands still."""

    def monotonic(self) -> float:
        return 1000.0

    def wall_us(self) -> int:
        return 1_700_000_000_000_000


def fill_managed(store: Store) -> None:
    """What a queue manager leaves behind: two queues, an outgoing one on hold, messages in each."""
    manager = QueueManager(store, QueueManagerSettings(computer_name="GOLDEN"), Clock(), random.Random(3))
    manager.start()
    manager.create_queue("orders", label="Aufträge", quota_kb=5000, journaling=True)
    manager.create_queue("taken", authenticated=True)
    for number in range(4):
        for name in ("orders", "taken"):
            message = Message(body=b"%d" % number * 5_000, label=f"no {number}", priority=number, delivery=1)
            manager.open(name, Access.SEND).send(message)
    there = manager.open("DIRECT=OS:there\\private$\\q", Access.SEND)
    there.send(Message(body=b"out", delivery=1, time_to_be_received=1_000_000_000))
    manager.pause(next(iter(manager.outgoing())))
    store.commit()
    manager.open("taken", Access.RECEIVE).receive(0)
    store.commit()


def begin_version_0(store: Store) -> None:
    """Takes away what version 0 did not have."""
    with store.unit() as writer:
        writer.put_record(Table.META, MetaName.SCHEMA, records.cold(0))
        for name in (MetaName.INCARNATION, MetaName.TX_TIMESTAMP, MetaName.IDENTITY):
            writer.delete_record(Table.META, name)


def write_store(name: str, *steps: Callable[[Store], object]) -> None:
    """A compacted copy of a store after these steps."""
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    draft = directory.with_name("draft")
    options = StoreOptions(map_size=1 << 24, force_place=True)
    store = Store.open(draft, now_s=1_700_000_000, random=random.Random(1), options=options)
    for step in steps:
        step(store)
    store.close()
    directory.mkdir()
    tables = LmdbTables(draft, map_size=1 << 24)
    with (directory / "data.mdb").open("xb") as file:
        tables.copy(file.fileno(), compact=True)
    tables.close()
    shutil.rmtree(draft)


def main() -> None:
    (HERE / f"records-{SCHEMA_VERSION}.json").write_text(json.dumps(golden_records(), indent=1) + "\n")
    write_store(f"store-{SCHEMA_VERSION}", fill, lambda store: reserve_now(store, MetaName.SEQUENCE_HW, 1000))
    write_store(f"managed-{SCHEMA_VERSION}", fill_managed)
    if SCHEMA_VERSION == 1:
        write_store("managed-0", fill_managed, begin_version_0)


if __name__ == "__main__":
    main()
