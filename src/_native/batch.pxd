# The durable batch writer and the body reader: declarations for the native modules that feed them.
#
# One Batch is one LMDB transaction. The event loop fills the current batch; `submit` hands it to a native
# thread that never takes the GIL; when it is on disk the thread signals an eventfd and `complete` runs,
# on the loop, every completion in the order in which it was added.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef enum Table:
    # The named databases that native code writes; store/schema.py holds the same numbers.
    TABLE_META = 0
    TABLE_POSITION = 1      # queue ordinal u32 BE | LookupIdentifier u64 BE -> position record
    TABLE_CONTENT = 2       # content id u64 BE | chunk u16 BE -> version u8, packet bytes
    TABLE_FEED = 3          # first event number u64 BE -> packed events of one commit
    TABLE_HISTORY = 4       # first entry number u64 BE -> packed duplicate-history entries of one commit
    TABLE_QUEUE = 5
    TABLE_QUEUE_INDEX = 6
    TABLE_DIRECTORY = 7
    TABLE_SEQUENCE = 8      # per-stream transactional sequence state
    TABLE_COUNT = 9


cdef enum:
    PUT_APPEND = 1          # the key is greater than every key of the table
    STATUS_OK = 0           # anything else handed to a listener is a negative errno or an MDB_* code


cdef class CommitListener:
    """Told, on the event loop, what became of what it put into a batch."""
    cdef bint _settling
    # Once for each completion registered with Writer.notify, in registration order.
    cdef int committed(self, uint64_t token, int status) except -1
    # Once for each batch in which this listener had a completion, after all completions of the batch.
    cdef int settled(self) except -1


cdef class ReadListener:
    # body is None when status is not STATUS_OK
    cdef int body_read(self, uint64_t token, object body, int status) except -1


cdef class Writer:
    # Everything between begin_unit and end_unit lands in one batch (all or nothing); a unit may be empty.
    cdef int begin_unit(self) except -1
    cdef int end_unit(self) except -1
    # `head` is copied; `body` (bytes or None) is referenced until the batch is durable, never copied on the loop.
    # The stored value is head followed by body[offset:offset + length].
    cdef int put(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len,
                 object body, int flags) except -1
    cdef int delete(self, int table, const uint8_t* key, size_t key_len) except -1
    # Content is chunked and read back by content id: one call each way.
    cdef int put_content(self, uint64_t content_id, bytes packet) except -1
    cdef int delete_content(self, uint64_t content_id, uint32_t size) except -1
    # Appended to the one packed record that this commit writes to TABLE_FEED or TABLE_HISTORY; an entry
    # added with ride=1 does not by itself cause a commit.
    cdef uint64_t append_entry(self, int table, const uint8_t* entry, size_t length, bint ride) except? 0
    cdef int notify(self, CommitListener listener, uint64_t token) except -1


cdef class Reader:
    # Reads a body on the native reader thread; the listener hears of it on the loop.
    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1
