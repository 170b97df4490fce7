"""An open queue (OpenQueueDescriptor): the operations of an application or a session on one queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from msmq_fast._native.ledgerbase import EnqueueResult
from msmq_fast._native.positions import PositionState
from msmq_fast._native.queue import TAKEN, QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast._native.seek import readable, seek
from msmq_fast.packet.base import INFINITE, NULL_GUID
from msmq_fast.packet.fields import manager_of
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageAlreadyReceived,
    MessageLocked,
    MessageNotFound,
    MSMQError,
    OperationCancelled,
    QueueDeleted,
    QueueNotAvailable,
    TransactionUsage,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.feed.callers import FeedCallers
from msmq_fast.qm.handles.moving import move
from msmq_fast.qm.outgoing.messagelog import MessageLog
from msmq_fast.qm.queues.expiry import Expiry
from msmq_fast.qm.queues.housekeeping import Housekeeping
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.subqueue import Subqueues
from msmq_fast.qm.reading.cursor import Cursor, CursorState
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.reading.readers import Gate, Hold, Readers, ReadRequest, Sink, Subscription
from msmq_fast.qm.reading.twophase import TwoPhaseReads
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.services import Services
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

T = TypeVar("T")

_LOCKED = (int(PositionState.STATE_LOCKED), int(PositionState.STATE_PURGE_PENDING))
_READABLE = (int(PositionState.STATE_AVAILABLE), *_LOCKED)
_LAST_KEY = (1 << 64) - 1
_ENQUEUED = int(EnqueueResult.ENQUEUED)


@dataclass(frozen=True, slots=True)
class SentMessage:
    """The result of a send: the lookup id in the local or outgoing queue, and the ordinal of the message
    identifier.
    """

    lookup_id: int
    message_id: int

    @property
    def arrival_seq(self) -> int:
        return self.lookup_id & 0x00FF_FFFF_FFFF_FFFF


def refusal(result: int) -> MSMQError:
    """Returns the error for a refused enqueue; `result` is an EnqueueResult."""
    if result == EnqueueResult.QUEUE_GONE:
        return QueueDeleted("the queue was deleted")
    details = {
        EnqueueResult.QUEUE_QUOTA: "the queue's quota is used up",
        EnqueueResult.MACHINE_QUOTA: "the computer's quota is used up",
        EnqueueResult.EXPIRED: "the message has expired",
    }
    return InsufficientResources(details[EnqueueResult(result)])


@dataclass(frozen=True, slots=True)
class HandleServices:
    """The parts of the queue manager that open queues use."""

    services: Services
    registry: QueueRegistry
    expiry: Expiry
    subqueues: Subqueues
    housekeeping: Housekeeping
    callers: FeedCallers
    message_log: MessageLog


class OpenQueue:
    """An open queue, created by QueueManager.open.

    Every call raises INVALID_HANDLE once the handle is closed, QUEUE_NOT_AVAILABLE once the queue is deleted,
    and ACCESS_DENIED if the access mode does not allow it.
    """

    def __init__(
        self,
        parts: HandleServices,
        queue: Queue,
        access: Access,
        share: Share,
        format_name: FormatName,
        handle: int,
        token: Token | None,
    ) -> None:
        self._parts = parts
        self._services = parts.services
        self._ledger = parts.services.ledger
        self._queue: Queue | None = queue
        self.access = access
        self._receives = access.receives
        self.share = share
        self.format_name = format_name
        self.handle = handle
        self._token = token
        self.caller = 0
        """The number of the reader in the feed; 0 if it is not known, or if the queue is not open for
        receiving.
        """
        if access.receives:
            self.caller = parts.callers.number(token)
            parts.message_log.reader(queue, parts.callers.find(self.caller))
        self.closed = False
        self._requests: set[ReadRequest] = set()
        self._subscriptions: set[Subscription] = set()
        self.cursors: dict[int, Cursor] = {}
        self.two_phase = TwoPhaseReads(self._ledger)

    @property
    def queue(self) -> Queue:
        """The queue that the handle has open (QueueReference)."""
        if self.closed:
            raise InvalidHandle("the queue handle is closed")
        if self._queue is None:
            raise QueueNotAvailable("the queue was deleted")
        return self._queue

    @property
    def core(self) -> QueueCore:
        """The native core of the queue, which holds its messages."""
        return self.queue.core

    @property
    def readers(self) -> Readers:
        """The waiting reads of the queue."""
        return self.queue.readers

    def _check_existing(self) -> None:
        """Raises QUEUE_NOT_AVAILABLE if the queue was deleted, INVALID_HANDLE if the handle is closed."""
        _ = self.queue

    # ---- sending

    def _target(self) -> Queue:
        """Returns the queue to send to. Raises QUEUE_DELETED if the queue was deleted (DM-174)."""
        if self._queue is None and not self.closed:
            raise QueueDeleted("the queue was deleted")
        return self.queue

    @property
    def destination_manager(self) -> UUID:
        """The value of UserHeader.QueueManagerAddress, which routers use, for messages sent with this handle.

        NULL_GUID if the queue has a direct name, or if its queue manager is not known.
        """
        queue = self.queue
        known = queue.manager if isinstance(queue, OutgoingQueue) else None
        return known or manager_of(self.format_name)

    def stamp(self, message: Message) -> Message:
        """Set the properties that the queue manager that accepts a message assigns (DA-029): Identifier,
        source, SentTime, destination.
        """
        services = self._services
        message.source_machine = services.guid
        message.message_id = services.message_ordinals.take()
        message.sent_time = services.ledger.now_s
        if message.destination is None:
            message.destination = self.format_name
        if message.destination_manager == NULL_GUID:
            message.destination_manager = self.destination_manager
        return message

    def send(self, message: Message) -> Completion[SentMessage]:
        """Enqueue one message; resolved when it is stored (DU-01, DU-02).

        Raises TRANSACTION_USAGE, INSUFFICIENT_RESOURCES (quota, size), and what Message.to_packet raises.
        """
        packet = self._packet(message)
        completion: Completion[SentMessage] = Completion()
        core = self.queue.core
        sent: list[SentMessage] = []

        def kept(status: int) -> None:
            if status:
                completion.fail(storage_error(status))
            elif sent:
                completion.resolve(sent[0])

        results, keys = core.enqueue_packets([packet], kept)
        if results[0] not in TAKEN:
            raise refusal(results[0])
        sent.append(SentMessage(keys[0], message.message_id))
        if results[0] == _ENQUEUED:
            completion.resolve(sent[0])
        return completion

    def send_many(self, messages: list[Message]) -> Completion[list[SentMessage | MSMQError]]:
        """Enqueue messages in order; resolved with a list that has for each message a SentMessage, or the
        error if it was refused.
        """
        outcomes: list[SentMessage | MSMQError] = []
        packets: list[bytes] = []
        places: list[tuple[int, int]] = []
        for message in messages:
            try:
                packet = self._packet(message)
            except MSMQError as error:
                outcomes.append(error)
                continue
            places.append((len(outcomes), message.message_id))
            packets.append(packet)
            outcomes.append(MSMQError())
        completion: Completion[list[SentMessage | MSMQError]] = Completion()

        def fill(results: list[int], keys: list[int]) -> None:
            for (place, message_id), result, key in zip(places, results, keys, strict=True):
                outcomes[place] = SentMessage(key, message_id) if result in TAKEN else refusal(result)

        self._enqueue(packets, fill, completion, outcomes)
        return completion

    def send_packets(
        self, packets: list[bytes], dead_letters: list[int] | None = None
    ) -> Completion[tuple[list[int], list[int]]]:
        """Enqueue UserMessage packets that are already stamped.

        `dead_letters`: for each packet the result of QueueManager.dead_letter_queue, or 0 if its sender chose
        no dead-letter queue. Resolved with (list of EnqueueResults, list of lookup ids), one for each packet.
        """
        self._may(self.access is Access.SEND)
        completion: Completion[tuple[list[int], list[int]]] = Completion()
        outcome: tuple[list[int], list[int]] = ([], [])

        def fill(results: list[int], keys: list[int]) -> None:
            outcome[0].extend(results)
            outcome[1].extend(keys)

        self._enqueue(packets, fill, completion, outcome, dead_letters)
        return completion

    def _enqueue(
        self,
        packets: list[bytes],
        fill: Callable[[list[int], list[int]], None],
        completion: Completion[T],
        value: T,
        dead_letters: list[int] | None = None,
    ) -> None:
        early: list[int] = []
        filled = False

        def kept(status: int) -> None:
            if not filled:
                early.append(status)
            elif status:
                completion.fail(storage_error(status))
            else:
                completion.resolve(value)

        results, keys = self._target().core.enqueue_packets(packets, kept, 0, dead_letters)
        fill(results, keys)
        filled = True
        if early:
            kept(early[0])

    def _packet(self, message: Message) -> bytes:
        self._may(self.access is Access.SEND)
        queue = self._target()
        if queue.core.outgoing is False and queue.transactional != message.transactional:
            raise TransactionUsage(
                "the message and the queue must either both be transactional, or neither (DM-107)"
            )
        return self.stamp(message).to_packet()

    # ---- reading

    def receive(
        self,
        timeout_ms: int | None,
        *,
        peek: bool = False,
        gate: Gate | None = None,
        hold: Hold | None = None,
        tag: int | None = None,
    ) -> ReadRequest:
        """Receive or peek the first message; waits up to `timeout_ms` (None: without limit). See ReadRequest.

        A message is taken only if `gate` admits it. With `hold` the message stays in the queue, locked. `tag`
        identifies the read for `cancel`.
        """
        self.may_read(peek=peek)
        readers = self.queue.readers
        request = ReadRequest(readers, peek, gate, hold=hold, tag=tag, caller=self.caller)
        return self.wait(request, timeout_ms)

    def wait(self, request: ReadRequest, timeout_ms: int | None) -> ReadRequest:
        """Serve a read of this handle now, or when a message arrives within `timeout_ms`."""
        readers = self.queue.readers
        readers.enter(request)
        if request.completion.done or not readers.waits(request):
            return self.track(request)
        if timeout_ms is None or timeout_ms >= INFINITE:
            return self.track(request)
        if timeout_ms <= 0:
            readers.time_out(request)
        else:
            self._parts.expiry.start_read(request, readers, timeout_ms)
        return self.track(request)

    def track(self, request: ReadRequest) -> ReadRequest:
        """Note a read, so that it is cancelled when this handle is closed, unless the read has completed
        before.
        """
        if not request.completion.done:
            self._requests.add(request)
            request.completion.add_done_callback(lambda _: self._requests.discard(request))
        return request

    def cancel(self, tag: int, error: MSMQError | None = None) -> bool:
        """Cancel the waiting read with a tag (DM-148). Returns False if there is none (DM-149)."""
        for request in self._requests:
            if request.tag == tag and self.queue.readers.waits(request):
                return request.cancel(error)
        return False

    def begin(
        self,
        timeout_ms: int | None,
        *,
        gate: Gate | None = None,
        tag: int | None = None,
        cursor: Cursor | None = None,
        transaction: Hold | None = None,
    ) -> ReadRequest:
        """Dequeue Message Begin: deliver the message but keep it locked until `end` (DM-120).

        With `transaction`, the message stays locked until that transaction ends. The transaction alone, not
        `end`, then decides whether the message is removed (DM-118).
        """
        hold = transaction or self.two_phase.begin()
        if cursor is not None:
            return cursor.receive(timeout_ms, gate=gate, hold=hold, tag=tag)
        return self.receive(timeout_ms, gate=gate, hold=hold, tag=tag)

    def begin_now(self) -> Received | None:
        """Fast path of `begin`: deliver the first message if it is in memory and no other read waits for it.

        Creates no ReadRequest. Returns None if there is no such message; the caller must then use `begin`.
        """
        if not self._receives:
            self.may_read(peek=False)
        queue = self.queue
        return self.two_phase.take_head(queue.core) if queue.readers.idle else None

    def end(self, lookup_id: int, *, delete: bool, transactional: bool = False) -> Completion[None]:
        """Dequeue Message End: remove the message that `begin` delivered, or return it (DM-121 … DM-125).

        Raises TRANSACTION_SEQUENCE if this handle has not locked the message. With `transactional` nothing
        happens: the transaction decides whether the message is removed.
        """
        core = self.queue.core
        if transactional:
            return Completion.of(None)
        return self.two_phase.end(core, lookup_id, delete=delete, caller=self.caller)

    def lookup(
        self, lookup_id: int, operation: Lookup, *, peek: bool = False, hold: Hold | None = None
    ) -> Completion[Received]:
        """Receive or peek by LookupIdentifier (DM-127 … DM-131); with `hold` the message stays in the queue,
        locked.

        Raises MESSAGE_NOT_FOUND; MESSAGE_ALREADY_RECEIVED if a cursor is on the message but it was received;
        for a locked message TRANSACTION_USAGE (peek) or MESSAGE_LOCKED_UNDER_TRANSACTION (receive).
        """
        if hold is not None:
            return self.look_up(lookup_id, operation, hold, peek=peek).completion
        self.may_read(peek=peek)
        core = self.queue.core
        key = self._seek(lookup_id, operation, peek)
        completion: Completion[Received] = Completion()

        def received(messages: list[Received], status: int) -> None:
            if status:
                completion.fail(storage_error(status))
            elif self.closed:
                core.requeue(messages)
                completion.fail(OperationCancelled())
            elif not messages:
                completion.fail(MessageNotFound())
            else:
                completion.resolve(messages[0])

        def peeked(message: Received | None, status: int) -> None:
            received([] if message is None else [message], status)

        if peek:
            taken = core.peek(key, peeked)
        else:
            taken = core.receive_key(key, received, lambda: not self.closed, self.caller)
        if not taken:
            raise MessageNotFound(f"no message has the lookup identifier {key}")
        return completion

    def look_up(self, lookup_id: int, operation: Lookup, hold: Hold, *, peek: bool = False) -> ReadRequest:
        """Like `lookup` with a `hold`, but returns a read that can be cancelled."""
        self.may_read(peek=peek)
        if peek:
            raise InvalidParameter("a transaction cannot peek a message")
        key = self._seek(lookup_id, operation, peek)
        request = ReadRequest(self.queue.readers, peek=False, hold=hold)
        if not request.take(self.queue.core, key):
            raise MessageNotFound(f"no message has the lookup identifier {key}")
        return self.track(request)

    def _seek(self, lookup_id: int, operation: Lookup, peek: bool) -> int:
        core = self.queue.core
        if not 0 <= lookup_id < 1 << 64:
            raise MessageNotFound("a lookup identifier must be from 0 to 2^64-1")
        key: int | None
        if operation is Lookup.FIRST:
            key = seek(core, 0)
        elif operation is Lookup.LAST:
            key = seek(core, _LAST_KEY, forward=False)
        else:
            state = core.positions.state(lookup_id)
            if state not in _READABLE and not self._cursor_stands_on(lookup_id):
                raise MessageNotFound(f"no message has the lookup identifier {lookup_id}")
            if operation is Lookup.NEXT:
                key = seek(core, lookup_id)
            elif operation is Lookup.PREVIOUS:
                key = seek(core, lookup_id, forward=False)
            elif readable(core, lookup_id):
                key = lookup_id
            elif state not in _LOCKED:
                raise MessageAlreadyReceived("the message was already received")
            else:
                raise (
                    TransactionUsage("the message is locked")
                    if peek
                    else MessageLocked("the message is locked")
                )
        if key is None:
            raise MessageNotFound("the queue has no message at this position")
        return key

    def _cursor_stands_on(self, key: int) -> bool:
        """Whether a cursor of any handle is on the message with this key. The key of a removed message stays
        known while a cursor is on it (DA-006).
        """
        return any(handle.stands_on(key) for handle in self.queue.descriptors)

    def stands_on(self, key: int) -> bool:
        """Whether a cursor of this handle is on the message with this key."""
        return any(cursor.key == key for cursor in self.cursors.values())

    # ---- cursors, moving

    def open_cursor(self, lookup_id: int = 0, *, current: bool = False) -> Cursor:
        """Open a cursor before the first message (DM-053, DM-242), or at the place of a lookup id, where an
        earlier cursor was. With `current`, the message with this lookup id is the current message; otherwise
        the cursor has none. Raises QUEUE_NOT_AVAILABLE if the queue was deleted.
        """
        self.may_read(peek=True)
        self._check_existing()
        cursor = Cursor(self, self._parts.registry.new_cursor())
        cursor.put_back((lookup_id, CursorState.READ if current else CursorState.UNREAD))
        self.cursors[cursor.number] = cursor
        return cursor

    def forget_cursor(self, number: int) -> None:
        """Remove a closed cursor."""
        self.cursors.pop(number, None)

    def move(self, lookup_id: int, target: OpenQueue) -> Completion[None]:
        """Move an available message between the queue and its subqueues; resolved when durable (DU-11).

        `target` must be open for moving. See `moving.move` for the errors.
        """
        self._may(self.access.receives)
        return move(self.queue, lookup_id, target.access, target.queue, self.caller)

    def subscribe(
        self,
        sink: Sink,
        credit: int,
        *,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
    ) -> Subscription:
        """Deliver messages to `sink` in batches, at most `credit` messages until more credit is granted; see
        Subscription.

        `on_end` is called when the queue is deleted.
        """
        self._may(self.access.receives)
        readers = self.queue.readers
        owner = self._ledger.new_owner()
        subscription = Subscription(readers, sink, credit, owner, acknowledge, on_end, self.caller)
        self.enter(subscription)
        return subscription

    def enter(self, subscription: Subscription) -> None:
        """Serve a subscription of this handle until the handle is closed."""
        self._may(self.access.receives)
        self._subscriptions.add(subscription)
        self.queue.readers.enter(subscription)

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; its unacknowledged messages become available again."""
        subscription.close()
        self._subscriptions.discard(subscription)

    # ---- the rest

    def purge(self) -> Completion[int]:
        """Remove every available message (DM-092 … DM-094). Resolved with the number of removed messages once
        the removal is durable.
        """
        self._may(self.access.receives)
        return self._parts.housekeeping.purge(self.queue, self._token)

    def close(self) -> None:
        """Cancel every waiting read with OPERATION_CANCELLED and return the unacknowledged messages of
        subscriptions.

        Closing a handle twice is allowed (DM-089, DM-090).
        """
        if self.closed:
            return
        self.closed = True
        for request in list(self._requests):
            request.cancel()
        for cursor in list(self.cursors.values()):
            cursor.close()
        for subscription in list(self._subscriptions):
            subscription.close()
        self._subscriptions.clear()
        if self._queue is not None:
            self.two_phase.run_down(self._queue.core)
            if self in self._queue.descriptors:
                self._queue.descriptors.remove(self)
                self._parts.subqueues.idle(self._queue)

    def orphan(self) -> None:
        """End all reads and subscriptions of the handle, because its queue is deleted (DM-065, DM-068)."""
        self._queue = None
        self.two_phase.forget()
        for request in list(self._requests):
            request.cancel(QueueDeleted("the queue was deleted"))
        for subscription in list(self._subscriptions):
            subscription.end(QueueDeleted("the queue was deleted"))
        self._subscriptions.clear()

    def may_read(self, *, peek: bool) -> None:
        """Raises ACCESS_DENIED unless the handle is open for receiving or, with `peek`, for peeking."""
        self._may(self.access.receives or (peek and self.access.peeks))

    def _may(self, allowed: bool) -> None:
        if not allowed:
            raise AccessDenied(f"the queue is open for {self.access.name} only")
