# Rebuilds the position lists from the store at start.

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport PendingDelete
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.record cimport PositionRecord
from msmq_fast._native.tables cimport PositionVisitor


@cython.final
cdef class Loader(PositionVisitor):
    """Rebuilds the position lists from the stored positions (REC-04, REC-07, REC-08)."""
    cdef Ledger _ledger
    cdef QueueCore _core
    cdef uint32_t _queue
    cdef uint64_t _purged
    cdef dict _purges
    cdef object _deleting, _silent, _held
    cdef readonly uint64_t highest_sequence
    cdef readonly dict orphans              # queue ordinal -> number of messages, for queues that do not exist
    cdef readonly list damaged              # keys of records that cannot be what they should be
    cdef int _mark_side_effects(self, PendingDelete* entry, const PositionRecord* record) except -1
