# Writes msgpack: a growing buffer, and functions that all frames use.

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    HEADER_SIZE = 9


cdef class Buffer:
    """A growing buffer. `take` returns the bytes without a copy and leaves an empty buffer."""
    cdef PyObject* _bytes           # not visible to any other object; or NULL
    cdef uint8_t* data              # of _bytes
    cdef size_t size, capacity
    cdef size_t _expected           # slightly more than the size that was taken last
    cdef int reserve(self, size_t more) except -1
    cdef bytes take(self)


cdef inline uint8_t* put_be(uint8_t* p, uint64_t value, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        p[i] = (value >> (8 * (n - 1 - i))) & 0xFF
    return p + n


cdef inline uint8_t* put_uint(uint8_t* p, uint64_t value) noexcept nogil:
    if value < 0x80:
        p[0] = <uint8_t>value
        return p + 1
    if value <= 0xFF:
        p[0] = 0xCC
        return put_be(p + 1, value, 1)
    if value <= 0xFFFF:
        p[0] = 0xCD
        return put_be(p + 1, value, 2)
    if value <= 0xFFFFFFFFULL:
        p[0] = 0xCE
        return put_be(p + 1, value, 4)
    p[0] = 0xCF
    return put_be(p + 1, value, 8)
