"""The state of one connection after its hello: its open queues and its requests under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from msmq_fast._native.appencode import Encoder
from msmq_fast._native.applane import SendLane
from msmq_fast._native.requestids import RequestIds
from msmq_fast.app.auth import Identity
from msmq_fast.app.connection import Connection
from msmq_fast.app.delivery import ClientDelivery
from msmq_fast.app.fanout import FanOut
from msmq_fast.app.read_budget import ReadBudget
from msmq_fast.app.sending import SendResult, SendTarget
from msmq_fast.app.sizelimits import LimitedRead
from msmq_fast.protocol.errors import (
    InsufficientResources,
    InvalidHandle,
    MSMQError,
    TransactionEnlist,
    TransactionSequence,
    UnsupportedAccessMode,
    UnsupportedOperation,
)
from msmq_fast.protocol.frames import Frame
from msmq_fast.qm.audit.trail import Progress
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.operator.importing import Import
from msmq_fast.qm.reading.readers import ReadRequest
from msmq_fast.qm.reading.remote import RemoteQueue, RemoteRead
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.store.completion import Completion
from msmq_fast.store.snapshots import Snapshot

__all__ = ["MAX_READS", "Handle", "Handler", "Session"]

T = TypeVar("T")

MAX_READS = 256  # waiting RECEIVE requests of one connection
MAX_AUDITED = 16  # acts of several requests that have one entry of the audit each


@dataclass(slots=True)
class Handle:
    """A queue that a connection has open for reading, for sending, or both."""

    number: int = 0  # in the frames; given when it is open
    sending: SendTarget | FanOut | None = None
    reading: OpenQueue | None = None
    remote: RemoteQueue | None = None  # instead, where another computer has the queue
    moving: OpenQueue | None = None  # a target of moves
    reads: dict[int, ReadRequest | RemoteRead | LimitedRead] = field(default_factory=dict)  # by request id
    name: str = ""  # as the client gave it

    def source(self) -> OpenQueue | RemoteQueue:
        """Returns the queue to read, local or remote. Raises UnsupportedAccessMode if it is not open for
        reading.
        """
        source = self.remote or self.reading
        if source is None:
            raise UnsupportedAccessMode("the queue is not open for receiving or peeking")
        return source

    def reader(self) -> OpenQueue:
        """Return the queue, which must be one of this computer, for reading. Raises UnsupportedAccessMode if
        it is not open for reading, UnsupportedOperation for a queue of another computer.
        """
        if self.remote is not None:
            raise UnsupportedOperation("this operation needs a queue of this computer")
        if self.reading is None:
            raise UnsupportedAccessMode("the queue is not open for receiving or peeking")
        return self.reading

    def inside(self, transaction: Transaction) -> TransactedQueue:
        """Return the queue for reads in `transaction`. Raises as `reader` does; TransactionEnlist for a queue
        of another computer.
        """
        if self.remote is not None:
            raise TransactionEnlist("remote queues cannot take part in a local transaction")
        return TransactedQueue(self.reader(), transaction)

    def close(self) -> None:
        """Close the queue for reading and for sending; waiting reads end with OPERATION_CANCELLED."""
        if self.reading is not None:
            self.reading.close()
        if self.remote is not None:
            self.remote.close()
        if self.sending is not None:
            self.sending.close()
        if self.moving is not None:
            self.moving.close()


class Session:
    """The state of one connection after its hello. The request handlers read and change it."""

    def __init__(
        self, connection: Connection, identity: Identity, address: str = "", program: str = ""
    ) -> None:
        """`address` is the network address of the peer, "" for a Unix socket; `program` is the name that the
        client gave itself. Raises UsersFileError if the identity is in a group that does not exist.
        """
        self.connection = connection
        self.service = connection.service
        self.identity = identity
        self.manager = self.service.manager
        principals = self.service.principals
        if identity.uid is not None:
            token = principals.of_unix(identity.uid, identity.name)
        else:
            token = principals.of_name(identity.name, identity.groups)
        self.token = replace(token, address=address or "local", program=program)
        self.handles: dict[int, Handle] = {}
        self._last_handle = 0
        self.opening = 0  # queues of other computers
        self.pending = RequestIds()  # ids of requests without a reply
        self.reads: dict[int, Handle] = {}  # of them, the RECEIVE and CURSOR_READ requests
        self.cursors: dict[int, int] = {}  # the handles of cursors
        self.imports: dict[int, Import] = {}  # by the id of their OPEN_IMPORT
        self.audited: dict[tuple[object, ...], Progress] = {}  # acts of several requests
        self.snapshots: set[Snapshot] = set()  # that are being made for it
        self.deliveries: dict[int, ClientDelivery] = {}  # by the id of their SUBSCRIBE
        self.gate = ReadBudget(lambda: connection.congested, connection.unblocked)
        self.transactions: dict[int, Transaction] = {}  # by the numbers that the client gave them
        self._encoder = Encoder()
        self.closed = False
        self._holding = 0
        self._limits = limits = self.service.limits
        self.lane = SendLane(
            self.manager.ledger,
            self.pending,
            self.reads,
            self.deliveries,
            self._lane_answered,
            self._lane_failed,
            max_frame=limits.max_frame,
            max_batch=limits.max_batch,
            max_pending=limits.max_pending,
            max_bytes=limits.max_sending,
        )

    @property
    def full(self) -> bool:
        """Whether no further request may be handled now: the limit of requests or bytes under way is reached,
        or later requests must wait until a held request is done (`hold`). Reads that wait for a message do
        not count.
        """
        # Asked several times in every turn of the loop.
        if self._holding or self.lane.full or self.gate.full:
            return True
        if not self.transactions:
            return False
        ahead = sum(open_.operations.ahead_bytes for open_ in self.transactions.values())
        return ahead >= self._limits.max_sending

    def writable(self) -> None:
        """Resume deliveries and reads: the client reads again."""
        for delivery in list(self.deliveries.values()):
            delivery.resume()
        self.gate.resume()

    def close(self) -> None:
        """Release everything that belongs to the connection, which has ended."""
        self.closed = True
        for delivery in self.deliveries.values():
            delivery.close()
        self.deliveries.clear()
        for transaction in list(self.transactions.values()):
            transaction.leave()
        for handle in self.handles.values():
            handle.close()
        self.handles.clear()
        for running in self.imports.values():
            running.close()
        self.imports.clear()
        for progress in self.audited.values():
            progress.end()
        self.audited.clear()
        for being_made in self.snapshots:
            being_made.cancel()

    # ---------------------------------------------------------------------------------------- replies

    def reply(self, request_id: int, value: Any = None) -> None:
        """Write REPLY with `value`, unless the request id is 0, which asks for no reply."""
        if request_id:
            self.connection.reply(Frame.REPLY, request_id, value)

    def hold(self, completion: Completion[Any]) -> None:
        """Handle no further request until `completion` is done, so that requests take effect in order."""
        self._holding += 1
        completion.add_done_callback(self._let_go)

    def _let_go(self, _: Completion[Any]) -> None:
        self._holding -= 1
        if not self.closed:
            self.connection.relieved()

    def when(
        self, request_id: int, completion: Completion[T], answer: Callable[[T], Any] = lambda _: None
    ) -> None:
        """When `completion` is done, write REPLY with the result of `answer(value)`; ERROR if it failed."""
        self.pending.add(request_id)
        completion.add_done_callback(lambda done: self._done(request_id, done, answer))

    def _done(self, request_id: int, completion: Completion[T], answer: Callable[[T], Any]) -> None:
        self.pending.discard(request_id)
        if self.closed:
            return
        try:
            value = completion.result()
        except MSMQError as error:
            self.connection.fail(request_id, error)
        else:
            self.reply(request_id, answer(value))
        self.connection.unblocked()

    def sent(self, request_id: int, flags: int, result: SendResult) -> None:
        """Write SENT_ONE for each message if `flags` has SendFlag.EACH, then SENT."""
        if self.closed:
            return
        counters = self.service.counters
        counters.sent += result.count
        counters.refused += len(result.refusals)
        self.connection.write(result.frames(request_id, flags))
        self.connection.unblocked()

    def _lane_answered(self, frames: bytes, messages: int) -> None:
        if self.closed:
            return
        self.service.counters.sent += messages
        self.connection.write([frames])
        self.connection.unblocked()

    def _lane_failed(self, request_id: int, flags: int, count: int, status: int) -> None:
        self.sent(request_id, flags, SendResult.lost(count, storage_error(status)))

    def may_wait(self) -> None:
        """Raise InsufficientResources if the limit of waiting reads is reached."""
        if len(self.reads) >= MAX_READS:
            raise InsufficientResources(
                f"{MAX_READS} reads are waiting on this connection; that is the limit"
            )

    def read(self, request_id: int, handle: Handle, read: ReadRequest | RemoteRead | LimitedRead) -> None:
        """Register a read that is under way; write MESSAGE or ERROR when it ends."""
        self.pending.add(request_id)
        self.reads[request_id] = handle
        handle.reads[request_id] = read
        completion: Completion[Any] = read.completion
        completion.add_done_callback(lambda done: self._read_ended(request_id, done))

    def _read_ended(self, request_id: int, completion: Completion[Any]) -> None:
        handle = self.reads.pop(request_id)
        del handle.reads[request_id]
        self.message(request_id, completion)

    def message(self, request_id: int, completion: Completion[Any]) -> None:
        """Write MESSAGE with the message that was read, ERROR if the read failed."""
        self.pending.discard(request_id)
        if self.closed:
            return
        try:
            message = completion.result()
        except MSMQError as error:
            self.connection.fail(request_id, error)
        else:
            self.service.counters.delivered += 1
            self.connection.write(self._encoder.message(request_id, message))
        self.connection.unblocked()

    def audited_page(
        self,
        key: tuple[object, ...],
        names: tuple[str, str],
        done: Completion[T],
        count: Callable[[T], tuple[int, bool]],
        *,
        first: bool,
    ) -> None:
        """Audit one page of an act of several requests; all pages have one entry. `key` identifies the act on
        this connection, `names` are its operation and object. `count(result)` returns the messages of the
        page and whether it is the last one. `first`: whether the page begins the act.
        """
        if first and key in self.audited:
            self.audited.pop(key).end()
        if key not in self.audited:
            while len(self.audited) >= MAX_AUDITED:
                self.audited.pop(next(iter(self.audited))).end()
            self.audited[key] = self.manager.audit.progress(self.token, *names)
        progress = self.audited[key]

        def ended(done: Completion[T]) -> None:
            error = done.exception()
            last = error is not None
            if error is None:
                messages, last = count(done.result())
                progress.step(messages)
            if last:
                progress.end(error)
                if self.audited.get(key) is progress:
                    del self.audited[key]

        done.add_done_callback(ended)

    # ---------------------------------------------------------------------------------------- look-ups

    def add(self, handle: Handle) -> None:
        """Register a queue that was opened, and assign a handle number to it."""
        self._last_handle += 1
        handle.number = self._last_handle
        self.handles[handle.number] = handle
        lane_target = handle.sending.lane() if handle.sending is not None else None
        if lane_target is not None:
            self.lane.open(handle.number, lane_target)

    def handle(self, number: int) -> Handle:
        """Return an open queue of the connection. Raises InvalidHandle."""
        handle = self.handles.get(number)
        if handle is None:
            raise InvalidHandle(f"no queue is open as handle {number}")
        return handle

    def transaction(self, number: int) -> Transaction:
        """Return a transaction. Raises TransactionSequence if there is none with this number or it
        has ended.
        """
        transaction = self.transactions.get(number)
        if transaction is None:
            raise TransactionSequence(f"there is no open transaction {number}")
        return transaction

    def delivery(self, number: int) -> ClientDelivery:
        """Return a subscription of the connection. Raises InvalidHandle."""
        delivery = self.deliveries.get(number)
        if delivery is None:
            raise InvalidHandle(f"there is no subscription {number}")
        return delivery


Handler = Callable[[Session, int, memoryview], None]
