# Packets one behind the other in one piece of memory. The contract: packet i has the bytes from starts[i] up to starts[i + 1] of `data`, which
# may be changed in place as long as nothing but the block has them.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef class PacketBlock:
    cdef bytes data
    cdef size_t count
    cdef size_t* starts         # one more than packets


# The places are to be filled in, from starts[1] on; then `allocate_packets` gives the block its memory.
cdef PacketBlock block_of(size_t count)
cdef uint8_t* allocate_packets(PacketBlock block) except NULL
