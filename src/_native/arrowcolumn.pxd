# Checked Arrow columns whose bytes come from outside. The contract: while a Column lives, its View may be read for the rows 0 to length - 1
# without any further check.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t


cdef struct View:
    # A column without its Python objects. All zeros stand for a missing column.
    const uint8_t* validity     # NULL: no nulls
    const uint8_t* values       # int64, or int32 offsets
    const uint8_t* data
    size_t offset
    bint present, text


cdef inline bint has(const View* view, size_t row) noexcept nogil:
    row += view.offset
    return view.present and (view.validity == NULL or view.validity[row >> 3] >> (row & 7) & 1)


cdef inline int64_t number_at(const View* view, size_t row, int64_t default) noexcept nogil:
    return (<const int64_t*>view.values)[view.offset + row] if has(view, row) else default


cdef inline const uint8_t* bytes_at(const View* view, size_t row, uint32_t* size) noexcept nogil:
    cdef const int32_t* offsets = <const int32_t*>view.values + view.offset + row
    size[0] = <uint32_t>(offsets[1] - offsets[0])
    return view.data + offsets[0] if size[0] else NULL


cdef class Column:
    cdef const uint8_t[::1] _validity, _values, _data
    cdef readonly str kind
    cdef readonly size_t length
    cdef View view
