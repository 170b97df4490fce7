# The ledger of all queues: what needs them all, their timers, and what is deleted bit by bit.

cimport cython
from msmq_fast._native.ledgerbase cimport LedgerBase


@cython.final
cdef class Ledger(LedgerBase):
    """What all queues of one queue manager share."""
