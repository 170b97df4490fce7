# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns under construction; see columncells.pxd."""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

cdef enum:
    LARGEST_COLUMN = 0x7FFFFFFF # an offset has 31 bits


cdef int grow(Growing* g, size_t more) noexcept nogil:
    cdef size_t wanted = g.used + more, capacity = g.capacity * 2
    cdef uint8_t* data
    if wanted > <size_t>LARGEST_COLUMN:
        return ENOMEM
    if capacity < wanted:
        capacity = wanted
    if capacity < 64:
        capacity = 64
    data = <uint8_t*>realloc(g.data, capacity)
    if data == NULL:
        return ENOMEM
    g.data = data
    g.capacity = capacity
    return 0


cdef int begin_cells(Cells* c, int what, int width, size_t room, size_t expected) noexcept nogil:
    """Creates an empty column with room for `room` values; for values of variable size, with memory for `expected` bytes at first. Returns
    0 or ENOMEM.
    """
    memset(c, 0, sizeof(Cells))
    c.what = what
    c.width = width
    c.room = room
    if width == WIDTH_VARIABLE:
        c.offsets = <int32_t*>malloc((room + 1) * sizeof(int32_t))
        if c.offsets == NULL:
            return ENOMEM
        c.offsets[0] = 0
        return make_room(&c.data, expected)
    expected = (room + 7) // 8 if width == WIDTH_BIT else room * width
    if make_room(&c.data, expected + 8):
        return ENOMEM
    if width == WIDTH_BIT:
        memset(c.data.data, 0, expected)
    c.data.used = expected
    return 0


cdef void end_cells(Cells* c) noexcept nogil:
    free(c.data.data)
    free(c.offsets)
    free(c.validity)
    memset(c, 0, sizeof(Cells))


cdef int put_null(Cells* c) noexcept nogil:
    cdef size_t size = (c.room + 7) // 8
    if c.validity == NULL:
        c.validity = <uint8_t*>malloc(size + 8)
        if c.validity == NULL:
            return ENOMEM
        memset(c.validity, 0xFF, size)
    c.validity[c.rows >> 3] &= <uint8_t>~(1 << (c.rows & 7))
    c.nulls += 1
    if c.width == WIDTH_VARIABLE:
        close_value(c)
        return 0
    if c.width > 0:
        memset(c.data.data + c.rows * c.width, 0, c.width)
    c.rows += 1
    return 0


cdef int put_same(Cells* c, const char* data, size_t size, size_t rows) noexcept nogil:
    """Sets the same value for all rows; NULL means null."""
    cdef size_t row
    cdef int fault
    if c.width == WIDTH_VARIABLE and data != NULL and make_room(&c.data, rows * size):
        return ENOMEM
    for row in range(rows):
        if data == NULL:
            fault = put_null(c)
        elif c.width == WIDTH_VARIABLE:
            fault = put_bytes(c, data, size)
        else:
            fault = put_number(c, (<const int64_t*>data)[0])
        if fault:
            return fault
    return 0


cdef class Segment:
    def __dealloc__(self):
        free(self._data)

    def __len__(self):
        return self._size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self._data, self._size, 1, flags)


cdef Segment segment(uint8_t** data, size_t size):
    """Wraps `size` bytes of malloc'ed memory in a Segment, which frees them."""
    cdef Segment result = Segment.__new__(Segment)
    result._data = data[0]
    result._size = size
    data[0] = NULL
    return result


cdef class Encoded:
    def __cinit__(self):
        self.columns = []

    cdef int take(self, Cells* c) except -1:
        """Adds the next column; `c` is empty afterwards."""
        cdef list parts = [None]
        cdef size_t size = c.data.used
        if c.nulls:
            parts[0] = segment(&c.validity, (c.rows + 7) // 8)
        if c.width == WIDTH_VARIABLE:
            parts.append(segment(<uint8_t**>&c.offsets, (c.rows + 1) * sizeof(int32_t)))
        else:
            size = (c.rows + 7) // 8 if c.width == WIDTH_BIT else c.rows * c.width
        if c.data.data == NULL and make_room(&c.data, 8):
            raise MemoryError("no memory for columns")
        parts.append(segment(&c.data.data, size))
        self.bytes += sum([len(part) for part in parts if part is not None])
        self.columns.append((c.nulls, parts))
        return 0
