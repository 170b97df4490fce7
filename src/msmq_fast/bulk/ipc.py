"""Cutting an Arrow IPC stream into its messages while it arrives; nothing is decoded here.

A message is a continuation mark, the size of its metadata, the metadata (a flatbuffer) and a body, whose size
the metadata tell. Everything is from the network: each offset is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msmq_fast.bulk.flatbuffer import Table
from msmq_fast.packet.malformed import Malformed

__all__ = ["HEAD", "MOST_MESSAGE_BYTES", "MOST_ROWS", "MessageCutter", "StreamMessage"]

MOST_MESSAGE_BYTES: Final = 64 << 20
"""Bytes of one message."""

MOST_ROWS: Final = 1 << 20
"""Rows of one record batch."""

HEAD: Final = 8
"""Bytes of a message before its metadata."""

_MOST_PREFIX: Final = 16 << 20  # bytes of the schema and all dictionaries that are in use
_CONTINUATION: Final = b"\xff\xff\xff\xff"
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3  # MessageHeader

# Places of fields in their tables.
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH = 0, 1, 2, 3  # Message
_LENGTH, _COMPRESSION = 0, 3  # RecordBatch
_ID, _DATA, _DELTA = 0, 1, 2  # DictionaryBatch

_V5: Final = 4  # MetadataVersion; before it, unions had another layout


class StreamMessage(NamedTuple):
    """A dictionary or a record batch: `data` is the whole message, `batch` the RecordBatch table of its
    metadata, `rows` what it says of itself, `dictionary` the id of a dictionary, None for a record batch.
    """

    data: bytearray
    batch: Table
    body: int
    """Where in `data` the body begins."""
    rows: int
    dictionary: int | None


class MessageCutter:
    """Takes the bytes of a stream, gives its dictionaries and record batches. ValueError: it is not a stream
    of schema, dictionaries and record batches, or a part is larger than allowed.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()  # what has come of a message
        self._wanted = HEAD  # how long it gets, as far as is known
        self._whole = False  # that is all of the message
        self._schema: Table | None = None
        self._sizes: dict[int, int] = {}  # bytes of the schema (-1) and of each dictionary
        self.ended = False  # the mark at the end has come

    @property
    def schema(self) -> Table | None:
        """The Schema table, None until it has come."""
        return self._schema

    def feed(self, data: bytes) -> Iterator[StreamMessage]:
        """The messages that are complete now. Take all of them before the next call."""
        view = memoryview(data)
        while view:
            if self.ended:
                raise Malformed("the Arrow stream goes on behind its end")
            missing = self._wanted - len(self._buffer)
            self._buffer += view[:missing]
            view = view[missing:]
            while len(self._buffer) == self._wanted and not self.ended:
                message = self._advance()
                if message is not None:
                    yield message

    def _advance(self) -> StreamMessage | None:
        """As much has come as was known of: more is known now, or the message is whole."""
        if self._whole:
            return self._end()
        if self._wanted > HEAD:
            self._whole = True
            self._wanted += self._body_length()
            return None
        mark, size = self._buffer[:4], int.from_bytes(self._buffer[4:HEAD], "little", signed=True)
        if mark != _CONTINUATION:
            raise Malformed(
                "the body is not an Arrow IPC stream: a message does not begin with a continuation mark"
            )
        if size == 0:
            self.ended = True
        elif not 8 <= size <= MOST_MESSAGE_BYTES or size & 7:
            raise Malformed(f"the metadata of an Arrow message have {size} bytes")
        else:
            self._wanted += size
        return None

    def _body_length(self) -> int:
        length = Table.root(self._buffer, HEAD).number("<q", _BODY_LENGTH)
        if length < 0 or self._wanted + length > MOST_MESSAGE_BYTES:
            raise Malformed(
                f"an Arrow message has {length} bytes: {MOST_MESSAGE_BYTES} is the limit, use smaller batches"
            )
        return length

    def _end(self) -> StreamMessage | None:
        """A message is whole."""
        whole, self._buffer, self._whole, self._wanted = self._buffer, bytearray(), False, HEAD
        message = Table.root(whole, HEAD)
        body = HEAD + int.from_bytes(whole[4:HEAD], "little")
        if message.number("<h", _VERSION) < _V5:
            raise Malformed(
                "the Arrow stream has a metadata version before V5: write it with Arrow 1.0 or newer"
            )
        kind = message.number("<B", _HEADER_TYPE)
        header = message.table(_HEADER)
        if kind == _SCHEMA and self._schema is None:
            self._count(-1, len(whole))
            self._schema = header
            return None
        if kind not in (_DICTIONARY, _BATCH) or self._schema is None:
            raise Malformed("an Arrow stream is one schema, dictionaries and record batches, in this order")
        if kind == _BATCH:
            return StreamMessage(whole, header, body, _rows(header), None)
        if header.number("<B", _DELTA):
            raise Malformed("the Arrow stream adds to a dictionary: write each dictionary as a whole")
        number = header.number("<q", _ID)
        self._count(number, len(whole))
        batch = header.table(_DATA)
        return StreamMessage(whole, batch, body, _rows(batch), number)

    def _count(self, part: int, size: int) -> None:
        self._sizes[part] = size
        if sum(self._sizes.values()) > _MOST_PREFIX:
            raise Malformed(
                f"the schema and the dictionaries of the Arrow stream have more than {_MOST_PREFIX} bytes"
            )


def _rows(batch: Table) -> int:
    if batch.has(_COMPRESSION):
        raise Malformed("the Arrow stream is compressed: write it without compression")
    rows = batch.number("<q", _LENGTH)
    if not 0 <= rows <= MOST_ROWS:
        raise Malformed(f"a record batch has {rows} rows: {MOST_ROWS} is the limit, use smaller batches")
    return rows
