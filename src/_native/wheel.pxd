# A timer wheel for many deadlines.

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

    # Starts a timer. Returns a handle that is valid until the timer is cancelled or popped.
    cdef uint32_t start(self, uint64_t deadline, uint64_t first, uint64_t second) except? WHEEL_NONE
    cdef void stop(self, uint32_t handle) noexcept nogil
    # Advances to `now`. If the time goes back, all timers are sorted again.
    cdef void advance(self, uint64_t now) noexcept nogil
    # Removes one timer that is due. Returns False if there is none.
    cdef bint pop_due(self, Timer* out) noexcept nogil
    # Sets a time not later than the earliest deadline. Returns False if there is no timer.
    cdef bint earliest(self, uint64_t* out) noexcept nogil
    cdef void _link(self, uint32_t handle) noexcept nogil
    cdef void _unlink(self, uint32_t handle) noexcept nogil
    cdef uint64_t _slot_begins(self, int level, int slot) noexcept nogil
