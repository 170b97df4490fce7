"""The store on disk: an LMDB environment, the writer and the reader, each with a native thread that never takes the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.exc cimport PyErr_NoMemory
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

cimport cython
from msmq_fast._native.batch cimport Writer, also, break_hold
from msmq_fast._native.gather cimport Batch, batch_empty, batch_free
from msmq_fast._native.lmdbapi cimport (
    MDB_CP_COMPACT,
    MDB_LAST,
    MDB_NEXT,
    MDB_NORDAHEAD,
    MDB_NOTFOUND,
    MDB_RDONLY,
    MDB_SET_RANGE,
    LmdbStore,
    MDB_cursor,
    MDB_env,
    MDB_envinfo,
    MDB_stat,
    MDB_txn,
    MDB_val,
    ReadRequest,
    drain_event,
    free_pages,
    lmdb_api,
    lmdb_load,
    read_content,
    reader_free,
    reader_give,
    reader_start,
    reader_stop,
    reader_take,
    status_is_space,
    store_open,
    writer_busy,
    writer_free,
    writer_give,
    writer_start,
    writer_stop,
    writer_take,
)
from msmq_fast._native.tables cimport (
    TABLE_COUNT, TABLE_FEED, TABLE_HISTORY, TABLE_POSITION, PositionVisitor, Reader, ReadListener, Tables, visit,
)

import os
import select

import lmdb.cpython

from msmq_fast._native.tables import DATABASES, StoreError

_CLOSING_ROUNDS = 16


def status_text(int status):
    """What a commit status means, in words."""
    if status == 0:
        return "ok"
    return lmdb_api.strerror(status).decode()


def status_is_full(int status):
    """True for a full disk or map: nothing was kept, and a later commit may succeed (flow control)."""
    return bool(status_is_space(status))


cdef object store_error(str doing, int status):
    return StoreError(f"{doing}: {status_text(status)}", status)


def _load_liblmdb():
    cdef char problem[512]
    cdef bytes path = os.fsencode(lmdb.cpython.__file__)
    if lmdb_load(path, problem, sizeof(problem)) != NULL:
        raise ImportError(f"liblmdb cannot be used: {problem.decode(errors='replace')}")


_load_liblmdb()


cdef class LmdbTables(Tables):
    """The LMDB environment of a directory. One process opens an environment once; `close` needs its writer and reader closed and no copy under way."""

    def __cinit__(self, path, *, size_t map_size=1 << 40, bint read_only=False, bint read_ahead=True):
        cdef bytes name = os.fsencode(path)
        cdef const char* directory = name
        cdef const char* names[TABLE_COUNT + 1]
        cdef int status, i
        cdef unsigned int flags = (MDB_RDONLY if read_only else 0) | (0 if read_ahead else MDB_NORDAHEAD)
        for i in range(TABLE_COUNT):
            names[i] = <bytes>DATABASES[i]
        names[<int>TABLE_COUNT] = NULL
        with nogil:
            status = store_open(&self._store, directory, map_size, flags, names)
        if status:
            raise store_error(f"cannot open the store in {os.fsdecode(path)}", status)

    def __dealloc__(self):
        if self._store.env != NULL:
            lmdb_api.env_close(self._store.env)

    cdef MDB_txn* _begin(self) except NULL:
        cdef MDB_txn* txn
        cdef int status
        if self._store.env == NULL:
            raise StoreError("the store is closed")
        status = lmdb_api.txn_begin(self._store.env, NULL, MDB_RDONLY, &txn)
        if status:
            raise store_error("cannot read the store", status)
        return txn

    cdef MDB_cursor* _cursor(self, MDB_txn* txn, int table) except NULL:
        cdef MDB_cursor* cursor
        cdef int status
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"no table {table}")
        status = lmdb_api.cursor_open(txn, self._store.dbi[table], &cursor)
        if status:
            raise store_error("cannot read the store", status)
        return cursor

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        cdef MDB_txn* txn = self._begin()
        cdef MDB_cursor* cursor = NULL
        cdef MDB_val key, value
        cdef int64_t queue = -1
        cdef uint64_t count = 0
        cdef int status
        try:
            cursor = self._cursor(txn, TABLE_POSITION)
            while True:
                status = lmdb_api.cursor_get(cursor, &key, &value, MDB_NEXT)
                if status == MDB_NOTFOUND:
                    return count
                if status:
                    raise store_error("cannot read the positions", status)
                visit(visitor, <const uint8_t*>key.mv_data, key.mv_size, <const uint8_t*>value.mv_data, value.mv_size, &queue)
                count += 1
        finally:
            if cursor != NULL:
                lmdb_api.cursor_close(cursor)
            lmdb_api.txn_abort(txn)

    def get(self, int table, bytes key):
        """The value under `key`, or None."""
        cdef MDB_txn* txn
        cdef MDB_val name, value
        cdef int status
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"no table {table}")
        txn = self._begin()
        name.mv_size = len(key)
        name.mv_data = PyBytes_AS_STRING(key)
        try:
            status = lmdb_api.get(txn, self._store.dbi[table], &name, &value)
            if status == MDB_NOTFOUND:
                return None
            if status:
                raise store_error("cannot read the store", status)
            return (<char*>value.mv_data)[:value.mv_size]
        finally:
            lmdb_api.txn_abort(txn)

    def scan(self, int table, bytes lower=b"", bytes upper=None, size_t limit=1000):
        """At most `limit` records with lower <= key < upper, in key order; one short read transaction."""
        cdef MDB_txn* txn = self._begin()
        cdef MDB_cursor* cursor = NULL
        cdef MDB_val key, value
        cdef int status, step = MDB_SET_RANGE
        cdef list found = []
        key.mv_size = len(lower)
        key.mv_data = PyBytes_AS_STRING(lower)
        if key.mv_size == 0:
            step = MDB_NEXT
        try:
            cursor = self._cursor(txn, table)
            while <size_t>len(found) < limit:
                status = lmdb_api.cursor_get(cursor, &key, &value, step)
                step = MDB_NEXT
                if status == MDB_NOTFOUND:
                    break
                if status:
                    raise store_error("cannot read the store", status)
                name = (<char*>key.mv_data)[:key.mv_size]
                if upper is not None and name >= upper:
                    break
                found.append((name, (<char*>value.mv_data)[:value.mv_size]))
            return found
        finally:
            if cursor != NULL:
                lmdb_api.cursor_close(cursor)
            lmdb_api.txn_abort(txn)

    def last(self, int table):
        """The record with the greatest key, or None."""
        cdef MDB_txn* txn = self._begin()
        cdef MDB_cursor* cursor = NULL
        cdef MDB_val key, value
        cdef int status
        try:
            cursor = self._cursor(txn, table)
            status = lmdb_api.cursor_get(cursor, &key, &value, MDB_LAST)
            if status == MDB_NOTFOUND:
                return None
            if status:
                raise store_error("cannot read the store", status)
            return (<char*>key.mv_data)[:key.mv_size], (<char*>value.mv_data)[:value.mv_size]
        finally:
            if cursor != NULL:
                lmdb_api.cursor_close(cursor)
            lmdb_api.txn_abort(txn)

    def read_content(self, uint64_t content_id, uint32_t size):
        """A stored packet; raises StoreError when it is not there or damaged."""
        cdef bytes packet = PyBytes_FromStringAndSize(NULL, size)
        cdef MDB_txn* txn = self._begin()
        cdef int status = read_content(&self._store, txn, content_id, size, PyBytes_AS_STRING(packet))
        lmdb_api.txn_abort(txn)
        if status:
            raise store_error(f"cannot read content {content_id}", status)
        return packet

    def count(self, int table):
        """Number of records."""
        return self._stat(table).ms_entries

    cdef MDB_stat _stat(self, int table) except *:
        cdef MDB_txn* txn
        cdef MDB_stat found
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"no table {table}")
        txn = self._begin()
        lmdb_api.stat(txn, self._store.dbi[table], &found)
        lmdb_api.txn_abort(txn)
        return found

    def space(self):
        """Pages of the file: {"page_size", "pages", "free_pages", "map_size", "last_transaction", "tables": {…}}."""
        cdef MDB_envinfo info
        cdef MDB_stat one
        cdef size_t unused = 0
        cdef int status
        cdef MDB_txn* txn = self._begin()
        lmdb_api.txn_abort(txn)
        lmdb_api.env_info(self._store.env, &info)
        status = free_pages(&self._store, &unused)
        if status:
            raise store_error("cannot read the free list", status)
        tables = {}
        page_size = 0
        for table in range(TABLE_COUNT):
            one = self._stat(table)
            page_size = one.ms_psize
            tables[DATABASES[table].decode()] = {
                "entries": one.ms_entries,
                "pages": one.ms_branch_pages + one.ms_leaf_pages + one.ms_overflow_pages,
            }
        return {
            "page_size": page_size,
            "pages": info.me_last_pgno + 1,
            "free_pages": unused,
            "map_size": info.me_mapsize,
            "last_transaction": info.me_last_txnid,
            "tables": tables,
        }

    def copy(self, int fd, bint compact=False):
        """Writes a consistent copy to the descriptor without the GIL; the pages in use meanwhile are not reused."""
        cdef int status
        cdef unsigned int flags = MDB_CP_COMPACT if compact else 0
        cdef MDB_env* env = self._store.env
        if env == NULL:
            raise StoreError("the store is closed")
        self._users += 1
        with nogil:
            status = lmdb_api.env_copyfd2(env, fd, flags)
        self._users -= 1
        if status:
            raise store_error("cannot copy the store", status)

    def close(self):
        """Closes the environment; closing twice is fine."""
        if self._users:
            raise StoreError("the store's writer and reader must be closed first, and a copy must have ended")
        if self._store.env != NULL:
            lmdb_api.env_close(self._store.env)
            self._store.env = NULL


@cython.no_gc_clear  # the environment must outlive the thread
cdef class LmdbWriter(Writer):
    """Commits on a native thread. The loop watches `fileno()` and calls `complete()`."""

    def __cinit__(self, LmdbTables tables not None, *, feed_number=None, history_number=None, **kwargs):
        self._tables = tables
        self._next_number[0] = feed_number or tables.next_number(TABLE_FEED)
        self._next_number[1] = history_number or tables.next_number(TABLE_HISTORY)
        self._last_content = tables.last_content()
        self._thread = writer_start(&tables._store, self._next_number)
        if self._thread == NULL:
            raise StoreError("cannot start the writer thread")
        tables._users += 1

    def __dealloc__(self):
        cdef Batch* batch
        if self._thread == NULL:
            return
        if not self._closed:
            writer_stop(self._thread)
            self._tables._users -= 1
        batch = writer_take(self._thread)
        while batch != NULL:
            batch_free(batch)
            batch = writer_take(self._thread)
        writer_free(self._thread)

    cdef int _start(self, Batch* batch) except -1:
        writer_give(self._thread, batch)
        return 0

    cdef Batch* _take(self):
        return writer_take(self._thread)

    cdef bint _busy(self):
        return writer_busy(self._thread) != 0

    cpdef int complete(self) except -1:
        drain_event(self._thread.event_fd)
        return Writer.complete(self)

    def fileno(self):
        """Readable when `complete` has something to do."""
        return self._thread.event_fd

    def close(self):
        """Commits what was gathered, tells its listeners, ends the thread; closing twice is fine.

        An open unit is abandoned. What listeners add meanwhile is committed too, for a bounded number of rounds.
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
        self._closed = self._strict = True
        with nogil:
            writer_stop(self._thread)
        self._tables._users -= 1
        self.complete()


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
        """Readable when `complete` has something to do."""
        return self._thread.event_fd

    @property
    def transactions(self):
        """Read transactions so far; groups of requests share one."""
        return self._thread.transactions

    def close(self):
        """Reads what was asked for, tells the listeners, ends the thread; closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        with nogil:
            reader_stop(self._thread)
        self._tables._users -= 1
        self.complete()
