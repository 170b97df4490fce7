"""The undo log of units of work, see undo.pxd."""

from cpython.ref cimport Py_DECREF, Py_XDECREF
from libc.stdlib cimport free, realloc


cdef class Undoable:
    """The base of classes whose changes can be undone."""

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        raise NotImplementedError


cdef class UndoCall(Undoable):
    """Calls a Python function when the unit is rolled back."""

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        kept()
        return 0


cdef class UndoLog:
    """The undo log of a writer: how to undo the changes in memory of the open units. Native code calls `add`, Python code
    `Writer.on_roll_back`.
    """

    def __dealloc__(self):
        self.clear()
        free(self._entries)
        free(self._data)

    def __len__(self) -> int:
        return self.count

    cdef int _grow(self, size_t size) except -1:
        cdef size_t room
        cdef void* grown
        if self.count == self._room:
            room = self._room * 2 if self._room else 64
            grown = realloc(self._entries, room * sizeof(UndoEntry))
            if grown == NULL:
                raise MemoryError("no memory to undo a unit of work")
            self._entries = <UndoEntry*>grown
            self._room = room
        if self._used + size > self._data_room:
            room = max(self._data_room * 2, self._used + size, <size_t>4096)
            grown = realloc(self._data, room)
            if grown == NULL:
                raise MemoryError("no memory to undo a unit of work")
            self._data = <uint8_t*>grown
            self._data_room = room
        return 0

    cdef int roll_back(self, size_t count) except -1:
        cdef UndoEntry* entry
        cdef object kept
        cdef list faults = []
        self._rolling = True
        try:
            while self.count > count:
                entry = &self._entries[self.count - 1]
                kept = None if entry.kept == NULL else <object>entry.kept
                try:
                    (<Undoable>entry.owner).undone(entry.token, self._data + entry.at, entry.size, kept)
                except Exception as error:
                    faults.append(error)
                self._pop()
        finally:
            self._rolling = False
        if faults:
            raise ExceptionGroup("some changes of a unit of work could not be undone", faults)
        return 0

    cdef void clear(self) noexcept:
        while self.count:
            self._pop()

    cdef void _pop(self) noexcept:
        cdef UndoEntry* entry
        self.count -= 1
        entry = &self._entries[self.count]
        self._used = entry.at
        Py_XDECREF(entry.kept)
        Py_DECREF(<object>entry.owner)


cdef object log_call(UndoLog log, object function):
    """Makes `function()` run if the open unit is rolled back."""
    log.add(UndoCall.__new__(UndoCall), 0, NULL, 0, function)
