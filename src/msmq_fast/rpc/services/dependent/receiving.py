"""Reads of dependent clients (MS-MQMP 3.1.5.3).

A message is locked, put into the client's buffer, and only then removed: a message that does not fit stays in
the queue. The removal is complete before the client gets the reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msmq_fast.protocol.errors import IllegalCursorAction, InvalidParameter, MSMQError
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.call import Pending
from msmq_fast.rpc.services.dependent.filling import fill
from msmq_fast.rpc.services.reads import Action

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.reading.cursor import Cursor, CursorState
    from msmq_fast.qm.reading.readers import Gate, ReadRequest
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.ndr.record import Record
    from msmq_fast.rpc.services.dependent.queues import DependentQueue
    from msmq_fast.store.completion import Completion

__all__ = ["RECEIVE", "DependentRead"]

RECEIVE = 1
"""CACTB_RECEIVE"""
_ACTIONS = (Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT)

Ended = Callable[[int], None]
"""A function that is called once, with MQ_OK or the HRESULT."""


class DependentRead(Pending):
    """One read from a queue into a CACTransferBufferV2, with or without a transaction.

    Raises INVALID_PARAMETER if the buffer is not the buffer of a receive, INVALID_HANDLE if the cursor does
    not exist.
    """

    def __init__(
        self,
        queue: DependentQueue,
        transaction: Transaction | None,
        buffer: Record,
        now_s: Callable[[], int],
        ended: Ended,
        budget: Gate | None,
    ) -> None:
        old = buffer.old
        if old.uTransferType != RECEIVE or old.transfer.Action not in _ACTIONS:
            raise InvalidParameter("the buffer is not the buffer of a receive")
        self._opened = queue.reader()
        self._action = Action(old.transfer.Action)
        self._timeout: int = old.transfer.RequestTimeout
        self._cursor: Cursor | None = None
        if old.transfer.Cursor:
            self._cursor = queue.cursor(old.transfer.Cursor)
        self._place: tuple[int, CursorState] | None = None  # the state of the cursor before the read
        self._transaction = transaction
        self._buffer = buffer
        self._now_s = now_s
        self._ended = ended
        self._budget = budget
        self._request: ReadRequest | None = None

    def start(self) -> None:
        """Starts the read: it ends now, or when a message arrives. Raises what reading from the queue
        raises.
        """
        request = self._begin()
        self._request = request
        request.completion.add_done_callback(self._got)

    def abandon(self) -> None:
        """Cancels the read, because the client no longer waits for the reply."""
        if self._request is not None:
            self._request.cancel()

    def _begin(self) -> ReadRequest:
        cursor, timeout, budget = self._cursor, self._timeout, self._budget
        if self._action is Action.PEEK_NEXT:
            if cursor is None:
                raise IllegalCursorAction("reading the next message needs a cursor")
            return cursor.peek_next(timeout, gate=budget)
        if self._action is Action.PEEK_CURRENT:
            if cursor is None:
                return self._opened.receive(timeout, peek=True, gate=budget)
            return cursor.peek(timeout, gate=budget)
        if cursor is not None:
            self._place = cursor.place
        if self._transaction is not None:
            return TransactedQueue(self._opened, self._transaction).receive(
                timeout, gate=budget, cursor=cursor
            )
        return self._opened.begin(timeout, gate=budget, cursor=cursor)

    def _got(self, done: Completion[Received]) -> None:
        try:
            received = done.result()
            problem = fill(self._buffer, received, self._now_s())
            if self._action is Action.RECEIVE:
                self._decide(received.lookup_id, problem)
            else:
                self._ended(problem)
        except MSMQError as error:
            self._ended(error.code)

    def _decide(self, key: int, problem: int) -> None:
        """Remove the locked message if `problem` is 0, otherwise put it back. `problem` is the HRESULT of
        `fill`.
        """
        if problem:
            if self._transaction is not None:
                self._transaction.unlocked(self._opened.queue.core, key)
            else:
                self._opened.end(key, delete=False)
            if self._cursor is not None and self._place is not None:
                self._cursor.put_back(self._place)
            self._ended(problem)
        elif self._transaction is not None:
            self._ended(0)  # the message is received when the transaction commits
        else:
            self._opened.end(key, delete=True).add_done_callback(self._removed)

    def _removed(self, done: Completion[Any]) -> None:
        error = done.exception()
        if error is None:
            self._ended(0)
        else:
            self._ended(error.code if isinstance(error, MSMQError) else MSMQError.default_code)
