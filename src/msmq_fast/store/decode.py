"""Decoder of stored records in plain Python: the one definition of their layouts outside native code.

Imports only the standard library, so that a worker of an analytics cluster can use it. Every size is checked;
a record that does not match its layout raises `DecodeError`. Units: `_s` Unix seconds, `_us` Unix
microseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

RECORD_VERSION: Final = 1
NUMBERED_VERSION: Final = 2  # of a position record that has a place in a transactional sequence
RENAMED_VERSION: Final = 2  # of the state of a sequence that leaves by SRMP

POSITION_KEY: Final = struct.Struct(">IQ")
CONTENT_KEY: Final = struct.Struct(">QH")
NUMBER_KEY: Final = struct.Struct(">Q")
ORDINAL_KEY: Final = struct.Struct(">I")

# version, flags, priority, ack_flags, class, reason, content id, content bytes, sent_s, arrived_us, time to
# reach queue, time to be received, source GUID, ordinal, abort count, arrival sequence, move count,
# last_move_s, dead letter queue, prepared slot
POSITION: Final = struct.Struct("<BBBBHHQIIQII16sIIQIIII")
# behind it in version 2: sequence id (TimeStamp << 32 | Ordinal), sequence number
PLACE: Final = struct.Struct("<QI")
# version, index in the resend ladder, low bits of the time stamp of the incarnation, last
# acknowledged number, sequence id, next number, how often the last number was acknowledged, last_ack_s
OUTGOING_STREAM: Final = struct.Struct("<BBHIQQII")
RENAMED: Final = struct.Struct("<QIB3x")
# version, destination type, size of the address, reserved, queue ordinal, sequence id and number, rejects,
# accessed_s; the address and the DestinationQueue field follow
INCOMING_STREAM: Final = struct.Struct("<BBBBIQIII")
# kind, flags, class, queue ordinal, arrival sequence, lookup id, time_us, source GUID, ordinal, size;
# since the second layout: sequence id, sequence number, abort count, reason
FEED_ENTRY: Final = struct.Struct("<BBHIQQQ16sIIQIHH")
FIRST_FEED_ENTRY: Final = struct.Struct("<BBHIQQQ16sII")
# source GUID, ordinal, time_s; since the second layout: fingerprint of the content
HISTORY_ENTRY: Final = struct.Struct("<16sIIQ")
FIRST_HISTORY_ENTRY: Final = struct.Struct("<16sII")
# version, reserved, entry size, count
PACK_HEAD: Final = struct.Struct("<BBHI")

PAGE_SIZE: Final = 4096
# A run of overflow pages holds a 16-byte page head and the version byte besides the payload.
CHUNK_BYTES: Final = 15 * PAGE_SIZE - 17
WHOLE_BYTES: Final = 16 * PAGE_SIZE - 17

_MAX_DEPTH: Final = 32


class DecodeError(ValueError):
    """A stored record does not match its layout."""


class PositionFlag(IntFlag):
    """`flags` of a position record."""

    RECOVERABLE = 0x01
    TRANSACTIONAL = 0x02
    PURGE_PENDING = 0x04
    PREPARED = 0x08
    ORDERED = 0x10  # in an outgoing queue: its receiver has it, and will report the outcome


class AckRequest(IntFlag):
    """`ack_flags` of a position record: the acknowledgments and copies that the sender requests."""

    ACK_POSITIVE_ARRIVAL = 0x01
    ACK_POSITIVE_RECEIVE = 0x02
    ACK_NEGATIVE_ARRIVAL = 0x04
    ACK_NEGATIVE_RECEIVE = 0x08
    JOURNAL_POSITIVE = 0x10
    JOURNAL_NEGATIVE = 0x20
    FINAL = 0x40
    """TransactionHeader.Flags.FA: the sender requests a FinalAck, which reports the outcome of a
    transactional message at its destination.
    """


class Table(IntEnum):
    """The named databases (KV-01 … KV-14), at most 16. Numbers and names never change: native code uses these
    numbers, and the lower-case name is the name of the database in LMDB.
    """

    META = 0
    POSITION = 1  # queue ordinal u32 | LookupIdentifier u64 -> position record
    CONTENT = 2  # content id u64 | chunk u16 -> version u8, packet bytes
    FEED = 3  # number of the first event u64 -> pack head, events of one commit
    HISTORY = 4  # number of the first entry u64 -> pack head, message identifiers accepted by one commit
    QUEUE = 5  # queue ordinal u32 -> version u8, msgpack map
    QUEUE_INDEX = 6  # kind u8 | folded name, GUID or private number -> version u8, msgpack queue ordinal
    DIRECTORY = 7  # type u8 | GUID 16 -> version u8, msgpack map
    # "O" and queue ordinal u32 -> state of the transactional sequence of an outgoing queue;
    # "I", source GUID 16 and hash 16 -> state of a stream that arrives; "S" and the same: of one by SRMP;
    # "T", source GUID 16 and number u64 -> version u8, msgpack map: where the receipts of that one go
    SEQUENCE = 8
    AUDIT = 9  # number of the entry u64 -> version u8, msgpack array: see qm/audit/ring.py


OF_QUEUES: Final = (Table.QUEUE,)
"""Tables with one record for each queue, under the queue's ordinal. `Records.delete_queue` deletes these
records.
"""


class EventKind(IntEnum):
    """`kind` of a feed entry. `queue` is the queue that the message is in, was added to or was
    removed from.
    """

    SENT = 1  # it came into an outgoing queue
    ARRIVED = 2  # it came into a queue of this computer
    RECEIVED = 3
    REMOVED = 4  # an operator took it out, or its application rejected it
    EXPIRED = 5
    MOVED = 6  # with an origin: it is in `queue` now; without: it left `queue`, and comes to another one anew
    PURGED = 7  # with its queue, or with everything in it
    JOURNALED = 8  # a copy, or what was left of it, came into a journal
    DEAD_LETTERED = 9  # it came into a dead-letter queue
    ACKED = 10  # it left for the next queue manager, which keeps it; or its sender got an acknowledgment
    NACKED = 11  # it was rejected or failed, for the reason in the class; its sender is notified on request
    QUEUE_CREATED = 12
    QUEUE_DELETED = 13
    STARTED = 14  # express messages of an earlier process are lost
    STOPPED = 15
    ABORTED_RETURN = 16  # the transaction that had received it was aborted: it is where it was
    DUPLICATE = 17  # it came again, and was dropped
    RETURNED = 18  # it was RECEIVED, but its reader had ended: it is at its old place


ABOUT_QUEUES: Final = frozenset((EventKind.QUEUE_CREATED, EventKind.QUEUE_DELETED))
"""Kinds of events about a queue: `source` is its GUID, and the columns that describe a message are null."""

NOT_TAKEN: Final = frozenset((EventKind.NACKED, EventKind.DUPLICATE))
"""Kinds of events that can be about a message that was not added to any queue. Such a message has no
LookupIdentifier, but its other columns are set.
"""


class Transport(IntEnum):
    """`flags` of a feed entry: the transport by which the message arrived or, for an outgoing queue, by which
    it leaves.
    """

    LOCAL = 0
    MQQB = 1
    MQQP = 2
    SRMP = 3


class Position(NamedTuple):
    """Value of a position record (KV-04); its key is queue ordinal and LookupIdentifier."""

    flags: int
    priority: int
    ack_flags: int
    message_class: int
    reason: int
    content_id: int
    content_bytes: int
    sent_s: int
    arrived_us: int
    time_to_reach_queue: int
    time_to_be_received: int
    source: bytes
    ordinal: int
    abort_count: int
    arrival_seq: int
    move_count: int
    last_move_s: int
    dead_letter_queue: int
    prepared_slot: int
    sequence_id: int = 0  # transactional messages of outgoing queues that were sent here
    sequence_number: int = 0


class OutgoingStream(NamedTuple):
    """State of the transactional sequence of an outgoing queue (KV-08); its key is "O" and queue ordinal."""

    resend_index: int
    last_ack: int
    sequence_id: int
    next_number: int
    ack_count: int
    last_ack_s: int
    alias: int = 0  # for messages sent by SRMP: see RenamedStream in record.h
    base: int = 0
    answered: int = 0


class IncomingStream(NamedTuple):
    """State of an incoming stream of transactional messages (KV-10); its key is "I", the GUID of the sending
    queue manager, and a hash of the destination.
    """

    source: bytes
    dest_type: int
    name: bytes  # DestinationQueue as on the wire
    address: str  # of the peer that sent the latest message
    queue: int  # ordinal, 0: no queue has taken anything
    sequence_id: int
    sequence_number: int
    rejects: int
    accessed_s: int


_OF_CALLERS = (EventKind.RECEIVED, EventKind.REMOVED, EventKind.PURGED)


class FeedEvent(NamedTuple):
    """One event of the feed; `number` grows by one with every event.

    `source` and `ordinal` are the message identifier; in QUEUE_CREATED and QUEUE_DELETED `source` is the GUID
    of the queue. `message_class` is the class of the message; in ACKED and NACKED it is the class of the
    acknowledgment. `reason` is the reason why a message failed, else 0.

    SENT, ARRIVED and DUPLICATE have the position of the message in its sequence if the message is
    transactional, and is sent to another queue manager or comes from one. The number of the previous message
    is then `sequence_number` - 1, unless a message of the sequence was purged or expired. In events that
    earlier versions wrote, `sequence_id` and all fields after it are 0.
    """

    number: int
    kind: int
    flags: int
    message_class: int
    queue: int
    arrival_seq: int
    lookup_id: int
    time_us: int
    source: bytes
    ordinal: int
    size: int
    sequence_id: int = 0
    """TxSequenceID, TimeStamp << 32 | Ordinal; for MOVED the ordinal of the source queue, for RECEIVED,
    REMOVED and PURGED the number of the caller.
    """
    sequence_number: int = 0
    """TxSequenceNumber; for MOVED the number of the caller."""
    abort_count: int = 0
    reason: int = 0

    @property
    def origin(self) -> int:
        """For a MOVED event, the ordinal of the queue that the message left, or 0 if it left `queue` itself.
        For other events 0.
        """
        return self.sequence_id if self.kind == EventKind.MOVED else 0

    @property
    def caller(self) -> int:
        """For RECEIVED, REMOVED, PURGED and MOVED events, the number of the program that caused the event, or
        0 if it is not known; see qm/feed/callers.py. For other events 0.
        """
        if self.kind == EventKind.MOVED:
            return self.sequence_number
        return self.sequence_id if self.kind in _OF_CALLERS else 0

    @property
    def previous_number(self) -> int:
        """The TxSequenceNumber of the previous message in the sequence; 0 if there is none."""
        return max(self.sequence_number - 1, 0)


class HistoryItem(NamedTuple):
    """The identifier of an accepted message, and the fingerprint of the message (0 if unknown)."""

    number: int
    source: bytes
    ordinal: int
    time_s: int
    fingerprint: int = 0


def _versioned(value: bytes) -> bytes:
    if not value:
        raise DecodeError("the record is empty")
    if value[0] != RECORD_VERSION:
        raise DecodeError(f"record version {value[0]} is not known")
    return value[1:]


def position_key(key: bytes) -> tuple[int, int]:
    """Returns (queue ordinal, LookupIdentifier)."""
    if len(key) != POSITION_KEY.size:
        raise DecodeError(f"a position key must have {POSITION_KEY.size} bytes, not {len(key)}")
    queue, lookup_id = POSITION_KEY.unpack(key)
    return queue, lookup_id


def position(value: bytes) -> Position:
    """Returns the fields of a position record; bytes that a later version added are ignored."""
    numbered = value[:1] == bytes((NUMBERED_VERSION,))
    if not numbered:
        _versioned(value)
    size = POSITION.size + PLACE.size * numbered
    if len(value) < size:
        raise DecodeError(f"a position record must have {size} bytes, not {len(value)}")
    place = PLACE.unpack_from(value, POSITION.size) if numbered else (0, 0)
    return Position._make(POSITION.unpack_from(value)[1:] + place)


def outgoing_stream(value: bytes) -> OutgoingStream:
    """Returns the state of an outgoing sequence."""
    renamed = value[:1] == bytes((RENAMED_VERSION,))
    if not renamed:
        _versioned(value)
    size = OUTGOING_STREAM.size + RENAMED.size * renamed
    if len(value) < size:
        raise DecodeError(f"the state of a sequence must have {size} bytes, not {len(value)}")
    _version, index, _reserved, *rest = OUTGOING_STREAM.unpack_from(value)
    names = RENAMED.unpack_from(value, OUTGOING_STREAM.size) if renamed else ()
    return OutgoingStream(index, *rest, *names)


def incoming_stream(key: bytes, value: bytes) -> IncomingStream:
    """Returns the state of an incoming stream."""
    if len(key) != 33 or key[:1] != b"I":
        raise DecodeError("the key of a stream must be an I, a GUID of 16 bytes and a hash of 16 bytes")
    _versioned(value)
    if len(value) < INCOMING_STREAM.size or len(value) < INCOMING_STREAM.size + value[2]:
        raise DecodeError("the record of a stream ends too early")
    _version, kind, size, _reserved, queue, sequence, *rest = INCOMING_STREAM.unpack_from(value)
    at = INCOMING_STREAM.size + size
    try:
        address = value[INCOMING_STREAM.size : at].decode("ascii")
    except UnicodeDecodeError as error:
        raise DecodeError("the address of a stream is not ASCII") from error
    return IncomingStream(key[1:17], kind, value[at:], address, queue, sequence, *rest)


def content_key(key: bytes) -> tuple[int, int]:
    """Returns (content id, chunk)."""
    if len(key) != CONTENT_KEY.size:
        raise DecodeError(f"a content key must have {CONTENT_KEY.size} bytes, not {len(key)}")
    content_id, chunk = CONTENT_KEY.unpack(key)
    return content_id, chunk


def chunk_count(size: int) -> int:
    """Returns the number of content records that a packet of `size` bytes takes."""
    return 1 if size <= WHOLE_BYTES else -(-size // CHUNK_BYTES)


def content(chunks: list[bytes], size: int) -> bytes:
    """Returns the UserMessage packet of `size` bytes; `chunks` are the values of its content records, in key
    order.
    """
    packet = b"".join(_versioned(chunk) for chunk in chunks)
    if len(packet) != size or len(chunks) != chunk_count(size):
        raise DecodeError(
            f"the content has {len(packet)} bytes in {len(chunks)} records;"
            f" expected {size} bytes in {chunk_count(size)} records"
        )
    return packet


def _entries(
    key: bytes,
    value: bytes,
    layout: struct.Struct,
    longer: struct.Struct | None = None,
    last_only: bool = False,
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yields (number, fields) of each entry of a packed record; with `last_only`, of the last entry only.
    Entries that are at least as long as `longer` are decoded with that layout, others with `layout`.
    """
    if len(key) != NUMBER_KEY.size:
        raise DecodeError(f"the key of a packed record must have {NUMBER_KEY.size} bytes, not {len(key)}")
    _versioned(value)
    if len(value) < PACK_HEAD.size:
        raise DecodeError("a packed record ends inside its head")
    _version, _reserved, entry_size, count = PACK_HEAD.unpack_from(value)
    if entry_size < layout.size or len(value) != PACK_HEAD.size + entry_size * count:
        raise DecodeError(
            f"a packed record of {len(value)} bytes cannot hold {count} entries of {entry_size} bytes"
        )
    if longer is not None and entry_size >= longer.size:
        layout = longer
    (number,) = NUMBER_KEY.unpack(key)
    for index in range(max(count - 1, 0) if last_only else 0, count):
        yield number + index, layout.unpack_from(value, PACK_HEAD.size + entry_size * index)


