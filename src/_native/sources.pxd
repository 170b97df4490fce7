# The GUIDs of the queue managers that sent the messages in memory, each stored once.

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum:
    SOURCE_NONE = 0             # no source is known

cdef struct Source:
    uint8_t guid[16]
    uint32_t references         # 0: the entry is free
    uint32_t next               # in the chain of its bucket, or of the free entries; 0 ends it


@cython.final
cdef class SourceTable:
    cdef Source* _entries       # entry 0 is not used
    cdef uint32_t* _heads       # as many buckets as entries, a power of two
    cdef uint32_t _capacity
    cdef uint32_t _free
    cdef uint32_t _latest       # the last result: messages of one source often arrive together
    cdef uint64_t _seed
    cdef readonly uint32_t live
    # Returns the number of `guid` (16 bytes), with one more reference to it.
    cdef uint32_t intern(self, const uint8_t* guid) except 0
    cdef void retain(self, uint32_t number) noexcept nogil
    cdef void release(self, uint32_t number) noexcept nogil
    # Returns 16 bytes, valid until the next intern; zeros for SOURCE_NONE.
    cdef const uint8_t* guid(self, uint32_t number) noexcept nogil
    cdef uint32_t _bucket(self, const uint8_t* guid) noexcept nogil
    cdef int _grow(self) except -1
