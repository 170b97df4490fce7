# What is durable: read cold by tables, or ahead of need by a reader. Over LMDB: lmdbstore.pxd; in memory: memorystore.pxd.
# store/schema.py says how to add a table; tablenumbers.pxd has the numbers for native code.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from msmq_fast._native.record cimport PositionRecord


cdef class ReadListener:
    # body is None when status is not STATUS_OK
    cdef int body_read(self, uint64_t token, object body, int status) except -1


cdef class PositionVisitor:
    """Given every stored position at start, in key order (REC-04)."""
    cdef int begin_queue(self, uint32_t queue) except -1
    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1


cdef class Tables:
    """What is durable, for cold reads on the loop: start-up, tools, tests."""
    # Positions without bodies, in key order; no Python object is made per position.
    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0


cdef class Reader:
    # Reads a body on the native reader thread; the listener hears of it on the loop.
    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1
    cpdef int complete(self) except -1


# One position as it is stored, for `load_positions`; `queue` is the ordinal of the one before, or -1.
cdef int visit(PositionVisitor visitor, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size, int64_t* queue) except -1
