"""Records of the event feed, packed by hand, and their encoder."""

from __future__ import annotations

import struct

from msmq_fast._native.columnevents import EventEncoder
from msmq_fast._native.columnstore import Contents
from msmq_fast.bulk.reader import CLASSES, KINDS, TRANSPORTS
from msmq_fast.protocol.columns import EVENT_COLUMNS
from msmq_fast.store import decode
from msmq_fast.store.decode import EventKind, FeedEvent

CONSTANTS = {"qm_guid": "guid", "incarnation": 3}
QUEUES = {
    2: ("two", "guid of two", "queue"),
    300: ("ümlaut", "guid", "outgoing"),
    70_000: ("far", "g", "journal"),
}
EVER = 1 << 62
OLD = decode.FIRST_FEED_ENTRY


def packed(events: list[FeedEvent], size: int) -> bytes:
    """One record with entries of `size` bytes: of the first layout, of this one, of a later one."""
    entries = b""
    for event in events:
        if size == OLD.size:
            entries += OLD.pack(*event[1:11])
        else:
            entries += decode.FEED_ENTRY.pack(*event[1:]).ljust(size, b"\xee")
    return struct.pack("<BBHI", 1, 0, size, len(events)) + entries


def encoder(contents: Contents) -> EventEncoder:
    pairs = [(column.name, column.kind) for column in EVENT_COLUMNS]
    return EventEncoder(contents, pairs, CONSTANTS, CLASSES, KINDS, TRANSPORTS, QUEUES.get)


def event(number: int) -> FeedEvent:
    return FeedEvent(number, EventKind.ARRIVED, 0, 0, 2, number, number + 1, number, bytes(16), number, 10)
