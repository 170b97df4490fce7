# cython: boundscheck=False, wraparound=False, cdivision=True
"""DuplicateHistory: the message identifiers that arrived before (MS-MQQB 3.1.1.3, 3.1.5.8.1, 3.1.6.7)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

NEW = SIGHTING_NEW
DURABLE = SIGHTING_DURABLE
PENDING = SIGHTING_PENDING


cdef inline uint64_t _hash(const uint8_t* identifier) noexcept nogil:
    # The MessageID changes from message to message, the GUID from sender to sender.
    cdef uint64_t low, high
    cdef uint32_t ordinal
    memcpy(&low, identifier, 8)
    memcpy(&high, identifier + 8, 8)
    memcpy(&ordinal, identifier + 16, 4)
    low = (low ^ (high * <uint64_t>0x9E3779B97F4A7C15) ^ ordinal) * <uint64_t>0xBF58476D1CE4E5B9
    low ^= low >> 29
    low *= <uint64_t>0x94D049BB133111EB
    return low ^ (low >> 32)


cdef class DuplicateHistory(CommitListener):
    """At most `capacity` message identifiers, each with the time at which it was seen last.

    A message is remembered when it is accepted: an express one at once, a recoverable one as pending until the commit
    that stores it is durable. If that commit fails its identifier is forgotten, so that a repetition is accepted.
    `lifetime` is in seconds.
    """

    def __cinit__(self, int capacity=10_000, uint32_t lifetime=1_800):
        cdef uint64_t slots = 16
        cdef int32_t index
        if not 1 <= capacity <= 100_000_000:
            raise ValueError("capacity must be between 1 and 100,000,000")
        while slots < <uint64_t>capacity * 2:
            slots *= 2
        self._capacity = capacity
        self.lifetime = lifetime
        self._mask = slots - 1
        self._entries = <HistoryEntry*>malloc(capacity * sizeof(HistoryEntry))
        self._slots = <int32_t*>malloc(slots * sizeof(int32_t))
        if self._entries == NULL or self._slots == NULL:
            raise MemoryError
        for index in range(<int32_t>slots):
            self._slots[index] = -1
        for index in range(capacity):
            self._entries[index].newer = index + 1 if index + 1 < capacity else -1
        self._free = 0
        self._oldest = self._newest = -1

    def __dealloc__(self):
        free(self._entries)
        free(self._slots)

    def __len__(self) -> int:
        return self._count

    @property
    def capacity(self) -> int:
        """The greatest number of identifiers."""
        return self._capacity

    cdef int32_t _find(self, const uint8_t* identifier) noexcept:
        cdef uint64_t slot = _hash(identifier) & self._mask
        cdef int32_t index = self._slots[slot]
        while index >= 0:
            if memcmp(self._entries[index].identifier, identifier, IDENTIFIER_SIZE) == 0:
                return index
            slot = (slot + 1) & self._mask
            index = self._slots[slot]
        return -1

    cdef void _unlink(self, int32_t index) noexcept:
        cdef HistoryEntry* entry = &self._entries[index]
        if entry.older >= 0:
            self._entries[entry.older].newer = entry.newer
        else:
            self._oldest = entry.newer
        if entry.newer >= 0:
            self._entries[entry.newer].older = entry.older
        else:
            self._newest = entry.older

    cdef void _link_newest(self, int32_t index) noexcept:
        cdef HistoryEntry* entry = &self._entries[index]
        entry.older = self._newest
        entry.newer = -1
        if self._newest >= 0:
            self._entries[self._newest].newer = index
        else:
            self._oldest = index
        self._newest = index

    cdef void _forget(self, int32_t index) noexcept:
        # Backward-shift deletion keeps every probe sequence without gaps.
        cdef uint64_t hole = _hash(self._entries[index].identifier) & self._mask
        cdef uint64_t slot, home
        while self._slots[hole] != index:
            hole = (hole + 1) & self._mask
        slot = hole
        while True:
            slot = (slot + 1) & self._mask
            if self._slots[slot] < 0:
                break
            home = _hash(self._entries[self._slots[slot]].identifier) & self._mask
            if ((slot - home) & self._mask) >= ((slot - hole) & self._mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
        self._slots[hole] = -1
        self._unlink(index)
        self._entries[index].newer = self._free
        self._free = index
        self._count -= 1

    cdef Sighting sight(self, const uint8_t* identifier, uint32_t now) noexcept:
        cdef int32_t index = self._find(identifier)
        cdef HistoryEntry* entry
        if index < 0:
            return SIGHTING_NEW
        entry = &self._entries[index]
        entry.seen = now
        if index != self._newest:
            self._unlink(index)
            self._link_newest(index)
        return SIGHTING_PENDING if entry.generation > self._settled else SIGHTING_DURABLE

    cdef bint knows(self, const uint8_t* identifier) noexcept:
        return self._find(identifier) >= 0

    cdef int remember(self, const uint8_t* identifier, uint32_t now, Writer writer) except -1:
        cdef int32_t index
        cdef uint64_t slot
        cdef HistoryEntry* entry
        if writer is not None:
            self._attach(writer)
        index = self._find(identifier)
        if index >= 0:
            self._unlink(index)
        else:
            if self._count == self._capacity:
                self._forget(self._oldest)
            index = self._free
            self._free = self._entries[index].newer
            memcpy(self._entries[index].identifier, identifier, IDENTIFIER_SIZE)
            slot = _hash(identifier) & self._mask
            while self._slots[slot] >= 0:
                slot = (slot + 1) & self._mask
            self._slots[slot] = index
            self._count += 1
        entry = &self._entries[index]
        entry.seen = now
        entry.generation = 0 if writer is None else self._generation
        self._link_newest(index)
        return 0

    cdef int _attach(self, Writer writer) except -1:
        # A batch that was told of once is not used for anything else before it has ended.
        if self._batch == writer._current and self._generation > self._settled:
            return 0
        writer.notify(self, self._generation + 1)
        self._generation += 1
        self._batch = writer._current
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef int32_t index, older
        if status != 0:
            index = self._newest
            while index >= 0:
                older = self._entries[index].older
                if self._entries[index].generation == token:
                    self._forget(index)
                index = older
        if token > self._settled:
            self._settled = token
        return 0

    cdef int settled(self) except -1:
        return 0

    def check(self, bytes identifier not None, uint32_t now) -> int:
        """NEW, DURABLE or PENDING for the 20 bytes of an identifier; a hit gets the time `now` (Unix seconds)."""
        if PyBytes_GET_SIZE(identifier) != IDENTIFIER_SIZE:
            raise ValueError("a message identifier has 20 bytes")
        return self.sight(<const uint8_t*>PyBytes_AS_STRING(identifier), now)

    def add(self, bytes identifier not None, uint32_t now, Writer writer=None) -> None:
        """Remember an accepted message; the entry with the earliest time makes room for it.

        With a `writer` it is pending until the batch that this is gathering has ended.
        """
        if PyBytes_GET_SIZE(identifier) != IDENTIFIER_SIZE:
            raise ValueError("a message identifier has 20 bytes")
        self.remember(<const uint8_t*>PyBytes_AS_STRING(identifier), now, writer)

    def expire(self, uint32_t now) -> int:
        """Forget what was seen more than `lifetime` seconds before `now`; returns how many that were."""
        cdef int expired = 0
        while self._oldest >= 0 and <uint64_t>self._entries[self._oldest].seen + self.lifetime < now:
            self._forget(self._oldest)
            expired += 1
        return expired

    def identifiers(self) -> list:
        """(identifier, seen) from the earliest to the latest sighting."""
        cdef int32_t index = self._oldest
        result = []
        while index >= 0:
            result.append(
                (
                    PyBytes_FromStringAndSize(<char*>self._entries[index].identifier, IDENTIFIER_SIZE),
                    self._entries[index].seen,
                )
            )
            index = self._entries[index].newer
        return result
