# Many deadlines, one next_deadline.

cimport cython
from libc.stdint cimport uint32_t, uint64_t


cdef enum:
    WHEEL_LEVELS = 11
    WHEEL_SLOTS = 64
    WHEEL_NONE = 0xFFFFFFFF     # no handle


cdef struct Timer:
    uint64_t deadline
    uint64_t first, second      # name the timer, for the caller
    uint32_t next, previous     # handles; `previous` of a list head is its list number | HEAD_MARK


@cython.final
cdef class TimerWheel:
    cdef Timer* _timers
    cdef uint32_t _capacity, _free
    cdef readonly uint32_t count
    cdef readonly uint64_t now          # the time that the wheel has reached
    cdef uint64_t _occupied[WHEEL_LEVELS]
    cdef uint32_t _lists[WHEEL_LEVELS * WHEEL_SLOTS + 1]     # the last one: due

    # Returns a handle that holds until the timer is cancelled or popped.
    cdef uint32_t start(self, uint64_t deadline, uint64_t first, uint64_t second) except? WHEEL_NONE
    cdef void stop(self, uint32_t handle) noexcept nogil
    # Moves on to `now`; a step back re-sorts everything.
    cdef void advance(self, uint64_t now) noexcept nogil
    # Takes one timer that is due at the time reached; False if there is none.
    cdef bint pop_due(self, Timer* out) noexcept nogil
    # Not later than the earliest deadline; False if there is no timer.
    cdef bint earliest(self, uint64_t* out) noexcept nogil
    cdef void _link(self, uint32_t handle) noexcept nogil
    cdef void _unlink(self, uint32_t handle) noexcept nogil
    cdef uint64_t _slot_begins(self, int level, int slot) noexcept nogil
