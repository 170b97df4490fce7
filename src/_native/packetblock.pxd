# Packets that are contiguous in one block of memory. The contract: packet i has the bytes from starts[i] up to starts[i + 1] of `data`.
# They may be changed in place while only the block refers to them.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t


cdef class PacketBlock:
    cdef bytes data
    cdef size_t count
    cdef size_t* starts         # one more than packets


# The caller fills in the positions from starts[1] on; then `allocate_packets` allocates the memory of the block.
cdef PacketBlock block_of(size_t count)
cdef uint8_t* allocate_packets(PacketBlock block) except NULL
