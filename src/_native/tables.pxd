# The stored data: read directly through tables, or ahead of need by a reader. lmdbstore.pxd implements it over LMDB, memorystore.pxd in
# memory.
#
# store/schema.py describes how to add a table; tablenumbers.pxd has the numbers for native code.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from msmq_fast._native.record cimport PositionRecord


cdef class ReadListener:
    # body is None when status is not STATUS_OK
    cdef int body_read(self, uint64_t token, object body, int status) except -1


cdef class PositionVisitor:
    """Called with every stored position at start, in key order (REC-04)."""
    cdef int begin_queue(self, uint32_t queue) except -1
    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1


cdef class Tables:
    """The stored data, for direct reads on the loop: start-up, tools, tests."""
    # Positions without bodies, in key order; no Python object is made per position.
    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0


cdef class Reader:
    # Reads a body on the native reader thread; the listener is called on the loop.
    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1
    cpdef int complete(self) except -1


# Visits one stored position, for `load_positions`; `queue` is the ordinal of the previous one, or -1.
cdef int visit(PositionVisitor visitor, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size, int64_t* queue) except -1
