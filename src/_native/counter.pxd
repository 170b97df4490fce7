# Numbers that are never issued twice, from blocks that are reserved in the store.

from libc.stdint cimport uint64_t


cdef class Counter:
    cdef public uint64_t last       # the number that was issued last
    cdef public uint64_t limit      # durably reserved up to here
    cdef readonly uint64_t block    # size of a block that is reserved at a time
    cdef readonly bint wraps        # the numbers have 32 bits and restart at 1
    # Like `take` (counter.pyx): returns the first of `count` consecutive numbers. Raises what `exhausted` returns.
    cdef uint64_t next(self, uint64_t count) except 0
