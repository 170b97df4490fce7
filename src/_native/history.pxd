# Message identifiers that arrived before (MS-MQQB 3.1.5.8.1): a bounded table in the order of the last sighting.

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport Batch, CommitListener, Writer


cdef enum:
    IDENTIFIER_SIZE = 20        # source queue manager GUID, then MessageID


cdef enum Sighting:
    SIGHTING_NEW = 0
    SIGHTING_DURABLE = 1        # arrived before and its disposition is settled
    SIGHTING_PENDING = 2        # arrived before, its commit is under way


cdef struct HistoryEntry:
    uint8_t identifier[IDENTIFIER_SIZE]
    uint32_t seen               # Unix seconds
    uint64_t generation         # 0: durable or express
    int32_t older, newer        # neighbours in the order of sighting, -1 at the ends


@cython.final
cdef class DuplicateHistory(CommitListener):
    cdef HistoryEntry* _entries
    cdef int32_t* _slots        # hash table: index of an entry, -1 for none
    cdef uint64_t _mask
    cdef int32_t _capacity, _count, _free, _oldest, _newest
    cdef uint64_t _generation   # of the newest batch that holds pending entries
    cdef Batch* _batch          # that batch, unless it has ended
    cdef uint64_t _settled      # every generation up to this one is durable
    cdef public uint32_t lifetime
    # What is known of an identifier; a hit is refreshed. Nothing is inserted.
    cdef Sighting sight(self, const uint8_t* identifier, uint32_t now) noexcept
    # With a writer the entry shares the fate of its current batch: to be called inside the unit that stores the message.
    cdef int remember(self, const uint8_t* identifier, uint32_t now, Writer writer) except -1
    cdef int _attach(self, Writer writer) except -1
    cdef bint knows(self, const uint8_t* identifier) noexcept
    cdef int32_t _find(self, const uint8_t* identifier) noexcept
    cdef void _unlink(self, int32_t index) noexcept
    cdef void _link_newest(self, int32_t index) noexcept
    cdef void _forget(self, int32_t index) noexcept