def feed(key: bytes, value: bytes) -> list[FeedEvent]:
    """Returns the events of one commit."""
    return [
        FeedEvent(number, *fields) for number, fields in _entries(key, value, FIRST_FEED_ENTRY, FEED_ENTRY)
    ]


def feed_some(key: bytes, value: bytes, indexes: Iterable[int]) -> list[FeedEvent]:
    """Returns the events at the positions `indexes` of the record of one commit; decodes no others."""
    for _ in _entries(key, value, FIRST_FEED_ENTRY, last_only=True):
        break  # its sizes are checked
    _version, _reserved, size, count = PACK_HEAD.unpack_from(value)
    layout = FEED_ENTRY if size >= FEED_ENTRY.size else FIRST_FEED_ENTRY
    (number,) = NUMBER_KEY.unpack(key)
    return [
        FeedEvent(number + index, *layout.unpack_from(value, PACK_HEAD.size + size * index))
        for index in indexes
        if 0 <= index < count
    ]


class FeedSpan(NamedTuple):
    """The range of a record of the feed: events with start <= number < stop, the last of them at
    `last_us`.
    """

    start: int
    stop: int
    last_us: int


def feed_span(key: bytes, value: bytes) -> FeedSpan:
    """Returns the range of a record of the feed; decodes only its last event."""
    entries = [
        FeedEvent(number, *fields)
        for number, fields in _entries(key, value, FIRST_FEED_ENTRY, last_only=True)
    ]
    (start,) = NUMBER_KEY.unpack(key)
    return (
        FeedSpan(start, entries[0].number + 1, entries[0].time_us) if entries else FeedSpan(start, start, 0)
    )


