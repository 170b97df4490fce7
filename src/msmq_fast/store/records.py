"""Encodes the records that Python code writes; `decode.py` decodes them. Native code encodes the records of
messages itself (record.h).
"""

from __future__ import annotations

from typing import Any

import msgpack

from msmq_fast.store import decode
from msmq_fast.store.decode import FeedEvent, OutgoingStream, Position

_VERSION = bytes((decode.RECORD_VERSION,))


def cold(value: Any) -> bytes:
    """Returns a cold record: a version byte and `value` in msgpack (META, QUEUE, QUEUE_INDEX, DIRECTORY)."""
    return _VERSION + bytes(msgpack.packb(value))


def position(value: Position) -> bytes:
    """Returns a position record. Raises struct.error if a field is out of range."""
    if not value.sequence_number:
        return decode.POSITION.pack(decode.RECORD_VERSION, *value[:-2])
    return decode.POSITION.pack(decode.NUMBERED_VERSION, *value[:-2]) + decode.PLACE.pack(*value[-2:])


def outgoing_stream(value: OutgoingStream) -> bytes:
    """Returns the record of an outgoing sequence."""
    renamed = value.alias or value.base or value.answered
    version = decode.RENAMED_VERSION if renamed else decode.RECORD_VERSION
    packed = decode.OUTGOING_STREAM.pack(version, value[0], 0, *value[1:-3])
    return packed + (decode.RENAMED.pack(*value[-3:]) if renamed else b"")


def feed_entry(event: FeedEvent) -> bytes:
    """Returns one entry of the feed. The number of the event is not part of the entry: it follows from the
    position of the entry.
    """
    return decode.FEED_ENTRY.pack(*event[1:])


def content(packet: bytes) -> list[bytes]:
    """Returns the values of the content records of a packet, in key order."""
    step = decode.WHOLE_BYTES if len(packet) <= decode.WHOLE_BYTES else decode.CHUNK_BYTES
    return [_VERSION + packet[at : at + step] for at in range(0, max(len(packet), 1), step)]
