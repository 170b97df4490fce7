"""The receive buffer of one connection: the kernel writes into it, and readers take complete frames
as views.
"""

from __future__ import annotations

from msmq_fast._native.applane import SendLane
from msmq_fast.protocol.frames import HEADER, HEADER_SIZE, LENGTH_SIZE, MIN_LENGTH, WireError

IDLE = 65_536  # bytes of an idle buffer
MIN_ROOM = 8_192  # room below which the buffer is moved together or grown
MAX_READ = 262_144  # bytes taken from one connection in one turn
KEEP = 32  # reads in succession that an idle buffer has room for, after which a larger one shrinks


class FrameBuffer:
    """A buffer that grows with the bytes that arrive, not with the length that a header announces.

    It shrinks to the size of one read as soon as a larger frame has been handled. It shrinks further, to its
    idle size, only after several small reads: a sender that fills more than an idle buffer usually does so
    again, and each new buffer must be filled with zeros.
    """

    def __init__(self, max_frame: int) -> None:
        self.max_frame = max_frame
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)
        self._replace(IDLE)
        self._start = 0
        self._end = 0
        self._small = 0  # reads since the last one that an idle buffer had no room for

    def __len__(self) -> int:
        return self._end - self._start

    def room(self) -> memoryview:
        """Return the buffer for the next bytes; never empty. Pass the number of written bytes to
        `advance`.
        """
        held = self._end - self._start
        size = len(self._buffer)
        if held == 0:
            self._small = self._small + 1 if self._end <= IDLE else 0
            self._start = self._end = 0
            if size > MAX_READ or (size > IDLE and self._small > KEEP):
                self._replace(IDLE)
        elif size - self._end < MIN_ROOM:
            # A handler may still hold a view of the old buffer, so it is replaced, never resized.
            if held > size // 2 or size == IDLE:
                kept = self._view[self._start : self._end]
                self._replace(size * 2)
                self._buffer[:held] = kept
            else:
                self._buffer[:held] = self._buffer[self._start : self._end]
            self._start, self._end = 0, held
            self._small = 0
        return self._view[self._end : self._end + MAX_READ]

    def _replace(self, size: int) -> None:
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)

    def release(self) -> None:
        """Free the memory after the connection has ended."""
        self._replace(0)
        self._start = self._end = 0

    def advance(self, count: int) -> None:
        """Add the `count` bytes that were written into the view that `room` returned."""
        self._end += count

    def run(self, lane: SendLane) -> None:
        """Let `lane`, the fast path of SEND frames, handle complete frames, up to the first frame that it
        does not handle.

        An exception ends the connection, because it is not known which frames were handled.
        """
        self._start = lane.run(self._buffer, self._start, self._end)

    def take(self) -> tuple[int, int, memoryview] | None:
        """Return the next complete frame as (type, request id, payload); None if no frame is complete.

        The payload is a view that is valid until the next call of `room`. Raises WireError for a length
        outside the limits.
        """
        start = self._start
        if self._end - start < HEADER_SIZE:
            return None
        length, kind, request_id = HEADER.unpack_from(self._buffer, start)
        if not MIN_LENGTH <= length <= self.max_frame:
            raise WireError(
                f"a frame has a length of {length} bytes: it must be from {MIN_LENGTH} to {self.max_frame}"
            )
        stop = start + LENGTH_SIZE + length
        if stop > self._end:
            return None
        self._start = stop
        return kind, request_id, self._view[start + HEADER_SIZE : stop]
