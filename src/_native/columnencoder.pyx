# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The base of the encoders of messages and of events; see columnencoder.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.errno cimport ENOMEM
from libc.stdlib cimport calloc, free
from msmq_fast._native.columncells cimport WIDTH_BIT, WIDTH_VARIABLE, Cells, Encoded, begin_cells, end_cells, put_same
from msmq_fast._native.columnstore cimport Contents

from msmq_fast._native.lmdbstore import status_text
from msmq_fast._native.tables import StoreError

# The width of a value in bytes, by the kind of its column.
_WIDTHS = {"string": WIDTH_VARIABLE, "binary": WIDTH_VARIABLE, "int8": 1, "int32": 4, "int64": 8, "timestamp": 8, "bool": WIDTH_BIT}


cdef class Words:
    def __cinit__(self, names):
        cdef bytes text
        self.texts = []
        self.words = <Word*>calloc(max(len(names), 1), sizeof(Word))
        if self.words == NULL:
            raise MemoryError("no memory for names")
        for value, name in names.items():
            text = name.encode()
            self.texts.append(text)
            self.words[self.count] = Word(value, len(text), PyBytes_AS_STRING(text))
            self.count += 1

    def __dealloc__(self):
        free(self.words)


cdef class Encoder:
    def __cinit__(self, Contents contents not None, columns, constants, classes, *args, **kwargs):
        self.contents = contents
        self.classes = Words(classes)
        self.fields = []
        known = self._known()
        for name, kind in columns:
            width = _WIDTHS[kind]
            if name in constants:
                value = constants[name]
                if value is not None:
                    value = value.encode() if width == WIDTH_VARIABLE else int(value).to_bytes(8, "little", signed=True)
                self.fields.append((FIELD_CONSTANT, width, value))
            elif name in known:
                self.fields.append((known[name], width, None))
            else:
                raise ValueError(f"there is no column {name!r}")

    def _known(self):
        """The number of each field by its name."""
        raise NotImplementedError

    def _large(self):
        """The numbers of the fields that can hold most of a packet, such as the body."""
        return ()

    cdef Cells* begin(self, size_t rows, size_t bulk) except NULL:
        """Returns one empty Cells for each column, with room for `rows` values; the columns of `_large` also get memory for `bulk` bytes.
        """
        cdef Cells* cells = <Cells*>calloc(max(len(self.fields), 1), sizeof(Cells))
        cdef size_t i, expected
        large = self._large()
        if cells == NULL:
            raise MemoryError("no memory for columns")
        for i in range(<size_t>len(self.fields)):
            what, width, _ = self.fields[i]
            expected = bulk if what in large else 48 * rows
            if begin_cells(&cells[i], what, width, rows, expected):
                self.drop(cells)
                raise MemoryError("no memory for columns")
        return cells

    cdef void drop(self, Cells* cells):
        cdef size_t i
        for i in range(<size_t>len(self.fields)):
            end_cells(&cells[i])
        free(cells)

    cdef int finish(self, Cells* cells, Encoded encoded) except -1:
        cdef size_t i
        cdef const char* value
        for i in range(<size_t>len(self.fields)):
            what, _, constant = self.fields[i]
            if what == FIELD_CONSTANT:
                value = NULL if constant is None else PyBytes_AS_STRING(<bytes>constant)
                if put_same(&cells[i], value, 0 if constant is None else PyBytes_GET_SIZE(constant), encoded.rows):
                    raise MemoryError("no memory for columns")
            encoded.take(&cells[i])
        return 0


cdef int check(int status) except -1:
    if status == 0:
        return 0
    if status == ENOMEM:
        raise MemoryError("no memory for columns")
    raise StoreError(f"cannot read the store: {status_text(status)}", status)
