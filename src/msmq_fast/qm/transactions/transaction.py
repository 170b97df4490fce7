"""Transactions (MS-MQDMPR 3.1.1.14, 3.1.4.3 … 3.1.4.5, ST-3): operations on any number of queues that take
effect together or not at all.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Protocol
from uuid import UUID

import msgpack

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast._native.transaction import Transaction as Operations
from msmq_fast._native.transactionbase import ROW_PREFIX
from msmq_fast._native.transactionrecovery import drop_staged, held
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MSMQError,
    OperationCancelled,
    TransactionSequence,
)
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.services import Services
from msmq_fast.store.completion import Completion
from msmq_fast.store.records import cold
from msmq_fast.store.schema import Table

_log = logging.getLogger(__name__)

SLICE = 0.01  # seconds for which a long commit may block the loop
STEP = 64  # operations between two looks at the clock
PREPARED_LIMIT = 4096  # of prepared transactions: they outlive their programs and never time out
NUMBERS = 1 << 20  # TransactionHeader.TransactionID has 20 bits


class State(IntEnum):
    """The states of a transaction (ST-3, TX-04)."""

    ACTIVE = 1
    PREPARED = 2
    COMMITTING = 3
    ABORTING = 4
    GONE = 5


class Reader(Protocol):
    """A read that is pending inside a transaction."""

    def cancel(self, error: MSMQError | None = None) -> object:
        """Cancel the read, because the transaction has ended."""


class Transaction:
    """One transaction, created by Transactions.begin. It is also the `Hold` that keeps the messages locked
    that are received in it.

    `user` is the owner's name for operators. `on_end` is called when the transaction has ended, `on_ahead`
    when sent messages that were written to the store before the commit are durable or have failed. After
    `leave` neither is called. Sends, receives and moves go through OpenQueue; they raise TRANSACTION_SEQUENCE
    once the transaction ends.
    """

    def __init__(
        self,
        owner: Transactions,
        identifier: UUID,
        number: int,
        user: str,
        began: int,
        on_end: Callable[[Transaction], object] | None = None,
        on_ahead: Callable[[], object] | None = None,
    ) -> None:
        self.identifier = identifier
        self.number = number
        self.user = user
        self.began = began  # Unix seconds
        self.state = State.ACTIVE
        self.operations = Operations(
            owner.ledger, identifier.bytes, number, self._written_ahead, self._slices_begin
        )
        self.readers: set[Reader] = set()
        self._on_end = on_end
        self._on_ahead = on_ahead
        self._all = owner

    # ---- a Hold

    @property
    def owner(self) -> int:
        """The owner number with which messages are locked for this transaction."""
        return self.operations.owner

    def locked(self, core: QueueCore, key: int) -> None:
        """Add a message that was locked for this transaction; the commit removes the message (DM-115,
        DM-130).
        """
        self.operations.lock(core, key)
        self._all.touched(self)

    def locked_many(self, core: QueueCore, messages: list[Received]) -> None:
        """Like `locked`, for messages that were taken together."""
        self.operations.lock_many(core, messages)
        self._all.touched(self)

    def unlocked(self, core: QueueCore, key: int) -> None:
        """Return a locked message to its queue, because its read was cancelled before the message was
        delivered.
        """
        if self.state is State.ACTIVE:
            self.operations.unlock(core, key)

    # ---- operations

    def check(self) -> None:
        """Raises TRANSACTION_SEQUENCE unless the transaction accepts operations."""
        if self.state is not State.ACTIVE:
            raise TransactionSequence(f"the transaction is {self.state.name.lower()}")
        self._all.touched(self)

    def header(self, core: QueueCore) -> TransactionHeader:
        """Returns the TransactionHeader of the next message that is sent to a queue (M-52, M-54); the commit
        marks the last message (M-55).
        """
        return TransactionHeader(0, 0, 0, transaction_id=self.number, first=self.operations.first_for(core))

    def send(self, core: QueueCore, packet: bytes, dead_letter: int = 0) -> int:
        """Send a packet with the commit; returns an EnqueueResult (DM-103).

        The message is not visible before the commit, but uses quota immediately (X-33).
        """
        try:
            return self.operations.enqueue(core, packet, dead_letter)
        except OverflowError as error:
            raise InsufficientResources(str(error)) from None

    # ---- the end

    def prepare(self) -> Completion[None]:
        """Prepare the transaction for its commit, as the first phase of a two-phase commit (DM-022, DM-025);
        resolved once it is durably prepared (DU-06).

        If that fails, the transaction is active again. A prepared transaction accepts no more operations and
        waits for its commit or abort, even across restarts. A transaction need not be prepared: its commit
        then does both phases (DM-031). Raises TRANSACTION_SEQUENCE, and INSUFFICIENT_RESOURCES if
        PREPARED_LIMIT transactions are prepared.
        """
        self.check()
        self._all.check_prepared()
        self._end_readers()
        done: Completion[None] = Completion()
        head = cold(
            {
                "number": self.number,
                "user": self.user,
                "began": self.began,
                "operations": len(self.operations),
            }
        )

        def kept(status: int) -> None:
            if status:
                undecided(storage_error(status))
            else:
                done.resolve(None)

        def undecided(error: MSMQError) -> None:
            self.state = State.ACTIVE
            self._all.touched(self)  # its owner may have ended without aborting it
            done.fail(error)

        self.state = State.PREPARED
        self._all.rest(self)
        try:
            self.operations.prepare(head, kept)
        except Exception as error:
            undecided(_error(error))
        return done

    def commit(self) -> Completion[None]:
        """Commit; resolved when all operations are durable (DU-05).

        If that fails, the transaction is aborted; but a prepared transaction stays prepared.
        """
        before = self._ending(State.COMMITTING)
        done: Completion[None] = Completion()

        def ended(status: int) -> None:
            if status and before is State.PREPARED:
                self.state = before
                done.fail(storage_error(status))
                return
            self._gone()
            if status:
                done.fail(storage_error(status))
            else:
                done.resolve(None)

        try:
            self.operations.commit(ended)
        except Exception as error:
            self.state = before
            done.fail(_error(error))
            if before is State.ACTIVE:
                self.abort()
        return done

    def abort(self) -> Completion[None]:
        """Discard sent messages and return received ones (DM-032 … DM-036); resolved when durable."""
        before = self._ending(State.ABORTING)
        done: Completion[None] = Completion()

        def ended(status: int) -> None:
            if status and before is State.PREPARED:
                self.state = before
                done.fail(storage_error(status))
                return
            # What was written ahead and could not be removed is dropped by the next start.
            self._gone()
            done.resolve(None)

        try:
            self.operations.abort(ended)
        except Exception as error:
            self.state = before
            done.fail(_error(error))
        return done

    def _ending(self, state: State) -> State:
        """Enter the state in which the transaction ends; returns the previous state.

        Raises TRANSACTION_SEQUENCE if the transaction is already ending or has ended.
        """
        if self.state not in (State.ACTIVE, State.PREPARED):
            raise TransactionSequence(f"the transaction is {self.state.name.lower()}")
        self._end_readers()
        before, self.state = self.state, state
        return before

    def leave(self) -> None:
        """Call neither `on_end` nor `on_ahead` any more, because the owner's connection has ended; abort the
        transaction unless it is prepared (ST-3).
        """
        self._on_end = self._on_ahead = None
        if self.state is State.ACTIVE:
            self.abort()

    def _end_readers(self) -> None:
        for reader in list(self.readers):
            reader.cancel(OperationCancelled("the transaction has ended"))
        self.readers.clear()

    def _gone(self) -> None:
        self.state = State.GONE
        self._all.forget(self)
        if self._on_end is not None:
            self._on_end(self)

    def _written_ahead(self) -> None:
        if self._on_ahead is not None:
            self._on_ahead()

    def _slices_begin(self) -> None:
        self._all.slicing.append(self)


def _error(error: Exception) -> MSMQError:
    if isinstance(error, MSMQError):
        return error
    if isinstance(error, OverflowError):
        return InsufficientResources(str(error))
    return MessageStorageFailed(str(error))


class Transactions:
    """All transactions of a queue manager: TransactionCollection (QM-42). `idle_limit`: seconds without
    activity after which an active transaction is aborted.
    """

    def __init__(self, services: Services, idle_limit: float) -> None:
        self._services = services
        self.ledger = services.ledger
        self._idle_limit = idle_limit
        self._all: dict[UUID, Transaction] = {}
        self._idle: OrderedDict[Transaction, float] = OrderedDict()  # time of the latest activity
        self.slicing: deque[Transaction] = deque()  # commits of very many operations, under way
        self._number = 0

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Transaction]:
        return iter(list(self._all.values()))

    # ---- life

    def take_numbers(self, count: int = 1) -> int:
        """Take `count` consecutive TransactionIdentifiers of 20 bits (M-52); returns the first. After the
        greatest number they start over at 1.
        """
        if not self._number:
            self._number = int.from_bytes(self._services.random_bytes(4)) % (NUMBERS // 2)
        if self._number + count >= NUMBERS:
            self._number = 0
        self._number += count
        return self._number - count + 1

    def begin(
        self,
        user: str = "",
        identifier: UUID | None = None,
        *,
        on_end: Callable[[Transaction], object] | None = None,
        on_ahead: Callable[[], object] | None = None,
    ) -> Transaction:
        """Begin a transaction (DM-095); see Transaction.

        Raises TRANSACTION_SEQUENCE if the identifier is already in use.
        """
        if identifier is None:
            identifier = self._services.new_guid()
        elif identifier in self._all:
            raise TransactionSequence(f"a transaction {identifier} already exists")
        began = self.ledger.now_s
        transaction = Transaction(self, identifier, self.take_numbers(), user, began, on_end, on_ahead)
        self._all[identifier] = transaction
        self.touched(transaction)
        return transaction

    def find(self, identifier: UUID) -> Transaction:
        """Returns a transaction. Raises TRANSACTION_SEQUENCE if it does not exist."""
        transaction = self._all.get(identifier)
        if transaction is None:
            raise TransactionSequence(f"there is no transaction {identifier}")
        return transaction

    def check_prepared(self) -> None:
        """Raises INSUFFICIENT_RESOURCES if no more transactions can be prepared until some have ended."""
        if sum(item.state is State.PREPARED for item in self._all.values()) >= PREPARED_LIMIT:
            raise InsufficientResources(f"{PREPARED_LIMIT} transactions are prepared; that is the limit")

    def touched(self, transaction: Transaction) -> None:
        """Note activity in an active transaction: its idle time starts again."""
        self._idle[transaction] = self._services.monotonic()
        self._idle.move_to_end(transaction)

    def rest(self, transaction: Transaction) -> None:
        """Exempt a transaction from the idle limit from now on."""
        self._idle.pop(transaction, None)

    def forget(self, transaction: Transaction) -> None:
        """Remove a transaction that has ended."""
        self._all.pop(transaction.identifier, None)
        self.rest(transaction)

    # ---- time

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        if self.slicing:
            return self._services.monotonic()
        first = next(iter(self._idle.values()), None)
        return None if first is None else first + self._idle_limit

    def expire(self, now: float) -> None:
        """Continue commits that are done in several steps, and abort transactions that were idle for too
        long.
        """
        self._slice(now + SLICE)
        while self._idle:
            transaction, since = next(iter(self._idle.items()))
            if since + self._idle_limit > now:
                return
            self.rest(transaction)
            if transaction.state is State.ACTIVE:
                _log.warning(
                    "the transaction %s of %s was idle for %g s and is aborted",
                    transaction.identifier,
                    transaction.user or "an unknown user",
                    self._idle_limit,
                )
                try:
                    transaction.abort()
                except Exception as error:
                    self._services.faults.note("aborting an idle transaction", error)

    def _slice(self, until: float = math.inf) -> None:
        while self.slicing:
            try:
                more = self.slicing[0].operations.step(STEP)
            except Exception as error:
                self._services.faults.note("a long commit", error)
                more = False
            if not more:
                self.slicing.popleft()
            elif self._services.monotonic() >= until:
                return

    def stop(self) -> None:
        """Abort the active transactions; prepared ones wait for the next start."""
        self._slice()
        for transaction in list(self._all.values()):
            if transaction.state is State.ACTIVE:
                try:
                    transaction.abort()
                except Exception as error:
                    self._services.faults.note("aborting a transaction at the end", error)

    # ---- recovery

    def load(self) -> Recovered:
        """Read the stored rows of transactions."""
        recovered = Recovered()
        for key, value in self._services.store.scan(Table.META, ROW_PREFIX, ROW_PREFIX[:-1] + b"\x01"):
            recovered.add(key, value)
        return recovered

    def recover(self, recovered: Recovered) -> None:
        """Restore the prepared transactions and their operations; remove the stored rows of all others
        (REC-05, REC-06, DM-015, DM-018). The removals belong to the current batch.
        """
        for identifier, rows in recovered.rows.items():
            head = rows.pop(0, None)
            if head is None:
                for number, row in rows.items():
                    drop_staged(self.ledger, ROW_PREFIX + identifier + number.to_bytes(4, "big"), row)
                continue
            try:
                self._restore(UUID(bytes=identifier), msgpack.unpackb(head[1:]), rows)
            except (ValueError, KeyError, TypeError, msgpack.exceptions.UnpackException) as error:
                self._services.report_corrupt(
                    "transaction", f"the record of transaction {UUID(bytes=identifier)} is damaged: {error!r}"
                )

    def _restore(self, identifier: UUID, head: dict[str, object], rows: dict[int, bytes]) -> None:
        transaction = Transaction(
            self, identifier, int(str(head["number"])), str(head["user"]), int(str(head["began"]))
        )
        transaction.operations.restore(rows, self.ledger.core)
        transaction.state = State.PREPARED
        self._all[identifier] = transaction


class Recovered:
    """The stored rows of transactions, by transaction identifier and row number; row 0 exists only if the
    transaction is prepared.
    """

    def __init__(self) -> None:
        self.rows: dict[bytes, dict[int, bytes]] = {}

    def add(self, key: bytes, value: bytes) -> None:
        """Add a row of META whose key begins with ROW_PREFIX."""
        at = len(ROW_PREFIX)
        if len(key) == at + 20:
            self.rows.setdefault(key[at : at + 16], {})[int.from_bytes(key[at + 16 :])] = value

    @property
    def held(self) -> frozenset[tuple[int, int]]:
        """(queue ordinal, lookup id) of each message that a prepared transaction has locked (REC-07)."""
        return frozenset(
            place
            for rows in self.rows.values()
            if 0 in rows
            for number, row in rows.items()
            if number
            for place in held(row)
        )
