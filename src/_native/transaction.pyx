# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One transaction: its operations in order (MS-MQDMPR 3.1.1.13), and commit, abort, prepare of all of them as one unit.

A sent message is in no queue before the commit; only its quota is reserved (X-33). A received message stays locked in its place. When the
sent packets exceed `limit_bytes`, they are written to the store ahead of the commit, under content ids to which no position refers; a
restart deletes them unless the transaction was prepared. Rows of the META table, whose keys begin with ROW_PREFIX and the identifier, list
the packets that were written ahead and, once the transaction is prepared, its operations.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.errno cimport ENOSPC
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memset
from msmq_fast._native.batch cimport STATUS_OK, Writer
from msmq_fast._native.framing cimport UserMessage, parse_user_message
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport ENQUEUED
from msmq_fast._native.positions cimport FLAG_TRANSACTIONAL, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport Received, describe
from msmq_fast._native.transactionahead cimport ahead_written, delete_ahead, mark_broken, mark_last, write_ahead
from msmq_fast._native.transactionbase cimport (
    LOCKED_BYTES,
    OPERATION_DEQUEUE,
    OPERATION_ENQUEUE,
    OPERATION_MOVE,
    OPERATION_REJECT,
    TOKEN_ABORTED,
    TOKEN_AHEAD,
    TOKEN_BITS,
    TOKEN_MASK,
    TOKEN_PREPARED,
    Operation,
    TransactionBase,
)
from msmq_fast._native.transactionend cimport commit_now, finish, next_slice, prepare_now, put_counts, release_all
from msmq_fast._native.transactionrecovery cimport restore_operations

from array import array

from msmq_fast._native.moving import lock_for_move
from msmq_fast._native.transactionbase import TransactionBroken

LIMIT_BYTES = 1 << 20


