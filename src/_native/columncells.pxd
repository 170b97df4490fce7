# Columns under construction: a growing buffer for each, and their conversion to Arrow buffers.

# Call `begin_cells`, one put function for each row, `Encoded.take`, and `end_cells`. The functions that are called for each value are
# inline here, because a call into another module goes through a pointer. Everything except `Encoded` runs without the GIL. Functions that
# return int return 0 or ENOMEM.

cimport cython
from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef enum:
    WIDTH_VARIABLE = 0
    WIDTH_BIT = -1


cdef struct Growing:
    uint8_t* data
    size_t used, capacity


cdef struct Cells:
    # One column under construction.
    int what                    # which column: a Field
    int width                   # bytes of a value; 0: variable; -1: bits
    size_t rows, nulls, room
    Growing data
    int32_t* offsets
    uint8_t* validity           # NULL while nothing is null


@cython.final
cdef class Segment:
    """Memory that native code has filled, exposed as a read-only buffer."""
    cdef uint8_t* _data
    cdef Py_ssize_t _size


@cython.final
cdef class Encoded:
    """The columns of one batch in Arrow's layout; for each (nulls, [validity or None, offsets if variable, data])."""
    cdef readonly size_t rows
    cdef readonly list columns
    cdef readonly size_t bytes          # of all buffers
    cdef readonly size_t gone           # messages that were removed before they were read
    cdef readonly size_t damaged        # messages and records that could not be read
    cdef readonly uint64_t next         # events: the number of the first event after the batch
    cdef readonly uint64_t first        # events: the number of the first event in the store from the start on
    cdef readonly bint finished         # events: the requested range has no more events
    # Adds the next column; `c` is empty afterwards.
    cdef int take(self, Cells* c) except -1


# Makes room for `more` bytes if `make_room` found none.
cdef int grow(Growing* g, size_t more) noexcept nogil
# Creates an empty column of at most `room` values, and `expected` bytes if they are variable.
cdef int begin_cells(Cells* c, int what, int width, size_t room, size_t expected) noexcept nogil
cdef void end_cells(Cells* c) noexcept nogil
cdef int put_null(Cells* c) noexcept nogil
# Sets the same value for all rows; NULL means null.
cdef int put_same(Cells* c, const char* data, size_t size, size_t rows) noexcept nogil


cdef inline int make_room(Growing* g, size_t more) noexcept nogil:
    """Makes room for `more` bytes after the used ones."""
    return 0 if g.used + more <= g.capacity else grow(g, more)


cdef inline void close_value(Cells* c) noexcept nogil:
    """Ends a value: it has the bytes added since the last one ended."""
    c.rows += 1
    c.offsets[c.rows] = <int32_t>c.data.used


cdef inline int put_number(Cells* c, int64_t value) noexcept nogil:
    if c.width == 8:
        (<int64_t*>c.data.data)[c.rows] = value
    elif c.width == 4:
        (<int32_t*>c.data.data)[c.rows] = <int32_t>value
    elif c.width == 1:
        (<int8_t*>c.data.data)[c.rows] = <int8_t>value
    elif value:
        c.data.data[c.rows >> 3] |= <uint8_t>(1 << (c.rows & 7))
    c.rows += 1
    return 0


cdef inline int put_bytes(Cells* c, const void* data, size_t size) noexcept nogil:
    if make_room(&c.data, size):
        return ENOMEM
    memcpy(c.data.data + c.data.used, data, size)
    c.data.used += size
    close_value(c)
    return 0
