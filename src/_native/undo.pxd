# Undoes the changes in memory of the open unit of work.

# A unit of work (Writer.begin_unit … keep_unit, or roll_back) is all or nothing, in the store and in memory. The writer rewinds the store's
# batch; this log restores the memory:

# 1. Code that changes memory in a unit first adds an entry, with the state that the change overwrites.
# 2. `roll_back` runs the entries of the unit, the newest first, each by the `undone` of its owner.
# 3. When the outermost unit is kept, all entries are removed.

# Outside units nothing is logged: `add` returns at once.

# To make a change undoable: derive the class from Undoable (a CommitListener is one), call `add` with the state before the change, and
# restore that state in `undone`.

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


cdef struct UndoEntry:
    PyObject* owner             # an Undoable, owned
    PyObject* kept              # something that `undone` needs, owned; NULL: nothing
    uint64_t token
    size_t at                   # of its bytes
    size_t size


cdef class Undoable:
    # Undoes one change. `data`, `size` bytes, and `kept` are the arguments of `add`. It adds no entries and writes nothing to the store. If
    # it raises, memory and store differ: the store fails, and only a restart helps.
    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1


@cython.final
cdef class UndoLog:
    cdef UndoEntry* _entries
    cdef size_t count, _room
    cdef uint8_t* _data
    cdef size_t _used, _data_room
    cdef int depth              # of the writer's units; 0: nothing is logged
    cdef bint _rolling

    # Copies `size` bytes at `data`; `kept` may be None. Call it before the change, or directly after it. Inline: a message adds several
    # entries of constant sizes, for which a call of memcpy would cost more than the rest.
    cdef inline int add(self, Undoable owner, uint64_t token, const void* data, size_t size, object kept) except -1:
        cdef UndoEntry* entry
        if self.depth == 0 or self._rolling:
            return 0
        if self.count == self._room or self._used + size > self._data_room:
            self._grow(size)
        entry = &self._entries[self.count]
        entry.owner = <PyObject*>owner
        entry.kept = NULL
        entry.token = token
        entry.at = self._used
        entry.size = size
        memcpy(self._data + self._used, data, size)
        Py_INCREF(owner)
        if kept is not None:
            Py_INCREF(kept)
            entry.kept = <PyObject*>kept
        self._used += (size + 7) & ~<size_t>7
        self.count += 1
        return 0

    # Makes room for one more entry with `size` bytes.
    cdef int _grow(self, size_t size) except -1
    # Undoes the entries after the first `count`. Raises what entries raised, after all have run.
    cdef int roll_back(self, size_t count) except -1
    cdef void clear(self) noexcept
    cdef void _pop(self) noexcept


# Makes `function()` run if the open unit is rolled back.
cdef object log_call(UndoLog log, object function)
