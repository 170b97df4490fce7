# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Converts buffers of an Arrow record batch to three kinds of columns: 64-bit integers, texts, and bytes. Texts and bytes have 32-bit
offsets.

The buffers come from the network. The steps for each column:

1. `integers`, `strings`, `fixed` or `views` makes a `Column` of the buffers, according to the type in the schema.
2. Each of them checks every length and offset against the buffers before reading the data, null rows included.
3. `gather` replaces dictionary indices by their values. `places` numbers the distinct texts of a column.

All of these functions raise ValueError. Rows may share bytes; the functions that copy the bytes of each row raise OverflowError(size) if
the copies would need more than `most` bytes.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset


cdef class Column:
    """``Column(kind, length, offset, validity, values, data)``: one Arrow array. `kind` is "int" (64 bits), "text" or "binary" (32-bit
    offsets).

    The buffers are those of the array, or None if the array has no such buffer. Raises ValueError if they are too small or inconsistent.
    """

    def __init__(self, str kind not None, size_t length, size_t offset, validity, values, data):
        cdef size_t end = offset + length, width, i
        cdef const int32_t* offsets
        cdef int64_t before = 0
        if kind not in ("int", "text", "binary"):
            raise ValueError(f"unknown kind of column: {kind}")
        if end < length or end >> 32:
            raise ValueError("an Arrow array is too long")
        self.kind = kind
        self.length = length
        self.view.present = True
        self.view.text = kind == "text"
        self.view.offset = offset
        if not length:
            return
        if validity is not None:
            self._validity = memoryview(validity).cast("B")
            if <size_t>self._validity.shape[0] * 8 < end:
                raise ValueError("the validity bitmap of an Arrow array is too short")
            self.view.validity = &self._validity[0]
        if values is None:
            raise ValueError("an Arrow array lacks a buffer")
        self._values = memoryview(values).cast("B")
        width = 8 * end if kind == "int" else 4 * (end + 1)
        if <size_t>self._values.shape[0] < width or <size_t>&self._values[0] & (7 if kind == "int" else 3):
            raise ValueError("the values of an Arrow array are too short, or not aligned")
        self.view.values = &self._values[0]
        if kind == "int":
            return
        if data is not None:
            self._data = memoryview(data).cast("B")
            if self._data.shape[0]:
                self.view.data = &self._data[0]
        offsets = <const int32_t*>self.view.values
        for i in range(offset, end + 1):
            if offsets[i] < before:
                raise ValueError("the offsets of an Arrow array decrease")
            before = offsets[i]
        if before > (0 if data is None else self._data.shape[0]):
            raise ValueError("the offsets of an Arrow array exceed its data")

    def slice(self, size_t start, size_t count):
        """Returns a column of `count` rows from row `start` on, which shares the buffers. Raises ValueError if the column has fewer rows.
        """
        cdef Column part = Column.__new__(Column)
        if start > self.length or count > self.length - start:
            raise ValueError("a slice exceeds its column")
        part.kind = self.kind
        part.length = count
        part.view = self.view
        part.view.offset += start
        part._validity, part._values, part._data = self._validity, self._values, self._data
        return part

    @property
    def nbytes(self) -> int:
        """The total size of the texts or bytes of all rows, in bytes; 0 for a column of integers."""
        cdef const int32_t* offsets = <const int32_t*>self.view.values + self.view.offset
        return 0 if self.kind == "int" or not self.length else offsets[self.length] - offsets[0]


def integers(size_t length, validity, values not None, int width, bint signed) -> Column:
    """Returns a column of integers of `width` bytes each (1, 2, 4 or 8). Raises ValueError if one does not fit into a signed 64-bit
    integer.
    """
    cdef const uint8_t[::1] given
    cdef const uint8_t* at
    cdef bytes wide
    cdef int64_t* out
    cdef size_t i
    cdef uint64_t high = 0
    if width not in (1, 2, 4, 8):
        raise ValueError(f"integers cannot have {width} bytes")
    if length >> 32:
        raise ValueError("an Arrow array is too long")
    given = memoryview(values).cast("B")
    if <size_t>given.shape[0] < length * <size_t>width:
        raise ValueError("the values of an Arrow array are too short")
    if width == 8:
        if not signed and length:
            if <size_t>&given[0] & 7:
                raise ValueError("the values of an Arrow array are not aligned")
            for i in range(length):     # also checks null rows
                high |= (<const uint64_t*>&given[0])[i]
            if high > <uint64_t>INT64_MAX:
                raise ValueError("an unsigned number does not fit into a signed 64-bit integer")
        return Column("int", length, 0, validity, values, None)
    wide = PyBytes_FromStringAndSize(NULL, 8 * length)
    if length:
        at = &given[0]
        if <size_t>at & (width - 1):
            raise ValueError("the values of an Arrow array are not aligned")
        out = <int64_t*>PyBytes_AS_STRING(wide)
        with nogil:
            if width == 1 and signed:
                for i in range(length):
                    out[i] = (<const int8_t*>at)[i]
            elif width == 1:
                for i in range(length):
                    out[i] = at[i]
            elif width == 2 and signed:
                for i in range(length):
                    out[i] = (<const int16_t*>at)[i]
            elif width == 2:
                for i in range(length):
                    out[i] = (<const uint16_t*>at)[i]
            elif signed:
                for i in range(length):
                    out[i] = (<const int32_t*>at)[i]
            else:
                for i in range(length):
                    out[i] = (<const uint32_t*>at)[i]
    return Column("int", length, 0, validity, wide, None)


