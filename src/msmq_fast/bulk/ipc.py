"""Cutting an Arrow IPC stream into its messages while it arrives; nothing is decoded here.

A message is a continuation mark, the size of its metadata, the metadata (a flatbuffer) and a body, whose size
the metadata tell. Everything is from the network: each offset is checked before it is used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["MOST_MESSAGE_BYTES", "MOST_ROWS", "BatchMessage", "MessageCutter"]

MOST_MESSAGE_BYTES: Final = 64 << 20
"""Bytes of one message."""

MOST_ROWS: Final = 1 << 20
"""Rows of one record batch."""

_MOST_PREFIX: Final = 16 << 20  # bytes of the schema and all dictionaries
_HEAD: Final = 8
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # MessageHeader

# Places of fields in their tables.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # Message
_LENGTH, _COMPRESSION = 0, 3  # RecordBatch
_DATA = 1  # DictionaryBatch


class BatchMessage(NamedTuple):
    """A record batch as a stream of its own, but for the mark at the end: what it needs comes first.

    `rows` is what it says of itself.
    """

    stream: bytearray
    rows: int


class MessageCutter:
    """Takes the bytes of a stream, gives its record batches. ValueError: it is no such stream."""

    def __init__(self) -> None:
        self._prefix = bytearray()  # the schema, and dictionaries
        self._buffer = bytearray()  # the prefix, and what has come of a message
        self._wanted = _HEAD  # how long it gets, as far as is known
        self._whole = False  # that is all of the message
        self.ended = False  # the mark at the end has come

    @property
    def schema_known(self) -> bool:
        """Whether the schema has come."""
        return bool(self._prefix)

    @property
    def prefix(self) -> bytes:
        """The schema and the dictionaries, as a stream."""
        return bytes(self._prefix)

    def feed(self, data: bytes) -> Iterator[BatchMessage]:
        """The record batches that are complete now, one after the other: each has a copy of what it needs, so
        that a list of them would be much greater than what came. To be taken to its end.
        """
        view = memoryview(data)
        while view:
            if self.ended:
                raise ValueError("the Arrow stream goes on behind its end")
            missing = self._wanted - len(self._buffer)
            self._buffer += view[:missing]
            view = view[missing:]
            while len(self._buffer) == self._wanted and not self.ended:
                batch = self._advance()
                if batch is not None:
                    yield batch

    def _advance(self) -> BatchMessage | None:
        """As much has come as was known of: more is known now, or the message is whole."""
        start = len(self._prefix)
        if self._whole:
            return self._end(start)
        if self._wanted > start + _HEAD:
            self._whole = True
            self._wanted += self._body_length(start)
            return None
        mark, size = self._buffer[start : start + 4], _i32(self._buffer, start + 4)
        if mark != _CONTINUATION:
            raise ValueError(
                "the body is no Arrow IPC stream: a message does not begin with a continuation mark"
            )
        if size == 0:
            self.ended = True
        elif not 8 <= size <= MOST_MESSAGE_BYTES or size & 7:
            raise ValueError(f"the metadata of an Arrow message have {size} bytes")
        else:
            self._wanted += size
        return None

    def _body_length(self, start: int) -> int:
        message = _Table.root(self._buffer, start + _HEAD)
        length = message.number("<q", _BODY_LENGTH)
        if length < 0 or self._wanted - start + length > MOST_MESSAGE_BYTES:
            raise ValueError(
                f"an Arrow message has {length} bytes: {MOST_MESSAGE_BYTES} is the limit, use smaller batches"
            )
        return length

    def _end(self, start: int) -> BatchMessage | None:
        """A message is whole."""
        message = _Table.root(self._buffer, start + _HEAD)
        kind = message.number("<B", _HEADER_TYPE)
        header = message.table(_HEADER)
        whole, self._whole = self._buffer, False
        if kind == _SCHEMA and not start:
            self._prefix = bytearray(whole)
        elif kind == _DICTIONARY and start:
            _check_plain(header.table(_DATA))
            self._prefix = bytearray(whole)
        elif kind != _BATCH or not start:
            raise ValueError("an Arrow stream is one schema, dictionaries and record batches, in this order")
        if len(self._prefix) > _MOST_PREFIX:
            raise ValueError(
                f"the schema and the dictionaries of the Arrow stream have more than {_MOST_PREFIX} bytes"
            )
        self._buffer = bytearray(self._prefix)
        self._wanted = len(self._prefix) + _HEAD
        if kind != _BATCH:
            return None
        _check_plain(header)
        rows = header.number("<q", _LENGTH)
        if not 0 <= rows <= MOST_ROWS:
            raise ValueError(f"a record batch has {rows} rows: {MOST_ROWS} is the limit, use smaller batches")
        return BatchMessage(whole, rows)


def _check_plain(batch: _Table) -> None:
    if batch.has(_COMPRESSION):
        raise ValueError("the Arrow stream is compressed: write it without compression")


def _i32(data: bytearray, at: int) -> int:
    value: int = struct.unpack_from("<i", data, at)[0]
    return value


class _Table:
    """A table of a flatbuffer. ValueError: an offset leads out of it."""

    def __init__(self, data: bytearray, base: int, at: int) -> None:
        self._data, self._base, self._at = data, base, at
        self._fields = at - self._unpack("<i", at)
        self._size = self._unpack("<H", self._fields)

    @classmethod
    def root(cls, data: bytearray, base: int) -> _Table:
        """The root of the flatbuffer that begins at `base`."""
        return cls(data, base, base + _i32(data, base))

    def _unpack(self, layout: str, at: int) -> int:
        if not self._base <= at <= len(self._data) - struct.calcsize(layout):
            raise ValueError("the metadata of an Arrow message are damaged")
        value: int = struct.unpack_from(layout, self._data, at)[0]
        return value

    def _place(self, field: int) -> int:
        slot = 4 + 2 * field
        offset = self._unpack("<H", self._fields + slot) if slot + 2 <= self._size else 0
        return self._at + offset if offset else 0

    def has(self, field: int) -> bool:
        """Whether it has a field that is not the default."""
        return self._place(field) != 0

    def number(self, layout: str, field: int) -> int:
        """A number, 0 by default."""
        place = self._place(field)
        return self._unpack(layout, place) if place else 0

    def table(self, field: int) -> _Table:
        """A table inside."""
        place = self._place(field)
        if not place:
            raise ValueError("the metadata of an Arrow message lack a part")
        return _Table(self._data, self._base, place + self._unpack("<I", place))
