"""Limits the replies of one connection: many calls may wait, but few messages are read at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msmq_fast.qm.reading.readers import Readers
    from msmq_fast.rpc.outbox import Outbox

__all__ = ["MOST", "ReplyBudget"]

MOST = 8
"""The largest number of messages in progress at a time; each has at most 4 MiB."""


def _ignore() -> None:
    """Does nothing. It replaces `freed` after the connection has ended."""


class ReplyBudget:
    """The budget of one connection. Implements qm.reading.readers.Gate: a waiting call gets no message while
    the client does not read its replies.
    """

    def __init__(self, outbox: Outbox, limit: int, freed: Callable[[], None]) -> None:
        """`limit` is the number of bytes in `outbox` at which no further messages are read. `freed` is called
        when `busy` becomes False.
        """
        self._outbox = outbox
        self._limit = limit
        self._freed = freed
        self.under_way = 0
        """The number of messages that are being read."""
        self._waiting: dict[Readers, None] = {}

    @property
    def busy(self) -> bool:
        """Whether no more calls are accepted now, because too many messages are being read.

        Calls that wait for a message do not count, so that a client with waiting reads can still end other
        reads.
        """
        return self.under_way >= MOST

    @property
    def _full(self) -> bool:
        return self.busy or self._outbox.bytes >= self._limit

    def release(self) -> None:
        """Drop references after the connection has ended."""
        self._freed = _ignore

    def begin(self) -> None:
        """Counts a call that receives a message without waiting."""
        self.under_way += 1

    def enter(self, readers: Readers) -> bool:
        """Returns whether a waiting call may receive a message now. If not, `readers` (the waiting calls of a
        queue) are served again as soon as the budget allows it.
        """
        if self._full:
            self._waiting[readers] = None
            return False
        self.under_way += 1
        return True

    def leave(self, size: int) -> None:
        """Called when a read has ended: no longer counts it, and serves waiting calls again as far as the
        budget allows.

        `size` is the size of the read's message in bytes, 0 if the read ended without a message.
        """
        busy = self.busy
        self.under_way -= 1
        self.resume()
        if busy and not self.busy:
            self._freed()

    def resume(self) -> None:
        """Serves again the calls for which `enter` returned False, as far as the budget allows."""
        while self._waiting and not self._full:
            readers = next(iter(self._waiting))
            del self._waiting[readers]
            readers.serve()
