# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The MessagePositionList of one queue (MS-MQDMPR 3.1.1.11, 3.1.7.3.5): eight priority bands of sorted slots.

A band is a ring of fixed slots in ascending order of LookupIdentifier. Appending and removing at the head are O(1), finding a key is O(log
n), and an insert out of order shifts the shorter side. A slot that is removed in the middle stays as a tombstone until half of the band
consists of tombstones. Two hints per band keep the search for the first available (or pending) slot from examining the same locked slots
again.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

assert sizeof(Slot) == 72


cdef inline uint64_t index_of(Band* band, Slot* slot) noexcept nogil:
    return band.head + (((<uint64_t>(slot - band.slots)) - band.head) & (band.capacity - 1))


cdef class PositionList:
    """Slots of one queue, ordered by (priority descending, arrival)."""

    def __cinit__(self):
        memset(&self._bands[0], 0, sizeof(self._bands))

    def __dealloc__(self):
        cdef int number
        cdef uint64_t index
        cdef Band* band
        for number in range(BANDS):
            band = &self._bands[number]
            for index in range(band.head, band.tail):
                Py_XDECREF(at(band, index).body)
            free(band.slots)

    cdef int _grow(self, Band* band) except -1:
        cdef uint64_t capacity = band.capacity * 2 if band.capacity else 16
        cdef Slot* slots = <Slot*>calloc(capacity, sizeof(Slot))
        cdef uint64_t index
        if slots == NULL:
            raise MemoryError("no memory for message positions")
        for index in range(band.head, band.tail):
            slots[index & (capacity - 1)] = at(band, index)[0]
        free(band.slots)
        band.slots = slots
        band.capacity = capacity
        return 0

    cdef Slot* insert(self, uint64_t key, int state) except NULL:
        """Inserts a slot for `key` with this state; its other fields are 0. Raises ValueError if the key exists, or if its high byte is not
        a priority band (0 to 7).
        """
        cdef Band* band
        cdef Slot* slot
        cdef uint64_t index, moved
        if (key >> 56) >= BANDS:
            raise ValueError("the high byte of a key must be a priority band from 0 to 7")
        band = &self._bands[key >> 56]
        if band.tail - band.head == band.capacity:
            if band.capacity >= 64 and band.live * 2 < band.capacity:
                self._compact(band)
            else:
                self._grow(band)
        if band.head == band.tail or at(band, band.tail - 1).key < key:
            index = band.tail
            band.tail += 1
        else:
            index = lower_bound(band, key)
            slot = at(band, index)
            if slot.key == key:
                if slot.state != STATE_DELETED:
                    raise ValueError("the position list already has this key")
            elif index - band.head < band.tail - index and band.head > 0:
                # The side before `index` is shorter, so it moves down by one.
                band.head -= 1
                for moved in range(band.head, index - 1):
                    at(band, moved)[0] = at(band, moved + 1)[0]
                index -= 1
                band.available_hint -= 1 if band.available_hint > band.head else 0
                band.pending_hint -= 1 if band.pending_hint > band.head else 0
            else:
                moved = band.tail
                band.tail += 1
                while moved > index:
                    at(band, moved)[0] = at(band, moved - 1)[0]
                    moved -= 1
            if index < band.available_hint:
                band.available_hint = index
            if index < band.pending_hint:
                band.pending_hint = index
        slot = at(band, index)
        memset(slot, 0, sizeof(Slot))
        slot.key = key
        slot.deadline = NO_DEADLINE
        slot.timer = NO_TIMER
        band.live += 1
        self.live += 1
        self._count_in(band, slot, index, state)
        return slot

    cdef Slot* find(self, uint64_t key) noexcept nogil:
        """The slot of `key`, or NULL."""
        cdef Band* band
        cdef Slot* slot
        cdef uint64_t index
        if (key >> 56) >= BANDS:
            return NULL
        band = &self._bands[key >> 56]
        if band.head == band.tail:
            return NULL
        slot = at(band, band.head)
        if slot.key != key:
            index = lower_bound(band, key)
            if index == band.tail:
                return NULL
            slot = at(band, index)
            if slot.key != key:
                return NULL
        return slot if slot.state != STATE_DELETED else NULL

    cdef Slot* first_available(self) noexcept nogil:
        """The first AVAILABLE slot, or NULL."""
        return self.first_takeable(False)

    cdef Slot* first_takeable(self, bint pending) noexcept nogil:
        """The first AVAILABLE slot; with `pending`, the first slot that is AVAILABLE or PENDING. NULL if there is none."""
        cdef Band* band
        cdef Slot* slot
        cdef int number
        cdef uint64_t index, best
        if self.available == 0 and (not pending or self.pending == 0):
            return NULL
        for number in range(BANDS):
            band = &self._bands[number]
            best = band.tail
            if band.available:
                index = band.available_hint
                if index < band.head:
                    index = band.head
                while at(band, index).state != STATE_AVAILABLE:
                    index += 1
                band.available_hint = index
                best = index
            if pending and band.pending:
                index = band.pending_hint
                if index < band.head:
                    index = band.head
                while at(band, index).state != STATE_PENDING:
                    index += 1
                band.pending_hint = index
                if index < best:
                    best = index
            if best < band.tail:
                return at(band, best)
        return NULL

    cdef Slot* last_available(self) noexcept nogil:
        """The last AVAILABLE slot, or NULL."""
        return self.preceding(<uint64_t>0xFFFFFFFFFFFFFFFF, 1 << STATE_AVAILABLE)

    cdef Slot* following(self, uint64_t key, uint32_t states) noexcept nogil:
        """The first slot after `key` whose state is in `states` (bits 1 << state), or NULL."""
        cdef int number
        cdef Band* band
        cdef Slot* slot
        cdef uint64_t index
        if (key >> 56) >= BANDS:
            return NULL
        for number in range(<int>(key >> 56), BANDS):
            band = &self._bands[number]
            if band.live == 0 or (states == 1 << STATE_AVAILABLE and band.available == 0):
                continue
            if states == 1 << STATE_PENDING and band.pending == 0:
                continue
            index = lower_bound(band, key + 1)
            if states == 1 << STATE_PENDING and index < band.pending_hint:
                index = band.pending_hint
            if states == 1 << STATE_AVAILABLE and index < band.available_hint:
                index = band.available_hint
            while index < band.tail:
                slot = at(band, index)
                if slot.state != STATE_DELETED and (1 << slot.state) & states:
                    return slot
                index += 1
        return NULL

    cdef Slot* preceding(self, uint64_t key, uint32_t states) noexcept nogil:
        """The last slot before `key` whose state is in `states` (bits 1 << state), or NULL."""
        cdef int number
        cdef Band* band
        cdef Slot* slot
        cdef uint64_t index
        number = <int>(key >> 56) if (key >> 56) < BANDS else BANDS - 1
        while number >= 0:
            band = &self._bands[number]
            if band.live and (states != 1 << STATE_AVAILABLE or band.available):
                index = lower_bound(band, key)
                while index > band.head:
                    index -= 1
                    slot = at(band, index)
                    if slot.state != STATE_DELETED and (1 << slot.state) & states:
                        return slot
            number -= 1
        return NULL

    cdef void set_state(self, Slot* slot, int state) noexcept nogil:
        """Changes the state of a live slot, and updates counts and hints. To delete a slot, call `remove` instead."""
        cdef Band* band = &self._bands[slot.key >> 56]
        if slot.state == STATE_AVAILABLE:
            band.available -= 1
            self.available -= 1
        elif slot.state == STATE_PENDING:
            band.pending -= 1
            self.pending -= 1
        elif slot.state == STATE_PURGE_PENDING:
            self.purge_pending -= 1
        self._count_in(band, slot, index_of(band, slot), state)

    cdef inline void _count_in(self, Band* band, Slot* slot, uint64_t index, int state) noexcept nogil:
        """Counts a slot in this state. The slot must not be counted in any state before."""
        slot.state = <uint8_t>state
        if state == STATE_AVAILABLE:
            band.available += 1
            self.available += 1
            if index < band.available_hint or band.available == 1:
                band.available_hint = index
        elif state == STATE_PENDING:
            band.pending += 1
            self.pending += 1
            if index < band.pending_hint or band.pending == 1:
                band.pending_hint = index
        elif state == STATE_PURGE_PENDING:
            self.purge_pending += 1

    cdef void set_body(self, Slot* slot, object body) noexcept:
        """Sets the packet (bytes) of the slot, or removes it (None)."""
        cdef PyObject* old = slot.body
        if body is None:
            slot.body = NULL
        else:
            Py_INCREF(body)
            slot.body = <PyObject*>body
        Py_XDECREF(old)

    cdef void remove(self, Slot* slot) noexcept:
        """Removes a live slot and releases its body."""
        cdef Band* band = &self._bands[slot.key >> 56]
        cdef PyObject* body = slot.body
        self.set_state(slot, STATE_DELETED)
        slot.body = NULL
        band.live -= 1
        self.live -= 1
        if band.live == 0:
            band.head = band.tail
        else:
            while at(band, band.head).state == STATE_DELETED:
                band.head += 1
            while at(band, band.tail - 1).state == STATE_DELETED:
                band.tail -= 1
            if band.tail - band.head > 64 and band.live * 2 < band.tail - band.head:
                self._compact(band)
        Py_XDECREF(body)

    cdef Slot* adopt(self, PositionList other, Slot* slot) except NULL:
        """Moves a live slot of `other` into this list. Raises ValueError if the key exists."""
        cdef Slot* mine = self.insert(slot.key, slot.state)
        mine[0] = slot[0]
        slot.body = NULL
        other.remove(slot)
        return mine

    cdef void _compact(self, Band* band) noexcept nogil:
        cdef uint64_t source, target = band.head
        for source in range(band.head, band.tail):
            if at(band, source).state != STATE_DELETED:
                if source != target:
                    at(band, target)[0] = at(band, source)[0]
                target += 1
        band.tail = target
        band.available_hint = band.head
        band.pending_hint = band.head

    def __len__(self) -> int:
        return self.live

    def allocated_bytes(self) -> int:
        """The size of the memory of all bands in bytes."""
        cdef int number
        cdef uint64_t total = 0
        for number in range(BANDS):
            total += self._bands[number].capacity * sizeof(Slot)
        return total

    def keys(self) -> list:
        """The keys of all slots that are not deleted, in queue order."""
        cdef int number
        cdef uint64_t index
        cdef Band* band
        result = []
        for number in range(BANDS):
            band = &self._bands[number]
            for index in range(band.head, band.tail):
                if at(band, index).state != STATE_DELETED:
                    result.append(at(band, index).key)
        return result

    # Access by key, for code that handles single messages. The values of states are those of the declarations.

    def add(self, uint64_t key, int state=STATE_AVAILABLE, uint32_t size=0) -> None:
        """Insert a slot. Raises ValueError if the key exists, if its high byte is above 7, or for an unknown state."""
        if not 1 <= state <= STATE_PURGE_PENDING:
            raise ValueError(f"a position has no state {state}")
        self.insert(key, state).size = size

    def state(self, uint64_t key) -> int:
        """The state of a key, 0 if it is not in the list."""
        cdef Slot* slot = self.find(key)
        return slot.state if slot != NULL else 0

    def change(self, uint64_t key, int state) -> None:
        """Set the state of a key. Raises KeyError if the key is not in the list, ValueError for an unknown state."""
        cdef Slot* slot = self.find(key)
        if slot == NULL:
            raise KeyError(key)
        if not 1 <= state <= STATE_PURGE_PENDING:
            raise ValueError(f"a position has no state {state}")
        self.set_state(slot, state)

    def discard(self, uint64_t key) -> bool:
        """Remove a key. Returns False if it is not in the list."""
        cdef Slot* slot = self.find(key)
        if slot == NULL:
            return False
        self.remove(slot)
        return True

    def move(self, uint64_t key, PositionList other not None) -> None:
        """Move the slot of a key to another list. Raises KeyError if the key is not in this list."""
        cdef Slot* slot = self.find(key)
        if slot == NULL:
            raise KeyError(key)
        other.adopt(self, slot)

    def oldest(self) -> int:
        """Returns when the oldest message that is not pending arrived, in Unix microseconds; 0 if there is none.

        It examines the head of each band: the messages of a band are in the order of their arrival.
        """
        cdef int number
        cdef uint64_t index, best = 0
        cdef Band* band
        for number in range(BANDS):
            band = &self._bands[number]
            if band.live == band.pending:
                continue
            index = band.head
            while at(band, index).state == STATE_PENDING or at(band, index).state == STATE_DELETED:
                index += 1
            if best == 0 or at(band, index).arrived < best:
                best = at(band, index).arrived
        return best

    def first(self, bint pending=False) -> int | None:
        """Returns the key of the first available position (with `pending`: available or pending), or None."""
        cdef Slot* slot = self.first_takeable(pending)
        return slot.key if slot != NULL else None

    def last(self) -> int | None:
        """Returns the key of the last available position, or None."""
        cdef Slot* slot = self.last_available()
        return slot.key if slot != NULL else None

    def after(self, uint64_t key, int state=STATE_AVAILABLE) -> int | None:
        """Returns the key of the first position after `key` that is in `state`, or None."""
        cdef Slot* slot = self.following(key, 1 << state)
        return slot.key if slot != NULL else None

    def before(self, uint64_t key) -> int | None:
        """Returns the key of the last available position before `key`, or None."""
        cdef Slot* slot = self.preceding(key, 1 << STATE_AVAILABLE)
        return slot.key if slot != NULL else None
