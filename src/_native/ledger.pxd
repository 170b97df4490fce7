# The ledger of all queues: operations on all of them, their timers, and deferred deletions.

cimport cython
from msmq_fast._native.ledgerbase cimport LedgerBase


@cython.final
cdef class Ledger(LedgerBase):
    """The state that all queues of one queue manager share."""