def strings(str kind not None, size_t length, validity, offsets not None, data, bint large) -> Column:
    """Returns a column of texts or bytes. `large` is whether its offsets have 64 bits."""
    cdef const uint8_t[::1] given
    cdef const int64_t* at
    cdef bytes narrow
    cdef int32_t* out
    cdef size_t i
    if not large or not length:
        return Column(kind, length, 0, validity, offsets, data)
    if length >> 32:
        raise ValueError("an Arrow array is too long")
    given = memoryview(offsets).cast("B")
    if <size_t>given.shape[0] < 8 * (length + 1) or <size_t>&given[0] & 7:
        raise ValueError("the values of an Arrow array are too short, or not aligned")
    at = <const int64_t*>&given[0]
    narrow = PyBytes_FromStringAndSize(NULL, 4 * (length + 1))
    out = <int32_t*>PyBytes_AS_STRING(narrow)
    for i in range(length + 1):
        if not 0 <= at[i] <= INT32_MAX:
            raise ValueError("the offsets of an Arrow array exceed its data")
        out[i] = <int32_t>at[i]
    return Column(kind, length, 0, validity, narrow, data)


def fixed(str kind not None, size_t length, validity, values not None, size_t width) -> Column:
    """Returns a column of texts or bytes with `width` bytes in each row."""
    cdef bytes offsets
    cdef int32_t* out
    cdef size_t i
    if length >> 31 or width >> 31 or length * width > <size_t>INT32_MAX:
        raise ValueError("an Arrow array is too long")
    if <size_t>memoryview(values).nbytes < length * width:
        raise ValueError("the values of an Arrow array are too short")
    offsets = PyBytes_FromStringAndSize(NULL, 4 * (length + 1))
    out = <int32_t*>PyBytes_AS_STRING(offsets)
    for i in range(length + 1):
        out[i] = <int32_t>(i * width)
    return Column(kind, length, 0, validity, offsets, values)


cdef enum:
    INLINE = 12                 # bytes that fit into a view itself
    VIEW = 16                   # bytes of a view: a length, then either the bytes, or a prefix, a buffer number and an offset


def views(str kind not None, size_t length, validity, views not None, list buffers not None, int64_t most) -> Column:
    """Returns a column of texts or bytes from Arrow views (16 bytes for each row), copying the bytes of each row. A null row gets no bytes,
    whatever its view contains. Raises OverflowError(size) if the rows have more than `most` bytes in all.
    """
    cdef const uint8_t[::1] given, data
    cdef const uint8_t[::1] valid
    cdef const uint8_t* view
    cdef int32_t size, index, start
    cdef int64_t total = 0
    cdef size_t i
    cdef bytes offsets, content
    cdef int32_t* out
    cdef uint8_t* target
    cdef bint masked = validity is not None
    cdef list kept = [memoryview(buffer).cast("B") for buffer in buffers]
    if length >> 31:
        raise ValueError("an Arrow array is too long")
    given = memoryview(views).cast("B")
    if <size_t>given.shape[0] < VIEW * length:
        raise ValueError("the views of an Arrow array are too short")
    if masked:
        valid = memoryview(validity).cast("B")
        if <size_t>valid.shape[0] * 8 < length:
            raise ValueError("the validity bitmap of an Arrow array is too short")
    offsets = PyBytes_FromStringAndSize(NULL, 4 * (length + 1))
    out = <int32_t*>PyBytes_AS_STRING(offsets)
    out[0] = 0
    for i in range(length):     # measures and checks
        if not masked or valid[i >> 3] >> (i & 7) & 1:
            view = &given[VIEW * i]
            memcpy(&size, view, 4)
            if size < 0:
                raise ValueError("a view of an Arrow array has a negative length")
            if size > INLINE:
                memcpy(&index, view + 8, 4)
                memcpy(&start, view + 12, 4)
                if not 0 <= index < len(kept):
                    raise ValueError("a view of an Arrow array refers to a missing buffer")
                if start < 0 or <int64_t>start + size > <int64_t>len(kept[index]):
                    raise ValueError("a view of an Arrow array exceeds its buffer")
            total += size
        out[i + 1] = <int32_t>min(total, <int64_t>INT32_MAX)
    if total > most or total > INT32_MAX:
        raise OverflowError(total)
    content = PyBytes_FromStringAndSize(NULL, total)
    target = <uint8_t*>PyBytes_AS_STRING(content)
    for i in range(length):
        size = out[i + 1] - out[i]
        if not size:
            continue
        view = &given[VIEW * i]
        if size <= INLINE:
            memcpy(target + out[i], view + 4, size)
        else:
            memcpy(&index, view + 8, 4)
            memcpy(&start, view + 12, 4)
            data = kept[index]
            memcpy(target + out[i], &data[start], size)
    return Column(kind, length, 0, validity, offsets, content)


