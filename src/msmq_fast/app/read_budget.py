"""Bounds the reads under way of a connection in bytes, which are known only afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msmq_fast.qm.reading.readers import Readers

AHEAD_MESSAGES = 1024  # under way at once
AHEAD_BYTES = 2_097_152  # about as much as that may be in bytes, judged by the messages before
FIRST_AVERAGE = 262_144.0  # bytes of a message as long as none was seen: begin with few


class ReadAhead:
    """The number of messages that may be under way at once, from the sizes of those before them."""

    def __init__(self) -> None:
        self._average = FIRST_AVERAGE

    @property
    def ahead(self) -> int:
        """At least one message."""
        return max(1, min(AHEAD_MESSAGES, int(AHEAD_BYTES / self._average)))

    def observe(self, size: int, count: int = 1) -> None:
        """`count` messages had `size` bytes together."""
        self._average += (size / max(1, count) - self._average) / 2


class ReadBudget:
    """Lets the RECEIVE and LOOKUP requests of one connection through (a qm.reading.Gate): those that wait
    for a message are any number, those that a message is taken for are few, and none while the client does
    not read.
    """

    def __init__(self, congested: Callable[[], bool], opened: Callable[[], None]) -> None:
        """`opened` is called when `full` may have ended."""
        self._read_ahead = ReadAhead()
        self._congested = congested
        self._opened = opened
        self._under_way = 0
        self._waiting: dict[Readers, None] = {}

    @property
    def full(self) -> bool:
        """Whether as much is under way as may be."""
        return self._under_way > 0 and self._under_way >= self._read_ahead.ahead

    def begin(self) -> None:
        """A message is taken for a request that does not wait."""
        self._under_way += 1

    def enter(self, readers: Readers) -> bool:
        """Whether a message may be taken for a waiting read; if not, `readers` are served again when it
        may.
        """
        if self.full or self._congested():
            self._waiting[readers] = None
            return False
        self._under_way += 1
        return True

    def leave(self, size: int) -> None:
        """A message of `size` bytes was handed over, or with 0 none."""
        self._under_way -= 1
        if size:
            self._read_ahead.observe(size)
        self.resume()

    def resume(self) -> None:
        """Serve the reads that were passed over, as far as there is room."""
        while self._waiting and not self.full and not self._congested():
            readers = next(iter(self._waiting))
            del self._waiting[readers]
            readers.serve()
        self._opened()
