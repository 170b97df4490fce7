"""An open queue of another computer, as front ends use it (implements qm.reading.remote.RemoteQueue)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from msmq_fast.protocol.errors import (
    AccessDenied,
    InvalidHandle,
    IOTimeout,
    MessageNotFound,
    MessageStorageFailed,
    MSMQError,
    OperationCancelled,
    RemoteMachineNotAvailable,
    StaleHandle,
    error,
)
from msmq_fast.qm.access import Access
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import Gate
from msmq_fast.qm.reading.remote import RemoteCursor, RemoteMessage, RemoteSink
from msmq_fast.rpc.client.errors import CallLost, refusal
from msmq_fast.rpc.client.packets import Undecodable, message_of
from msmq_fast.rpc.client.sessions import INFINITE, Ack, Action, QueueSession, RequestIds, Started, Wanted
from msmq_fast.rpc.client.subscription import RemoteReadSubscription
from msmq_fast.rpc.services.reads import BEHIND_THE_LAST
from msmq_fast.store.completion import Completion

__all__ = ["Cursor", "QueueReader", "Read", "Shared"]

_NOT_SUPPORTED = "MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER"

_LOOKUPS = {
    (Lookup.CURRENT, True): Action.LOOKUP_PEEK_CURRENT,
    (Lookup.CURRENT, False): Action.LOOKUP_RECEIVE_CURRENT,
    (Lookup.NEXT, True): Action.LOOKUP_PEEK_NEXT,
    (Lookup.NEXT, False): Action.LOOKUP_RECEIVE_NEXT,
    (Lookup.PREVIOUS, True): Action.LOOKUP_PEEK_PREV,
    (Lookup.PREVIOUS, False): Action.LOOKUP_RECEIVE_PREV,
    (Lookup.LAST, True): Action.LOOKUP_PEEK_PREV,
    (Lookup.LAST, False): Action.LOOKUP_RECEIVE_PREV,
}


@dataclass(frozen=True, slots=True)
class Shared:
    """The state that all open queues of other computers share."""

    ids: RequestIds
    cursor_number: Callable[[], int]  # numbers for programs; the other computer has numbers of its own


class _Phase(Enum):
    WAITING = 0  # until the other computer finds a message
    HELD = 1  # the message is locked on the other computer
    ENDING = 2  # the other computer has been told to remove the message or to put it back
    OVER = 3


class Read:
    """PendingRemoteReadEntry: one read (implements qm.reading.remote.RemoteRead).

    A receive returns its message after the other computer has confirmed the removal. With `hold`, the read
    returns the message while it is still locked; `end` then removes it or puts it back.
    """

    __slots__ = (
        "_gate",
        "_hold",
        "_message",
        "_phase",
        "_queue",
        "_started",
        "_wanted",
        "completion",
        "request_id",
    )

    def __init__(
        self, queue: QueueReader, wanted: Wanted, gate: Gate | None = None, *, hold: bool = False
    ) -> None:
        self.completion: Completion[RemoteMessage] = Completion()
        self.request_id = queue.shared.ids.take()
        self._queue = queue
        self._wanted = wanted
        self._gate = gate
        self._hold = hold
        self._phase = _Phase.WAITING
        self._started: Started | None = None
        self._message: RemoteMessage | None = None

    def begin(self) -> None:
        """Start the first phase of the read, in which a message is found."""
        done = self._queue.session.start(self._wanted, self.request_id)
        done.add_done_callback(self._answered)

    def begin_with(self, cursor: Completion[int]) -> None:
        """Start the first phase of a read with a cursor, once `cursor` is resolved to the cursor's handle."""

        def on_cursor(done: Completion[int]) -> None:
            failure = done.exception()
            if self.completion.done:
                self._over()
            elif failure is not None:
                self._fail(failure)
            else:
                wanted = self._wanted
                self._wanted = Wanted(wanted.action, wanted.timeout_ms, done.result())
                self.begin()

        cursor.add_done_callback(on_cursor)

    def cancel(self, error: MSMQError | None = None) -> bool:
        """Cancels the read. Returns False if it has already ended or its message is being removed."""
        if self.completion.done or self._phase is not _Phase.WAITING:
            return False
        self.completion.fail(error or OperationCancelled())
        self._queue.session.cancel(self.request_id)
        return True

    def end(self, ack: Ack) -> Completion[None]:
        """Removes a held message or puts it back. If this fails with MSMQError, the message was not
        removed.
        """
        ended: Completion[None] = Completion()
        started = self._started
        if self._phase is not _Phase.HELD or started is None:
            ended.fail(StaleHandle("the read has ended"))
            return ended
        self._phase = _Phase.ENDING
        self._queue.ending += 1
        done = self._queue.session.end(started, self.request_id, ack)
        done.add_done_callback(lambda answer: self._told(answer, ack, ended))
        return ended

    def _answered(self, done: Completion[Started]) -> None:
        failure = done.exception()
        if failure is not None:
            self._fail(failure)
            return
        started = done.result()
        try:
            self._message = message_of(
                started.packet,
                started.sequential_id,
                started.arrived_time,
                absolute=self._queue.session.absolute,
            )
        except Undecodable as fault:
            self.completion.fail(
                MSMQError(f"{self._queue.host} returned data that is not a message:  {fault}")
            )
        if not self._wanted.receives:
            self._over()
            self._give()
            return
        self._started = started
        self._phase = _Phase.HELD
        if self.completion.done:
            self.end(Ack.NACK)
        elif self._hold:
            self._give()
        else:
            # Deliver the message only when its removal is certain.
            self.end(Ack.ACK).add_done_callback(self._removed)

    def _removed(self, ended: Completion[None]) -> None:
        failure = ended.exception()
        if failure is None:
            self._give()
        else:
            self.completion.fail(failure)

    def _told(self, done: Completion[None], ack: Ack, ended: Completion[None]) -> None:
        failure = done.exception()
        if ack is Ack.ACK and _uncertain(failure):
            settled = self._queue.settle(self._message.lookup_id if self._message is not None else 0)
            settled.add_done_callback(lambda removed: self._settled(removed, ended))
            return
        self._over()
        self._queue.ended()
        if failure is None:
            ended.resolve(None)
        else:
            ended.fail(refusal(failure, self._queue.host))

    def _settled(self, removed: Completion[bool], ended: Completion[None]) -> None:
        self._over()
        self._queue.ended()
        if removed.result():
            ended.resolve(None)
        else:
            ended.fail(RemoteMachineNotAvailable(f"{self._queue.host} did not remove the message"))

    def _give(self) -> None:
        message = self._message
        if message is None:
            return  # the program has already been notified
        if self._gate is None:
            self.completion.resolve(message)
            return
        self._gate.begin()
        self.completion.resolve(message)
        self._gate.leave(len(message.packet))

    def _fail(self, failure: Exception) -> None:
        self._over()
        self.completion.fail(refusal(failure, self._queue.host))

    def _over(self) -> None:
        self._phase = _Phase.OVER
        self._started = None
        self._queue.forget(self)