def gather(Column indices not None, Column values not None, int64_t most) -> Column:
    """Replaces each index of a dictionary-encoded column by its value. A row is null if its index is null or refers to a null.

    Raises ValueError if an index is not in the dictionary, OverflowError if the texts have more than `most` bytes in all.
    """
    cdef size_t rows = indices.length, i
    cdef int64_t place, total = 0
    cdef uint32_t size = 0
    cdef const uint8_t* text
    cdef bytes validity, offsets, content
    cdef uint8_t* bits
    cdef int32_t* out
    cdef int64_t* numbers
    if indices.kind != "int":
        raise ValueError("the indices of a dictionary must be integers")
    validity = PyBytes_FromStringAndSize(NULL, (rows + 7) >> 3)
    bits = <uint8_t*>PyBytes_AS_STRING(validity)
    memset(bits, 0, (rows + 7) >> 3)
    for i in range(rows):
        if not has(&indices.view, i):
            continue
        place = number_at(&indices.view, i, 0)
        if not 0 <= place < <int64_t>values.length:
            raise ValueError("a dictionary index is out of range")
        if has(&values.view, place):
            bits[i >> 3] |= <uint8_t>(1 << (i & 7))
            if values.kind != "int":
                bytes_at(&values.view, place, &size)
                total += size
    if total > most or total > INT32_MAX:
        raise OverflowError(total)
    if values.kind == "int":
        content = PyBytes_FromStringAndSize(NULL, 8 * rows)
        numbers = <int64_t*>PyBytes_AS_STRING(content)
        for i in range(rows):
            numbers[i] = number_at(&values.view, number_at(&indices.view, i, 0), 0) if bits[i >> 3] >> (i & 7) & 1 else 0
        return Column("int", rows, 0, validity, content, None)
    offsets = PyBytes_FromStringAndSize(NULL, 4 * (rows + 1))
    out = <int32_t*>PyBytes_AS_STRING(offsets)
    content = PyBytes_FromStringAndSize(NULL, total)
    out[0] = 0
    for i in range(rows):
        out[i + 1] = out[i]
        if bits[i >> 3] >> (i & 7) & 1:
            text = bytes_at(&values.view, number_at(&indices.view, i, 0), &size)
            if size:
                memcpy(PyBytes_AS_STRING(content) + out[i], text, size)
                out[i + 1] += <int32_t>size
    return Column(values.kind, rows, 0, validity, offsets, content)


def places(Column texts not None, bint nulls) -> tuple:
    """Numbers the distinct texts of a column from 0, in order of appearance. Returns ``(numbers, names, each)``.

    `numbers` is a column with the number of each row, `each` a memoryview of the same numbers with 32 bits, and `names` the list of the
    distinct texts. With `nulls`, rows without a text also get a number, which stands for None in `names`; without it, such a row is null in
    `numbers` and 0 in `each`. Raises UnicodeDecodeError (a ValueError) if a text is not UTF-8.
    """
    cdef size_t rows = texts.length, i
    cdef dict known = {}
    cdef list names = []
    cdef uint32_t size = 0, last_size = 0
    cdef const uint8_t* text
    cdef const uint8_t* last = NULL
    cdef int64_t number = -1, none = -1
    cdef bytes key
    cdef bytes content = PyBytes_FromStringAndSize(NULL, 8 * rows)
    cdef bytes validity = PyBytes_FromStringAndSize(NULL, (rows + 7) >> 3)
    each = bytearray(4 * rows)
    cdef uint8_t[::1] each_view = each
    cdef int64_t* numbers = <int64_t*>PyBytes_AS_STRING(content)
    cdef uint8_t* bits = <uint8_t*>PyBytes_AS_STRING(validity)
    cdef uint32_t small
    if texts.kind == "int":
        raise ValueError("a column of names must have texts or bytes, not integers")
    memset(bits, 0, (rows + 7) >> 3)
    for i in range(rows):
        if not has(&texts.view, i):
            if not nulls:
                numbers[i] = 0
                continue
            if none < 0:
                none = len(names)
                names.append(None)
            numbers[i] = none
        else:
            text = bytes_at(&texts.view, i, &size)
            if number < 0 or size != last_size or (size and memcmp(text, last, size)):  # consecutive names are mostly equal
                key = PyBytes_FromStringAndSize(<const char*>text, size) if size else b""
                found = known.get(key)
                if found is None:
                    found = known[key] = len(names)
                    names.append(key.decode())
                number, last, last_size = found, text, size
            numbers[i] = number
        bits[i >> 3] |= <uint8_t>(1 << (i & 7))
        small = <uint32_t>numbers[i]
        memcpy(&each_view[4 * i], &small, 4)
    return Column("int", rows, 0, validity, content, None), names, memoryview(each).cast("I")
