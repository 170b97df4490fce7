"""The base classes for reading stored data, and the code that the store on disk and the store in memory share."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from msmq_fast._native.lmdbapi cimport MDB_CORRUPTED
from msmq_fast._native.record cimport (
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_VERSION,
    PackHead,
    PositionRecord,
    load_be32,
    load_be64,
    position_size,
)
from msmq_fast._native.tablenumbers cimport TABLE_CONTENT, TABLE_COUNT

from msmq_fast.store import schema

DATABASES = tuple([table.name.lower().encode() for table in schema.Table])
if len(DATABASES) != TABLE_COUNT:
    raise ImportError("store/decode.py has other tables than the native modules: rebuild the native modules")

FIRST_TABLES = 9
"""The tables that every store has. Later ones are made when a store is opened for writing."""


class StoreError(Exception):
    """Raised if the store rejects an operation or has failed; `status` is an errno, or an MDB_* code (negative)."""

    def __init__(self, message, int status=0):
        super().__init__(message)
        self.status = status


cdef class PositionVisitor:
    cdef int begin_queue(self, uint32_t queue) except -1:
        raise NotImplementedError

    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1:
        raise NotImplementedError

    def damage(self, bytes key, str problem):
        """Raises StoreError for a record that is not a valid position; a subclass may override this method and skip the record."""
        raise StoreError(f"damaged position record, key {key.hex()}: {problem}", MDB_CORRUPTED)


cdef class _Packer(PositionVisitor):
    """Collects the positions of each queue as one bytearray of rows; a row is the LookupIdentifier (u64, little-endian) and the position
    record.
    """
    cdef dict queues
    cdef bytearray rows

    def __cinit__(self):
        self.queues = {}

    cdef int begin_queue(self, uint32_t queue) except -1:
        self.rows = self.queues[queue] = bytearray()
        return 0

    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1:
        self.rows += (<char*>&lookup_id)[:8]
        self.rows += (<char*>record)[:sizeof(PositionRecord)]
        return 0


cdef int visit(PositionVisitor visitor, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size, int64_t* queue) except -1:
    cdef uint32_t ordinal
    cdef const PositionRecord* record = <const PositionRecord*>value
    if key_size != POSITION_KEY_SIZE or size < sizeof(PositionRecord) or size < position_size(record) or \
            (record.version != POSITION_VERSION and record.version != POSITION_NUMBERED):
        visitor.damage((<char*>key)[:key_size], "not a position record of a known version")
        return 0
    ordinal = load_be32(key)
    if ordinal != queue[0]:
        queue[0] = ordinal
        visitor.begin_queue(ordinal)
    visitor.position(load_be64(key + 4), record)
    return 0


cdef class Tables:
    """The stored data, for direct reads that block the loop: at start-up, in tools and tests."""

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        raise NotImplementedError

    def pack_positions(self):
        """Returns all positions as {queue ordinal: bytearray of rows}. A row is the LookupIdentifier (u64, little-endian) and the position
        record.
        """
        cdef _Packer packer = _Packer()
        self.load_positions(packer)
        return {queue: bytes(rows) for queue, rows in packer.queues.items()}

    def next_number(self, int table):
        """Returns the number that the next entry of the feed or of the duplicate history gets, according to the stored records."""
        last = self.last(table)
        if last is None:
            return 1
        key, value = last
        size = int.from_bytes(value[2:4], "little")
        count = int.from_bytes(value[4:8], "little")
        number = int.from_bytes(key, "big") + count
        if len(key) != 8 or len(value) != <Py_ssize_t>sizeof(PackHead) + size * count or number >> 63:
            raise StoreError(f"damaged packed record, key {key.hex()}", MDB_CORRUPTED)
        return number

    def last_content(self):
        """The greatest content id that is stored, or 0."""
        last = self.last(TABLE_CONTENT)
        return 0 if last is None else int.from_bytes(last[0][:8], "big")


cdef class ReadListener:
    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        raise NotImplementedError


cdef class BodyCallback(ReadListener):
    """Calls a Python function with (packet or None, status); for rare operations and tests."""
    cdef object function

    def __cinit__(self, function):
        self.function = function

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        self.function(body, status)
        return 0


cdef class Reader:
    """Reads packets by content id without blocking the loop while a page is read from disk."""

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        raise NotImplementedError

    cpdef int complete(self) except -1:
        raise NotImplementedError

    def read(self, uint64_t content_id, uint32_t size, function):
        """Starts to read a packet of `size` bytes. Calls function(packet or None, status) on the loop."""
        self.fetch(content_id, size, BodyCallback(function), 0)
