# A set of request ids, like a Python set of ints but without an object for each.

cimport cython
from libc.stdint cimport uint32_t, uint64_t


@cython.final
cdef class RequestIds:
    cdef uint64_t* _places          # 1 + id, or 0: open addressing with linear probing
    cdef uint32_t _mask             # the number of places, a power of two, minus 1
    cdef uint32_t count             # ids in the set
    cdef bint has(self, uint32_t number) noexcept
    cdef int put(self, uint32_t number) except -1
    cdef void drop(self, uint32_t number) noexcept
    cdef inline uint32_t _home(self, uint64_t entry) noexcept
    cdef int _grow(self) except -1
