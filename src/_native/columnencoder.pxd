# The base of the encoders of messages and of events: the requested columns, and tables of names.

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from msmq_fast._native.columncells cimport Cells, Encoded, put_bytes, put_null
from msmq_fast._native.columnstore cimport Contents


cdef enum:
    FIELD_CONSTANT = 0          # Cells.what: the same value for all rows. Encoders number their own fields from 1 on.


cdef struct Word:
    # A number and its name.
    uint32_t value
    size_t size
    const char* text


cdef class Words:
    """A small table of numbers and their names."""
    cdef Word* words
    cdef size_t count
    cdef list texts


cdef class Encoder:
    """The columns of a stream: (name, kind) in order, and constant columns. Only one thread may use an encoder at a time."""
    cdef list fields            # (what, width, bytes or None)
    cdef Words classes
    cdef Contents contents
    # Returns Cells for `rows` values each. The columns that hold most of a packet get `bulk` bytes.
    cdef Cells* begin(self, size_t rows, size_t bulk) except NULL
    cdef void drop(self, Cells* cells)
    cdef int finish(self, Cells* cells, Encoded encoded) except -1


# Raises MemoryError or StoreError for a status that is not 0.
cdef int check(int status) except -1


cdef inline int put_word(Cells* c, const Word* words, size_t count, uint32_t value) noexcept nogil:
    """Adds the name of the number, or null."""
    cdef size_t i
    for i in range(count):
        if words[i].value == value:
            return put_bytes(c, words[i].text, words[i].size)
    return put_null(c)
