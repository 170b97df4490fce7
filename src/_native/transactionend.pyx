# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The end of a transaction: the prepare, the commit in one unit or in slices that share a batch, and the abort."""

from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.batch cimport STATUS_OK, CommitListener, Writer, also
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport REASON_RECEIVED, REASON_REJECTED
from msmq_fast._native.lmdbapi cimport status_is_space
from msmq_fast._native.moving cimport abort_move, complete_move
from msmq_fast._native.positions cimport FLAG_REMOVING, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.tablenumbers cimport TABLE_META
from msmq_fast._native.transactionahead cimport delete_ahead, delete_rows, mark_last
from msmq_fast._native.transactionbase cimport (
    COUNTS_STEP,
    OPERATION_ENQUEUE,
    OPERATION_MOVE,
    OPERATION_REJECT,
    ROW_LENGTH,
    ROW_OPERATIONS,
    SLICED_FROM,
    TOKEN_END,
    TOKEN_PREPARED,
    Operation,
    OperationEntry,
    TransactionBase,
)

from msmq_fast._native.tables import StoreError
from msmq_fast._native.transactionbase import TransactionBroken


cdef class AbortCounts(CommitListener):
    """Stores the abort counts of messages in units of their own, for which no reply waits."""
    cdef Writer _writer
    cdef list _places           # (QueueCore, key)
    cdef size_t _done

    cdef int run(self) except -1:
        cdef QueueCore core
        cdef size_t end = min(self._done + COUNTS_STEP, <size_t>len(self._places))
        if self._writer.failed or self._done == end:
            return 0
        try:
            self._writer.begin_unit()
        except StoreError:
            return 0    # an increment may be lost, see X-72
        try:
            for core, key in self._places[self._done:end]:
                core.put_counts(<uint64_t>key, 0)
            self._writer.notify(self, 0)
        except (StoreError, ValueError):    # ValueError: the store has lost a record
            self._writer.roll_back()
            return 0
        except BaseException:
            self._writer.roll_back()
            raise
        self._writer.keep_unit()
        self._done = end
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        return 0

    cdef int settled(self) except -1:
        return self.run()


cdef int release_all(TransactionBase tx) except -1:
    """Releases all locks and reserved quota of an aborted transaction, and stores the new abort counts of its messages."""
    cdef size_t index
    fault = None
    for index in range(tx._count):
        try:
            release_one(tx, &tx._operations[index])
        except Exception as error:
            fault = also(fault, error)
    keep_counts(tx)
    if fault is not None:
        raise fault
    return 0


cdef int release_one(TransactionBase tx, Operation* operation) except -1:
    cdef QueueCore core
    cdef Slot* slot
    if operation.core == NULL:
        return 0
    core = <QueueCore>operation.core
    if operation.kind == OPERATION_ENQUEUE:
        return unreserve(tx, operation)
    slot = tx._locked(core, operation.key)
    if operation.kind == OPERATION_MOVE and operation.target_queue != NULL:
        abort_move(core, operation.key, tx.owner, <QueueCore>operation.target_queue)
    elif slot != NULL:
        core.abort_dequeue(slot)
    return 0


cdef int put_counts(TransactionBase tx, size_t index, size_t end, uint32_t more) except -1:
    """Stores, with the current unit, the abort counts, increased by `more`, of the messages that the operations from `index` to `end` - 1
    have received.
    """
    cdef Operation* operation
    while index < end:
        operation = &tx._operations[index]
        index += 1
        if operation.kind != OPERATION_ENQUEUE and operation.core != NULL:
            (<QueueCore>operation.core).put_counts(operation.key, more)
    return 0


cdef int keep_counts(TransactionBase tx) except -1:
    """Stores the abort counts of the received messages in units of their own; no reply waits for these units (X-72)."""
    cdef AbortCounts counts
    cdef Operation* operation
    cdef size_t index
    if not tx.dequeued and not tx.moved:
        return 0
    counts = AbortCounts.__new__(AbortCounts)
    counts._writer = tx.ledger.writer
    counts._places = []
    for index in range(tx._count):
        operation = &tx._operations[index]
        if operation.kind != OPERATION_ENQUEUE and operation.core != NULL:
            counts._places.append((<QueueCore>operation.core, operation.key))
    counts.run()
    return 0


cdef int unreserve(TransactionBase tx, Operation* operation) except -1:
    if operation.reserved:
        operation.reserved = False
        (<QueueCore>operation.core).unreserve(operation.record.content_bytes)
    return 0


