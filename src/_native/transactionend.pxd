# How a transaction ends: the vote, the commit in one unit or in slices that share a batch, the abort.

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from msmq_fast._native.transactionbase cimport TransactionBase


# All operations with one unit, or in slices; what raises leaves the transaction as it was.
cdef int commit_now(TransactionBase tx) except -1
# The vote of a distributed transaction.
cdef int prepare_now(TransactionBase tx) except -1
# The next `count` operations of a commit in slices; whether some are left.
cdef bint next_slice(TransactionBase tx, size_t count) except -1
# The commit or abort has an outcome.
cdef int finish(TransactionBase tx, int status) except -1
# Lets go of everything that is locked or reserved, and keeps the new counts.
cdef int release_all(TransactionBase tx) except -1
# With the current unit: the counts of what operations [index, end) have received.
cdef int put_counts(TransactionBase tx, size_t index, size_t end, uint32_t more) except -1
