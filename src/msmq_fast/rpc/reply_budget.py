"""A budget for the replies of one connection: many calls may wait, few messages are fetched at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msmq_fast.qm.reading.readers import Readers
    from msmq_fast.rpc.outbox import Outbox

__all__ = ["MOST", "ReplyBudget"]

MOST = 8
"""Messages under way at once: 4 MiB each at most."""


def _ignore() -> None:
    """The listener after the connection has ended: it does nothing."""


class ReplyBudget:
    """A qm.reading.Gate: no message is taken for a waiting call while the client does not read its
    replies.
    """

    def __init__(self, outbox: Outbox, limit: int, freed: Callable[[], None]) -> None:
        """`limit`: bytes of replies in `outbox` at which no further messages are read. `freed` is called when
        `busy` becomes False."""
        self._outbox = outbox
        self._limit = limit
        self._freed = freed
        self.under_way = 0
        """Messages that are being read."""
        self._waiting: dict[Readers, None] = {}

    @property
    def busy(self) -> bool:
        """Whether so many messages are under way that no more calls may be accepted. Calls that wait for a
        message do not count, so that a client with waiting reads can still end other reads.
        """
        return self.under_way >= MOST

    @property
    def _full(self) -> bool:
        return self.busy or self._outbox.bytes >= self._limit

    def release(self) -> None:
        """Drop references after the connection has ended."""
        self._freed = _ignore

    def begin(self) -> None:
        """Count a call that takes a message without waiting."""
        self.under_way += 1

    def enter(self, readers: Readers) -> bool:
        """Return whether a waiting call may take a message; if not, `readers` are served as soon as
        it may.
        """
        if self._full:
            self._waiting[readers] = None
            return False
        self.under_way += 1
        return True

    def leave(self, size: int) -> None:
        """Note that a read has ended: with a message of `size` bytes, or, with 0, without one."""
        busy = self.busy
        self.under_way -= 1
        self.resume()
        if busy and not self.busy:
            self._freed()

    def resume(self) -> None:
        """Serve the calls that `enter` rejected, as far as there is room."""
        while self._waiting and not self._full:
            readers = next(iter(self._waiting))
            del self._waiting[readers]
            readers.serve()