def history(key: bytes, value: bytes) -> list[HistoryItem]:
    """Returns the message identifiers that one commit added to the duplicate history."""
    return [
        HistoryItem(number, *fields)
        for number, fields in _entries(key, value, FIRST_HISTORY_ENTRY, HISTORY_ENTRY)
    ]


def queue_key(key: bytes) -> int:
    """Returns the queue ordinal."""
    if len(key) != ORDINAL_KEY.size:
        raise DecodeError(f"a queue key must have {ORDINAL_KEY.size} bytes, not {len(key)}")
    (ordinal,) = ORDINAL_KEY.unpack(key)
    return int(ordinal)


def queue(value: bytes) -> dict[str, Any]:
    """Returns the attributes of a queue record: name → value."""
    found = cold(value)
    if not isinstance(found, dict):
        raise DecodeError("a queue record must be a map")
    return found


def cold(value: bytes) -> Any:
    """Returns the msgpack value after the version byte of a META, QUEUE, DIRECTORY or other cold record."""
    data = _versioned(value)
    found, end = _unpack(data, 0, 0)
    if end != len(data):
        raise DecodeError(f"{len(data) - end} unexpected bytes follow the value")
    return found


# msgpack code -> (format, size) for numbers, and size of the length field for strings, binaries, arrays and
# maps
_NUMBERS: Final = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
_BINARIES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_STRINGS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}


