"""Splits an Arrow IPC stream into its messages while it arrives; decodes nothing.

A message consists of a continuation mark, the size of the metadata, the metadata (a flatbuffer) and a body.
The metadata state the size of the body. All of it comes from the network: each offset is checked before it is
used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msmq_fast.bulk.flatbuffer import Table
from msmq_fast.packet.malformed import Malformed

__all__ = ["HEAD", "MOST_MESSAGE_BYTES", "MOST_ROWS", "MessageCutter", "StreamMessage"]

MOST_MESSAGE_BYTES: Final = 64 << 20
"""Maximum size of an Arrow message, in bytes."""

MOST_ROWS: Final = 1 << 20
"""Maximum number of rows in one record batch."""

HEAD: Final = 8
"""Size of the part of an Arrow message before its metadata, in bytes."""

_MOST_PREFIX: Final = 16 << 20  # bytes of the schema and all dictionaries that are in use
_LARGE_PART: Final = 16 << 10
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # MessageHeader

# Places of fields in their tables.
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH = 0, 1, 2, 3  # Message
_LENGTH, _COMPRESSION = 0, 3  # RecordBatch
_ID, _DATA, _DELTA = 0, 1, 2  # DictionaryBatch

_V5: Final = 4  # MetadataVersion; before it, unions had another layout


class StreamMessage(NamedTuple):
    """A dictionary message or a record batch message. `batch` is the RecordBatch table in the metadata of the
    message, `rows` the row count in that table. `dictionary` is the dictionary id, None for a record batch.
    """

    batch: Table
    rows: int
    dictionary: int | None
    parts: list[bytes | bytearray]
    """The body, in the pieces in which it arrived."""

    def body(self) -> bytes:
        """Return the whole body. A body that arrived in several pieces is copied, without the GIL if it is
        large: do not call this on the event loop.
        """
        return _joined(self.parts)


class MessageCutter:
    """Takes the bytes of an IPC stream and yields the dictionary and record batch messages. Raises ValueError
    if the bytes are not a stream of one schema, dictionaries and record batches, or if a message is too
    large.

    Only received pieces that are smaller than _LARGE_PART, or that hold the beginning or end of a body, are
    copied here: each copy on the event loop delays every client. Small pieces are joined, so that a body
    takes little more memory than its size, even if it arrives in many small pieces.
    """

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []  # received parts of a message, or of its body
        self._size = 0  # how much has come of a message
        self._wanted = HEAD  # how long it gets, as far as is known
        self._head: bytes | None = None  # all of it before its body
        self._schema: Table | None = None
        self._sizes: dict[int, int] = {}  # bytes of the schema (-1) and of each dictionary
        self.ended = False  # the mark at the end has come

    @property
    def schema(self) -> Table | None:
        """The Schema table of the stream; None until it has arrived."""
        return self._schema

    def feed(self, data: bytes) -> Iterator[StreamMessage]:
        """Process received bytes; yield the messages that are complete now. Consume all of them before the
        next call.
        """
        at = 0
        while at < len(data):
            if self.ended:
                raise Malformed("the Arrow stream continues after its end-of-stream mark")
            part = data[at : at + self._wanted - self._size]
            at += len(part)
            self._add(part)
            while self._size == self._wanted and not self.ended:
                message = self._advance()
                if message is not None:
                    yield message

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if len(part) >= _LARGE_PART:
            self._parts.append(part)
        elif self._parts and isinstance(self._parts[-1], bytearray):
            self._parts[-1] += part
        else:
            self._parts.append(bytearray(part))

    def _advance(self) -> StreamMessage | None:
        """Handle a complete part of a message (head, metadata or body). Return the message if the part
        completes it; otherwise set the size of the next part and return None.
        """
        if self._head is not None:
            return self._end(self._head)
        start = _joined(self._parts)
        if self._wanted > HEAD:
            self._head, self._parts = start, []
            self._wanted += self._body_length(start)
            return None
        size = int.from_bytes(start[4:], "little", signed=True)
        if start[:4] != _CONTINUATION:
            raise Malformed(
                "the body is not an Arrow IPC stream: a message does not begin with a continuation mark"
            )
        if size == 0:
            self.ended = True
        elif not 8 <= size <= MOST_MESSAGE_BYTES or size & 7:
            raise Malformed(f"the metadata of an Arrow message have an invalid size: {size} bytes")
        else:
            self._wanted += size
        return None

    def _body_length(self, head: bytes) -> int:
        length = Table.root(head, HEAD).number("<q", _BODY_LENGTH)
        if length < 0 or self._wanted + length > MOST_MESSAGE_BYTES:
            raise Malformed(
                f"an Arrow message has {length} bytes: {MOST_MESSAGE_BYTES} is the limit, use smaller batches"
            )
        return length

    def _end(self, head: bytes) -> StreamMessage | None:
        """Check a complete message and return it; None for the schema, which is kept."""
        parts, size = self._parts, self._size
        self._parts, self._size, self._wanted, self._head = [], 0, HEAD, None
        message = Table.root(head, HEAD)
        if message.number("<h", _VERSION) < _V5:
            raise Malformed(
                "the Arrow stream has a metadata version before V5: write it with Arrow 1.0 or newer"
            )
        kind = message.number("<B", _HEADER_TYPE)
        header = message.table(_HEADER)
        if kind == _SCHEMA and self._schema is None:
            self._count(-1, size)
            self._schema = header
            return None
        if kind not in (_DICTIONARY, _BATCH) or self._schema is None:
            raise Malformed("an Arrow stream must hold one schema, then dictionaries and record batches")
        if kind == _BATCH:
            return StreamMessage(header, _rows(header), None, parts)
        if header.number("<B", _DELTA):
            raise Malformed("the Arrow stream adds to a dictionary: write each dictionary as a whole")
        number = header.number("<q", _ID)
        self._count(number, size)
        batch = header.table(_DATA)
        return StreamMessage(batch, _rows(batch), number, parts)

    def _count(self, part: int, size: int) -> None:
        self._sizes[part] = size
        if sum(self._sizes.values()) > _MOST_PREFIX:
            raise Malformed(
                f"the schema and the dictionaries of the Arrow stream have more than {_MOST_PREFIX} bytes"
            )


def _joined(parts: list[bytes | bytearray]) -> bytes:
    whole = [bytes(part) for part in parts]  # bytes as they are, or CPython would keep the GIL
    return whole[0] if len(whole) == 1 else b"".join(whole)


def _rows(batch: Table) -> int:
    if batch.has(_COMPRESSION):
        raise Malformed("the Arrow stream is compressed: write it without compression")
    rows = batch.number("<q", _LENGTH)
    if not 0 <= rows <= MOST_ROWS:
        raise Malformed(f"a record batch has {rows} rows: {MOST_ROWS} is the limit, use smaller batches")
    return rows
