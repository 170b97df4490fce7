# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A hierarchical timer wheel (MS-MQDMPR X-03, X-04): a million deadlines without a Python object for any of them.

Deadlines and times are unsigned integers in a unit that the caller chooses. The level of a timer is the highest six-bit digit in which its
deadline differs from the current time of the wheel, and its slot is the value of that digit. Therefore every slot of a level is after the
current time, and the first occupied slot of the lowest level is the next. Starting and stopping are O(1); a timer moves down at most eleven
times.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc

cdef extern from *:
    """
    static inline int lowest_bit(unsigned long long bits) { return __builtin_ctzll(bits); }
    static inline int highest_bit(unsigned long long bits) { return 63 - __builtin_clzll(bits); }
    """
    int lowest_bit(uint64_t bits) noexcept nogil
    int highest_bit(uint64_t bits) noexcept nogil


cdef enum:
    DUE = WHEEL_LEVELS * WHEEL_SLOTS
    HEAD_MARK = 0x80000000
    LIMIT = 0x7FFFFFFF


cdef class TimerWheel:
    """Timers with two integers each. ``TimerWheel(now)``: `now` is the current time of the wheel."""

    def __cinit__(self, uint64_t now=0):
        cdef int number
        self.now = now
        self._free = WHEEL_NONE
        for number in range(DUE + 1):
            self._lists[number] = WHEEL_NONE

    def __dealloc__(self):
        free(self._timers)

    cdef uint32_t start(self, uint64_t deadline, uint64_t first, uint64_t second) except? WHEEL_NONE:
        cdef uint32_t handle, capacity
        cdef Timer* timers
        if self._free == WHEEL_NONE:
            capacity = self._capacity * 2 if self._capacity else 64
            if capacity > LIMIT:
                raise MemoryError("too many timers")
            timers = <Timer*>realloc(self._timers, <size_t>capacity * sizeof(Timer))
            if timers == NULL:
                raise MemoryError("no memory for timers")
            self._timers = timers
            for handle in range(self._capacity, capacity):
                timers[handle].next = self._free
                self._free = handle
            self._capacity = capacity
        handle = self._free
        self._free = self._timers[handle].next
        self._timers[handle].deadline = deadline
        self._timers[handle].first = first
        self._timers[handle].second = second
        self._link(handle)
        self.count += 1
        return handle

    cdef void stop(self, uint32_t handle) noexcept nogil:
        self._unlink(handle)
        self._timers[handle].next = self._free
        self._free = handle
        self.count -= 1

    cdef void _link(self, uint32_t handle) noexcept nogil:
        cdef Timer* timer = &self._timers[handle]
        cdef int level
        cdef uint32_t number = DUE
        if timer.deadline > self.now:
            level = highest_bit(timer.deadline ^ self.now) // 6
            number = level * WHEEL_SLOTS + ((timer.deadline >> (6 * level)) & 63)
            self._occupied[level] |= <uint64_t>1 << (number & 63)
        timer.next = self._lists[number]
        timer.previous = number | HEAD_MARK
        if timer.next != WHEEL_NONE:
            self._timers[timer.next].previous = handle
        self._lists[number] = handle

    cdef void _unlink(self, uint32_t handle) noexcept nogil:
        cdef Timer* timer = &self._timers[handle]
        cdef uint32_t number
        if timer.next != WHEEL_NONE:
            self._timers[timer.next].previous = timer.previous
        if timer.previous & HEAD_MARK:
            number = timer.previous & LIMIT
            self._lists[number] = timer.next
            if timer.next == WHEEL_NONE and number != DUE:
                self._occupied[number // WHEEL_SLOTS] &= ~(<uint64_t>1 << (number & 63))
        else:
            self._timers[timer.previous].next = timer.next

    cdef void advance(self, uint64_t now) noexcept nogil:
        cdef int level, slot
        cdef uint32_t number, handle, following, everything = WHEEL_NONE
        cdef uint64_t begins
        if now < self.now:
            # The clock was set back: timers that were due may not be due any more.
            self.now = now
            for number in range(DUE + 1):
                handle = self._lists[number]
                self._lists[number] = WHEEL_NONE
                while handle != WHEEL_NONE:
                    following = self._timers[handle].next
                    self._timers[handle].next = everything
                    everything = handle
                    handle = following
            for level in range(WHEEL_LEVELS):
                self._occupied[level] = 0
            while everything != WHEEL_NONE:
                following = self._timers[everything].next
                self._link(everything)
                everything = following
            return
        level = 0
        while level < WHEEL_LEVELS:
            if not self._occupied[level]:
                level += 1
                continue
            slot = lowest_bit(self._occupied[level])
            begins = self._slot_begins(level, slot)
            if begins > now:
                break
            self.now = begins
            number = level * WHEEL_SLOTS + slot
            handle = self._lists[number]
            self._lists[number] = WHEEL_NONE
            self._occupied[level] &= ~(<uint64_t>1 << slot)
            while handle != WHEEL_NONE:
                following = self._timers[handle].next
                self._link(handle)
                handle = following
            level = 0
        self.now = now

    cdef uint64_t _slot_begins(self, int level, int slot) noexcept nogil:
        cdef int shift = 6 * level
        cdef uint64_t above = 0
        if shift + 6 < 64:
            above = (self.now >> (shift + 6)) << (shift + 6)
        return above | (<uint64_t>slot << shift)

    cdef bint pop_due(self, Timer* out) noexcept nogil:
        cdef uint32_t handle = self._lists[DUE]
        if handle == WHEEL_NONE:
            return False
        out[0] = self._timers[handle]
        self.stop(handle)
        return True

    cdef bint earliest(self, uint64_t* out) noexcept nogil:
        cdef int level
        if self._lists[DUE] != WHEEL_NONE:
            out[0] = self.now
            return True
        for level in range(WHEEL_LEVELS):
            if self._occupied[level]:
                out[0] = self._slot_begins(level, lowest_bit(self._occupied[level]))
                return True
        return False

    def __len__(self) -> int:
        return self.count

    def add(self, uint64_t deadline, uint64_t first=0, uint64_t second=0) -> int:
        """Starts a timer, which carries the integers `first` and `second`. Returns its handle, which is valid until the timer is cancelled
        or popped.
        """
        return self.start(deadline, first, second)

    def cancel(self, uint32_t handle) -> None:
        """Stops a running timer. Do not pass the handle of a timer that was popped or cancelled."""
        if handle >= self._capacity:
            raise ValueError(f"no timer has the handle {handle}")
        self.stop(handle)

    def pop(self, uint64_t now, uint32_t limit=0xFFFFFFFF) -> list:
        """Sets the current time of the wheel to `now`, which may be earlier, and removes up to `limit` timers that are due. Returns a list
        of (deadline, first, second).
        """
        cdef Timer timer
        self.advance(now)
        result = []
        while limit and self.pop_due(&timer):
            result.append((timer.deadline, timer.first, timer.second))
            limit -= 1
        return result

    def next_deadline(self) -> int | None:
        """Returns a time that is not later than the earliest deadline; None if there are no timers."""
        cdef uint64_t value
        return value if self.earliest(&value) else None
