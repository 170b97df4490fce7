# What a transaction writes to the store before it ends: contents, and the rows that name them.

from libc.stddef cimport size_t
from msmq_fast._native.transactionbase cimport TransactionBase


# Contents to the store, in units of about a mebibyte; they stay in memory until they are durable.
cdef int write_ahead(TransactionBase tx) except -1
cdef int mark_broken(TransactionBase tx, int status) except -1
# A unit that was written ahead has ended; units end in their order.
cdef int ahead_written(TransactionBase tx, size_t end, int status) except -1
# LastInTransaction on the last message to each queue (DM-024): `stored`, of those that are written already, inside a unit.
cdef int mark_last(TransactionBase tx, bint stored) except -1
# Inside a unit: the rows; what was written ahead, and the rows.
cdef int delete_rows(TransactionBase tx) except -1
cdef int delete_ahead(TransactionBase tx) except -1
