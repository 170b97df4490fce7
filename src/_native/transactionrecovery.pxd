# Transactions of an earlier life of the process, from their rows.

from msmq_fast._native.transactionbase cimport TransactionBase


# The operations of a prepared transaction from its rows but the head. ValueError: one is damaged.
cdef int restore_operations(TransactionBase tx, dict rows, cores) except -1