cdef class Transaction(TransactionBase):
    """``Transaction(ledger, identifier, number)``: a transaction, active at once, ended when `commit` or `abort` has completed.

    `on_ahead` is called when packets that were written ahead are durable or could not be stored; `on_slices` when a commit in slices
    begins, for which the caller must call `step`.
    """

    def __init__(
        self, Ledger ledger not None, bytes identifier not None, uint32_t number, on_ahead=None, on_slices=None,
    ):
        if len(identifier) != 16 or number >> 20:
            raise ValueError("the identifier of a transaction must have 16 bytes, its number at most 20 bits")
        self.ledger = ledger
        self.identifier = identifier
        self.number = number
        self.owner = ledger.new_owner()
        self.limit_bytes = LIMIT_BYTES
        self._on_ahead = on_ahead
        self._on_slices = on_slices
        self._tails = {}

    def __len__(self) -> int:
        return self._count

    @property
    def busy(self) -> bool:
        """Whether a commit or prepare of the transaction is in progress."""
        return self._deferred is not None or self._sink is not None

    def first_for(self, QueueCore core not None) -> bool:
        """Whether the next message that is sent to queue `core` is the first one of this transaction to that queue."""
        return core not in self._tails

    def enqueue(self, QueueCore core not None, bytes packet not None, uint32_t dead_letter=0) -> int:
        """Adds a packet that the commit will send, and reserves its quota. Returns 0, or the EnqueueResult with which the packet is
        rejected.

        The packet must have a TransactionHeader with the number of this transaction. `dead_letter` is the ordinal of the dead-letter queue
        that the application chose, or 0. Raises ValueError for a packet that is malformed or does not have this header.
        """
        cdef UserMessage m
        cdef Slot slot
        cdef Operation* operation
        cdef uint64_t size = PyBytes_GET_SIZE(packet)
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef int refused
        if parse_user_message(<const uint8_t*>data, size, &m) or not m.transaction_offset:
            raise ValueError("the packet has no TransactionHeader of this transaction")
        operation = self._add(OPERATION_ENQUEUE, core)
        refused = core.reserve(&m, size)
        if refused:
            self._count -= 1
            Py_DECREF(core)
            return refused
        memset(&slot, 0, sizeof(slot))
        slot.flags = FLAG_TRANSACTIONAL
        slot.key = <uint64_t>7 << 56
        slot.size = <uint32_t>size
        slot.dead_letter = dead_letter
        describe(&operation.record, &slot, &m, data)
        Py_INCREF(packet)
        operation.packet = <PyObject*>packet
        operation.reserved = True
        self.enqueued += 1
        self.held_bytes += size
        self._tails[core] = (self._count - 1, packet)
        if self.held_bytes - self.ahead_bytes > self.limit_bytes and not self.broken:
            write_ahead(self)
        return <int>ENQUEUED  # without the class of the enumeration

    cpdef int lock(self, QueueCore core, uint64_t key) except -1:
        """Adds a message that is locked under `self.owner`, and that the commit will receive (reason AckReceive)."""
        cdef Operation* operation = self._add(OPERATION_DEQUEUE, core)
        cdef Slot* slot = core.positions.find(key)
        operation.key = key
        self.dequeued += 1
        if slot != NULL:
            self.locked_bytes += slot.size
        if self.locked_bytes > LOCKED_BYTES and self._count > 1:
            # The previous message has been handed out; an abort or a journal reads it again.
            operation -= 1
            if operation.kind == OPERATION_DEQUEUE and operation.core != NULL:
                (<QueueCore>operation.core).shed_body(operation.key)
        return 0

    def lock_many(self, QueueCore core not None, list messages not None) -> None:
        """Calls `lock` for each of these messages (list of Received)."""
        cdef Received received
        for received in messages:
            self.lock(core, received.lookup_id)

    def unlock(self, QueueCore core not None, uint64_t key) -> bool:
        """Takes back a `lock`: makes a message that was not handed out to the application available again. Returns False if this
        transaction has not locked it.
        """
        cdef Operation* operation = self._received_as(core, key)
        if operation == NULL:
            return False
        Py_DECREF(core)
        operation.core = NULL
        self.dequeued -= 1
        return bool(core.release(array("Q", (key,)), self.owner))

    def reject(self, QueueCore core not None, uint64_t key) -> bool:
        """Rejects a message that the application has received: the commit removes it with the class NackReceiveRejected.

        Returns False if this transaction has not received the message, or if the message was purged meanwhile.
        """
        cdef Operation* operation = self._received_as(core, key)
        if operation == NULL or self._locked(core, key) == NULL:
            return False
        operation.kind = OPERATION_REJECT
        return True

    cdef Operation* _received_as(self, QueueCore core, uint64_t key) noexcept:
        """Returns the operation with which this transaction has received the message `key`, or NULL."""
        cdef Operation* operation
        cdef size_t index = self._count
        while index:
            index -= 1
            operation = &self._operations[index]
            if operation.key == key and operation.core == <PyObject*>core and (
                operation.kind == OPERATION_DEQUEUE or operation.kind == OPERATION_REJECT
            ):
                return operation
        return NULL

    def move(self, QueueCore core not None, uint64_t key, QueueCore target not None) -> bool:
        """Locks an available message that the commit will move to `target` (DM-145). Returns False if the message is not available."""
        cdef Operation* operation = self._add(OPERATION_MOVE, core)
        if not lock_for_move(core, key, self.owner, target):
            self._count -= 1
            Py_DECREF(core)
            return False
        Py_INCREF(target)
        operation.target_queue = <PyObject*>target
        operation.target = target.ordinal
        operation.key = key
        self.moved += 1
        return True

    # ---- the end

    def commit(self, sink not None) -> None:
        """Commits: applies all operations in one unit. `sink(status)` is called when the unit is durable (status 0) or has failed (DM-026 …
        DM-030).

        If the commit fails, a prepared transaction stays prepared, and any other transaction is aborted. If this method raises, the
        transaction is unchanged.
        """
        self._begin(sink)
        if self._writes:
            self._deferred = self._commit_or_abort
            return
        try:
            commit_now(self)
        except BaseException:
            self._sink = None
            raise

    def prepare(self, bytes head not None, sink not None) -> None:
        """Stores the operations, and `head` as row 0 of the transaction, so that they survive a crash (DU-06). `sink(status)` is called as
        by `commit`.
        """
        self._begin(sink)
        self._head = head
        self.prepared = True
        try:
            mark_last(self, False)
            write_ahead(self)
        except BaseException:
            self.prepared = False
            self._sink = None
            raise
        if self._writes:
            self._deferred = self._prepare_or_break
            return
        try:
            prepare_now(self)
        except BaseException:
            self.prepared = False
            self._sink = None
            raise

    def _begin(self, sink):
        if self.ended or self._sink is not None:
            raise ValueError("the transaction is ending or has ended")
        self._sink = sink

    # A commit of very many operations would keep the loop for long: it is done in slices, while its batch is held back. They get
    # their places in the queues beforehand, so that nothing that comes meanwhile stands between them.

    def step(self, size_t count) -> bool:
        """Applies the next `count` operations of a commit in slices. Returns whether more operations are left.

        If an operation cannot be applied, even because the store has lost its record, the whole batch and with it the commit fails. The
        server continues, unlike after a failure of the disk.
        """
        return next_slice(self, count)

    def abort(self, sink=None) -> None:
        """Aborts: discards sent messages, and puts received messages back at their places with AbortCount + 1 (DM-032 … DM-036).

        `sink(status)` is called when the abort is durable, at once if nothing must be stored. A prepared transaction keeps its locks and
        quota until the abort is durable, and stays prepared if the abort cannot be stored (DU-07).
        """
        cdef Writer writer = self.ledger.writer
        if sink is None:
            sink = bool
        self._begin(sink)
        if not self._rows and not self.prepared:
            release_all(self)
            finish(self, STATUS_OK)
            self.settled()
            return
        try:
            writer.begin_unit()
        except BaseException:
            self._sink = None
            raise
        try:
            delete_ahead(self)
            if self.prepared:
                put_counts(self, 0, self._count, 1)
            writer.notify(self, TOKEN_ABORTED)
        except BaseException:
            self._sink = None
            writer.roll_back()
            raise
        writer.keep_unit()
        if not self.prepared:
            release_all(self)

    # ---- what the store says

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef int kind = token & TOKEN_MASK
        if kind == TOKEN_AHEAD:
            return ahead_written(self, <size_t>(token >> TOKEN_BITS), status)
        if kind == TOKEN_PREPARED:
            self.prepared = status == STATUS_OK
            self._result = status
            self._settled = True
            if status != STATUS_OK:
                mark_broken(self, status)
            return 0
        if kind == TOKEN_ABORTED and self.prepared:
            if status != STATUS_OK:
                self._result = status
                self._settled = True
                return 0
            try:
                release_all(self)
            finally:
                finish(self, status)
            return 0
        return finish(self, status)

    cdef int settled(self) except -1:
        cdef int status
        if self._on_ahead is not None:
            self._on_ahead()
        if self._deferred is not None and not self._writes:
            deferred, self._deferred = self._deferred, None
            deferred()
        if self._settled:
            self._settled = False
            status = self._result
            sink, self._sink = self._sink, None
            if self.ended:
                self._clear()
            sink(status)
        return 0

    def _commit_or_abort(self):
        """Starts a commit that had to wait until the packets written ahead were durable. If that failed, aborts the transaction."""
        try:
            commit_now(self)
        except Exception as error:
            release_all(self)
            finish(self, getattr(error, "status", 0) or ENOSPC)

    def _prepare_or_break(self):
        """Starts a prepare that had to wait until the packets written ahead were durable. If that failed, the transaction is not prepared.
        """
        try:
            if self.broken:
                raise TransactionBroken(self._status)
            prepare_now(self)
        except Exception as error:
            self.prepared = False
            self._result = getattr(error, "status", 0) or ENOSPC
            self._settled = True
            mark_broken(self, self._result)

    cdef int _clear(self) except -1:
        """Releases the references of all operations, and their memory."""
        cdef size_t index, count = self._count
        self._count = 0
        for index in range(count):
            Py_XDECREF(self._operations[index].core)
            Py_XDECREF(self._operations[index].target_queue)
            Py_XDECREF(self._operations[index].packet)
        free(self._operations)
        self._operations = NULL
        self._capacity = 0
        self.held_bytes = 0
        self._tails.clear()
        self._on_ahead = self._on_slices = None
        return 0

    # ---- after a restart

    def restore(self, dict rows not None, cores not None) -> None:
        """Restores the operations of a prepared transaction from its rows, except row 0 (REC-05). `cores(ordinal)` returns the QueueCore
        with this ordinal, or None.

        Received messages are locked again, and the quota of sent messages is reserved again. Raises ValueError for a damaged row.
        """
        restore_operations(self, rows, cores)
