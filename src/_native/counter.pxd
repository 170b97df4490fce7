# Numbers that are never given out twice, from blocks that the store has reserved.

from libc.stdint cimport uint64_t


cdef class Counter:
    cdef public uint64_t last       # the number that was given out last
    cdef public uint64_t limit      # reserved durably up to here
    cdef readonly uint64_t block    # how many are reserved at once
    cdef readonly bint wraps        # the numbers are 32-bit and start over at 1
    # As `take` (counter.pyx): the first of `count` consecutive numbers. Raises what `exhausted` returns.
    cdef uint64_t next(self, uint64_t count) except 0
