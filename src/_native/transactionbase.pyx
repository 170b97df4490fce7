# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The operations of one transaction, in order."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.positions cimport STATE_LOCKED, STATE_PURGE_PENDING, Slot
from msmq_fast._native.queue cimport QueueCore

ROW_PREFIX = b"txn\x00"


class TransactionBroken(Exception):
    """Raised if packets that were written ahead of the commit could not be stored; `status` is the commit status of that write."""

    def __init__(self, int status):
        super().__init__("contents that were written ahead of the commit could not be stored")
        self.status = status


def row_key(bytes identifier not None, uint32_t row) -> bytes:
    """Returns the key in META of a row of a transaction; row 0 is its head."""
    return ROW_PREFIX + identifier + row.to_bytes(4, "big")


cdef class TransactionBase(CommitListener):
    """The base of a transaction: the list of its operations."""

    def __dealloc__(self):
        cdef size_t index
        for index in range(self._count):
            Py_XDECREF(self._operations[index].core)
            Py_XDECREF(self._operations[index].target_queue)
            Py_XDECREF(self._operations[index].packet)
        free(self._operations)

    # ---- operations

    cdef Operation* _add(self, int kind, QueueCore core) except NULL:
        cdef size_t capacity
        cdef Operation* grown
        cdef Operation* operation
        if self.ended or self.prepared or self._sink is not None:
            raise ValueError("the transaction is prepared, ending or ended, and accepts no more operations")
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

    # ---- ahead of the commit

    cdef bytes _key(self, uint32_t row):
        return row_key(self.identifier, row)

    cdef Slot* _locked(self, QueueCore core, uint64_t key) noexcept:
        """Returns the slot that this transaction has locked under `key`, or NULL."""
        cdef Slot* slot
        if core is None:
            return NULL
        slot = core.positions.find(key)
        if slot == NULL or slot.owner != self.owner:
            return NULL
        return slot if slot.state == STATE_LOCKED or slot.state == STATE_PURGE_PENDING else NULL
