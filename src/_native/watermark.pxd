# Up to where readers in bulk have seen everything: the lowest sequence that is not surely settled.

cimport cython
from libc.stdint cimport uint64_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.ledger cimport Ledger


@cython.final
cdef class VisibilityWatermark(CommitListener):
    """Moves Ledger.watermark on."""
    cdef Ledger _ledger
    cdef uint64_t _asked, _reached
    cdef list _sinks            # (sequence, function)
