# The stored data: read directly through tables, or ahead of need by a reader. lmdbstore.pxd implements it over LMDB, memorystore.pxd in
# memory.

# To add a table: 1. give it the next number here, before TABLE_COUNT; 2. give it the same number in `Table` (store/schema.py), whose head
# describes its use. STORE_TABLES (batch_store.h) is the largest count. A store of an earlier version gets the table when it is opened for
# writing; before that, opening it with read_only=True fails with MDB_NOTFOUND.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from msmq_fast._native.record cimport PositionRecord


cdef enum Table:
    # The named databases that native code writes; store/schema.py has the same numbers.
    TABLE_META = 0
    TABLE_POSITION = 1      # queue ordinal u32 BE | LookupIdentifier u64 BE -> position record
    TABLE_CONTENT = 2       # content id u64 BE | chunk u16 BE -> version u8, packet bytes
    TABLE_FEED = 3          # first event number u64 BE -> packed events of one commit
    TABLE_HISTORY = 4       # first entry number u64 BE -> packed duplicate-history entries of one commit
    TABLE_QUEUE = 5
    TABLE_QUEUE_INDEX = 6
    TABLE_DIRECTORY = 7
    TABLE_SEQUENCE = 8      # per-stream transactional sequence state
    TABLE_COUNT


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
