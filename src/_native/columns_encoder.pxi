# What Python sees of it: encoders, one for a stream, used by one thread at a time.

cdef class Words:
    """A small table of numbers and their names."""
    cdef Word* words
    cdef size_t count
    cdef list texts

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
    """The columns of a stream: (name, kind) in order, and those whose value is the same for all rows."""
    cdef list fields            # (what, width, bytes or None)
    cdef Words classes
    cdef Contents contents

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
        raise NotImplementedError

    cdef Cells* begin(self, size_t rows, size_t bulk) except NULL:
        """Cells for `rows` values each; `bulk` bytes of packets."""
        cdef Cells* cells = <Cells*>calloc(max(len(self.fields), 1), sizeof(Cells))
        cdef size_t i, expected
        if cells == NULL:
            raise MemoryError("no memory for columns")
        for i in range(<size_t>len(self.fields)):
            what, width, _ = self.fields[i]
            expected = bulk if what == FIELD_BODY or what == FIELD_RAW_PACKET else 48 * rows
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


@cython.final
cdef class MessageEncoder(Encoder):
    """``MessageEncoder(contents, columns, constants, classes)``: rows of one queue to columns.

    `columns`: pairs of name and kind (bulk/schema.py); besides those there are delivery_seq, state, store_key and _corrupt: with
    the last one, messages that cannot be read are kept, with nulls for what their packet would say. `constants`: column names
    and their values. `classes`: message classes and their names.
    """

    def _known(self):
        return _MESSAGE_FIELDS

    def encode(self, Rows rows not None, holders=None) -> Encoded:
        """The columns of these messages. `holders`: names for the owners of locks, for lease_holder.

        StoreError: the store failed. May be called without being on the loop; no other thread may use this encoder or `rows` then.
        """
        cdef Work work
        cdef Encoded encoded = Encoded.__new__(Encoded)
        cdef Words owners = Words(holders or {})
        cdef int status
        cdef int away
        cdef bint background = self.contents.background
        self.contents.fill(rows)
        memset(&work, 0, sizeof(work))
        work.lookup.store = self.contents._store
        work.queue = rows.ordinal
        work.classes, work.class_count = self.classes.words, self.classes.count
        work.holders, work.holder_count = owners.words, owners.count
        work.cell_count = len(self.fields)
        work.cells = self.begin(rows._count, min(rows.bytes, <uint64_t>64 << 20))
        for field in self.fields:
            work.keep_damaged = work.keep_damaged or field[0] == FIELD_CORRUPT
        try:
            with nogil:
                away = enter_background(background, &self.contents._away)
                status = encode_rows(&work, rows._rows, rows._count)
                lookup_end(&work.lookup)
                free(work.lookup.scratch.data)
                leave_background(away, &self.contents._away)
            check(status)
            encoded.rows, encoded.gone, encoded.damaged = work.rows, work.gone + rows.gone, work.damaged
            encoded.finished = rows.finished
            encoded.next = rows.next
            self.finish(work.cells, encoded)
        finally:
            self.drop(work.cells)
        return encoded
