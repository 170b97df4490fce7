"""Reads messages and events of a store in plain Python. It is used if no native module is built, and by tests
as a reference for the native one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.spark import packets
from msmq_fast.spark.offline.backend import Backend, every
from msmq_fast.spark.offline.catalogue import BAND, SEQUENCES, Catalogue, QueueEntry, Stretch
from msmq_fast.store import decode
from msmq_fast.store.decode import (
    ABOUT_QUEUES,
    NOT_TAKEN,
    DecodeError,
    EventKind,
    FeedEvent,
    Position,
    PositionFlag,
    Transport,
)
from msmq_fast.store.schema import CONTENT_KEY, NUMBER_KEY, POSITION_KEY, Table

_LARGEST: Final = 1 << 26  # no stored packet is larger; a record with a larger size is damaged
_MOST: Final = 0xFFFF  # the largest stored count of aborts or moves
_EVENT_NAMES: Final = {int(kind): kind.name.lower() for kind in EventKind}
_TRANSPORTS: Final = {int(transport): transport.name.lower() for transport in Transport}
_ABOUT_QUEUES: Final = (EventKind.QUEUE_CREATED, EventKind.QUEUE_DELETED)
_NOT_TAKEN: Final = (
    EventKind.NACKED,
    EventKind.DUPLICATE,
)  # the message may have entered no queue

Row = dict[str, Any]


def constants_of(catalogue: Catalogue, queue: QueueEntry) -> dict[str, str | int | None]:
    """Returns the columns that have the same value for all messages of a queue."""
    return {
        "qm_guid": catalogue.guid,
        "queue": queue.name,
        "queue_guid": queue.guid,
        "queue_kind": queue.kind,
    }


def message_rows(
    backend: Backend, catalogue: Catalogue, stretch: Stretch, names: Sequence[str]
) -> Iterator[tuple[Row, int]]:
    """Yields (row, size of the packet in bytes) for the messages of a key range, in queue order. The row of
    an unreadable message has the column `_corrupt`.
    """
    queue = catalogue.queue(stretch.ordinal)
    constants = constants_of(catalogue, queue)
    lower, upper = (POSITION_KEY.pack(stretch.ordinal, one) for one in (stretch.start, stretch.stop))
    for key, value in every(backend, Table.POSITION, lower, upper):
        row: Row = {**constants, "store_key": key}
        try:
            _, lookup_id = decode.position_key(key)
            row |= _of_key(lookup_id)
            position = decode.position(value)
        except DecodeError:
            yield row | {"_corrupt": value}, len(value)
            continue
        row |= _of_position(position, queue.purged_to)
        packet, damaged = _packet(backend, position)
        if packet is None:
            yield row | {"_corrupt": damaged}, len(damaged)
        else:
            yield row | _of_packet(packet, position, names, damaged), len(damaged)


def _of_key(lookup_id: int) -> Row:
    return {
        "arrival_seq": lookup_id & SEQUENCES,
        "lookup_id": packets.signed(lookup_id, 64),
        "priority": 7 - (lookup_id >> BAND),
    }


def _of_position(position: Position, purged_to: int) -> Row:
    return {
        "arrived_time": position.arrived_us,
        "abort_count": min(position.abort_count, _MOST),
        "move_count": min(position.move_count, _MOST),
        "last_move_time": position.last_move_s * 1_000_000 or None,
        "state": _state(position, purged_to),
    }


def _state(position: Position, purged_to: int) -> str:
    flags = position.flags
    if flags & PositionFlag.PURGE_PENDING or position.arrival_seq <= purged_to:
        return "purged"
    if flags & PositionFlag.PREPARED:
        return "prepared"
    return "ordered" if flags & PositionFlag.ORDERED else "available"


def _packet(backend: Backend, position: Position) -> tuple[UserMessagePacket | None, bytes]:
    """Returns the packet of a message, decoded and as bytes. If it is damaged, returns None and the bytes
    that could be read.
    """
    size = position.content_bytes
    if not position.content_id or size > _LARGEST:
        return None, b""
    chunks = []
    for number in range(decode.chunk_count(size)):
        chunk = backend.get(Table.CONTENT, CONTENT_KEY.pack(position.content_id, number))
        if chunk is None:
            return None, b""
        chunks.append(chunk)
    try:
        data = decode.content(chunks, size)
    except DecodeError:
        return None, b""
    try:
        packet, end = UserMessagePacket.decode(data)
    except PacketFault:
        return None, data
    return (packet, data) if end == size and packet.session is None else (None, data)


def _of_packet(packet: UserMessagePacket, position: Position, names: Sequence[str], data: bytes) -> Row:
    row = packets.values(packet, names, data)
    row.pop("priority", None)  # the priority of the queue's order is used
    if position.reason:
        row["class"] = position.reason
        row["class_name"] = packets.CLASS_NAMES.get(position.reason)
    if position.sequence_number and packet.transaction is not None:
        row["xact_seq_id"] = packets.signed(position.sequence_id, 64) or None
        row["xact_seq_no"] = position.sequence_number
        row["xact_prev_no"] = None
    return row


def event_rows(backend: Backend, catalogue: Catalogue, stretch: Stretch) -> Iterator[tuple[Row, int]]:
    """Yields (row, 0) for the events of a key range. An unreadable record of several events is one row with
    the column `_corrupt`, yielded with the size of the record in bytes.
    """
    lower = _record_with(backend, stretch.start)
    for key, value in every(backend, Table.FEED, lower, NUMBER_KEY.pack(stretch.stop), 16):
        try:
            events = decode.feed(key, value)
        except DecodeError:
            if key >= NUMBER_KEY.pack(stretch.start):
                row: Row = {"qm_guid": catalogue.guid, "incarnation": catalogue.incarnation}
                yield row | {"_corrupt": value}, len(value)
            continue
        for event in events:
            if stretch.start <= event.number < stretch.stop:
                yield _event(event, catalogue), 0


def _record_with(backend: Backend, number: int) -> bytes:
    """Returns the key of the last feed record whose first event is the event `number` or an earlier one."""
    wanted = NUMBER_KEY.pack(number)
    step = 1
    while True:
        lower = NUMBER_KEY.pack(max(0, number - step))
        found = backend.scan(Table.FEED, lower, wanted + b"\0", 1 << 16)
        if found:
            return found[-1][0]
        if step >= number:
            return wanted
        step *= 16


def _event(event: FeedEvent, catalogue: Catalogue) -> Row:
    name, guid, kind = catalogue.resolve(event.queue) or (None, None, None)
    if guid is None and event.kind in ABOUT_QUEUES:
        guid = str(UUID(bytes_le=event.source))
    row: Row = {
        "qm_guid": catalogue.guid,
        "incarnation": catalogue.incarnation,
        "feed_seq": event.number,
        "event": _EVENT_NAMES.get(event.kind),
        "event_time": event.time_us,
        "queue": name,
        "queue_guid": guid,
        "queue_kind": kind,
        "reason": packets.CLASS_NAMES.get(event.reason) if event.reason else None,
    }
    if event.kind == EventKind.MOVED:
        row["origin_queue"] = (catalogue.resolve(event.sequence_id) or (None,))[0]
    if event.lookup_id:
        row["lookup_id"] = packets.signed(event.lookup_id, 64)
        row["arrival_seq"] = event.arrival_seq
        row["priority"] = 7 - (event.lookup_id >> BAND)
    if event.lookup_id or event.kind in NOT_TAKEN:
        row |= _event_of_message(event)
    return row


def _event_of_message(event: FeedEvent) -> Row:
    row: Row = {
        "message_id": f"{{{UUID(bytes_le=event.source)}}}\\{event.ordinal}",
        "class": event.message_class,
        "packet_size": event.size,
        "source_machine": str(UUID(bytes_le=event.source)),
        "transport": _TRANSPORTS.get(event.flags),
        "abort_count": event.abort_count,
    }
    if event.sequence_number and event.kind != EventKind.MOVED:
        row |= {
            "seq_id": packets.signed(event.sequence_id, 64),
            "seq_no": event.sequence_number,
            "prev_seq_no": event.sequence_number - 1,
        }
    return row
