# The store in memory, for tests and simulators: deterministic doubles of lmdbstore.pxd.

from libc.stdint cimport uint64_t
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.gather cimport Batch, BatchList
from msmq_fast._native.tables cimport Reader, Tables


cdef class MemoryTables(Tables):
    cdef readonly list tables       # one dict of bytes for each table


cdef class MemoryWriter(Writer):
    """For tests and simulators: loses uncommitted batches in a crash, and commits on request."""
    cdef readonly MemoryTables tables
    cdef BatchList _flying, _done
    cdef uint64_t _calls, _fail_call, _commits, _fail_commit
    cdef int _fail_status
    cdef uint64_t _failed_number    # of the last batch that failed, and why
    cdef int _failed_status
    cdef int _drop(self)
    cdef int _apply(self, Batch* batch) except -1


cdef class MemoryReader(Reader):
    cdef MemoryTables _tables
    cdef list _requests             # (content id, size, listener, token)
