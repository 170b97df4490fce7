# Restores transactions of an earlier process from their rows.

from msmq_fast._native.transactionbase cimport TransactionBase


# Restores the operations of a prepared transaction from its rows without the head. Raises ValueError if one is damaged.
cdef int restore_operations(TransactionBase tx, dict rows, cores) except -1