class Cursor:
    """A program's cursor (implements qm.reading.remote.RemoteCursor).

    It uses a cursor of the other computer, which is created in the background.
    """

    def __init__(self, queue: QueueReader, number: int) -> None:
        self.number = number
        self._queue = queue
        self._there = queue.session.create_cursor()
        self._reads: set[Read] = set()
        self._closed = False

    def peek(self, timeout_ms: int | None, *, gate: Gate | None = None) -> Read:
        """Peeks the message at the cursor, or the next one if that message has been removed."""
        return self._read(Action.PEEK_CURRENT, timeout_ms, gate)

    def peek_next(self, timeout_ms: int | None, *, gate: Gate | None = None) -> Read:
        """Advance the cursor and peek the next message."""
        return self._read(Action.PEEK_NEXT, timeout_ms, gate)

    def receive(self, timeout_ms: int | None, *, gate: Gate | None = None) -> Read:
        """Receives the message at the cursor, or the next one if that message has been removed."""
        return self._read(Action.RECEIVE, timeout_ms, gate)

    def close(self) -> None:
        """Close the cursor, also on the other computer; waiting reads end with OPERATION_CANCELLED."""
        if self._closed:
            return
        self._closed = True
        for read in list(self._reads):
            read.cancel(OperationCancelled("the cursor was closed"))
        self._queue.cursors.pop(self.number, None)
        self._there.add_done_callback(self._forget)

    def _forget(self, done: Completion[int]) -> None:
        if done.exception() is None and not self._queue.closed:
            self._queue.session.close_cursor(done.result())

    def _read(self, action: Action, timeout_ms: int | None, gate: Gate | None) -> Read:
        if self._closed:
            raise InvalidHandle("the cursor is closed")
        self._queue.check(receives=action is Action.RECEIVE)
        read = Read(self._queue, Wanted(action, _timeout(timeout_ms)), gate)
        self._reads.add(read)
        read.completion.add_done_callback(lambda _: self._reads.discard(read))
        self._queue.reads.add(read)
        read.begin_with(self._there)
        return read