cdef int forget_failed(TransactionBase tx) except -1:
    """After a failed commit, stores the new abort counts, and deletes the packets that were written ahead."""
    cdef Writer writer = tx.ledger.writer
    if writer.failed:
        return 0
    keep_counts(tx)
    if tx._rows:
        writer.begin_unit()
        try:
            delete_ahead(tx)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
    return 0


cdef int prepare_now(TransactionBase tx) except -1:
    cdef Writer writer = tx.ledger.writer
    cdef Operation* operation
    cdef OperationEntry entry
    cdef size_t index = 0
    cdef uint32_t rows = tx._rows
    cdef list entries
    writer.begin_unit()
    try:
        mark_last(tx, True)
        while index < tx._count:
            entries = []
            while index < tx._count and len(entries) < ROW_LENGTH:
                operation = &tx._operations[index]
                index += 1
                if operation.core == NULL and operation.kind != OPERATION_ENQUEUE:
                    continue    # it was released: after a restart it must not be locked again
                entry.kind = operation.kind
                entry.queue = operation.queue
                entry.target = operation.target
                entry.key = operation.key
                entry.content_id = operation.content_id
                entry.record = operation.record
                entries.append((<char*>&entry)[:sizeof(entry)])
            rows += 1
            writer.put_record(TABLE_META, tx._key(rows), bytes((1, ROW_OPERATIONS)) + b"".join(entries))
        writer.put_record(TABLE_META, tx._key(0), tx._head)
        writer.notify(tx, TOKEN_PREPARED)
    except BaseException:
        writer.roll_back()
        raise
    writer.keep_unit()
    tx._rows = rows
    tx._tails.clear()
    return 0


cdef int commit_now(TransactionBase tx) except -1:
    cdef Ledger ledger = tx.ledger
    if tx.broken:
        raise TransactionBroken(tx._status)
    if ledger.sequence + tx.enqueued + tx.dequeued > ledger.sequence_limit:
        raise OverflowError("no SequentialIDs are reserved: the store does not keep up")
    if not tx.prepared:
        mark_last(tx, False)
    ledger.writer.make_room(tx.held_bytes)
    tx._done = 0
    tx._stored = tx._rows > 0 or tx.prepared
    if tx._count > SLICED_FROM and not goes_out(tx):
        return begin_slices(tx)
    commit_part(tx, tx._count)
    if not tx._stored:
        finish(tx, STATUS_OK)
        tx.settled()
    return 0


cdef int commit_part(TransactionBase tx, size_t end) except -1:
    """Applies the operations that are left, up to `end`, in one unit. If this raises, none of them is applied."""
    cdef Writer writer = tx.ledger.writer
    cdef Operation* operation
    cdef QueueCore core
    cdef Slot* slot = NULL
    cdef size_t index = tx._done
    cdef uint64_t first = tx._next
    cdef bint stored = tx._stored
    writer.begin_unit()
    tx.ledger.caller = tx.caller
    try:
        if index == 0 and not tx.prepared:
            mark_last(tx, True)
        while index < end:
            operation = &tx._operations[index]
            index += 1
            core = <QueueCore>operation.core if operation.core != NULL else None
            if operation.kind == OPERATION_ENQUEUE:
                stored = True
                if core is None or core.gone:
                    if operation.content_id:
                        writer.delete_content(operation.content_id, operation.record.content_bytes)
                    continue
                core.commit_enqueue(
                    operation.content_id, <bytes>operation.packet if operation.packet != NULL else None, &operation.record,
                    tx._next
                )
                tx._next += tx._next != 0
                operation.key = <uint64_t>(7 - operation.record.priority) << 56 | operation.record.arrival_seq
                operation.reserved = False
            elif operation.kind == OPERATION_MOVE:
                if core is not None and operation.target_queue != NULL:
                    operation.leaving = complete_move(core, operation.key, tx.owner, <QueueCore>operation.target_queue)
                    stored = True
            else:
                slot = tx._locked(core, operation.key)
                if slot != NULL:
                    operation.leaving = True
                    stored |= core.commit_dequeue(
                        slot, REASON_REJECTED if operation.kind == OPERATION_REJECT else REASON_RECEIVED
                    )
        if end == tx._count:
            delete_rows(tx)
            if stored:
                writer.notify(tx, TOKEN_END)
    except BaseException:
        tx.ledger.caller = 0
        writer.roll_back()
        undo_operations(tx, tx._done, index)
        tx._next = first
        raise
    tx.ledger.caller = 0
    writer.keep_unit()
    tx._done = end
    tx._stored = stored
    return 0


