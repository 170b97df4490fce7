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
    """A qm.reading.Gate: no message is taken for a waiting call while the client leaves its replies."""

    def __init__(self, outbox: Outbox, limit: int, freed: Callable[[], None]) -> None:
        """`limit`: bytes of replies in `outbox` from which on no more are made. `freed` is called when it is
        `busy` no longer."""
        self._outbox = outbox
        self._limit = limit
        self._freed = freed
        self.under_way = 0
        """Messages that are being read."""
        self._waiting: dict[Readers, None] = {}

    @property
    def busy(self) -> bool:
        """Whether so many messages are under way that no more calls are to be taken up. Calls that wait do
        not count: whatever a client waits for, the end of another read is heard."""
        return self.under_way >= MOST

    @property
    def _full(self) -> bool:
        return self.busy or self._outbox.bytes >= self._limit

    def release(self) -> None:
        """The connection has ended."""
        self._freed = _ignore

    def begin(self) -> None:
        """A message is taken for a call that does not wait."""
        self.under_way += 1

    def enter(self, readers: Readers) -> bool:
        """Whether a message may be taken for a waiting call; if not, `readers` are served when it may."""
        if self._full:
            self._waiting[readers] = None
            return False
        self.under_way += 1
        return True

    def leave(self, size: int) -> None:
        """A message of `size` bytes was handed over, or with 0 none."""
        busy = self.busy
        self.under_way -= 1
        self.resume()
        if busy and not self.busy:
            self._freed()

    def resume(self) -> None:
        """Serve the calls that were passed over, as far as there is room."""
        while self._waiting and not self._full:
            readers = next(iter(self._waiting))
            del self._waiting[readers]
            readers.serve()
