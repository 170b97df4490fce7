"""Waiting reads and subscriptions of one queue, in the order of their arrival (ST-9, DA-012 … DA-018,
DA-045).
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast._native.seek import fresh as fresh_keys
from msmq_fast._native.seek import hand_out, readable, seek
from msmq_fast.protocol.errors import IOTimeout, MessageStorageFailed, MSMQError, OperationCancelled
from msmq_fast.qm.records import storage_error
from msmq_fast.store.completion import Completion

MAX_BYTES = 1 << 62  # one message, whatever its size
BATCH = 512  # messages handed to a subscription at once
BATCH_BYTES = 4 << 20
_UNKNOWN = -1  # how many a delivery took: it is still being made

Sink = Callable[[list[Received]], None]


class Gate(Protocol):
    """Limits how many messages are taken at a time for the reads of one client, over all queues."""

    def begin(self) -> None:
        """Called when a message is taken for a read that did not have to wait; counts the message even if the
        limit is exceeded.
        """

    def enter(self, readers: Readers) -> bool:
        """Whether one more message may be taken now; if not, `readers.serve` is called once it may."""

    def leave(self, size: int) -> None:
        """Called when a taken message of `size` bytes was delivered; `size` is 0 if the message could not be
        read.
        """


class Hold(Protocol):
    """Keeps the message of a read locked in the queue. The hold, a two-phase read or a transaction, later
    removes the message or returns it.
    """

    @property
    def owner(self) -> int:
        """The owner number with which the message is locked (Ledger.new_owner)."""

    def locked(self, core: QueueCore, key: int) -> None:
        """Called when a message of the queue `core` was locked for the owner."""

    def unlocked(self, core: QueueCore, key: int) -> None:
        """Called when a message that was locked cannot be delivered, because its read was cancelled."""


class ReadCursor(Protocol):
    """The cursor that a read belongs to."""

    key: int

    def message_available(self, key: int) -> None:
        """Called when the read gets the message with this key (DM-249)."""


class ReadTimers(Protocol):
    """Ends reads that time out."""

    def stop(self, request: ReadRequest) -> None:
        """Stop the timer of a read that has ended or got its message."""


@dataclass(frozen=True, slots=True)
class ReadTimer:
    """The timer of a waiting read: `number` identifies it in `timers`, `place` is its place on the timer
    wheel.
    """

    timers: ReadTimers
    number: int
    place: int


class ReadRequest:
    """One receive or peek: of the first message of a queue, or of the next message of a cursor.

    `completion` ends with a message, with IO_TIMEOUT, or with the error with which the read was cancelled.
    """

    __slots__ = (
        "_readers",
        "caller",
        "completion",
        "cursor",
        "gate",
        "hold",
        "locked",
        "offers",
        "peek",
        "tag",
        "timer",
    )

    def __init__(
        self,
        readers: Readers,
        peek: bool,
        gate: Gate | None = None,
        *,
        hold: Hold | None = None,
        cursor: ReadCursor | None = None,
        tag: int | None = None,
        caller: int = 0,
    ) -> None:
        self._readers = readers
        self.caller = caller  # its number in the feed
        self.peek = peek
        self.gate = gate
        self.hold = hold
        self.cursor = cursor
        self.tag = tag  # by which it can be cancelled
        self.locked: tuple[QueueCore, int] | None = None  # for `hold`, and not handed over yet
        self.offers: list[int] = []  # keys that became available for a waiting cursor
        self.completion: Completion[Received] = Completion()
        self.timer: ReadTimer | None = None

    def cancel(self, error: MSMQError | None = None) -> bool:
        """End the read with `error` (default OPERATION_CANCELLED); returns False if it has ended already.

        A message that was taken for this read returns to the queue (DM-119). This includes a message that is
        locked for `hold` while its packet is read, so that a transaction that ends does not receive it.
        """
        self._readers.forget(self)
        locked, self.locked = self.locked, None
        if locked is not None and self.hold is not None:
            self.hold.unlocked(*locked)
        return self.completion.fail(error or OperationCancelled())

    def wanted(self) -> bool:
        """Whether the caller still waits for the message."""
        return not self.completion.done

    def admitted(self) -> bool:
        """Whether a message may be taken for this read now."""
        return self.gate is None or self.gate.enter(self._readers)

    def candidate(self, core: QueueCore) -> int | None:
        """Returns the key of the message that this read would get now; None if there is none."""
        if self.cursor is None:
            return seek(core, 0)
        for key in self.offers:
            if readable(core, key):
                return key
        return seek(core, self.cursor.key)

    def offer(self, core: QueueCore, fresh: list[int]) -> None:
        """Note the keys of messages that became available (`fresh`), unless earlier noted messages are still
        available.
        """
        self.offers = [key for key in self.offers if readable(core, key)] or fresh

    def serve(self, core: QueueCore, pending: bool) -> None:
        """Take the next message for this read; the caller has checked that there is one."""
        self._readers.forget(self)
        if self.cursor is None and self.hold is None:
            taken = bool(
                core.receive_bulk(
                    1, MAX_BYTES, self._received, pending, wanted=self.wanted, caller=self.caller
                )
            )
        else:
            key = self.candidate(core)
            taken = key is not None and self.take(core, key)
        if not taken:
            raise MessageStorageFailed(
                "internal error: no message is available for a read that was to be served"
            )

    def take(self, core: QueueCore, key: int) -> bool:
        """Receive or peek the message with this key; returns False if the message does not exist."""
        if self.cursor is not None:
            self.cursor.message_available(key)
        if self.peek:
            return core.peek(key, self.peeked)
        if self.hold is None:
            return core.receive_key(key, self._received, self.wanted, self.caller)

        def read(message: Received | None, status: int) -> None:
            self.locked = None
            self.peeked(message, status)

        if not core.claim(key, self.hold.owner):
            return False
        self.hold.locked(core, key)
        self.locked = core, key
        hand_out(core, key, self.hold.owner, read)
        return True

    def _received(self, messages: list[Received], status: int) -> None:
        if status or not messages:
            self.completion.fail(storage_error(status))
        elif not self.completion.resolve(messages[0]):
            self._readers.core.requeue(messages)
        if self.gate is not None:
            self.gate.leave(len(messages[0].packet) if messages else 0)

    def peeked(self, message: Received | None, status: int) -> bool:
        """Deliver the message that was read; returns False if the reader no longer waits for it."""
        if message is None:
            wanted = self.completion.fail(storage_error(status))
        else:
            wanted = self.completion.resolve(message)
        if self.gate is not None:
            self.gate.leave(0 if message is None else len(message.packet))
        return wanted


class Subscription:
    """A reader to which messages are delivered in batches, with one call of its sink for each batch. `credit`
    is the number of messages that may still be delivered.

    With `acknowledge`, messages are locked until `ack` removes or `release` returns them; otherwise they are
    removed before they are delivered. When the subscription is closed, messages that were not delivered or
    not acknowledged return to the queue.
    """

    __slots__ = (
        "_on_end",
        "_readers",
        "_sink",
        "_under_way",
        "acknowledge",
        "caller",
        "closed",
        "credit",
        "held",
        "owner",
    )

    def __init__(
        self,
        readers: Readers,
        sink: Sink,
        credit: int,
        owner: int,
        acknowledge: bool,
        on_end: Callable[[MSMQError], None] | None = None,
        caller: int = 0,
    ) -> None:
        """`on_end` is called when the queue is deleted. `caller` is the number of the reader in the feed."""
        self._readers = readers
        self.caller = caller
        self._sink = sink
        self.credit = credit
        self.owner = owner
        self.acknowledge = acknowledge
        self.closed = False
        self._on_end = on_end
        self._under_way: deque[int] = deque()  # deliveries that are not durable: how many messages each took
        self.held: OrderedDict[int, None] = OrderedDict()

    def grant(self, credit: int) -> None:
        """Allow the delivery of `credit` more messages."""
        self.credit += credit
        self._readers.enter(self)

    def serve(self, core: QueueCore, pending: bool) -> bool:
        """Take as many messages as the credit allows; returns False if there is nothing to take now."""
        count = min(self.credit, BATCH)
        if self.acknowledge:
            messages = [] if pending else core.take(count, BATCH_BYTES, self.owner)
            taken = len(messages)
            for message in messages:
                self.held[message.lookup_id] = None
            self.credit -= taken
            if messages:
                self._sink(messages)
            return bool(taken)
        ordered = bool(self._under_way)
        self._under_way.append(_UNKNOWN)
        self.credit -= count
        try:
            taken = core.receive_bulk(
                count, BATCH_BYTES, self._delivered, pending, ordered, self.wanted, self.caller
            )
        except BaseException:
            if self._under_way and self._under_way[-1] == _UNKNOWN:
                self._under_way.pop()
                self.credit += count
            raise
        self.credit += count - taken
        if not taken:
            self._under_way.pop()
        elif self._under_way and self._under_way[-1] == _UNKNOWN:
            self._under_way[-1] = taken
        return bool(taken)

    def wanted(self) -> bool:
        """Whether the subscription still accepts messages."""
        return not self.closed

    def _delivered(self, messages: list[Received], status: int) -> None:
        taken = self._under_way.popleft()
        if taken == _UNKNOWN:
            taken = len(messages)  # at once: nothing had to become durable
        # Messages dropped as damaged meanwhile are not delivered and use no credit.
        returned = taken if status else taken - len(messages)
        if returned:
            self.credit += returned
            self._readers.wait(self)
        if status:
            return
        if self.closed:
            self._readers.core.requeue(messages)
        else:
            self._sink(messages)

    def ack(self, lookup_ids: list[int]) -> Completion[int]:
        """Remove delivered messages; resolved with the number of removed messages once the removal is
        durable. Skips ids that are not of delivered messages.
        """
        keys = self._held_of(lookup_ids)
        completion: Completion[int] = Completion()
        count = len(keys)

        def removed(status: int) -> None:
            if status:
                completion.fail(storage_error(status))
            else:
                completion.resolve(count)

        self._readers.core.acked(keys, self.owner, removed, self.caller)
        self._let_go(keys)
        return completion

    def release(self, lookup_ids: list[int]) -> int:
        """Return delivered messages to their places in the queue; returns how many were returned."""
        keys = self._held_of(lookup_ids)
        self._let_go(keys)
        return self._readers.core.release(keys, self.owner)

    def close(self) -> None:
        """End the subscription; messages that are not acknowledged become available again."""
        if self.closed:
            return
        self.closed = True
        self._readers.forget(self)
        if self.held:
            self.release(list(self.held))

    def end(self, error: MSMQError) -> None:
        """End the subscription because the queue was deleted, and call `on_end(error)`."""
        self.closed = True
        self._readers.forget(self)
        if self._on_end is not None:
            self._on_end(error)

    def _held_of(self, lookup_ids: list[int]) -> array[int]:
        return array("Q", dict.fromkeys(lookup_id for lookup_id in lookup_ids if lookup_id in self.held))

    def _let_go(self, keys: array[int]) -> None:
        for key in keys:
            del self.held[key]


class Readers:
    """The reads that wait for messages of one queue; `core.ready` calls `serve`.

    While `watch(True)` applies, `on_available` is called whenever messages are available that no reader has
    taken.
    """

    def __init__(self, core: QueueCore, on_available: Callable[[], None] | None = None) -> None:
        self.core = core
        self._on_available = on_available
        self._watching = False
        self._peekers: OrderedDict[ReadRequest, None] = OrderedDict()
        self._takers: OrderedDict[ReadRequest | Subscription, None] = OrderedDict()
        self._overdue: OrderedDict[ReadRequest, None] = OrderedDict()
        self._cursors = 0  # reads of cursors that wait
        self._serving = False
        self._waited: set[Readers] | None = None

    def __len__(self) -> int:
        return len(self._peekers) + len(self._takers)

    @property
    def idle(self) -> bool:
        """Whether a new read may take a message immediately: no other read waits to take one, and none is
        being served.
        """
        return not (self._takers or self._serving)

    def watch(self, watching: bool) -> None:
        """Set whether `on_available` is called when messages are available."""
        self._watching = watching
        self._note_interest()
        if watching and self.core.positions.available:
            self.core.nudge()

    def join(self, waited: set[Readers]) -> None:
        """Keep the set `waited` up to date: from now on this object is in the set whenever one of its reads
        waits to remove a message.
        """
        self._waited = waited

    def _note_interest(self) -> None:
        if self._waited is not None:
            if self._takers:
                self._waited.add(self)
            else:
                self._waited.discard(self)
        self.core.interested = bool(self._peekers or self._takers) or self._watching
        self.core.watched = self._cursors > 0

    def enter(self, reader: ReadRequest | Subscription) -> None:
        """Serve a reader now; if that is not possible, it waits behind the readers that came before it."""
        if not self._serve_alone(reader) and self.wait(reader):
            self.serve()

    def _serve_alone(self, reader: ReadRequest | Subscription) -> bool:
        """Serve a two-phase read immediately if no other read waits before it, with the same result as
        `serve`. Returns False if the reader has to wait.

        This is for remote reads, which arrive one at a time: adding each to the list of waiting reads and
        removing it again would take longer than the read itself.
        """
        if not self.idle or not isinstance(reader, ReadRequest):
            return False
        if reader.peek or reader.hold is None or reader.gate is not None or not self.core.head_in_memory():
            return False
        key = reader.candidate(self.core)
        return key is not None and reader.take(self.core, key)

    def wait(self, reader: ReadRequest | Subscription) -> bool:
        """Put a reader into the list of waiting readers, which are served when messages become available.
        Returns False, without adding it, for a subscription that accepts no messages now.

        A reader whose commit has failed is also added here: an immediate retry would keep a full disk busy.
        """
        if isinstance(reader, ReadRequest) and reader.cursor is not None:
            self._cursors += 1
        if isinstance(reader, ReadRequest) and reader.peek:
            self._peekers[reader] = None
        elif reader not in self._takers:
            if isinstance(reader, Subscription) and (reader.closed or reader.credit <= 0):
                return False
            self._takers[reader] = None
        self._note_interest()
        return True

    def forget(self, reader: ReadRequest | Subscription) -> None:
        """Remove a reader from the waiting readers, and stop its timer."""
        if isinstance(reader, ReadRequest):
            if reader.cursor is not None and self.waits(reader):
                self._cursors -= 1
            self._peekers.pop(reader, None)
            self._overdue.pop(reader, None)
            if reader.timer is not None:
                reader.timer.timers.stop(reader)
        self._takers.pop(reader, None)
        self._note_interest()

    def waits(self, request: ReadRequest) -> bool:
        """Whether a request still waits: it has neither ended nor got a message."""
        return request in (self._peekers if request.peek else self._takers)

    def time_out(self, request: ReadRequest) -> None:
        """End a waiting read whose time-out has expired (X-03)."""
        if request.candidate(self.core) is not None:
            # The message is there, only its packet is still on the disk.
            self._overdue[request] = None
        else:
            self.forget(request)
            request.completion.fail(IOTimeout())

    def serve(self, pending: bool = False) -> None:
        """Deliver available messages: first to all waiting peeks, then to the reads that remove messages, in
        the order of their arrival. With `pending`, only to reads that can take messages that the coming
        commit makes durable.
        """
        if self._serving:
            return
        self._serving = True
        try:
            if pending:
                if not self._peekers:
                    self._serve_takers(True)
            else:
                fresh = fresh_keys(self.core) if self._cursors else []
                self._serve_peekers(fresh)
                self._offer(fresh, self._takers)
                self._serve_takers(False)
        finally:
            self._serving = False
        for request in [overdue for overdue in self._overdue if overdue.candidate(self.core) is None]:
            self.forget(request)
            request.completion.fail(IOTimeout())
        if (
            self._watching
            and self._on_available is not None
            and not pending
            and self.core.positions.available
        ):
            self._on_available()

    def _offer(self, fresh: list[int], waiting: Iterable[ReadRequest | Subscription]) -> None:
        """Offer the messages that became available (`fresh`) to the waiting reads of cursors, even messages
        before the position of the cursor (DA-015).
        """
        if not fresh:
            return
        for reader in waiting:
            if isinstance(reader, ReadRequest) and reader.cursor is not None:
                reader.offer(self.core, fresh)

    def _serve_peekers(self, fresh: list[int]) -> None:
        if not self._peekers:
            return
        self._offer(fresh, self._peekers)
        core = self.core
        first = seek(core, 0)
        for request in list(self._peekers):
            key = first if request.cursor is None else request.candidate(core)
            if key is None or not request.admitted():
                continue
            self.forget(request)
            request.take(core, key)

    def _serve_takers(self, pending: bool) -> None:
        core = self.core
        while self._takers:
            reader = self._next_taker(pending)
            if reader is None:
                return
            if isinstance(reader, ReadRequest):
                reader.serve(core, pending)
                continue
            served = reader.serve(core, pending)
            waits = reader.credit > 0 and not reader.closed
            if not waits or len(self._takers) != 1 or reader not in self._takers:
                self._takers.pop(reader, None)
                if waits:
                    self._takers[reader] = None
                self._note_interest()
            if not served:
                return

    def _next_taker(self, pending: bool) -> ReadRequest | Subscription | None:
        """Returns the next read to serve, in the order of arrival; None if none can be served."""
        head = self.core.head_in_memory(pending)
        if not head and not self._cursors:
            return None
        for reader in self._takers:
            if isinstance(reader, Subscription):
                if head:
                    return reader
            elif pending and (reader.cursor is not None or reader.hold is not None):
                return None  # it accepts only durable messages, and later readers do not overtake it
            elif reader.cursor is not None:
                if reader.candidate(self.core) is not None and reader.admitted():
                    return reader
            elif head and reader.admitted():
                return reader
        return None