def _take(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise DecodeError("the value ends too early")
    return data[at : at + size], at + size


def _length(data: bytes, at: int, size: int) -> tuple[int, int]:
    raw, at = _take(data, at, size)
    return int.from_bytes(raw, "big"), at


def _text(data: bytes, at: int, size: int) -> tuple[str, int]:
    raw, at = _take(data, at, size)
    try:
        return raw.decode(), at
    except UnicodeDecodeError as error:
        raise DecodeError("a string is not UTF-8") from error


def _array(data: bytes, at: int, count: int, depth: int) -> tuple[list[Any], int]:
    if count > len(data) - at:
        raise DecodeError("the value ends too early")
    items = []
    for _ in range(count):
        item, at = _unpack(data, at, depth)
        items.append(item)
    return items, at


def _map(data: bytes, at: int, count: int, depth: int) -> tuple[dict[Any, Any], int]:
    if count > (len(data) - at) // 2:
        raise DecodeError("the value ends too early")
    items = {}
    for _ in range(count):
        key, at = _unpack(data, at, depth)
        if not isinstance(key, str | int | bytes):
            raise DecodeError("a map key must be a string, a number or bytes")
        items[key], at = _unpack(data, at, depth)
    return items, at


def _unpack(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise DecodeError("the value is nested too deeply")
    code, at = _length(data, at, 1)
    depth += 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 0x100, at
    if code < 0x90:
        return _map(data, at, code & 0x0F, depth)
    if code < 0xA0:
        return _array(data, at, code & 0x0F, depth)
    if code < 0xC0:
        return _text(data, at, code & 0x1F)
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    if code in _NUMBERS:
        layout, size = _NUMBERS[code]
        raw, at = _take(data, at, size)
        return struct.unpack(layout, raw)[0], at
    if code in _BINARIES:
        count, at = _length(data, at, _BINARIES[code])
        return _take(data, at, count)
    if code in _STRINGS:
        count, at = _length(data, at, _STRINGS[code])
        return _text(data, at, count)
    if code in _ARRAYS:
        count, at = _length(data, at, _ARRAYS[code])
        return _array(data, at, count, depth)
    if code in _MAPS:
        count, at = _length(data, at, _MAPS[code])
        return _map(data, at, count, depth)
    raise DecodeError(f"msgpack code 0x{code:02x} is not used in stored records")
