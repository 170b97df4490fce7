# The contents that a transaction writes to the store before it ends, and the rows that name them.

from libc.stddef cimport size_t
from msmq_fast._native.transactionbase cimport TransactionBase


# Writes contents to the store, in units of about a mebibyte. They stay in memory until they are durable.
cdef int write_ahead(TransactionBase tx) except -1
cdef int mark_broken(TransactionBase tx, int status) except -1
# Called when a unit that was written ahead has ended; units end in order.
cdef int ahead_written(TransactionBase tx, size_t end, int status) except -1
# Marks the last message to each queue as LastInTransaction (DM-024). `stored`: those that are already written, inside a unit.
cdef int mark_last(TransactionBase tx, bint stored) except -1
# Call inside a unit: the first function deletes the rows, the second also what was written ahead.
cdef int delete_rows(TransactionBase tx) except -1
cdef int delete_ahead(TransactionBase tx) except -1
