# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Restores the transactions of an earlier process from their rows in the store."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from libc.string cimport memcpy
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.positions cimport STATE_AVAILABLE, STATE_LOCKED, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.tablenumbers cimport TABLE_META
from msmq_fast._native.transactionbase cimport (
    OPERATION_ENQUEUE,
    OPERATION_MOVE,
    OPERATION_REJECT,
    ROW_OPERATIONS,
    ROW_STAGED,
    Operation,
    OperationEntry,
    StagedEntry,
    TransactionBase,
)


cdef int restore_operations(TransactionBase tx, dict rows, cores) except -1:
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
            if not OPERATION_ENQUEUE <= entry.kind <= OPERATION_REJECT:
                raise ValueError("a row of a transaction is damaged")
            core = cores(entry.queue)
            operation = tx._add(entry.kind, core)
            operation.queue = entry.queue
            operation.key = entry.key
            operation.content_id = entry.content_id
            operation.record = entry.record
            if entry.kind == OPERATION_ENQUEUE:
                tx.enqueued += 1
                if core is not None:
                    core.reserve_again(entry.record.content_bytes)
                    operation.reserved = True
                continue
            if entry.kind == OPERATION_MOVE:
                tx.moved += 1
                restore_target(tx, operation, cores(entry.target))
            else:
                tx.dequeued += 1
            slot = core.positions.find(entry.key) if core is not None else NULL
            if slot == NULL:
                continue
            if slot.state == STATE_AVAILABLE:
                core.positions.set_state(slot, STATE_LOCKED)
            slot.owner = tx.owner
    tx._rows = max(rows, default=0)
    tx._ahead = tx._flying = tx._count
    tx.prepared = True
    return 0


cdef int restore_target(TransactionBase tx, Operation* operation, QueueCore target) except -1:
    if target is not None:
        Py_INCREF(target)
        operation.target_queue = <PyObject*>target
        operation.target = target.ordinal
        target.expected += 1
    return 0


def held(bytes row not None) -> list:
    """Returns a list of (queue ordinal, lookup id) of the messages that a prepared transaction has received, according to one of its rows
    with operations.
    """
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
    """Deletes a row of a transaction that was not prepared, and the packets that it lists, with the current unit (REC-06). Returns the
    number of deleted packets.
    """
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
    except BaseException:
        writer.roll_back()
        raise
    writer.keep_unit()
    return count
