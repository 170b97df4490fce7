"""The writer and the reader of the store on disk, each with a native thread that never takes the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_NoMemory
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cimport cython
from msmq_fast._native.batch cimport Writer, also, break_hold
from msmq_fast._native.gather cimport Batch, batch_empty, batch_free
from msmq_fast._native.lmdbapi cimport (
    ReadRequest,
    RedoStore,
    drain_event,
    load_liblmdb,
    reader_free,
    reader_give,
    reader_start,
    reader_stop,
    reader_take,
    redo_finish,
    redo_unapplied,
    writer_busy,
    writer_commit_here,
    writer_free,
    writer_give,
    writer_start,
    writer_stop,
    writer_take,
)
from msmq_fast._native.lmdbstore cimport LmdbTables
from msmq_fast._native.tablenumbers cimport TABLE_FEED, TABLE_HISTORY
from msmq_fast._native.tables cimport Reader, ReadListener

import select

from msmq_fast._native.tables import StoreError

_CLOSING_ROUNDS = 16

load_liblmdb()


@cython.no_gc_clear  # the environment must outlive the thread
cdef class LmdbWriter(Writer):
    """Commits on a native thread. The loop watches `fileno()` and calls `complete()`.

    With a redo log, `submit_or_commit` commits a batch on the calling thread if no other batch is waiting, as long as no such commit took
    longer than `inline_us` microseconds.
    """

    def __cinit__(
        self, LmdbTables tables not None, *, feed_number=None, history_number=None, uint32_t inline_us=0, **kwargs
    ):
        self._tables = tables
        if tables._store.redo != NULL:
            raise StoreError("the redo log of this store has already had a writer; open the store again")
        self._next_number[0] = feed_number or tables.next_number(TABLE_FEED)
        self._next_number[1] = history_number or tables.next_number(TABLE_HISTORY)
        self._last_content = tables.last_content()
        self._thread = writer_start(&tables._store, self._next_number)
        if self._thread == NULL:
            raise StoreError("cannot start the writer thread")
        self._thread.inline_ns = inline_us * <uint64_t>1000
        tables._users += 1

    def __dealloc__(self):
        cdef Batch* batch
        if self._thread == NULL:
            return
        self.abandon()
        batch = writer_take(self._thread)
        while batch != NULL:
            batch_free(batch)
            batch = writer_take(self._thread)
        writer_free(self._thread)

    def abandon(self):
        """Ends the threads without further commits, as a crash would: the records that are in a redo log stay there, and no listener is
        called any more.
        """
        self._end_thread(True)

    cdef int _end_thread(self, bint keep) except -1:
        cdef RedoStore* redo = self._tables._store.redo
        if self._closed:
            return 0
        self._closed = self._strict = True
        with nogil:
            writer_stop(self._thread)
            if redo != NULL:
                redo_finish(redo, keep)
        self._tables._users -= 1
        return 0

    cdef int _start(self, Batch* batch) except -1:
        # With the GIL: to get it back from a busy thread may take 5 ms, and this loop waits all the same.
        if self._may_commit and writer_commit_here(self._thread, batch):
            self._committed = True
        else:
            writer_give(self._thread, batch)
        return 0

    cpdef int submit_or_commit(self) except -1:
        self._may_commit = self._thread.inline_ns > 0
        try:
            Writer.submit(self)
        finally:
            self._may_commit = False
        if not self._committed:
            return 0
        self._committed = False
        self.complete()
        return 1

    cdef Batch* _take(self):
        return writer_take(self._thread)

    cdef bint _busy(self):
        return writer_busy(self._thread) != 0

    cpdef int complete(self) except -1:
        drain_event(self._thread.event_fd)
        return Writer.complete(self)

    def fileno(self):
        """The descriptor that is readable when `complete` has something to do."""
        return self._thread.event_fd

    def close(self):
        """Commits the gathered batch, calls its listeners, and ends the thread. Closing twice has no effect.

        A unit that is still open is rolled back. Operations that listeners add meanwhile are also committed, for a limited number of
        rounds.
        """
        if self._closed:
            return
        while self._depth:
            self.roll_back()
        for _ in range(_CLOSING_ROUNDS):
            if not self._busy():
                self.complete()     # what has ended is told while listeners may still add to it
            if not self._busy():
                if self.failed or batch_empty(self._current):
                    break
                break_hold(self)
                self._seal()
            select.select([self.fileno()], [], [])
            self.complete()
        self._end_thread(self.failed)
        self.complete()

    def statistics(self):
        """Returns the counters of `Writer.statistics`, and "log": a dict of counters of the redo log, all 0 if there is none.

        "records" and "bytes": appended to the log. "applied_batches" and "applied_operations": moved from the log to LMDB, as LMDB commits
        and as operations in them. "unapplied_bytes": bytes that are only in the log. "waits": batches that waited because the log was full.
        "inline_commits": commits on the calling thread (`submit_or_commit`).
        """
        cdef RedoStore* redo = self._tables._store.redo
        cdef dict figures = Writer.statistics(self)
        figures["log"] = {
            "records": redo.stats.records if redo != NULL else 0,
            "bytes": redo.stats.bytes if redo != NULL else 0,
            "applied_batches": redo.stats.applied_batches if redo != NULL else 0,
            "applied_operations": redo.stats.applied_operations if redo != NULL else 0,
            "unapplied_bytes": redo_unapplied(redo) if redo != NULL else 0,
            "waits": redo.stats.waits if redo != NULL else 0,
            "inline_commits": self._thread.inline_commits,
        }
        if redo != NULL:
            figures["missing_deletes"] += redo.stats.missing
        return figures


@cython.no_gc_clear  # the environment must outlive the thread
cdef class LmdbReader(Reader):
    """The native reader thread. The loop watches `fileno()` and calls `complete()`."""

    def __cinit__(self, LmdbTables tables not None):
        self._tables = tables
        self._thread = reader_start(&tables._store)
        if self._thread == NULL:
            raise StoreError("cannot start the reader thread")
        tables._users += 1

    def __dealloc__(self):
        cdef ReadRequest* request
        cdef ReadRequest* following
        if self._thread == NULL:
            return
        if not self._closed:
            reader_stop(self._thread)
            self._tables._users -= 1
        request = reader_take(self._thread)
        while request != NULL:
            following = request.next
            Py_DECREF(<object>request.body)
            Py_DECREF(<object>request.listener)
            free(request)
            request = following
        reader_free(self._thread)

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        cdef ReadRequest* request
        cdef bytes body
        if self._closed:
            raise StoreError("the store is closed")
        body = PyBytes_FromStringAndSize(NULL, size)
        request = <ReadRequest*>malloc(sizeof(ReadRequest))
        if request == NULL:
            PyErr_NoMemory()
        request.content_id = content_id
        request.size = size
        request.token = token
        request.target = PyBytes_AS_STRING(body)
        Py_INCREF(body)
        Py_INCREF(listener)
        request.body = <PyObject*>body
        request.listener = <PyObject*>listener
        reader_give(self._thread, request)
        return 0

    cpdef int complete(self) except -1:
        cdef ReadRequest* request
        cdef ReadRequest* following
        cdef object fault = None
        drain_event(self._thread.event_fd)
        request = reader_take(self._thread)
        while request != NULL:
            following = request.next
            body, listener = <object>request.body, <ReadListener>request.listener
            Py_DECREF(body)
            Py_DECREF(listener)
            try:
                (<ReadListener>listener).body_read(request.token, None if request.status else body, request.status)
            except Exception as error:
                fault = also(fault, error)
            free(request)
            request = following
        if fault is not None:
            raise fault
        return 0

    def fileno(self):
        """The descriptor that is readable when `complete` has something to do."""
        return self._thread.event_fd

    @property
    def transactions(self):
        """The number of read transactions so far; requests that are read together share one."""
        return self._thread.transactions

    def close(self):
        """Completes the requests that wait, calls their listeners, and ends the thread. Closing twice has no effect."""
        if self._closed:
            return
        self._closed = True
        with nogil:
            reader_stop(self._thread)
        self._tables._users -= 1
        self.complete()
