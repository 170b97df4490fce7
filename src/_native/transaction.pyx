# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""One transaction: its operations in their order (MS-MQDMPR 3.1.1.13), and commit, abort, prepare of all of them as one unit.

What it sends is in no queue before the commit, only its quota is taken (X-33); what it receives stays locked in its place. Packets
beyond `limit_bytes` are written to the store ahead of the commit, under content ids that no position has: a start drops them unless the
transaction was prepared. Rows of the META table, whose keys begin with ROW_PREFIX and the identifier, name what was written ahead
and, once it is prepared, the operations.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.errno cimport ENOSPC
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport STATUS_OK, TABLE_META, CommitListener, Writer
from msmq_fast._native.framing cimport UserMessage, parse_user_message
from msmq_fast._native.positions cimport (
    FLAG_REMOVING, FLAG_TRANSACTIONAL, STATE_AVAILABLE, STATE_LOCKED, STATE_PURGE_PENDING, Slot,
)
from msmq_fast._native.queue cimport (
    ENQUEUED, Ledger, QueueCore, Received, abort_move, complete_move, describe, undo_move,
)
from msmq_fast._native.record cimport PositionRecord

from array import array

from msmq_fast._native.queue import lock_for_move

cdef enum:
    TOKEN_END = 0               # of notices: the commit
    TOKEN_AHEAD = 1
    TOKEN_PREPARED = 2
    TOKEN_ABORTED = 3
    TOKEN_BITS = 2              # above them: the operation up to which it is written ahead
    TOKEN_MASK = 3
    FLAG_LAST = 1 << 3          # TransactionHeader.Flags.LM
    AHEAD_STEP = 1 << 20        # bytes written ahead in one unit
    ROW_STAGED = 1              # kinds of rows: content ids written ahead,
    ROW_OPERATIONS = 2          # and operations of a prepared transaction
    ROW_LENGTH = 4096           # entries of a row
    LOCKED_BYTES = 8 << 20      # of received packets that stay in memory for an abort; others are read again

ROW_PREFIX = b"txn\x00"
LIMIT_BYTES = 1 << 20


cdef struct StagedEntry:
    uint64_t content_id
    uint64_t size


cdef packed struct OperationEntry:
    uint8_t kind
    uint32_t queue
    uint32_t target
    uint64_t key
    uint64_t content_id
    PositionRecord record


class TransactionBroken(Exception):
    """Something that was written ahead of the commit was not kept; `status` is the commit's."""

    def __init__(self, int status):
        super().__init__("what was written ahead was not kept")
        self.status = status


def row_key(bytes identifier not None, uint32_t row) -> bytes:
    """Key in META of a row of a transaction; row 0 is its head."""
    return ROW_PREFIX + identifier + row.to_bytes(4, "big")


