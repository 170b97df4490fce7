"""A queue manager in plain lists, written from the rules of MS-MQDMPR and its state machines ST-1 and ST-2.

Nothing here is fast or durable. `settle` is the moment at which the store has everything: what was sent is
then there, what was received is then gone. Between two such moments both stand in their lists, out of reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field

PENDING, FREE, LOCKED = "pending", "free", "locked"
STORE = "store"  # who locks a message whose removal is not durable yet
LAST = (8, 0)

RECEIVED, PURGED, TIMEOUT = 0x4000, 0xC001, 0xC002
ARRIVED = 0x0002
WISH = {ARRIVED: 1, RECEIVED: 2, PURGED: 8, TIMEOUT: 8}  # AcknowledgementsRequested, M-27
DEADLETTER, JOURNAL = 1, 2  # of the sender's wishes for copies

Seen = tuple[tuple[int, int], int | None, int, int]  # what a reader gets: ident, key, aborts, moves
Ident = tuple[int, int]  # a message of the sender: (0, its number); an acknowledgment: (class, message id)


class Refused(Exception):
    """The name of the error that a caller gets."""


@dataclass(eq=False)
class Message:
    ident: Ident
    priority: int
    serial: int
    recoverable: bool
    transactional: bool
    size: int
    message_id: int = 0
    deadline: int | None = None
    acknowledge: int = 0
    journal: int = 0
    key: int | None = None
    state: str = FREE
    owner: object = None
    purged: bool = False
    overdue: bool = False
    leaving: bool = False
    moving: Queue | None = None
    aborts: int = 0
    moves: int = 0
    reason: int | None = None

    @property
    def seen(self) -> Seen:
        return (self.ident, self.key, self.aborts, self.moves)

    @property
    def place(self) -> tuple[int, int]:
        """DM-100: higher priorities first, then as they came."""
        return (7 - self.priority, self.serial)


@dataclass(eq=False)
class Queue:
    name: str
    transactional: bool = False
    journaling: bool = False
    quota: int | None = None
    poison_after: int = 0
    parent: Queue | None = None
    journal: Queue | None = None
    timeless: bool = False
    messages: list[Message] = field(default_factory=list)
    waiters: list[Waiter] = field(default_factory=list)
    reserved: int = 0

    @property
    def family(self) -> Queue:
        return self.parent or self

    def sorted(self) -> list[Message]:
        self.messages.sort(key=lambda message: message.place)
        return self.messages

    def free(self) -> Iterator[Message]:
        return (message for message in self.sorted() if message.state == FREE)

    def find(self, key: int) -> Message | None:
        return next((message for message in self.messages if message.key == key), None)


@dataclass(eq=False)
class Waiter:
    """A read that waits. `result` is what came of it: a message or the name of an error."""

    peek: bool
    owner: object = None
    due: int | None = None  # milliseconds
    result: Seen | str | None = None


@dataclass(eq=False)
class Transaction:
    number: int
    state: str = "active"
    operations: list[tuple[str, Queue, Message, Queue | None]] = field(default_factory=list)


@dataclass(eq=False)
class Cursor:
    """ST-2. It stands on a place, not on a message (DM-252)."""

    key: int = 0
    read: bool = False


class Model:
    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.transactions: dict[int, Transaction] = {}
        self.cursors: dict[Queue, list[Cursor]] = {}
        self.now = 0  # Unix seconds
        self.serial = 0
        self.news: set[Queue] = set()  # queues with messages whose keys are not known

    def add(self, queue: Queue) -> Queue:
        self.queues[queue.name] = queue
        return queue

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    # ---- accounts

    def used(self, queue: Queue) -> int:
        """X-33, X-34: a queue and its subqueues, and reservations; a message on the move counts once."""
        family = [each for each in self.queues.values() if each.family is queue.family]
        return sum(each.reserved + sum(m.size for m in each.messages) for each in family)

    def room(self, queue: Queue, size: int) -> bool:
        limit = queue.family.quota
        return limit is None or self.used(queue) + size <= limit

    # ---- sending

    def send(self, queue: Queue, message: Message) -> Message:
        if queue.transactional != message.transactional:
            raise Refused("TransactionUsage")
        if not self.room(queue, message.size):
            raise Refused("InsufficientResources")
        self._arrive(queue, message)
        return message

    def _arrive(self, queue: Queue, message: Message) -> None:
        message.serial = self.next_serial()
        message.state = PENDING if message.recoverable else FREE
        queue.messages.append(message)
        self.news.add(queue)
        if message.journal & JOURNAL:
            self.copy(self.queues["journal"], message, None)
        self.acknowledge(message, ARRIVED)

    def acknowledge(self, message: Message, reason: int) -> None:
        """X-67: as reliable as the message."""
        if message.acknowledge & WISH[reason]:
            ident = (reason, message.message_id)
            self._derive("admin", Message(ident, 3, 0, message.recoverable, False, 0))

    def copy(self, queue: Queue, message: Message, reason: int | None) -> None:
        """X-60 … X-64; it keeps what the message has (X-66)."""
        if not self.room(queue, message.size):
            return
        made = Message(
            message.ident,
            message.priority,
            0,
            message.recoverable,
            message.transactional,
            message.size,
            message.message_id,
            aborts=message.aborts,
            moves=message.moves,
            reason=reason,
        )
        self._derive(queue.name, made)

    def _derive(self, name: str, message: Message) -> None:
        message.serial = self.next_serial()
        message.state = PENDING if message.recoverable else FREE
        self.queues[name].messages.append(message)
        self.news.add(self.queues[name])

    # ---- what follows a removal

    def consumed(self, queue: Queue, message: Message) -> None:
        journal = queue.family.journal
        if queue.family.journaling and journal is not None:
            self.copy(journal, message, None)
        if not queue.timeless:
            self.acknowledge(message, RECEIVED)

    def lost(self, queue: Queue, message: Message, reason: int) -> None:
        queue.messages.remove(message)
        if queue.timeless:
            return
        if message.journal & DEADLETTER:
            name = "deadxact" if message.transactional else "deadletter"
            self.copy(self.queues[name], message, reason)
        self.acknowledge(message, reason)

    def take(self, queue: Queue, message: Message, owner: object) -> None:
        """A message was found for a reader: locked for its owner, or on its way out."""
        if isinstance(owner, Transaction):
            owner.operations.append(("receive", queue, message, None))
        if owner is not None:
            message.state, message.owner = LOCKED, owner
            return
        self.consumed(queue, message)
        if message.recoverable:
            message.state, message.owner, message.leaving = LOCKED, STORE, True
        else:
            queue.messages.remove(message)

    def unlock(self, queue: Queue, message: Message, *, abort: bool = False) -> None:
        """ST-1, from Locked."""
        message.state, message.owner = FREE, None
        if message.purged:
            self.lost(queue, message, PURGED)
            return
        message.aborts += abort
        if message.overdue:
            self.lost(queue, message, TIMEOUT)
        elif abort and queue.poison_after and message.aborts >= queue.poison_after:
            self._move(message, self.queues[queue.name + ";poison"])

    # ---- reading

    def receive(self, queue: Queue, *, peek: bool = False, owner: object = None) -> Message:
        message = next(queue.free(), None)
        if message is None:
            raise Refused("IOTimeout")
        if not peek:
            self.take(queue, message, owner)
        return message

    def wait(self, queue: Queue, waiter: Waiter) -> Waiter:
        queue.waiters.append(waiter)
        return waiter

    def end(self, queue: Queue, waiter: Waiter, result: Message | str) -> None:
        queue.waiters.remove(waiter)
        waiter.result = result if isinstance(result, str) else result.seen

    def serve(self) -> None:
        """DA-012 … DA-016: all who peek, then those who take, in their order."""
        for queue in self.queues.values():
            if not queue.waiters:
                continue
            for waiter in [waiter for waiter in queue.waiters if waiter.peek]:
                first = next(queue.free(), None)
                if first is not None:
                    self.end(queue, waiter, first)
            for waiter in [waiter for waiter in queue.waiters if not waiter.peek]:
                first = next(queue.free(), None)
                if first is not None:
                    self.end(queue, waiter, first)
                    self.take(queue, first, waiter.owner)

    def lookup(self, queue: Queue, key: int, operation: str, *, peek: bool, owner: object = None) -> Message:
        """DM-127 … DM-131, DM-225 … DM-230."""
        free = list(queue.free())
        at = queue.find(key)
        if operation in ("FIRST", "LAST"):
            found = free[:1] if operation == "FIRST" else free[-1:]
        else:
            if (at is None or at.state == PENDING) and not self._stands(queue, key):
                raise Refused("MessageNotFound")
            if operation == "NEXT":
                found = [m for m in free if m.key is not None and m.key > key][:1]
            elif operation == "PREVIOUS":
                found = [m for m in free if m.key is not None and m.key < key][-1:]
            elif at is None or at.state == PENDING:
                raise Refused("MessageAlreadyReceived")
            elif at.state == LOCKED:
                raise Refused("TransactionUsage" if peek else "MessageLocked")
            else:
                found = [at]
        if not found:
            raise Refused("MessageNotFound")
        if not peek:
            self.take(queue, found[0], owner)
        return found[0]

    def _stands(self, queue: Queue, key: int) -> bool:
        return any(cursor.key == key for cursor in self.cursors.get(queue, []))

    # ---- cursors

    def cursor_peek(self, queue: Queue, cursor: Cursor) -> Message:
        if cursor.read:
            return self._under(queue, cursor)
        return self._onwards(queue, cursor)

    def cursor_next(self, queue: Queue, cursor: Cursor) -> Message:
        if not cursor.read:
            raise Refused("IllegalCursorAction")
        return self._onwards(queue, cursor)

    def cursor_receive(self, queue: Queue, cursor: Cursor, owner: object = None) -> Message:
        if cursor.read:
            message = self._under(queue, cursor)
            cursor.read = False
        else:
            found = self._behind(queue, cursor)
            if found is None:
                raise Refused("MessageNotFound")
            message = found
            cursor.key = message.key or 0
        self.take(queue, message, owner)
        return message

    def _under(self, queue: Queue, cursor: Cursor) -> Message:
        message = queue.find(cursor.key)
        if message is None or message.state != FREE:
            raise Refused("MessageAlreadyReceived")
        return message

    def _behind(self, queue: Queue, cursor: Cursor) -> Message | None:
        return next((m for m in queue.free() if m.key is not None and m.key > cursor.key), None)

    def _onwards(self, queue: Queue, cursor: Cursor) -> Message:
        message = self._behind(queue, cursor)
        cursor.read = message is not None
        if message is None:
            raise Refused("IOTimeout")
        cursor.key = message.key or 0
        return message

    # ---- two-phase reads

    def finish(self, queue: Queue, key: int, owner: object, *, delete: bool) -> None:
        """Dequeue Message End, DM-121 … DM-125."""
        message = queue.find(key)
        if message is None or message.state != LOCKED or message.owner is not owner:
            raise Refused("TransactionSequence")
        if not delete or message.purged:
            self.unlock(queue, message)
        else:
            self.consumed(queue, message)
            queue.messages.remove(message)

    # ---- moving

    def move(self, queue: Queue, key: int, target: Queue, tx: Transaction | None = None) -> None:
        if queue is target or queue.family is not target.family:
            raise Refused("InvalidParameter")
        message = queue.find(key)
        if message is None or message.state == PENDING:
            raise Refused("MessageNotFound")
        if message.state == LOCKED:
            raise Refused("MessageLocked")
        if tx is None:
            self._move(message, target, queue)
        else:
            message.state, message.owner = LOCKED, tx
            tx.operations.append(("move", queue, message, target))

    def _move(self, message: Message, target: Queue, source: Queue | None = None) -> None:
        if message.recoverable:
            message.state, message.owner, message.moving, message.purged = LOCKED, STORE, target, False
            return
        assert source is not None
        source.messages.remove(message)
        self._moved(message, target)

    def _moved(self, message: Message, target: Queue) -> None:
        message.state, message.owner, message.moving = FREE, None, None
        message.aborts, message.moves = 0, message.moves + 1
        target.messages.append(message)
        if message.purged:
            self.lost(target, message, PURGED)
        elif message.overdue:
            self.lost(target, message, TIMEOUT)

    # ---- transactions

    def check(self, tx: Transaction) -> None:
        if tx.state != "active":
            raise Refused("TransactionSequence")

    def tx_send(self, tx: Transaction, queue: Queue, message: Message) -> None:
        self.check(tx)
        if not self.room(queue, message.size):
            raise Refused("InsufficientResources")
        queue.reserved += message.size
        tx.operations.append(("send", queue, message, None))

    def commit(self, tx: Transaction) -> None:
        self._ending(tx)
        tx.state = "gone"
        for kind, queue, message, target in tx.operations:
            if kind == "send":
                queue.reserved -= message.size
                self._arrive(queue, message)
            elif kind == "receive":
                self.consumed(queue, message)
                message.owner, message.leaving = STORE, True
            elif target is not None:
                self._move(message, target)

    def abort(self, tx: Transaction) -> None:
        self._ending(tx)
        prepared, tx.state = tx.state == "prepared", "gone"
        for kind, queue, message, _ in tx.operations:
            if kind == "send":
                queue.reserved -= message.size
            else:
                message.owner = None
                self.unlock(queue, message, abort=True)
        assert not prepared or tx.state == "gone"

    def prepare(self, tx: Transaction) -> None:
        self.check(tx)
        self._ending(tx)
        tx.state = "prepared"

    def _ending(self, tx: Transaction) -> None:
        if tx.state not in ("active", "prepared"):
            raise Refused("TransactionSequence")
        for queue in self.queues.values():
            for waiter in [waiter for waiter in queue.waiters if waiter.owner is tx]:
                self.end(queue, waiter, "OperationCancelled")

    # ---- whole queues and time

    def purge(self, queue: Queue) -> int:
        """DM-092 … DM-094. What was sent and is not durable yet goes when it is."""
        gone = list(queue.free())
        for message in gone:
            self.lost(queue, message, PURGED)
        for message in queue.messages:
            if message.state == PENDING or not (message.leaving or message.moving):
                message.purged = True
        for other in self.queues.values():
            for message in other.messages:
                message.purged |= message.moving is queue
        return len(gone)

    def pass_time(self, seconds: int) -> None:
        """Everything is settled. X-04, DM-213, X-03."""
        self.now += seconds
        self.expire()

    def expire(self) -> None:
        for queue in self.queues.values():
            for message in [m for m in queue.sorted() if m.deadline is not None and m.deadline <= self.now]:
                if queue.timeless:
                    continue
                if message.state == FREE:
                    self.lost(queue, message, TIMEOUT)
                else:
                    message.overdue = True

    def time_out(self, milliseconds: int) -> None:
        for queue in self.queues.values():
            for waiter in list(queue.waiters):
                if waiter.due is not None and waiter.due <= milliseconds:
                    self.end(queue, waiter, "IOTimeout")

    # ---- durability

    def settle(self) -> None:
        """The store has everything, also what follows from it."""
        self.serve()
        while self._commit():
            self.serve()

    def _commit(self) -> bool:
        changed = False
        for queue in list(self.queues.values()):
            for message in list(queue.messages):
                if message.leaving:
                    queue.messages.remove(message)
                elif message.moving is not None:
                    target = message.moving
                    queue.messages.remove(message)
                    self._moved(message, target)
                elif message.state == PENDING:
                    message.state = FREE
                    if message.purged:
                        self.lost(queue, message, PURGED)
                    elif message.deadline is not None and message.deadline <= self.now and not queue.timeless:
                        self.lost(queue, message, TIMEOUT)
                else:
                    continue
                changed = True
        return changed

    def snapshot(self) -> Callable[[], None]:
        """Everything is settled; what this returns puts the model back to what the store has now."""
        kept = {queue: [(m, copy(m.__dict__)) for m in queue.messages] for queue in self.queues.values()}
        prepared = [(tx, list(tx.operations)) for tx in self.transactions.values() if tx.state == "prepared"]

        def restore() -> None:
            for queue, messages in kept.items():
                for message, values in messages:
                    message.__dict__.update(values)
                queue.messages = [message for message, _ in messages]
            for tx in self.transactions.values():
                tx.state = "gone"
            for tx, operations in prepared:
                tx.state, tx.operations = "prepared", operations
            self.news.clear()

        return restore

    def restart(self) -> None:
        """DM-015, DM-018: what is not recoverable is gone, only prepared transactions hold anything."""
        self.transactions = {n: tx for n, tx in self.transactions.items() if tx.state == "prepared"}
        held = {id(m) for tx in self.transactions.values() for _, _, m, _ in tx.operations}
        self.cursors.clear()
        for queue in self.queues.values():
            queue.waiters.clear()
            queue.messages = [message for message in queue.messages if message.recoverable]
            queue.reserved = sum(
                message.size
                for tx in self.transactions.values()
                for kind, where, message, _ in tx.operations
                if kind == "send" and where is queue
            )
        for queue in self.queues.values():
            for message in list(queue.messages):
                if message.state == LOCKED and id(message) not in held:
                    self.unlock(queue, message)
        self.expire()
