# The end of a transaction: the prepare, the commit in one unit or in slices that share a batch, the abort.

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from msmq_fast._native.transactionbase cimport TransactionBase


# Applies all operations with one unit, or in slices. If it raises, the transaction is unchanged.
cdef int commit_now(TransactionBase tx) except -1
# Stores a transaction as prepared: the vote of a distributed transaction.
cdef int prepare_now(TransactionBase tx) except -1
# Applies the next `count` operations of a commit in slices. Returns whether more operations are left.
cdef bint next_slice(TransactionBase tx, size_t count) except -1
# Called when the commit or abort has ended.
cdef int finish(TransactionBase tx, int status) except -1
# Releases all locks and reserved quota of an aborted transaction, and stores the new abort counts.
cdef int release_all(TransactionBase tx) except -1
# Stores, with the current unit, the abort counts of the messages that the operations from `index` to `end` - 1 have received.
cdef int put_counts(TransactionBase tx, size_t index, size_t end, uint32_t more) except -1