cdef class Transaction(CommitListener):
    """``Transaction(ledger, identifier, number)``: active from the start, over when `commit` or `abort` has ended it."""

    def __init__(self, Ledger ledger not None, bytes identifier not None, uint32_t number):
        if len(identifier) != 16 or number >> 20:
            raise ValueError("an identifier has 16 bytes, a number 20 bits")
        self.ledger = ledger
        self.identifier = identifier
        self.number = number
        self.owner = ledger.new_owner()
        self.limit_bytes = LIMIT_BYTES
        self._tails = {}

    def __dealloc__(self):
        cdef size_t index
        for index in range(self._count):
            Py_XDECREF(self._operations[index].core)
            Py_XDECREF(self._operations[index].goal)
            Py_XDECREF(self._operations[index].packet)
        free(self._operations)

    def __len__(self) -> int:
        return self._count

    @property
    def busy(self) -> bool:
        """Whether a commit or prepare is under way."""
        return self._wish is not None or self._sink is not None

    # ---- operations

    cdef Operation* _add(self, int kind, QueueCore core) except NULL:
        cdef size_t capacity
        cdef Operation* grown
        cdef Operation* operation
        if self.ended or self.prepared or self._sink is not None:
            raise ValueError("the transaction takes no more operations")
        if self._count == self._capacity:
            capacity = self._capacity * 2 if self._capacity else 4
            grown = <Operation*>realloc(self._operations, capacity * sizeof(Operation))
            if grown == NULL:
                raise MemoryError("no memory for operations")
            self._operations = grown
            self._capacity = capacity
        operation = &self._operations[self._count]
        memset(operation, 0, sizeof(Operation))
        if core is not None:
            Py_INCREF(core)
            operation.core = <PyObject*>core
            operation.queue = core.ordinal
        operation.kind = <uint8_t>kind
        self._count += 1
        return operation

    def first_for(self, QueueCore core not None) -> bool:
        """Whether the next message sent to this queue is the first of this transaction."""
        return core not in self._tails

    def enqueue(self, QueueCore core not None, bytes packet not None, uint32_t dead_letter=0) -> int:
        """Send a packet at the commit: 0, or the EnqueueResult that refuses it.

        The packet has a TransactionHeader with this transaction's number; `dead_letter` is the ordinal of the dead-letter queue that its
        application chose, or 0. Raises ValueError for one that is malformed or has none.
        """
        cdef UserMessage m
        cdef Slot slot
        cdef Operation* operation
        cdef uint64_t size = PyBytes_GET_SIZE(packet)
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef int refused
        if parse_user_message(<const uint8_t*>data, size, &m) or not m.transaction_offset:
            raise ValueError("not a packet of a transaction")
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
            self._write_ahead()
        return ENQUEUED

    cpdef int lock(self, QueueCore core, uint64_t key) except -1:
        """A message that `owner` has locked is received with the commit (reason AckReceive)."""
        cdef Operation* operation = self._add(OPERATION_DEQUEUE, core)
        cdef Slot* slot = core.positions.find(key)
        operation.key = key
        self.dequeued += 1
        if slot != NULL:
            self.locked_bytes += slot.size
        if self.locked_bytes > LOCKED_BYTES and self._count > 1:
            # The one before has been handed out; an abort or a journal reads it again.
            operation -= 1
            if operation.kind == OPERATION_DEQUEUE and operation.core != NULL:
                (<QueueCore>operation.core).shed_body(operation.key)
        return 0

    def lock_many(self, QueueCore core not None, list messages not None) -> None:
        """As `lock`, of messages (Received) that were taken together."""
        cdef Received received
        for received in messages:
            self.lock(core, received.lookup_id)

    def unlock(self, QueueCore core not None, uint64_t key) -> bool:
        """A message that was not handed out after all is available again, as if it had not been locked; False if it is not locked."""
        cdef Operation* operation
        cdef size_t index = self._count
        while index:
            index -= 1
            operation = &self._operations[index]
            if operation.kind == OPERATION_DEQUEUE and operation.key == key and operation.core == <PyObject*>core:
                Py_DECREF(core)
                operation.core = NULL
                self.dequeued -= 1
                return bool(core.release(array("Q", (key,)), self.owner))
        return False

    def move(self, QueueCore core not None, uint64_t key, QueueCore target not None) -> bool:
        """Lock an available message, and move it with the commit (DM-145); False if it is not available."""
        cdef Operation* operation = self._add(OPERATION_MOVE, core)
        if not lock_for_move(core, key, self.owner, target):
            self._count -= 1
            Py_DECREF(core)
            return False
        Py_INCREF(target)
        operation.goal = <PyObject*>target
        operation.target = target.ordinal
        operation.key = key
        self.moved += 1
        return True

    # ---- ahead of the commit

    cdef bytes _key(self, uint32_t row):
        return row_key(self.identifier, row)

    cdef int _write_ahead(self) except -1:
        """Contents to the store, in units of about a mebibyte; they stay in memory until they are durable."""
        cdef Writer writer = self.ledger.writer
        cdef Operation* operation
        cdef StagedEntry entry
        cdef uint64_t size
        cdef size_t index = self._flying
        cdef list entries
        while index < self._count:
            writer.make_room(AHEAD_STEP)
            entries = []
            size = 0
            writer.begin_unit()
            try:
                while index < self._count and size < AHEAD_STEP and len(entries) < ROW_LENGTH:
                    operation = &self._operations[index]
                    index += 1
                    if operation.kind != OPERATION_ENQUEUE:
                        continue
                    operation.content_id = self.ledger.next_sequence()
                    writer.put_content(operation.content_id, <bytes>operation.packet)
                    entry.content_id = operation.content_id
                    entry.size = operation.record.content_bytes
                    entries.append((<char*>&entry)[:sizeof(entry)])
                    size += entry.size
                self._rows += 1
                writer.put_record(TABLE_META, self._key(self._rows), bytes((1, ROW_STAGED)) + b"".join(entries))
                writer.notify(self, <uint64_t>index << TOKEN_BITS | TOKEN_AHEAD)
            except BaseException:
                self._break(ENOSPC)
                writer.abandon_unit()
                raise
            writer.end_unit()
            self._writes += 1
            self.ahead_bytes += size
            self._flying = index
        return 0

    cdef int _break(self, int status) except -1:
        self.broken = True
        self._status = status
        return 0

    cdef int _written(self, size_t end, int status) except -1:
        """A unit that was written ahead has ended; units end in their order."""
        cdef Operation* operation
        cdef uint64_t size = 0
        self._writes -= 1
        while self._ahead < end:
            operation = &self._operations[self._ahead]
            self._ahead += 1
            if operation.kind == OPERATION_ENQUEUE:
                size += operation.record.content_bytes
                Py_DECREF(<object>operation.packet)
                operation.packet = NULL
        self.held_bytes -= size
        self.ahead_bytes -= size
        if status != STATUS_OK:
            self._break(status)
        return 0

    cdef int _mark_last(self, bint stored) except -1:
        """LastInTransaction on the last message to each queue (DM-024): `stored`, of those that are written already, inside a unit."""
        cdef Operation* operation
        cdef UserMessage m
        cdef bytes packet, marked
        for index, packet in self._tails.values():
            operation = &self._operations[<size_t>index]
            if (operation.packet == NULL) != stored:
                continue
            marked = PyBytes_FromStringAndSize(PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet))
            parse_user_message(<const uint8_t*>PyBytes_AS_STRING(marked), PyBytes_GET_SIZE(marked), &m)
            PyBytes_AS_STRING(marked)[m.transaction_offset] |= FLAG_LAST
            if stored:
                self.ledger.writer.put_content(operation.content_id, marked)
            else:
                Py_INCREF(marked)
                Py_DECREF(<object>operation.packet)
                operation.packet = <PyObject*>marked
        return 0

    # ---- the end

    def commit(self, sink not None) -> None:
        """Everything happens, in one unit; `sink(status)` is called when that is durable, or nothing has happened (DM-026 … DM-030).

        A prepared transaction whose commit was not kept stays prepared. Any other one has been aborted then. What raises leaves it as it was.
        """
        self._begin(sink)
        if self._writes:
            self._wish = self._commit_or_abort
            return
        try:
            self._commit_now()
        except BaseException:
            self._sink = None
            raise

    def prepare(self, bytes head not None, sink not None) -> None:
        """Keep the operations under the head row `head`, so that they outlive a crash (DU-06); `sink(status)` as with `commit`."""
        self._begin(sink)
        self._head = head
        self.prepared = True
        try:
            self._mark_last(False)
            self._write_ahead()
        except BaseException:
            self.prepared = False
            self._sink = None
            raise
        if self._writes:
            self._wish = self._prepare_or_break
            return
        try:
            self._prepare_now()
        except BaseException:
            self.prepared = False
            self._sink = None
            raise

    def _begin(self, sink):
        if self.ended or self._sink is not None:
            raise ValueError("the transaction is ending or has ended")
        self._sink = sink

    def _prepare_now(self):
        cdef Writer writer = self.ledger.writer
        cdef Operation* operation
        cdef OperationEntry entry
        cdef size_t index = 0
        cdef uint32_t rows = self._rows
        cdef list entries
        writer.begin_unit()
        try:
            self._mark_last(True)
            while index < self._count:
                entries = []
                while index < self._count and len(entries) < ROW_LENGTH:
                    operation = &self._operations[index]
                    index += 1
                    entry.kind = operation.kind
                    entry.queue = operation.queue
                    entry.target = operation.target
                    entry.key = operation.key
                    entry.content_id = operation.content_id
                    entry.record = operation.record
                    entries.append((<char*>&entry)[:sizeof(entry)])
                rows += 1
                writer.put_record(TABLE_META, self._key(rows), bytes((1, ROW_OPERATIONS)) + b"".join(entries))
            writer.put_record(TABLE_META, self._key(0), self._head)
            writer.notify(self, TOKEN_PREPARED)
        except BaseException:
            writer.abandon_unit()
            raise
        writer.end_unit()
        self._rows = rows
        self._tails.clear()

    def _commit_now(self):
        cdef Ledger ledger = self.ledger
        cdef Writer writer = ledger.writer
        cdef Operation* operation
        cdef QueueCore core
        cdef Slot* slot = NULL
        cdef size_t index = 0
        cdef bint stored = self._rows > 0 or self.prepared
        if self.broken:
            raise TransactionBroken(self._status)
        if ledger.sequence + self.enqueued > ledger.sequence_limit:
            raise OverflowError("no SequentialIDs are reserved: the store does not keep up")
        if not self.prepared:
            self._mark_last(False)
        writer.make_room(self.held_bytes)
        writer.begin_unit()
        try:
            if not self.prepared:
                self._mark_last(True)
            while index < self._count:
                operation = &self._operations[index]
                index += 1
                core = <QueueCore>operation.core if operation.core != NULL else None
                if operation.kind == OPERATION_ENQUEUE:
                    stored = True
                    if core is None or core.gone:
                        if operation.content_id:
                            writer.delete_content(operation.content_id, operation.record.content_bytes)
                        continue
                    core.commit_enqueue(
                        operation.content_id, <bytes>operation.packet if operation.packet != NULL else None, &operation.record
                    )
                    operation.key = <uint64_t>(7 - operation.record.priority) << 56 | operation.record.arrival_seq
                    operation.reserved = False
                elif operation.kind == OPERATION_MOVE:
                    if core is not None and operation.goal != NULL:
                        operation.leaving = complete_move(core, operation.key, self.owner, <QueueCore>operation.goal)
                        stored = True
                else:
                    slot = self._locked(core, operation.key)
                    if slot != NULL:
                        operation.leaving = True
                        stored |= core.commit_dequeue(slot)
            self._delete_rows()
            if stored:
                writer.notify(self, TOKEN_END)
        except BaseException:
            self._undo(index)
            writer.abandon_unit()
            raise
        writer.end_unit()
        if not stored:
            self._ended(STATUS_OK)
            self.settled()

    cdef Slot* _locked(self, QueueCore core, uint64_t key) noexcept:
        """What this transaction has locked under `key`, or NULL."""
        cdef Slot* slot
        if core is None:
            return NULL
        slot = core.positions.find(key)
        if slot == NULL or slot.owner != self.owner:
            return NULL
        return slot if slot.state == STATE_LOCKED or slot.state == STATE_PURGE_PENDING else NULL

    cdef int _delete_rows(self) except -1:
        cdef uint32_t row
        if self.prepared:
            self.ledger.writer.delete_record(TABLE_META, self._key(0))
        for row in range(1, self._rows + 1):
            self.ledger.writer.delete_record(TABLE_META, self._key(row))
        return 0

    cdef int _undo(self, size_t count) except -1:
        """The first `count` operations of a commit did not happen; the caller takes the unit back."""
        cdef Operation* operation
        cdef QueueCore core
        cdef Slot* slot
        cdef size_t index
        for index in range(count):
            operation = &self._operations[index]
            if operation.core == NULL:
                continue
            core = <QueueCore>operation.core
            if operation.kind == OPERATION_ENQUEUE:
                if operation.key:
                    core.undo_enqueue(operation.key)
                    operation.key = 0
                    operation.reserved = True
            elif operation.leaving and operation.kind == OPERATION_MOVE:
                operation.leaving = False
                undo_move(core, operation.key, <QueueCore>operation.goal)
            elif operation.leaving:
                operation.leaving = False
                slot = self._locked(core, operation.key)
                if slot != NULL:
                    slot.flags &= ~FLAG_REMOVING
        return 0

    def abort(self, sink=None) -> None:
        """Nothing happens: what was sent is forgotten, what was received is back in its place with AbortCount + 1 (DM-032 … DM-036).

        `sink(status)` is called when that is durable, at once if nothing had to be stored. A prepared transaction releases nothing before that,
        and stays prepared if it was not kept (DU-07).
        """
        cdef Writer writer = self.ledger.writer
        if sink is None:
            sink = bool
        self._begin(sink)
        if not self._rows and not self.prepared:
            self._release()
            self._ended(STATUS_OK)
            self.settled()
            return
        writer.begin_unit()
        try:
            self._delete_ahead()
            writer.notify(self, TOKEN_ABORTED)
        except BaseException:
            self._sink = None
            writer.abandon_unit()
            raise
        writer.end_unit()
        if not self.prepared:
            self._release()

    cdef int _delete_ahead(self) except -1:
        """What was written ahead leaves with the current unit."""
        cdef Operation* operation
        cdef size_t index
        for index in range(self._count):
            operation = &self._operations[index]
            if operation.content_id:
                self.ledger.writer.delete_content(operation.content_id, operation.record.content_bytes)
        return self._delete_rows()

    def _release(self):
        """Lets go of everything that is locked or reserved, and keeps the new counts."""
        cdef Operation* operation
        cdef QueueCore core
        cdef Slot* slot
        cdef size_t index
        fault = None
        for index in range(self._count):
            operation = &self._operations[index]
            if operation.core == NULL:
                continue
            core = <QueueCore>operation.core
            if operation.kind == OPERATION_ENQUEUE:
                self._unreserve(operation)
                continue
            slot = self._locked(core, operation.key)
            try:
                if operation.kind == OPERATION_MOVE and operation.goal != NULL:
                    abort_move(core, operation.key, self.owner, <QueueCore>operation.goal)
                elif slot != NULL:
                    core.abort_dequeue(slot)
            except Exception as error:
                fault = fault or error
        self._put_counts()
        if fault is not None:
            raise fault

    def _put_counts(self):
        cdef Operation* operation
        cdef size_t index
        cdef Writer writer = self.ledger.writer
        if not self.dequeued and not self.moved:
            return
        writer.begin_unit()
        try:
            for index in range(self._count):
                operation = &self._operations[index]
                if operation.kind != OPERATION_ENQUEUE and operation.core != NULL:
                    (<QueueCore>operation.core).put_counts(operation.key)
        finally:
            writer.end_unit()

    # ---- what the store says

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef int kind = token & TOKEN_MASK
        if kind == TOKEN_AHEAD:
            return self._written(<size_t>(token >> TOKEN_BITS), status)
        if kind == TOKEN_PREPARED:
            self.prepared = status == STATUS_OK
            self._result = status
            self._settled = True
            if status != STATUS_OK:
                self._break(status)
            return 0
        if kind == TOKEN_ABORTED and self.prepared:
            if status != STATUS_OK:
                self._result = status
                self._settled = True
                return 0
            try:
                self._release()
            finally:
                self._ended(status)
            return 0
        return self._ended(status)

    cdef int _ended(self, int status) except -1:
        """The commit or abort has an outcome."""
        cdef Operation* operation
        cdef QueueCore core
        cdef Slot* slot
        cdef size_t index
        self._result = status
        self._settled = True
        for index in range(self._count):
            operation = &self._operations[index]
            if operation.core == NULL:
                continue
            core = <QueueCore>operation.core
            if operation.kind == OPERATION_ENQUEUE:
                if not operation.key:
                    self._unreserve(operation)
                elif status != STATUS_OK and self.prepared:
                    core.reserve_again(operation.record.content_bytes)
                    operation.key = 0
                    operation.reserved = True
                continue
            if not operation.leaving:
                continue
            operation.leaving = False
            if operation.kind == OPERATION_MOVE:
                if status != STATUS_OK:
                    self._move_failed(operation, core)
                continue    # its Relocation knows
            slot = core.positions.find(operation.key)
            if slot != NULL and slot.owner == self.owner and status != STATUS_OK and self.prepared:
                slot.flags &= ~FLAG_REMOVING
            else:
                core.drop_locked(operation.key, status)
        if status != STATUS_OK and self.prepared:
            return 0
        self.ended = True
        if status != STATUS_OK:
            self._forget()
        return 0

    cdef int _move_failed(self, Operation* operation, QueueCore core) except -1:
        """A move that was not kept: if the transaction stays prepared the message stays locked and the target expects it."""
        cdef Slot* slot
        if self.prepared:
            (<QueueCore>operation.goal).expected += 1
            return 0
        slot = self._locked(core, operation.key)
        if slot != NULL:
            core.abort_dequeue(slot)
        return 0

    cdef int _unreserve(self, Operation* operation) except -1:
        if operation.reserved:
            operation.reserved = False
            (<QueueCore>operation.core).unreserve(operation.record.content_bytes)
        return 0

    cdef int _forget(self) except -1:
        """After a commit that was not kept: the new counts, and away with what was written ahead."""
        cdef Writer writer = self.ledger.writer
        if writer.failed:
            return 0
        self._put_counts()
        if self._rows:
            writer.begin_unit()
            try:
                self._delete_ahead()
            finally:
                writer.end_unit()
        return 0

    cdef int settled(self) except -1:
        cdef int status
        if self.on_ahead is not None:
            self.on_ahead()
        if self._wish is not None and not self._writes:
            wish, self._wish = self._wish, None
            wish()
        if self._settled:
            self._settled = False
            status = self._result
            sink, self._sink = self._sink, None
            if self.ended:
                self._clear()
            sink(status)
        return 0

    def _commit_or_abort(self):
        """A commit that had to wait."""
        try:
            self._commit_now()
        except Exception as error:
            self._release()
            self._ended(getattr(error, "status", 0) or ENOSPC)

    def _prepare_or_break(self):
        """A prepare that had to wait."""
        try:
            if self.broken:
                raise TransactionBroken(self._status)
            self._prepare_now()
        except Exception as error:
            self.prepared = False
            self._result = getattr(error, "status", 0) or ENOSPC
            self._settled = True
            self._break(self._result)

    cdef int _clear(self) except -1:
        """Lets go of everything it refers to."""
        cdef size_t index, count = self._count
        self._count = 0
        for index in range(count):
            Py_XDECREF(self._operations[index].core)
            Py_XDECREF(self._operations[index].goal)
            Py_XDECREF(self._operations[index].packet)
        free(self._operations)
        self._operations = NULL
        self._capacity = 0
        self.held_bytes = 0
        self._tails.clear()
        self.on_ahead = None
        return 0

    # ---- after a restart

    def restore(self, dict rows not None, cores not None) -> None:
        """The operations of a prepared transaction from its rows but the head (REC-05). `cores(ordinal)` gives the QueueCore, or None.

        What it had received is locked again, what it had sent has its quota again. ValueError for a row that is damaged.
        """
        cdef OperationEntry entry
        cdef Operation* operation
        cdef QueueCore core
        cdef Slot* slot
        cdef bytes row
        cdef size_t at
        for number in sorted(rows):
            row = rows[number]
            if row[1] != ROW_OPERATIONS:
                continue
            if (len(row) - 2) % sizeof(OperationEntry):
                raise ValueError("a row of a transaction is damaged")
            for at in range(2, len(row), sizeof(OperationEntry)):
                memcpy(&entry, PyBytes_AS_STRING(row) + at, sizeof(entry))
                if not OPERATION_ENQUEUE <= entry.kind <= OPERATION_MOVE:
                    raise ValueError("a row of a transaction is damaged")
                core = cores(entry.queue)
                operation = self._add(entry.kind, core)
                operation.queue = entry.queue
                operation.key = entry.key
                operation.content_id = entry.content_id
                operation.record = entry.record
                if entry.kind == OPERATION_ENQUEUE:
                    self.enqueued += 1
                    if core is not None:
                        core.reserve_again(entry.record.content_bytes)
                        operation.reserved = True
                    continue
                if entry.kind == OPERATION_MOVE:
                    self.moved += 1
                    self._restore_goal(operation, cores(entry.target))
                else:
                    self.dequeued += 1
                slot = core.positions.find(entry.key) if core is not None else NULL
                if slot == NULL:
                    continue
                if slot.state == STATE_AVAILABLE:
                    core.positions.set_state(slot, STATE_LOCKED)
                slot.owner = self.owner
        self._rows = max(rows, default=0)
        self._ahead = self._flying = self._count
        self.prepared = True

    cdef int _restore_goal(self, Operation* operation, QueueCore goal) except -1:
        if goal is not None:
            Py_INCREF(goal)
            operation.goal = <PyObject*>goal
            operation.target = goal.ordinal
            goal.expected += 1
        return 0


