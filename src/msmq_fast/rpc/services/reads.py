"""Reads by remote readers, from the call that starts one to its end (MS-MQQP 3.1.1.2, MS-MQRR 3.1.1.2).

A read that removes its message has two phases. It is *delivered* when its message is locked and its reply has
been queued. It is *over* when the reader has acknowledged or rejected the message, or when the reader can no
longer do so; the message is then available again. Only the first of these events takes effect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from msmq_fast._native.seek import holds
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.protocol.errors import InsufficientResources, MessageNotFound, MSMQError, TransactionSequence
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.twophase import RemoteReadState
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.call import Pending

if TYPE_CHECKING:
    from msmq_fast._native.queue import QueueCore
    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.handles.handle import OpenQueue
    from msmq_fast.qm.reading.cursor import Cursor
    from msmq_fast.qm.reading.readers import ReadRequest
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.call import Call, Caller
    from msmq_fast.store.completion import Completion

__all__ = [
    "BEHIND_THE_LAST",
    "LOOKUPS",
    "STATUS_ACCESS_DENIED",
    "STATUS_INVALID_HANDLE",
    "STATUS_INVALID_PARAMETER",
    "STATUS_NOT_FOUND",
    "Ack",
    "Action",
    "RemoteQueue",
    "RemoteRead",
    "full_lookup_id",
]

STATUS_INVALID_HANDLE = 0xC0000008
STATUS_INVALID_PARAMETER = 0xC000000D
STATUS_ACCESS_DENIED = 0xC0000022
STATUS_NOT_FOUND = 0xC0000225

MOST_PENDING = 65_536
"""How many reads of one descriptor may wait at a time."""
BEHIND_THE_LAST = 0xFFFF_FFFF_FFFF_FFFF
"""A LookupIdentifier above all others: the message before it is the last one (MS-MQQP 3.1.4.11)."""
SEQUENTIAL = 0x00FF_FFFF_FFFF_FFFF
"""The part of a LookupIdentifier that remote readers see: SequentialId, pSequenceId."""


class Action(IntEnum):
    """Which message a read returns, and whether it removes the message: ulAction (MS-MQQP 2.2.2.1, MS-MQRR
    3.1.4.7).
    """

    RECEIVE = 0x00000000
    PEEK_CURRENT = 0x80000000
    PEEK_NEXT = 0x80000001
    LOOKUP_PEEK_CURRENT = 0x40000010
    LOOKUP_PEEK_NEXT = 0x40000011
    LOOKUP_PEEK_PREV = 0x40000012
    LOOKUP_RECEIVE_CURRENT = 0x40000020
    LOOKUP_RECEIVE_NEXT = 0x40000021
    LOOKUP_RECEIVE_PREV = 0x40000022


_RECEIVE = int(Action.RECEIVE)

LOOKUPS = {
    Action.LOOKUP_PEEK_CURRENT: (Lookup.CURRENT, True),
    Action.LOOKUP_PEEK_NEXT: (Lookup.NEXT, True),
    Action.LOOKUP_PEEK_PREV: (Lookup.PREVIOUS, True),
    Action.LOOKUP_RECEIVE_CURRENT: (Lookup.CURRENT, False),
    Action.LOOKUP_RECEIVE_NEXT: (Lookup.NEXT, False),
    Action.LOOKUP_RECEIVE_PREV: (Lookup.PREVIOUS, False),
}
"""The actions that read by LookupIdentifier: the direction, and whether the message stays in the queue."""


class Ack(IntEnum):
    """Whether the reader accepts (ACK) or rejects (NACK) a received message: REMOTEREADACK."""

    NACK = 1
    ACK = 2


class RemoteQueue:
    """OpenQueueEntry (MS-MQQP 3.1.1.4): an open queue with its cursors and its reads."""

    __slots__ = (
        "caller",
        "client",
        "context",
        "cursors",
        "delivered",
        "handle",
        "move_context",
        "opened",
        "pending",
        "queue",
    )

    def __init__(self, handle: int, opened: OpenQueue, caller: Caller) -> None:
        self.handle = handle  # OpenQueueDescriptor.Handle
        self.opened = opened
        self.queue = opened.queue
        self.caller = caller  # the caller that opened it
        self.client = NULL_GUID  # ClientId
        self.context = b""  # context handle of the association that took the queue over
        self.move_context = 0  # of R_OpenQueueForMove
        self.cursors: dict[int, Cursor] = {}
        self.pending: dict[int, RemoteRead] = {}  # reads that wait for a message, by their request ids
        self.delivered: dict[bytes | int, RemoteRead] = {}  # by context handle or request id

    @property
    def ready(self) -> bool:
        """Whether RemoteReadState is ReadyForRead: the queue is assigned to the association of the reader's
        queue manager (MS-MQDMPR 3.1.1.16).
        """
        return self.opened.two_phase.state is RemoteReadState.READY_FOR_READ

    def cursor(self, handle: int) -> Cursor | None:
        """Returns the cursor of this queue with a handle, None if there is none."""
        return self.cursors.get(handle)


class RemoteRead(Pending):
    """RemoteReadEntry and PendingRequestEntry: one read, from the call that starts it to its end.

    `answer(read, received)` answers the call with a message. `refuse(read, error)` answers it with an error,
    if there will be no message. Before `answer` replies with a received message (not a peeked one), it must
    call `deliver`, and pass `written` to the reply.
    """

    __slots__ = (
        "action",
        "answer",
        "args",
        "call",
        "key",
        "lookup_id",
        "own_transaction",
        "peek",
        "refuse",
        "remote",
        "request",
        "request_id",
        "timeout_ms",
        "transaction",
    )

    def __init__(
        self,
        remote: RemoteQueue,
        call: Call,
        args: Any,
        action: int,
        request_id: int,
        timeout_ms: int,
        answer: Callable[[Any, Received], None],
        refuse: Callable[[RemoteRead, MSMQError], None],
    ) -> None:
        self.remote = remote
        self.call: Any = call
        self.args = args
        self.action = action
        self.request_id = request_id
        self.timeout_ms = timeout_ms
        self.answer = answer
        self.refuse = refuse
        self.peek = False
        self.transaction: Transaction | None = None  # in which the message is received
        self.own_transaction = False  # the transaction has only this read
        self.request: ReadRequest | None = None  # while it waits
        self.key: bytes | int = 0  # the key under which it is delivered
        self.lookup_id: int | None = None  # LookupIdentifier, while it is delivered

    # ---- the first phase

    def start(self, cursor: Cursor | None) -> None:
        """Receives or peeks the first message, or the message at the cursor.

        Raises what OpenQueue.begin, OpenQueue.receive and the cursor raise, TRANSACTION_… for a receive in a
        transaction, and INSUFFICIENT_RESOURCES if too many reads wait.
        """
        remote = self.remote
        opened = remote.opened
        timeout, budget = self.timeout_ms, self.call.reply_budget
        if len(remote.pending) >= MOST_PENDING:
            raise InsufficientResources(f"{MOST_PENDING} reads are waiting; that is the limit")
        if self.action == _RECEIVE:
            if self.transaction is None and cursor is None and budget is None:
                received = opened.begin_now()
                if received is not None:
                    self.answer(self, received)
                    return
            if self.transaction is not None:
                queue = TransactedQueue(opened, self.transaction)
                request = queue.receive(timeout, gate=budget, cursor=cursor)
            else:
                request = opened.begin(timeout, gate=budget, cursor=cursor)
        else:
            self.peek = True
            if cursor is None:
                request = opened.receive(timeout, peek=True, gate=budget)
            elif self.action == Action.PEEK_NEXT:
                request = cursor.peek_next(timeout, gate=budget)
            else:
                request = cursor.peek(timeout, gate=budget)
        completion = request.completion
        if not completion.done:
            self.request = request
            remote.pending[self.request_id] = self
        completion.add_done_callback(self._found)

    def look_up(self, lookup_id: int, operation: Lookup) -> None:
        """Receives a message by LookupIdentifier, or peeks it if the attribute `peek` is set.

        Raises what OpenQueue.lookup and TransactedQueue.lookup raise.
        """
        opened, budget = self.remote.opened, self.call.reply_budget
        completion: Completion[Received]
        if self.transaction is not None:
            completion = TransactedQueue(opened, self.transaction).lookup(lookup_id, operation)
        elif self.peek:
            completion = opened.lookup(lookup_id, operation, peek=True)
        else:
            completion = opened.lookup(lookup_id, operation, hold=opened.two_phase.begin())
        if budget is not None:
            budget.begin()
        completion.add_done_callback(self._found)
        if budget is not None:
            completion.add_done_callback(lambda _: budget.leave(0))

    def cancel(self, error: MSMQError | None = None) -> bool:
        """Ends a waiting read with `error` (by default OPERATION_CANCELLED). Returns False if the read is not
        waiting.
        """
        return self.request is not None and self.request.cancel(error)

    def abandon(self) -> None:
        """Cancels the read, which then removes nothing, because the caller no longer waits for the reply
        (RA-15).
        """
        self.cancel()

    def _found(self, done: Completion[Received]) -> None:
        if self.request is not None:
            self.request = None
            del self.remote.pending[self.request_id]
        error = done.exception()
        if error is None:
            self.answer(self, done.result())
            return
        if self.own_transaction and self.transaction is not None:
            self.transaction.leave()
        self.refuse(self, error if isinstance(error, MSMQError) else MSMQError(str(error)))

    # ---- the second phase

    def deliver(self, key: bytes | int, lookup_id: int) -> None:
        """Begins the second phase: the locked message is being sent to the reader, which will end the read by
        `key`.
        """
        self.args = self.call = None  # releases the packet and the connection
        self.key = key
        self.lookup_id = lookup_id
        self.remote.delivered[key] = self

    def written(self, whole: bool) -> None:
        """Makes the message available again if the transport was lost before it accepted the whole reply
        (`whole` is False).
        """
        if not whole:
            self.put_back()

    def put_back(self) -> None:
        """Makes the message available again at its old place, because the reader has rejected it (RR_NACK) or
        can no longer end the read.

        Has no effect if the read has already ended.
        """
        with suppress(MSMQError):  # the read is over, or its queue has been deleted
            self.end(Ack.NACK)

    def end(self, ack: int) -> Completion[None]:
        """Ends the read (Dequeue Message End).

        With RR_ACK the message is removed, or becomes part of its transaction; otherwise it is put back. The
        read has then ended; the completion is resolved when the change is durable.

        Raises MESSAGE_NOT_FOUND if the read has already ended, and what OpenQueue.end raises.
        """
        lookup_id, self.lookup_id = self.lookup_id, None
        if lookup_id is None:
            raise MessageNotFound("the read has ended already")
        remote = self.remote
        remote.delivered.pop(self.key, None)
        transaction = self.transaction
        if transaction is None:
            return remote.opened.end(lookup_id, delete=ack == Ack.ACK)
        if self.own_transaction:
            transaction_end = transaction.commit if ack == Ack.ACK else transaction.abort
            return transaction_end()
        core = remote.opened.queue.core
        if not holds(core, lookup_id, transaction.owner):
            raise TransactionSequence("the transaction has ended")
        if ack != Ack.ACK:
            transaction.unlocked(core, lookup_id)
        return remote.opened.end(lookup_id, delete=False, transactional=True)


def full_lookup_id(core: QueueCore, lookup_id: int) -> int:
    """Returns the LookupIdentifier of the message that a remote reader identifies by `lookup_id`.

    Readers see only the lower 7 bytes (RA-08). Returns `lookup_id` itself if there is no such message.
    """
    state = core.positions.state
    if state(lookup_id) or lookup_id > SEQUENTIAL:
        return lookup_id
    for band in range(1, 8):
        if state(band << 56 | lookup_id):
            return band << 56 | lookup_id
    return lookup_id
