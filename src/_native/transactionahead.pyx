# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Writes packets of a transaction to the store before the transaction ends, and the rows that list them."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport ENOSPC
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from msmq_fast._native.batch cimport STATUS_OK, Writer
from msmq_fast._native.framing cimport UserMessage, parse_user_message
from msmq_fast._native.tablenumbers cimport TABLE_META
from msmq_fast._native.transactionbase cimport (
    AHEAD_STEP,
    FLAG_LAST,
    OPERATION_ENQUEUE,
    ROW_LENGTH,
    ROW_STAGED,
    TOKEN_AHEAD,
    TOKEN_BITS,
    Operation,
    StagedEntry,
    TransactionBase,
)


cdef int write_ahead(TransactionBase tx) except -1:
    """Writes the packets that were not written yet to the store, in units of about a mebibyte. They stay in memory until they are durable.
    """
    cdef Writer writer = tx.ledger.writer
    cdef Operation* operation
    cdef StagedEntry entry
    cdef uint64_t size
    cdef size_t index = tx._flying
    cdef list entries
    while index < tx._count:
        writer.make_room(AHEAD_STEP)
        entries = []
        size = 0
        writer.begin_unit()
        try:
            while index < tx._count and size < AHEAD_STEP and len(entries) < ROW_LENGTH:
                operation = &tx._operations[index]
                index += 1
                if operation.kind != OPERATION_ENQUEUE:
                    continue
                operation.content_id = tx.ledger.next_sequence()
                writer.put_content(operation.content_id, <bytes>operation.packet)
                entry.content_id = operation.content_id
                entry.size = operation.record.content_bytes
                entries.append((<char*>&entry)[:sizeof(entry)])
                size += entry.size
            writer.put_record(TABLE_META, tx._key(tx._rows + 1), bytes((1, ROW_STAGED)) + b"".join(entries))
            writer.notify(tx, <uint64_t>index << TOKEN_BITS | TOKEN_AHEAD)
        except BaseException:
            mark_broken(tx, ENOSPC)
            writer.roll_back()
            raise
        writer.keep_unit()
        tx._rows += 1
        tx._writes += 1
        tx.ahead_bytes += size
        tx._flying = index
    return 0


cdef int mark_broken(TransactionBase tx, int status) except -1:
    tx.broken = True
    tx._status = status
    return 0


cdef int ahead_written(TransactionBase tx, size_t end, int status) except -1:
    """Releases the memory of the packets of the operations up to `end`, because their unit of `write_ahead` has ended; units end in order.
    """
    cdef Operation* operation
    cdef uint64_t size = 0
    tx._writes -= 1
    while tx._ahead < end:
        operation = &tx._operations[tx._ahead]
        tx._ahead += 1
        if operation.kind == OPERATION_ENQUEUE:
            size += operation.record.content_bytes
            Py_DECREF(<object>operation.packet)
            operation.packet = NULL
    tx.held_bytes -= size
    tx.ahead_bytes -= size
    if status != STATUS_OK:
        mark_broken(tx, status)
    return 0


cdef int mark_last(TransactionBase tx, bint stored) except -1:
    """Marks the last message to each queue as LastInTransaction (DM-024). `stored` selects the packets that are already in the store, and
    requires a unit; False selects those that are not.
    """
    cdef Operation* operation
    cdef UserMessage m
    cdef bytes packet, marked
    for index, packet in tx._tails.values():
        operation = &tx._operations[<size_t>index]
        if (operation.packet == NULL) != stored:
            continue
        marked = PyBytes_FromStringAndSize(PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet))
        parse_user_message(<const uint8_t*>PyBytes_AS_STRING(marked), PyBytes_GET_SIZE(marked), &m)
        PyBytes_AS_STRING(marked)[m.transaction_offset] |= FLAG_LAST
        if stored:
            tx.ledger.writer.put_content(operation.content_id, marked)
        else:
            Py_INCREF(marked)
            Py_DECREF(<object>operation.packet)
            operation.packet = <PyObject*>marked
    return 0


cdef int delete_rows(TransactionBase tx) except -1:
    cdef uint32_t row
    if tx.prepared:
        tx.ledger.writer.delete_record(TABLE_META, tx._key(0))
    for row in range(1, tx._rows + 1):
        tx.ledger.writer.delete_record(TABLE_META, tx._key(row))
    return 0


cdef int delete_ahead(TransactionBase tx) except -1:
    """Deletes the packets that were written ahead, and all rows of the transaction, with the current unit."""
    cdef Operation* operation
    cdef size_t index
    for index in range(tx._count):
        operation = &tx._operations[index]
        if operation.content_id:
            tx.ledger.writer.delete_content(operation.content_id, operation.record.content_bytes)
    return delete_rows(tx)
