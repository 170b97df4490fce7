# The watermark of bulk readers: no new message appears below this arrival sequence.

cimport cython
from libc.stdint cimport uint64_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.ledger cimport Ledger


@cython.final
cdef class VisibilityWatermark(CommitListener):
    """Advances Ledger.watermark."""
    cdef Ledger _ledger
    cdef uint64_t _asked, _reached
    cdef list _sinks            # (sequence, function)
