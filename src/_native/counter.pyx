"""Numbers that are never issued twice, from blocks that are reserved in the store."""

from libc.stdint cimport uint64_t

cdef uint64_t LAST_OF_32_BITS = 0xFFFFFFFF


cdef class Counter:
    """``Counter(last, block, wraps=False)``: an earlier process issued the numbers up to `last`; nothing is reserved yet.

    Derive a class from it: `reserve_more` reserves the next block of numbers in the store, and increases `limit` when the reservation is
    durable. `exhausted` returns the exception for a caller that cannot get its numbers.
    """

    def __init__(self, uint64_t last, uint64_t block, bint wraps=False):
        self.last = self.limit = last
        self.block = block
        self.wraps = wraps

    def reserve_more(self, uint64_t count) -> None:
        """Reserves more numbers; called when less than half a block is left. `count` is how many numbers are needed now."""
        raise NotImplementedError

    def exhausted(self) -> Exception:
        """Returns the exception to raise when numbers are needed but none are reserved."""
        raise NotImplementedError

    cdef uint64_t next(self, uint64_t count) except 0:
        cdef uint64_t last = self.last
        if self.wraps and (last & LAST_OF_32_BITS) + count > LAST_OF_32_BITS:
            last = (last | LAST_OF_32_BITS) + 1
        if last + count + self.block // 2 > self.limit:
            self.reserve_more(count)
        if last + count > self.limit:
            raise self.exhausted()
        self.last = last + count
        return (last + 1) & LAST_OF_32_BITS if self.wraps else last + 1

    def take(self, uint64_t count=1) -> int:
        """Issues `count` consecutive numbers. Returns the first."""
        return self.next(count)