class QueueReader:
    """RemoteOpenQueueEntry: an open queue (implements qm.reading.remote.RemoteQueue) over one session with
    the other computer.
    """

    def __init__(
        self,
        session: QueueSession,
        host: str,
        access: Access,
        shared: Shared,
        settle: Callable[[int], Completion[bool]],
    ) -> None:
        """`settle(LookupIdentifier)` is called if the connection ended before a removal was confirmed. It
        finds out whether the message was removed, and never raises. Its argument is 0 if the
        LookupIdentifier is unknown.
        """
        self.session = session
        self.host = host
        self.shared = shared
        self.settle = settle
        self.reads: set[Read] = set()
        self.cursors: dict[int, RemoteCursor] = {}
        self.ending = 0  # reads whose end the other computer has not confirmed
        self.closed = False
        self.lost = ""
        self._access = access
        self._subscriptions: set[RemoteReadSubscription] = set()
        session.on_lost.connect(self._lost)

    def receive(self, timeout_ms: int | None, *, peek: bool = False, gate: Gate | None = None) -> Read:
        """Receive or peek the first message."""
        action = Action.PEEK_CURRENT if peek else Action.RECEIVE
        return self._begin(Wanted(action, _timeout(timeout_ms)), gate)

    def hold(self) -> Read:
        """Receives the first message, waiting without a limit, and keeps it locked."""
        return self._begin(Wanted(Action.RECEIVE, INFINITE), hold=True)

    def lookup(
        self, lookup_id: int, operation: Lookup, *, peek: bool = False, gate: Gate | None = None
    ) -> Completion[RemoteMessage]:
        """Receive or peek by LookupIdentifier."""
        self.check(receives=not peek)
        if operation is Lookup.NEXT and lookup_id == 0:
            operation = Lookup.FIRST  # RemoteRead has no operation for the message before the first one
        if operation is Lookup.FIRST:
            first = self.receive(0, peek=peek, gate=gate)
            return _found(first.completion)
        if not self.session.identifies:
            raise error(_NOT_SUPPORTED, f"{self.host} does not support lookup identifiers")
        if operation is Lookup.LAST:
            lookup_id = BEHIND_THE_LAST
        if lookup_id == 0:
            raise MessageNotFound("no message has the lookup identifier 0")
        wanted = Wanted(_LOOKUPS[operation, peek], lookup_id=lookup_id)
        return self._begin(wanted, gate).completion

    def open_cursor(self) -> Cursor:
        """Opens a cursor before the first message."""
        self.check(receives=False)
        cursor = Cursor(self, self.shared.cursor_number())
        self.cursors[cursor.number] = cursor
        return cursor

    def subscribe(
        self,
        sink: RemoteSink,
        credit: int,
        *,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
    ) -> RemoteReadSubscription:
        """Delivers messages to `sink` as they arrive, up to `credit` messages. `on_end` is called if the
        other computer ends the subscription.
        """
        self.check(receives=True)
        if acknowledge and not self.session.identifies:
            raise error(
                _NOT_SUPPORTED,
                f"{self.host} returns no lookup identifiers, so messages cannot be acknowledged",
            )
        subscription = RemoteReadSubscription(self, sink, acknowledge=acknowledge, on_end=on_end)
        self._subscriptions.add(subscription)
        subscription.grant(credit)
        return subscription

    def unsubscribed(self, subscription: RemoteReadSubscription) -> None:
        """Forget a subscription that has ended."""
        self._subscriptions.discard(subscription)

    def purge(self) -> Completion[None]:
        """Remove every available message."""
        self.check(receives=True)
        purged: Completion[None] = Completion()

        def answered(done: Completion[None]) -> None:
            failure = done.exception()
            if failure is None:
                purged.resolve(None)
            else:
                purged.fail(refusal(failure, self.host))

        self.session.purge().add_done_callback(answered)
        return purged

    def close(self) -> None:
        """Closes the queue: ends waiting reads and puts locked messages back.

        The queue is closed on the other computer after that computer has confirmed all removals in progress.
        """
        if self.closed:
            return
        for subscription in list(self._subscriptions):
            subscription.close()
        for read in list(self.reads):
            read.cancel()
        self.closed = True
        for cursor in list(self.cursors.values()):
            cursor.close()
        if not self.ending:
            self.session.close()

    # ---- for reads

    def check(self, *, receives: bool) -> None:
        """Raises STALE_HANDLE, INVALID_HANDLE or ACCESS_DENIED if the queue cannot be used."""
        if self.closed:
            raise InvalidHandle("the queue is closed")
        if self.lost:
            raise StaleHandle(f"{self.host}: {self.lost}; open the queue again")
        if receives and not self._access.receives:
            raise AccessDenied(f"the queue is open for {self._access.name} only")

    def forget(self, read: Read) -> None:
        """Removes a read that has ended, for any reason, and releases its request identifier (QP-210)."""
        if read in self.reads:
            self.reads.discard(read)
            self.shared.ids.release(read.request_id)

    def ended(self) -> None:
        """Counts a read whose end the other computer has confirmed, or can no longer confirm. Closes the
        session after the last such read if the queue was closed.
        """
        self.ending -= 1
        if self.closed and not self.ending:
            self.session.close()

    def _begin(self, wanted: Wanted, gate: Gate | None = None, *, hold: bool = False) -> Read:
        self.check(receives=wanted.receives)
        read = Read(self, wanted, gate, hold=hold)
        self.reads.add(read)
        read.begin()
        return read

    def _lost(self, reason: str) -> None:
        self.lost = reason


def _uncertain(failure: Exception | None) -> bool:
    """Returns whether a message may have been removed although its removal failed with `failure`.

    After a full disk, the other computer may remove it later.
    """
    return isinstance(failure, MessageStorageFailed) or (isinstance(failure, CallLost) and failure.sent)


def _timeout(timeout_ms: int | None) -> int:
    return INFINITE if timeout_ms is None else max(0, min(timeout_ms, INFINITE))


def _found(first: Completion[RemoteMessage]) -> Completion[RemoteMessage]:
    """Return the look-up of the first message, changed so that it fails with MESSAGE_NOT_FOUND, not with a
    time-out, if the queue is empty.
    """
    found: Completion[RemoteMessage] = Completion()

    def looked(done: Completion[RemoteMessage]) -> None:
        failure = done.exception()
        if failure is None:
            found.resolve(done.result())
        elif isinstance(failure, IOTimeout):
            found.fail(MessageNotFound("the queue is empty"))
        else:
            found.fail(failure)

    first.add_done_callback(looked)
    return found
