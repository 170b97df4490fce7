# Columns while they are made: growing buffers, and what becomes of them.

cdef int make_room(Growing* g, size_t more) noexcept nogil:
    """Room for `more` bytes behind what is there. Returns 0 or ENOMEM."""
    cdef size_t wanted = g.used + more, capacity = g.capacity * 2
    cdef uint8_t* data
    if wanted <= g.capacity:
        return 0
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
    """An empty column of at most `room` values; `expected` bytes if they are variable. Returns 0 or ENOMEM."""
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


cdef inline void close_value(Cells* c) noexcept nogil:
    """The bytes behind the last value are the next one."""
    c.rows += 1
    c.offsets[c.rows] = <int32_t>c.data.used


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


cdef int put_same(Cells* c, const char* data, size_t size, size_t rows) noexcept nogil:
    """The same value for all rows; NULL: null."""
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


@cython.final
cdef class Segment:
    """Memory that native code has filled, as a buffer of bytes that is not changed any more."""
    cdef uint8_t* _data
    cdef Py_ssize_t _size

    def __dealloc__(self):
        free(self._data)

    def __len__(self):
        return self._size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self._data, self._size, 1, flags)


cdef Segment segment(uint8_t** data, size_t size):
    """Takes the memory over."""
    cdef Segment result = Segment.__new__(Segment)
    result._data = data[0]
    result._size = size
    data[0] = NULL
    return result


@cython.final
cdef class Encoded:
    """Columns of one batch, as Arrow lays them out: for each (nulls, [validity or None, offsets if variable, data])."""
    cdef readonly size_t rows
    cdef readonly list columns
    cdef readonly size_t bytes          # of all buffers
    cdef readonly size_t gone           # messages that were removed before they were read
    cdef readonly size_t damaged        # messages and records that could not be read
    cdef readonly uint64_t next         # events: the number of the first that is not in it
    cdef readonly uint64_t first        # events: the number of the first that the store has at or behind the start
    cdef readonly bint finished         # events: there are no more before the end that was asked for

    def __cinit__(self):
        self.columns = []

    cdef int take(self, Cells* c) except -1:
        """The next column; `c` is empty afterwards."""
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
