"""Bounds the bytes of the reads that are under way on a connection, although the size of a message is known
only after it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msmq_fast.qm.reading.readers import Readers

AHEAD_MESSAGES = 1024  # under way at once
AHEAD_BYTES = 2_097_152  # about as much as that may be in bytes, judged by the messages before
FIRST_AVERAGE = 262_144.0  # assumed bytes of a message before the first one: begin with few


class ReadAhead:
    """Estimates how many messages may be under way at once from the sizes of earlier messages."""

    def __init__(self) -> None:
        self._average = FIRST_AVERAGE

    @property
    def ahead(self) -> int:
        """The number of messages that may be under way; at least 1."""
        return max(1, min(AHEAD_MESSAGES, int(AHEAD_BYTES / self._average)))

    def observe(self, size: int, count: int = 1) -> None:
        """Update the average message size with `count` messages of `size` bytes in total."""
        self._average += (size / max(1, count) - self._average) / 2


class ReadBudget:
    """Admits the RECEIVE and LOOKUP requests of one connection (a qm.reading.readers.Gate).

    Any number of requests may wait for a message, but only a few may have taken one and not yet written it;
    none is admitted while the client does not read.
    """

    def __init__(self, congested: Callable[[], bool], opened: Callable[[], None]) -> None:
        """`opened` is called when `full` may have become False."""
        self._read_ahead = ReadAhead()
        self._congested = congested
        self._opened = opened
        self._under_way = 0
        self._waiting: dict[Readers, None] = {}

    @property
    def full(self) -> bool:
        """Whether the limit of reads under way is reached."""
        return self._under_way > 0 and self._under_way >= self._read_ahead.ahead

    def begin(self) -> None:
        """Count a request that takes a message without waiting."""
        self._under_way += 1

    def enter(self, readers: Readers) -> bool:
        """Return whether a waiting read may take a message. If not, `readers`, the waiting reads of its
        queue, are served again as soon as there is room.
        """
        if self.full or self._congested():
            self._waiting[readers] = None
            return False
        self._under_way += 1
        return True

    def leave(self, size: int) -> None:
        """Free the place of a read that has ended with a message of `size` bytes (0: without a message)."""
        self._under_way -= 1
        if size:
            self._read_ahead.observe(size)
        self.resume()

    def resume(self) -> None:
        """Serve the reads that `enter` rejected, as far as there is room."""
        while self._waiting and not self.full and not self._congested():
            readers = next(iter(self._waiting))
            del self._waiting[readers]
            readers.serve()
        self._opened()
