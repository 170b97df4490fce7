"""Finds out whether a message was removed, after the connection ended before the removal was confirmed.

The other computer has either removed the message, or puts it back when it notices that its reader has
disconnected. Therefore this module looks for the message. If it is still in the queue, it was not removed. If
it is not, it counts as removed. But it may also have been put back and then received by another reader; the
two cases cannot be distinguished. In that case both readers get the message, because a duplicate is better
than a lost message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msmq_fast.protocol.errors import MessageAlreadyReceived, MessageNotFound
from msmq_fast.rpc.client.sessions import Action, QueueSession, RequestIds, Started, Wanted
from msmq_fast.rpc.client.timers import Timers
from msmq_fast.store.completion import Completion

__all__ = ["Settling"]

PATIENCE: Final = 60.0
"""Seconds in which the other computer must become reachable. After that, the message counts as removed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0


class Settling:
    """Looks for the message, and repeats this until the other computer answers. `removed` returns whether the
    message was removed.
    """

    def __init__(
        self,
        lookup_id: int,
        reopen: Callable[[], Completion[QueueSession]],
        timers: Timers,
        ids: RequestIds,
    ) -> None:
        self.removed: Completion[bool] = Completion()
        self._lookup_id = lookup_id
        self._reopen = reopen
        self._timers = timers
        self._ids = ids
        self._pause = _FIRST_PAUSE
        self._deadline = timers.after(PATIENCE, lambda: self._decide(removed=True))
        self._ask()

    def _ask(self) -> None:
        if not self.removed.done:
            self._reopen().add_done_callback(self._reopened)

    def _reopened(self, opened: Completion[QueueSession]) -> None:
        if opened.exception() is not None:
            self._ask_later()
            return
        session = opened.result()
        if self.removed.done:
            session.close()
            return
        if not session.identifies:
            session.close()
            self._decide(removed=True)
            return
        request_id = self._ids.take()
        looked = session.start(Wanted(Action.LOOKUP_PEEK_CURRENT, lookup_id=self._lookup_id), request_id)

        def answered(done: Completion[Started]) -> None:
            self._ids.release(request_id)
            session.close()
            self._looked(done)

        looked.add_done_callback(answered)

    def _looked(self, done: Completion[Started]) -> None:
        failure = done.exception()
        if failure is None:
            self._decide(removed=False)
        elif isinstance(failure, MessageNotFound | MessageAlreadyReceived):
            self._decide(removed=True)
        else:
            # For example TRANSACTION_USAGE: the message is still locked, by the lost connection or for its
            # removal.
            self._ask_later()

    def _ask_later(self) -> None:
        if not self.removed.done:
            self._timers.after(self._pause, self._ask)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _decide(self, *, removed: bool) -> None:
        self._deadline.cancel()
        self.removed.resolve(removed)
