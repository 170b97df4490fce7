# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A set of request ids, like a Python set of ints but without an object for each."""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SMALLEST = 16               # places; a power of two


cdef class RequestIds:
    """The ids of the requests of one connection that have no reply yet. A hash table, of which at most half is in use."""

    def __cinit__(self):
        self._mask = SMALLEST - 1
        self._places = <uint64_t*>PyMem_Calloc(SMALLEST, sizeof(uint64_t))
        if self._places == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self._places)

    def __len__(self) -> int:
        return self.count

    def __contains__(self, uint32_t number) -> bool:
        return self.has(number)

    def add(self, uint32_t number) -> None:
        """Adds an id. Has no effect if it is in the set."""
        self.put(number)

    def discard(self, uint32_t number) -> None:
        """Removes an id. Has no effect if it is not in the set."""
        self.drop(number)

    cdef inline uint32_t _home(self, uint64_t entry) noexcept:
        return <uint32_t>((entry * 0x9E3779B97F4A7C15ULL) >> 32) & self._mask

    cdef bint has(self, uint32_t number) noexcept:
        cdef uint64_t entry = <uint64_t>number + 1
        cdef uint32_t place = self._home(entry)
        while self._places[place]:
            if self._places[place] == entry:
                return True
            place = (place + 1) & self._mask
        return False

    cdef int put(self, uint32_t number) except -1:
        cdef uint64_t entry = <uint64_t>number + 1
        cdef uint32_t place
        if self.has(number):
            return 0
        if 2 * (self.count + 1) > self._mask:
            self._grow()
        place = self._home(entry)
        while self._places[place]:
            place = (place + 1) & self._mask
        self._places[place] = entry
        self.count += 1
        return 0

    cdef void drop(self, uint32_t number) noexcept:
        cdef uint64_t entry = <uint64_t>number + 1
        cdef uint32_t place = self._home(entry), following
        while self._places[place] != entry:
            if not self._places[place]:
                return
            place = (place + 1) & self._mask
        self.count -= 1
        # Entries after it move up, so that no gap ends a search too early.
        following = place
        while True:
            following = (following + 1) & self._mask
            if not self._places[following]:
                break
            if (following - self._home(self._places[following])) & self._mask >= (following - place) & self._mask:
                self._places[place] = self._places[following]
                place = following
        self._places[place] = 0

    cdef int _grow(self) except -1:
        cdef uint64_t* old = self._places
        cdef uint32_t i, place, capacity = self._mask + 1
        cdef uint64_t* grown = <uint64_t*>PyMem_Calloc(2 * <size_t>capacity, sizeof(uint64_t))
        if grown == NULL:
            raise MemoryError
        self._places = grown
        self._mask = 2 * capacity - 1
        for i in range(capacity):
            if old[i]:
                place = self._home(old[i])
                while grown[place]:
                    place = (place + 1) & self._mask
                grown[place] = old[i]
        PyMem_Free(old)
        return 0
