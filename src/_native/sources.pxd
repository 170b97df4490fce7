# The GUIDs of the queue managers from which the messages in memory come, each kept once.

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
    cdef uint32_t _latest       # the one asked for last: messages of one source come in runs
    cdef uint64_t _seed
    cdef readonly uint32_t live
    # The number of `guid` (16 bytes), with one more reference to it.
    cdef uint32_t intern(self, const uint8_t* guid) except 0
    cdef void retain(self, uint32_t number) noexcept nogil
    cdef void release(self, uint32_t number) noexcept nogil
    # 16 bytes, until the next intern; zero for SOURCE_NONE.
    cdef const uint8_t* guid(self, uint32_t number) noexcept nogil
    cdef uint32_t _bucket(self, const uint8_t* guid) noexcept nogil
    cdef int _grow(self) except -1