cdef bint goes_out(TransactionBase tx) noexcept:
    """Whether an operation of the transaction sends to an outgoing queue. The sequence numbers of its messages must be assigned without
    interruption, so not in slices.
    """
    cdef size_t index
    for index in range(tx._count):
        if tx._operations[index].kind == OPERATION_ENQUEUE and tx._operations[index].core != NULL:
            if (<QueueCore>tx._operations[index].core).outgoing:
                return True
    return False


cdef int begin_slices(TransactionBase tx) except -1:
    cdef Ledger ledger = tx.ledger
    if tx.enqueued:
        tx._next = ledger.sequence + 1
        ledger.sequence += tx.enqueued - 1
        ledger.next_sequence()
    ledger.writer.pin()
    tx.slicing = True
    if tx._on_slices is not None:
        tx._on_slices()
        return 0
    while next_slice(tx, SLICED_FROM):
        pass
    return 0


# A commit of very many operations would block the loop for long. Therefore it is done in slices, while its batch is held. The messages get
# their places in the queues first, so that no message that arrives meanwhile is placed between them.

cdef bint next_slice(TransactionBase tx, size_t count) except -1:
    """Applies the next `count` operations of a commit in slices. Returns whether more operations are left.

    If an operation cannot be applied, even because the store has lost its record, the whole batch and with it the commit fails. The server
    continues, unlike after a failure of the disk.
    """
    cdef Writer writer = tx.ledger.writer
    cdef size_t end = min(tx._done + count, tx._count)
    if not tx.slicing:
        return False
    try:
        commit_part(tx, end)
        if end < tx._count:
            return True
    except Exception as error:
        tx._broke_off = True
        status = getattr(error, "status", 0)
        writer.fail_batch(status if status and status_is_space(status) else ENOMEM)
        writer.notify(tx, TOKEN_END)
    tx.slicing = False
    tx._next = 0
    writer.unpin()
    if not tx._stored and not tx._broke_off:
        finish(tx, STATUS_OK)
        tx.settled()
    return False


cdef int undo_operations(TransactionBase tx, size_t start, size_t end) except -1:
    """Undoes the operations from `start` to `end` - 1 of a commit whose unit was rolled back."""
    cdef Operation* operation
    cdef size_t index
    for index in range(start, end):
        operation = &tx._operations[index]
        if operation.core == NULL:
            continue
        operation.leaving = False
        if operation.kind == OPERATION_ENQUEUE and operation.key:
            operation.key = 0
            operation.reserved = True
    return 0


cdef int finish(TransactionBase tx, int status) except -1:
    """Completes in memory a commit or abort that has ended with `status`; aborts the transaction if the commit failed."""
    cdef Operation* operation
    cdef QueueCore core
    cdef Slot* slot
    cdef size_t index
    tx._result = status
    tx._settled = True
    for index in range(tx._count):
        operation = &tx._operations[index]
        if operation.core == NULL:
            continue
        core = <QueueCore>operation.core
        if operation.kind == OPERATION_ENQUEUE:
            if not operation.key:
                if status == STATUS_OK or not tx.prepared:
                    unreserve(tx, operation)
            elif status != STATUS_OK and tx.prepared:
                core.reserve_again(operation.record.content_bytes)
                operation.key = 0
                operation.reserved = True
            continue
        if not operation.leaving:
            if tx._broke_off and index >= tx._done and not tx.prepared:
                release_one(tx, operation)
            continue
        operation.leaving = False
        if operation.kind == OPERATION_MOVE:
            if status != STATUS_OK:
                move_failed(tx, operation, core)
            continue    # its Relocation handles it
        slot = core.positions.find(operation.key)
        if slot != NULL and slot.owner == tx.owner and status != STATUS_OK and tx.prepared:
            slot.flags &= ~FLAG_REMOVING
        else:
            tx.ledger.caller = tx.caller
            try:
                core.drop_locked(operation.key, status)
            finally:
                tx.ledger.caller = 0
    tx._broke_off = False
    if status != STATUS_OK and tx.prepared:
        return 0
    tx.ended = True
    if status != STATUS_OK:
        forget_failed(tx)
    return 0


cdef int move_failed(TransactionBase tx, Operation* operation, QueueCore core) except -1:
    """Handles a failed move. If the transaction stays prepared, the message stays locked, and the target queue still expects it; otherwise
    the message is put back.
    """
    cdef Slot* slot
    if tx.prepared:
        (<QueueCore>operation.target_queue).expected += 1
        return 0
    slot = tx._locked(core, operation.key)
    if slot != NULL:
        core.abort_dequeue(slot)
    return 0
