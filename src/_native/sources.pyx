# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Interned GUIDs of source queue managers, so that a slot of a position list refers to its source in four bytes.

References are counted: the table never has more GUIDs than there are messages, whatever GUIDs senders choose.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset


cdef class SourceTable:
    """``SourceTable(seed=0)``: the GUIDs, each with a number and a count of references. A random `seed` keeps senders from choosing GUIDs
    that all fall into one bucket.
    """

    def __cinit__(self, uint64_t seed=0):
        self._seed = seed
        self._grow()

    def __dealloc__(self):
        free(self._entries)
        free(self._heads)

    cdef uint32_t _bucket(self, const uint8_t* guid) noexcept nogil:
        cdef uint64_t low, high
        memcpy(&low, guid, 8)
        memcpy(&high, guid + 8, 8)
        low = (low ^ self._seed) * <uint64_t>0x9E3779B97F4A7C15
        low = (low ^ (low >> 29) ^ high ^ self._seed) * <uint64_t>0xBF58476D1CE4E5B9
        return <uint32_t>(low >> 32) & (self._capacity - 1)

    cdef int _grow(self) except -1:
        """Doubles the number of entries and rebuilds all chains."""
        cdef uint32_t capacity = self._capacity * 2 if self._capacity else 16
        cdef uint32_t number, bucket
        cdef uint32_t* heads
        cdef Source* entries
        if capacity == 0:
            raise MemoryError("no memory for sources of messages")
        heads = <uint32_t*>calloc(capacity, sizeof(uint32_t))
        entries = <Source*>realloc(self._entries, capacity * sizeof(Source)) if heads != NULL else NULL
        if entries == NULL:
            free(heads)
            raise MemoryError("no memory for sources of messages")
        memset(&entries[self._capacity], 0, (capacity - self._capacity) * sizeof(Source))
        free(self._heads)
        self._entries, self._heads, self._capacity = entries, heads, capacity
        self._free = 0
        for number in range(capacity - 1, 0, -1):
            if entries[number].references:
                bucket = self._bucket(entries[number].guid)
                entries[number].next = heads[bucket]
                heads[bucket] = number
            else:
                entries[number].next = self._free
                self._free = number
        return 0

    cdef uint32_t intern(self, const uint8_t* guid) except 0:
        cdef uint32_t number = self._latest, bucket
        if number and self._entries[number].references and memcmp(self._entries[number].guid, guid, 16) == 0:
            self._entries[number].references += 1
            return number
        number = self._heads[self._bucket(guid)]
        while number and memcmp(self._entries[number].guid, guid, 16):
            number = self._entries[number].next
        if number == 0:
            if self._free == 0:
                self._grow()
            bucket = self._bucket(guid)
            number = self._free
            self._free = self._entries[number].next
            memcpy(self._entries[number].guid, guid, 16)
            self._entries[number].references = 0
            self._entries[number].next = self._heads[bucket]
            self._heads[bucket] = number
            self.live += 1
        self._entries[number].references += 1
        self._latest = number
        return number

    cdef void retain(self, uint32_t number) noexcept nogil:
        if number:
            self._entries[number].references += 1

    cdef void release(self, uint32_t number) noexcept nogil:
        cdef uint32_t* link
        cdef Source* entry = &self._entries[number]
        if number == SOURCE_NONE:
            return
        entry.references -= 1
        if entry.references:
            return
        link = &self._heads[self._bucket(entry.guid)]
        while link[0] != number:
            link = &self._entries[link[0]].next
        link[0] = entry.next
        entry.next = self._free
        self._free = number
        self.live -= 1

    cdef const uint8_t* guid(self, uint32_t number) noexcept nogil:
        return self._entries[number].guid

    # By value, for tests and code that handles single messages.

    def add(self, bytes guid not None) -> int:
        """Returns the number of a GUID, and adds one reference to it. Raises ValueError if the GUID does not have 16 bytes."""
        if len(guid) != 16:
            raise ValueError("a GUID has 16 bytes")
        return self.intern(<const uint8_t*><char*>guid)

    def drop(self, uint32_t number) -> None:
        """Removes one reference. Raises KeyError if the number is unused."""
        if number == 0 or number >= self._capacity or self._entries[number].references == 0:
            raise KeyError(number)
        self.release(number)

    def get(self, uint32_t number) -> bytes:
        """Returns the GUID of a number. Raises KeyError if the number is unused."""
        if number == 0 or number >= self._capacity or self._entries[number].references == 0:
            raise KeyError(number)
        return (<const char*>self._entries[number].guid)[:16]