def held(bytes row not None) -> list:
    """(queue, lookup id) of the messages that an operations row of a prepared transaction has received."""
    cdef OperationEntry entry
    cdef size_t at
    result = []
    if len(row) < 2 or row[1] != ROW_OPERATIONS or (len(row) - 2) % sizeof(OperationEntry):
        return result
    for at in range(2, len(row), sizeof(OperationEntry)):
        memcpy(&entry, PyBytes_AS_STRING(row) + at, sizeof(entry))
        if entry.kind != OPERATION_ENQUEUE:
            result.append((entry.queue, entry.key))
    return result


def drop_staged(Ledger ledger not None, bytes key not None, bytes row not None) -> int:
    """Removes what a row of a transaction that was not prepared names, and the row, with the current unit (REC-06). Returns how many contents."""
    cdef StagedEntry entry
    cdef size_t at, count = 0
    cdef Writer writer = ledger.writer
    writer.begin_unit()
    try:
        if len(row) >= 2 and row[1] == ROW_STAGED:
            for at in range(2, len(row) - sizeof(entry) + 1, sizeof(entry)):
                memcpy(&entry, PyBytes_AS_STRING(row) + at, sizeof(entry))
                writer.delete_content(entry.content_id, <uint32_t>entry.size)
                count += 1
        writer.delete_record(TABLE_META, key)
    finally:
        writer.end_unit()
    return count
