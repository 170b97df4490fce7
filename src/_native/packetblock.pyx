# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many packets in one object: a worker thread builds it from a batch of rows, and a stage stores its packets."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy


cdef class PacketBlock:
    """``PacketBlock(packets)``: holds copies of these packets, in their order. `block[i]` returns a copy of packet i."""

    def __cinit__(self):
        self.data = b""

    def __init__(self, list packets not None):
        cdef size_t index
        cdef bytes packet
        cdef uint8_t* to
        _make_places(self, len(packets))
        for index in range(self.count):
            packet = <bytes?>packets[index]
            self.starts[index + 1] = self.starts[index] + PyBytes_GET_SIZE(packet)
        to = allocate_packets(self)
        for index in range(self.count):
            packet = packets[index]
            memcpy(to + self.starts[index], PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet))

    def __dealloc__(self):
        free(self.starts)

    @property
    def nbytes(self) -> int:
        """The total size of all packets in bytes."""
        return len(self.data)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, Py_ssize_t index) -> bytes:
        if not 0 <= index < <Py_ssize_t>self.count:
            raise IndexError(index)
        return self.data[self.starts[index]:self.starts[index + 1]]


cdef PacketBlock block_of(size_t count):
    cdef PacketBlock block = PacketBlock.__new__(PacketBlock)
    _make_places(block, count)
    return block


cdef int _make_places(PacketBlock block, size_t count) except -1:
    cdef size_t* starts = <size_t*>calloc(count + 1, sizeof(size_t))
    if starts == NULL:
        raise MemoryError("no memory for rows")
    free(block.starts)
    block.starts = starts
    block.count = count
    return 0


cdef uint8_t* allocate_packets(PacketBlock block) except NULL:
    block.data = PyBytes_FromStringAndSize(NULL, block.starts[block.count])
    return <uint8_t*>PyBytes_AS_STRING(block.data)
