"""Reassembles one direction of a TCP connection: it takes segments in capture order, and returns bytes in
stream order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, NamedTuple

_HALF: Final = 1 << 31
_WHOLE: Final = 1 << 32
FARTHEST: Final = 1 << 30
"""The largest window that TCP has. A segment further ahead belongs to another connection, or is damaged."""
_HELD: Final = 128
"""The approximate overhead of a waiting segment in bytes, so that many short segments also count."""


class Piece(NamedTuple):
    """The next bytes of the stream; or, if `data` is empty, a gap: the number of bytes (`missing`) that were
    not captured.
    """

    data: bytes
    missing: int = 0


class Direction:
    """Puts the segments of one direction in order. Ignores data that a retransmission repeats.

    Bytes after a hole wait for the missing segment. If more than `limit` bytes wait, the missing segment is
    treated as not captured.
    """

    __slots__ = ("_heap", "_limit", "_next", "duplicates", "reordered", "waiting")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._next: int | None = None  # its low 32 bits are TCP's sequence number
        self._heap: list[tuple[int, bytes]] = []
        self.waiting = 0  # bytes of waiting segments, with their overhead
        self.duplicates = 0  # segments without new data
        self.reordered = 0  # segments that arrived after a hole

    @property
    def started(self) -> bool:
        """Whether the position of the stream is known, that is, `begin` was called."""
        return self._next is not None

    def begin(self, sequence: int) -> None:
        """Sets the sequence number of the first byte: one more than that of a SYN, or that of the first
        captured segment.
        """
        self._next = sequence % _WHOLE + _WHOLE

    def place(self, sequence: int) -> int:
        """Returns how many bytes a sequence number is ahead of the next expected byte; negative if it is
        behind.
        """
        assert self._next is not None  # noqa: S101 - callers begin first
        return (sequence - self._next + _HALF) % _WHOLE - _HALF

    def add(self, sequence: int, payload: bytes) -> Iterator[Piece]:
        """Adds a segment. Yields the bytes that are in order now."""
        if self._next is None:
            self.begin(sequence)
        ahead = self.place(sequence)
        if ahead + len(payload) <= 0 or ahead > FARTHEST:
            self.duplicates += 1
            return
        assert self._next is not None  # noqa: S101
        if ahead > 0:
            self.reordered += 1
            heapq.heappush(self._heap, (self._next + ahead, payload))
            self.waiting += len(payload) + _HELD
            while self.waiting > self._limit:
                yield from self._skip()
            return
        self._next += ahead + len(payload)
        yield Piece(payload[-ahead:] if ahead else payload)
        if self._heap:
            yield from self._ready()

    def lose(self, sequence: int, missing: int) -> Iterator[Piece]:
        """Reports that the capture lacks the last `missing` bytes of a segment, from the sequence number
        `sequence` on. Yields the gap, if these bytes are the next expected ones, and the bytes that are in
        order now.
        """
        if self._next is not None and missing > 0 and self.place(sequence) == 0:
            self._next += missing
            yield Piece(b"", missing)
            yield from self._ready()

    def end(self) -> Iterator[Piece]:
        """Yields all waiting bytes at the end of the stream, and the gaps before them."""
        while self._heap:
            yield from self._skip()

    def _skip(self) -> Iterator[Piece]:
        assert self._next is not None  # noqa: S101
        missing = self._heap[0][0] - self._next
        if missing > 0:
            self._next += missing
            yield Piece(b"", missing)
        yield from self._ready()

    def _ready(self) -> Iterator[Piece]:
        assert self._next is not None  # noqa: S101
        while self._heap and self._heap[0][0] <= self._next:
            start, payload = heapq.heappop(self._heap)
            self.waiting -= len(payload) + _HELD
            known = self._next - start
            if known < len(payload):
                self._next += len(payload) - known
                yield Piece(payload[known:])
