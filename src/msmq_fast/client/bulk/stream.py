"""Arrow streams over HTTP: reads batches from an answer, and serializes batches for a request."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.client.bulk.errors import Truncated

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_BATCH", "Batches", "arrow_parts", "batches", "slices"]

MOST_BATCH: Final = 16 << 20
"""Maximum size of a record batch that is sent, in bytes; a batch of a single row may be larger. The server
accepts 64 MiB.
"""

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"  # the end-of-stream mark of Arrow IPC
_STEP: Final = 16 << 20
_PART: Final = 1 << 20  # bytes that are gathered before they are sent


class _Body:
    """The body of an answer as a file for pyarrow. `tail` keeps the last 8 bytes read, so that the caller can
    check the end mark: pyarrow accepts a stream that was cut between two messages as complete.
    """

    closed = False

    def __init__(self, response: http.client.HTTPResponse, allocate: Callable[[int], Any]) -> None:
        self._response = response
        self._allocate = allocate  # allocates an uninitialised buffer of n bytes
        self.tail = b""

    def read(self, size: int = -1) -> memoryview:
        """Return `size` bytes, or fewer at the end of the body; all remaining bytes if `size` is negative."""
        pieces: list[memoryview] = []
        filled = 0
        while size < 0 or filled < size:
            # Allocates no more than has arrived, whatever length a broken stream announces.
            piece = self._step(_STEP if size < 0 else min(size - filled, _STEP))
            if not len(piece):
                break
            pieces.append(piece)
            filled += len(piece)
        content = pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
        self.tail = (self.tail + bytes(content[-8:]))[-8:]
        return content

    def _step(self, size: int) -> memoryview:
        """Return `size` bytes, or fewer at the end of the body."""
        view, filled = memoryview(self._allocate(size)).cast("B"), 0
        while filled < size and (count := self._response.readinto(view[filled:])):
            filled += count
        return view[:filled]

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""

    def close(self) -> None:
        self.closed = True


class Batches(Iterator["pa.RecordBatch"]):
    """An iterator of record batches, all with the same `schema`. `close` ends it early and closes the
    connection.
    """

    def __init__(
        self,
        schema: pa.Schema,
        response: http.client.HTTPResponse,
        following: Callable[[], pa.RecordBatch | None],
    ) -> None:
        self.schema = schema
        self._response = response
        self._following: Callable[[], pa.RecordBatch | None] | None = following

    def __next__(self) -> pa.RecordBatch:
        batch = None if self._following is None else self._following()
        if batch is None:
            self.close()
            raise StopIteration
        return batch

    def close(self) -> None:
        self._following = None
        self._response.close()


def batches(response: http.client.HTTPResponse, where: str) -> Batches:
    """Return the record batches of an answer.

    Raises Truncated, also during iteration, if the stream ends before its end mark. The text of the error
    names the queue manager with `where`.
    """
    import pyarrow as pa

    body = _Body(response, pa.allocate_buffer)

    def broken(reason: object) -> Truncated:
        response.close()
        return Truncated(f"{where}: the stream of rows broke off: {reason}")

    try:
        reader = pa.ipc.open_stream(body)
    except (OSError, http.client.HTTPException, pa.ArrowInvalid) as error:
        raise broken(error) from None

    def following() -> pa.RecordBatch | None:
        try:
            return reader.read_next_batch()
        except StopIteration:
            pass
        except (OSError, http.client.HTTPException, pa.ArrowInvalid) as error:
            raise broken(error) from None
        try:
            rest = response.read(1)  # the end of the answer itself, and nothing before it
        except (OSError, http.client.HTTPException) as error:
            raise broken(error) from None
        if body.tail != _END or rest:
            raise broken("the end-of-stream mark is missing")
        return None

    return Batches(reader.schema, response, following)


class _Parts:
    """A file into which pyarrow writes. It joins small writes into larger parts."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._size = 0
        self.ready: list[bytes | memoryview] = []

    def write(self, piece: Any) -> int:
        view = memoryview(piece).cast("B")
        if len(view) >= _PART:
            self.flush()
            self.ready.append(view)
        else:
            self._pieces.append(bytes(view))
            self._size += len(view)
            if self._size >= _PART:
                self.flush()
        return len(view)

    def flush(self) -> None:
        if self._pieces:
            self.ready.append(b"".join(self._pieces))
            self._pieces, self._size = [], 0

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True

    def take(self) -> list[bytes | memoryview]:
        taken, self.ready = self.ready, []
        return taken


def arrow_parts(schema: pa.Schema, content: Iterable[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
    """Yield the IPC stream of the batches in `content` as byte parts; only the current part is held in
    memory.
    """
    import pyarrow as pa

    sink = _Parts()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in content:
            writer.write_batch(batch)
            yield from sink.take()
    sink.flush()
    yield from sink.take()


def slices(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of at most `limit` bytes each; a single larger row is a batch of its own."""
    if batch.num_rows > 1 and batch.nbytes > limit:
        half = batch.num_rows // 2
        yield from slices(batch.slice(0, half), limit)
        yield from slices(batch.slice(half), limit)
    elif batch.num_rows:
        yield batch
