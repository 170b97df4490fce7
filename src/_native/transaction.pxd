# A transaction: its operations, and its end.

cimport cython
from libc.stdint cimport uint64_t
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.transactionbase cimport Operation, TransactionBase


@cython.final
cdef class Transaction(TransactionBase):
    """One transaction."""
    cpdef int lock(self, QueueCore core, uint64_t key) except -1
    cdef Operation* _received_as(self, QueueCore core, uint64_t key) noexcept
    cdef int _clear(self) except -1
