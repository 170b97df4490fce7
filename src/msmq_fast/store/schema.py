"""Tables and record layouts of the store; `src/_native/record.h` and `store/decode.py` hold the same.

Keys are big-endian, so that LMDB's byte order is the order of numbers. The first byte of every value is its record version;
fixed records are little-endian, cold ones are msgpack. Units: `_s` Unix seconds, `_us` Unix microseconds.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Final

SCHEMA_VERSION: Final = 1


class Table(IntEnum):
    """The named databases (KV-01 … KV-14); the number is the one native code uses."""

    META = 0
    POSITION = 1  # queue ordinal u32 | LookupIdentifier u64 -> position record
    CONTENT = 2  # content id u64 | chunk u16 -> version u8, packet bytes
    FEED = 3  # number of the first event u64 -> pack head, events of one commit
    HISTORY = 4  # number of the first entry u64 -> pack head, message identifiers accepted by one commit
    QUEUE = 5  # queue ordinal u32 -> version u8, msgpack map
    QUEUE_INDEX = 6  # kind u8 | folded name, GUID or private number -> version u8, queue ordinal u32
    DIRECTORY = 7
    SEQUENCE = 8  # per-stream transactional sequence state


DATABASE_NAMES: Final = {table: table.name.lower() for table in Table}

RECORD_VERSION: Final = 1

POSITION_KEY: Final = struct.Struct(">IQ")
CONTENT_KEY: Final = struct.Struct(">QH")
NUMBER_KEY: Final = struct.Struct(">Q")
ORDINAL_KEY: Final = struct.Struct(">I")

# version, flags, priority, wishes, class, reason, content id, content bytes, sent_s, arrived_us, time to reach queue,
# time to be received, source GUID, ordinal, abort count, arrival sequence, move count, last_move_s, source queue, prepared slot
POSITION: Final = struct.Struct("<BBBBHHQIIQII16sIIQIIII")

# kind, flags, class, queue ordinal, arrival sequence, lookup id, time_us, source GUID, ordinal, size
FEED_ENTRY: Final = struct.Struct("<BBHIQQQ16sII")

# source GUID, ordinal, time_s
HISTORY_ENTRY: Final = struct.Struct("<16sII")

# version, reserved, entry size, count
PACK_HEAD: Final = struct.Struct("<BBHI")


class PositionFlag(IntFlag):
    """`flags` of a position record."""

    RECOVERABLE = 0x01
    TRANSACTIONAL = 0x02
    PURGE_PENDING = 0x04
    PREPARED = 0x08


class Wish(IntFlag):
    """`wishes` of a position record: what the sender asked for."""

    ACK_POSITIVE_ARRIVAL = 0x01
    ACK_POSITIVE_RECEIVE = 0x02
    ACK_NEGATIVE_ARRIVAL = 0x04
    ACK_NEGATIVE_RECEIVE = 0x08
    JOURNAL_POSITIVE = 0x10
    JOURNAL_NEGATIVE = 0x20


class EventKind(IntEnum):
    """`kind` of a feed entry."""

    SENT = 1
    ARRIVED = 2
    RECEIVED = 3
    REMOVED = 4
    EXPIRED = 5
    MOVED = 6
    PURGED = 7
    JOURNALED = 8
    DEAD_LETTERED = 9
    ACKED = 10
    NACKED = 11
    QUEUE_CREATED = 12
    QUEUE_DELETED = 13
    STARTED = 14
    STOPPED = 15
    ABORTED_RETURN = 16


class Transport(IntEnum):
    """`flags` of a feed entry: how the message came or went."""

    LOCAL = 0
    MQQB = 1
    MQQP = 2
    SRMP = 3


class MetaName:
    """Keys of META. Values are a record version and one msgpack value."""

    SCHEMA: Final = b"schema_version"
    GUID: Final = b"qm_guid"  # 16 bytes, as on the wire
    INCARNATION: Final = b"incarnation"  # grows by one when the store was restored or copied
    IDENTITY: Final = b"identity"  # fingerprint of the place the store was last opened in
    CLEAN: Final = b"clean_shutdown"
    CREATED: Final = b"created_s"
    SEQUENCE_HW: Final = b"seq_hw"
    MESSAGE_ID_HW: Final = b"msgid_hw"
    TX_SEQUENCE_HW: Final = b"txseq_hw"
    TX_TIMESTAMP: Final = b"txseq_timestamp"  # high half of transactional sequence identifiers
    QUEUE_ORDINAL_HW: Final = b"queue_ord_hw"
    PRIVATE_NUMBER_HW: Final = b"privnum_hw"
    FEED_HW: Final = b"feed_hw"  # number of the next event, survives trimming
    HISTORY_HW: Final = b"history_hw"


CHUNK_PAGES: Final = 15
PAGE_SIZE: Final = 4096
# One overflow page run holds a 16-byte page head and the version byte besides the payload.
CHUNK_BYTES: Final = CHUNK_PAGES * PAGE_SIZE - 17
WHOLE_BYTES: Final = 16 * PAGE_SIZE - 17


def chunk_count(size: int) -> int:
    """How many records the content of a packet of `size` bytes takes."""
    return 1 if size <= WHOLE_BYTES else -(-size // CHUNK_BYTES)
