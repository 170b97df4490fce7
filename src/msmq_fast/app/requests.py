"""What the requests of one connection do: the dispatch table and its handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from msmq_fast._native.appcodec import Encoder, FrameFault, SendLane, send_head
from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.auth import Identity
from msmq_fast.app.delivery import Delivery
from msmq_fast.app.fanout import FanOut, open_sending
from msmq_fast.app.handlers import (
    administration,
    certificates,
    cursors,
    directory,
    exchange,
    permissions,
    snapshot,
    transactions,
)
from msmq_fast.app.pace import ReadGate
from msmq_fast.app.sending import SendResult, SendTarget
from msmq_fast.app.wire import INFINITE, Access, Frame, Lookup, SendFlag, WireError
from msmq_fast.packet.errors import (
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MSMQError,
    RemoteMachineNotAvailable,
    TransactionEnlist,
    TransactionSequence,
    UnsupportedAccessMode,
    UnsupportedOperation,
)
from msmq_fast.qm.handles.handle import Lookup as QmLookup
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.operator.importing import Import
from msmq_fast.qm.queues import access as qm_access
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.qm.reading.remote import RemoteQueue, RemoteRead
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.snapshots import Snapshot

if TYPE_CHECKING:
    from msmq_fast.app.engine import AppEngine

T = TypeVar("T")

MAX_READS = 256  # waiting RECEIVE requests of one connection

_U64 = 0xFFFF_FFFF_FFFF_FFFF
_NAME = Field("name", str)
_HANDLE = Field("handle", int)
_SUBSCRIPTION = Field("subscription", int)
_PEEK = Field("peek", bool, default=False)
_TRANSACTION = Field("transaction", int, type(None), default=None)
_FIRST = Field("first tag", int, maximum=_U64)
_LAST = Field("last tag", int, maximum=_U64)
_OPEN = (_NAME, Field("access", int), Field("share", int, maximum=1, default=0))
_RECEIVE = (_HANDLE, Field("timeout", int, type(None)), _PEEK, _TRANSACTION)
_LOOKUP = (_HANDLE, Field("lookup id", int, maximum=_U64), Field("operation", int), _PEEK, _TRANSACTION)
_SUBSCRIBE = (_HANDLE, Field("credit", int), Field("acknowledge", bool), _TRANSACTION)
_WITHOUT_REPLY = frozenset((Frame.CREDIT, Frame.ACKNOWLEDGE))

_READER = {
    Access.RECEIVE: qm_access.Access.RECEIVE,
    Access.RECEIVE | Access.PEEK: qm_access.Access.RECEIVE,
    Access.PEEK: qm_access.Access.PEEK,
}


_SEEK = {
    Lookup.CURRENT: QmLookup.CURRENT,
    Lookup.NEXT: QmLookup.NEXT,
    Lookup.PREV: QmLookup.PREVIOUS,
    Lookup.FIRST: QmLookup.FIRST,
    Lookup.LAST: QmLookup.LAST,
}


@dataclass(slots=True)
class Handle:
    """A queue that a connection has open, in one or both directions."""

    number: int = 0  # in the frames; given when it is open
    sending: SendTarget | FanOut | None = None
    reading: OpenQueue | None = None
    remote: RemoteQueue | None = None  # instead, where another computer has the queue
    moving: OpenQueue | None = None  # a target of moves
    reads: dict[int, ReadRequest | RemoteRead] = field(default_factory=dict)  # by request id

    def source(self) -> OpenQueue | RemoteQueue:
        """What is read, wherever it is. Raises UnsupportedAccessMode if it was not opened for that."""
        source = self.remote or self.reading
        if source is None:
            raise UnsupportedAccessMode("the queue is not open for receiving or peeking")
        return source

    def reader(self) -> OpenQueue:
        """The reading side of a queue of this computer. Raises UnsupportedAccessMode if it was not opened for
        that, UnsupportedOperation for a queue of another one.
        """
        if self.remote is not None:
            raise UnsupportedOperation("this is done with queues of this computer only")
        if self.reading is None:
            raise UnsupportedAccessMode("the queue is not open for receiving or peeking")
        return self.reading

    def inside(self, transaction: Transaction) -> TransactedQueue:
        """The reading side in a transaction. Raises as `reader` does; TransactionEnlist for a queue of
        another computer.
        """
        if self.remote is not None:
            raise TransactionEnlist("no coordinator takes other computers into a transaction of this one")
        return TransactedQueue(self.reader(), transaction)

    def close(self) -> None:
        """Close both sides; waiting reads end with OPERATION_CANCELLED."""
        if self.reading is not None:
            self.reading.close()
        if self.remote is not None:
            self.remote.close()
        if self.sending is not None:
            self.sending.close()
        if self.moving is not None:
            self.moving.close()


class Session:
    """The state of one connection behind its hello."""

    def __init__(self, engine: AppEngine, identity: Identity) -> None:
        """Raises UsersFileError if the identity is in a group that does not exist."""
        self.engine = engine
        self.identity = identity
        self.manager = engine.service.manager
        principals = engine.service.principals
        if identity.uid is not None:
            self.token = principals.of_unix(identity.uid, identity.name)
        else:
            self.token = principals.of_name(identity.name, identity.groups)
        self._handles: dict[int, Handle] = {}
        self._last_handle = 0
        self._opening = 0  # queues of other computers
        self._pending: set[int] = set()  # ids of requests without a reply
        self._reads: dict[int, Handle] = {}  # of them, the RECEIVE and CURSOR_READ requests
        self.cursors: dict[int, int] = {}  # the handles of cursors
        self.imports: dict[int, Import] = {}  # by the id of their OPEN_IMPORT
        self.snapshots: set[Snapshot] = set()  # that are being made for it
        self._deliveries: dict[int, Delivery] = {}  # by the id of their SUBSCRIBE
        self.gate = ReadGate(lambda: engine.congested, engine.unblocked)
        self.transactions: dict[int, Transaction] = {}  # by the numbers that the client gave them
        self._encoder = Encoder()
        self._closed = False
        self._holding = 0
        limits = engine.service.limits
        self.lane = SendLane(
            self.manager.ledger,
            self._pending,
            self._reads,
            self._deliveries,
            self._lane_answered,
            self._lane_failed,
            max_frame=limits.max_frame,
            max_batch=limits.max_batch,
            max_pending=limits.max_pending,
            max_bytes=limits.max_sending,
        )

    @property
    def full(self) -> bool:
        """As many requests under way as a connection may have, or as many bytes; reads that wait, perhaps
        for ever, do not count. Or a request whose end the next ones wait for.
        """
        pending = len(self._pending) - len(self._reads)
        limits = self.engine.service.limits
        if self._holding or pending >= limits.max_pending or self.gate.full or self.lane.full:
            return True
        ahead = sum(open_.operations.ahead_bytes for open_ in self.transactions.values())
        return ahead >= limits.max_sending

    def request(self, kind: int, request_id: int, payload: memoryview) -> None:
        """Take up one request.

        Raises MSMQError or FrameFault where it fails at once, WireError for a bad id.
        """
        if request_id in self._pending or request_id in self._deliveries:
            raise WireError(f"request id {request_id} is in use")
        if request_id == 0 and kind not in _WITHOUT_REPLY:
            raise WireError("request id 0 is for requests without a reply")
        if kind == Frame.SEND:
            self._send(request_id, payload)
            return
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise InvalidParameter(f"there is no request of type 0x{kind:02X}")
        handler(self, request_id, payload)

    def writable(self) -> None:
        """The client reads again."""
        for delivery in list(self._deliveries.values()):
            delivery.resume()
        self.gate.resume()

    def close(self) -> None:
        """The connection ended: everything that belongs to it is given back."""
        self._closed = True
        for delivery in self._deliveries.values():
            delivery.close()
        self._deliveries.clear()
        for transaction in list(self.transactions.values()):
            transaction.leave()
        for handle in self._handles.values():
            handle.close()
        self._handles.clear()
        for running in self.imports.values():
            running.close()
        self.imports.clear()
        for being_made in self.snapshots:
            being_made.cancel()

    # ---------------------------------------------------------------------------------------- replies

    def reply(self, request_id: int, value: Any = None) -> None:
        """REPLY with `value`, unless no reply is wanted."""
        if request_id:
            self.engine.reply(Frame.REPLY, request_id, value)

    def hold(self, completion: Completion[Any]) -> None:
        """No other request is taken up before the operation is done, so that they take effect in order."""
        self._holding += 1
        completion.add_done_callback(self._let_go)

    def _let_go(self, _: Completion[Any]) -> None:
        self._holding -= 1
        if not self._closed:
            self.engine.relieved()

    def when(
        self, request_id: int, completion: Completion[T], answer: Callable[[T], Any] = lambda _: None
    ) -> None:
        """REPLY with `answer(value)` when the operation is done, ERROR if it fails."""
        self._pending.add(request_id)
        completion.add_done_callback(lambda done: self._done(request_id, done, answer))

    def _done(self, request_id: int, completion: Completion[T], answer: Callable[[T], Any]) -> None:
        self._pending.discard(request_id)
        if self._closed:
            return
        try:
            value = completion.result()
        except MSMQError as error:
            self.engine.fail(request_id, error)
        else:
            self.reply(request_id, answer(value))
        self.engine.unblocked()

    # ---------------------------------------------------------------------------------------- queues

    def open(self, request_id: int, payload: memoryview) -> None:
        name, access, share = arguments(payload, *_OPEN)
        if len(self._handles) + self._opening >= self.engine.service.limits.max_handles:
            raise InsufficientResources("this connection has max_handles queues open")
        reading = _READER.get(access & ~(Access.SEND | Access.MOVE))
        if access & ~(Access.RECEIVE | Access.SEND | Access.MOVE | Access.PEEK) or not access:
            raise UnsupportedAccessMode("access is a sum of 1 receive, 2 send, 4 move and 0x20 peek")
        elsewhere = self.manager.elsewhere(name) if reading is not None else None
        remote = self.manager.remote if elsewhere is not None else None
        handle = Handle()
        try:
            if access & Access.SEND:
                alone = qm_access.Share(share) if reading is None else qm_access.Share.DENY_NONE
                handle.sending = open_sending(self.manager, name, alone, self.token)
            if access & Access.MOVE:
                alone = qm_access.Share(share) if access == Access.MOVE else qm_access.Share.DENY_NONE
                handle.moving = self.manager.open(name, qm_access.Access.MOVE, alone, token=self.token)
            if remote is not None and reading is not None and elsewhere is not None:
                done = remote.open(elsewhere, reading, qm_access.Share(share), self.token)
                self._pending.add(request_id)
                self._opening += 1
                done.add_done_callback(lambda opened: self._opened_remote(request_id, handle, opened))
                return
            if reading is not None:
                handle.reading = self.manager.open(name, reading, qm_access.Share(share), token=self.token)
        except MSMQError:
            handle.close()
            raise
        self._opened(request_id, handle)

    def _opened_remote(self, request_id: int, handle: Handle, opened: Completion[RemoteQueue]) -> None:
        self._opening -= 1
        self._pending.discard(request_id)
        refusal = opened.exception()
        if refusal is None:
            handle.remote = opened.result()
        if self._closed or refusal is not None:
            handle.close()
        if self._closed:
            return
        if refusal is None:
            self._opened(request_id, handle)
        else:
            if handle.sending is not None and isinstance(refusal, RemoteMachineNotAvailable):
                refusal = RemoteMachineNotAvailable(
                    f"{refusal.detail}; to send only, open the queue with the access SEND alone"
                )
            self.engine.fail(
                request_id, refusal if isinstance(refusal, MSMQError) else MSMQError(str(refusal))
            )
        self.engine.unblocked()

    def _opened(self, request_id: int, handle: Handle) -> None:
        self._last_handle += 1
        handle.number = self._last_handle
        self._handles[handle.number] = handle
        lane_target = handle.sending.lane() if handle.sending is not None else None
        if lane_target is not None:
            self.lane.open(handle.number, lane_target)
        self.reply(request_id, [handle.number])

    def close_queue(self, request_id: int, payload: memoryview) -> None:
        (number,) = arguments(payload, _HANDLE)
        handle = self.handle(number)
        for delivery in [d for d in self._deliveries.values() if d.handle == number]:
            self._end(delivery)
        del self._handles[number]
        self.cursors = {cursor: owner for cursor, owner in self.cursors.items() if owner != number}
        self.lane.close(number)
        handle.close()
        self.reply(request_id)

    def purge(self, request_id: int, payload: memoryview) -> None:
        (number,) = arguments(payload, _HANDLE)
        handle = self.handle(number)
        if handle.remote is not None:
            self.when(request_id, handle.remote.purge())
            return
        self.when(request_id, handle.reader().purge(), int)

    # ---------------------------------------------------------------------------------------- sending

    def _send(self, request_id: int, payload: memoryview) -> None:
        number, flags, count, transaction = send_head(payload)
        if not 0 < count <= self.engine.service.limits.max_batch:
            raise FrameFault("a SEND carries from 1 to max_batch messages")
        target = self.handle(number).sending
        if target is None:
            raise UnsupportedAccessMode("the queue is not open for sending")
        self._pending.add(request_id)
        try:
            target.send(
                payload,
                count,
                lambda result: self._sent(request_id, flags, result),
                transaction=self.transaction(transaction) if transaction else None,
                single=bool(flags & SendFlag.SINGLE),
            )
        except BaseException:
            self._pending.discard(request_id)
            raise

    def _sent(self, request_id: int, flags: int, result: SendResult) -> None:
        self._pending.discard(request_id)
        self._answer(request_id, flags, result)

    def _lane_answered(self, frames: bytes, messages: int) -> None:
        if self._closed:
            return
        self.engine.service.counters.sent += messages
        self.engine.write([frames])
        self.engine.unblocked()

    def _lane_failed(self, request_id: int, flags: int, count: int, status: int) -> None:
        self._answer(request_id, flags, SendResult.lost(count, storage_error(status)))

    def _answer(self, request_id: int, flags: int, result: SendResult) -> None:
        if self._closed:
            return
        counters = self.engine.service.counters
        counters.sent += result.count
        counters.refused += len(result.refusals)
        self.engine.write(result.frames(request_id, flags))
        self.engine.unblocked()

    # ---------------------------------------------------------------------------------------- receiving

    def receive(self, request_id: int, payload: memoryview) -> None:
        number, timeout, peek, transaction = arguments(payload, *_RECEIVE)
        handle = self.handle(number)
        self.may_wait()
        wait = None if timeout == INFINITE else timeout
        if transaction is not None:
            if peek:
                raise InvalidParameter("nothing is peeked in a transaction")
            inside = handle.inside(self.transaction(transaction))
            self.read(request_id, handle, inside.receive(wait, gate=self.gate))
            return
        self.read(request_id, handle, handle.source().receive(wait, peek=peek, gate=self.gate))

    def may_wait(self) -> None:
        """INSUFFICIENT_RESOURCES: as many reads wait as may."""
        if len(self._reads) >= MAX_READS:
            raise InsufficientResources(f"{MAX_READS} reads wait on this connection")

    def read(self, request_id: int, handle: Handle, read: ReadRequest | RemoteRead) -> None:
        """MESSAGE when the read ends."""
        self._pending.add(request_id)
        self._reads[request_id] = handle
        handle.reads[request_id] = read
        completion: Completion[Any] = read.completion
        completion.add_done_callback(lambda done: self._read_ended(request_id, done))

    def _read_ended(self, request_id: int, completion: Completion[Any]) -> None:
        handle = self._reads.pop(request_id)
        del handle.reads[request_id]
        self._message(request_id, completion)

    def lookup(self, request_id: int, payload: memoryview) -> None:
        number, lookup_id, operation, peek, transaction = arguments(payload, *_LOOKUP)
        seek = _SEEK.get(operation)
        if seek is None:
            raise InvalidParameter("operation is 0, 1, 2, 4 or 8")
        handle = self.handle(number)
        done: Completion[Any]
        if transaction is not None:
            done = handle.inside(self.transaction(transaction)).lookup(lookup_id, seek, peek=peek)
        else:
            done = handle.source().lookup(lookup_id, seek, peek=peek)
        self._pending.add(request_id)
        self.gate.begin()
        done.add_done_callback(lambda completion: self._looked_up(request_id, completion))

    def _looked_up(self, request_id: int, completion: Completion[Any]) -> None:
        self._message(request_id, completion)
        self.gate.leave(0 if completion.exception() is not None else len(completion.result().packet))

    def _message(self, request_id: int, completion: Completion[Any]) -> None:
        self._pending.discard(request_id)
        if self._closed:
            return
        try:
            message = completion.result()
        except MSMQError as error:
            self.engine.fail(request_id, error)
        else:
            self.engine.service.counters.delivered += 1
            self.engine.write(self._encoder.message(request_id, message))
        self.engine.unblocked()

    def cancel(self, request_id: int, payload: memoryview) -> None:
        (target,) = arguments(payload, Field("request id", int))
        handle = self._reads.get(target)
        self.reply(request_id, handle.reads[target].cancel() if handle is not None else False)

    # ---------------------------------------------------------------------------------------- subscriptions

    def subscribe(self, request_id: int, payload: memoryview) -> None:
        number, credit, acknowledge, transaction = arguments(payload, *_SUBSCRIBE)
        inside = None
        if transaction is not None:
            if acknowledge:
                raise InvalidParameter("in a transaction the commit acknowledges")
            inside = self.handle(number).inside(self.transaction(transaction))
        if credit > self.engine.service.limits.max_credit:
            raise InvalidParameter("the credit passes max_credit")
        opened = self.handle(number).source()
        delivery = Delivery(
            self.engine, request_id, opened, number, credit, acknowledge=acknowledge, inside=inside
        )
        delivery.open(lambda: self._deliveries.pop(request_id, None))
        self._deliveries[request_id] = delivery
        self.reply(request_id)
        delivery.resume()

    def credit(self, request_id: int, payload: memoryview) -> None:
        number, count = arguments(payload, _SUBSCRIPTION, Field("credit", int))
        self._delivery(number).add_credit(count)
        self.reply(request_id)

    def acknowledge(self, request_id: int, payload: memoryview) -> None:
        number, first, last = arguments(payload, _SUBSCRIPTION, _FIRST, _LAST)
        done = self._delivery(number).acknowledge(first, last)
        if request_id:
            self.when(request_id, done)

    def release(self, request_id: int, payload: memoryview) -> None:
        number, first, last = arguments(payload, _SUBSCRIPTION, _FIRST, _LAST)
        self._delivery(number).release(first, last)
        self.reply(request_id)

    def unsubscribe(self, request_id: int, payload: memoryview) -> None:
        (number,) = arguments(payload, _SUBSCRIPTION)
        self._end(self._delivery(number))
        self.reply(request_id)

    def _end(self, delivery: Delivery) -> None:
        delivery.end()

    # ---------------------------------------------------------------------------------------- look-ups

    def handle(self, number: int) -> Handle:
        """A queue that the connection has open. Raises InvalidHandle."""
        handle = self._handles.get(number)
        if handle is None:
            raise InvalidHandle(f"no queue is open as handle {number}")
        return handle

    def transaction(self, number: int) -> Transaction:
        """TRANSACTION_SEQUENCE: there is none with this number, or it has ended."""
        transaction = self.transactions.get(number)
        if transaction is None:
            raise TransactionSequence(f"there is no transaction {number}")
        return transaction

    def _delivery(self, number: int) -> Delivery:
        delivery = self._deliveries.get(number)
        if delivery is None:
            raise InvalidHandle(f"there is no subscription {number}")
        return delivery


Handler = Callable[[Session, int, memoryview], None]

_HANDLERS: dict[int, Handler] = {
    Frame.OPEN: Session.open,
    Frame.CLOSE: Session.close_queue,
    Frame.PURGE: Session.purge,
    Frame.RECEIVE: Session.receive,
    Frame.LOOKUP: Session.lookup,
    Frame.CANCEL: Session.cancel,
    Frame.SUBSCRIBE: Session.subscribe,
    Frame.CREDIT: Session.credit,
    Frame.ACKNOWLEDGE: Session.acknowledge,
    Frame.RELEASE: Session.release,
    Frame.UNSUBSCRIBE: Session.unsubscribe,
    **administration.HANDLERS,
    **certificates.HANDLERS,
    **cursors.HANDLERS,
    **exchange.HANDLERS,
    **permissions.HANDLERS,
    **directory.HANDLERS,
    **snapshot.HANDLERS,
    **transactions.HANDLERS,
}
