"""The store on disk: an LMDB environment with a redo log in front of it."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from msmq_fast._native.lmdbapi cimport (
    NO_TABLE,
    MDB_CORRUPTED,
    MDB_CP_COMPACT,
    MDB_LAST,
    MDB_NEXT,
    MDB_NORDAHEAD,
    MDB_NOTFOUND,
    MDB_PREV,
    MDB_RDONLY,
    MDB_SET_RANGE,
    REDO_REFUSED,
    Generation,
    MDB_cursor,
    MDB_env,
    MDB_envinfo,
    MDB_stat,
    MDB_txn,
    MDB_val,
    MemItem,
    RedoStore,
    RedoView,
    compare_keys,
    free_pages,
    item_is_value,
    item_value,
    lmdb_api,
    load_liblmdb,
    read_content_anew,
    redo_find,
    redo_finish,
    redo_free,
    redo_replay,
    redo_settle,
    redo_start,
    redo_unapplied,
    redo_unpin,
    redo_view,
    redo_view_end,
    status_is_space,
    store_open,
)
from msmq_fast._native.tablenumbers cimport TABLE_COUNT, TABLE_POSITION
from msmq_fast._native.tables cimport PositionVisitor, Tables, visit

import os

from msmq_fast._native.tables import DATABASES, FIRST_TABLES, StoreError



def status_text(int status):
    """Returns the error text for a commit status (an errno or an MDB_* code)."""
    if status == 0:
        return "ok"
    return lmdb_api.strerror(status).decode()


def status_is_full(int status):
    """Whether a commit status means that the disk or the LMDB map is full: nothing was stored, and a later commit may succeed (flow
    control).
    """
    return bool(status_is_space(status))


cdef object store_error(str doing, int status):
    return StoreError(f"{doing}: {status_text(status)}", status)


load_liblmdb()


cdef class LmdbTables(Tables):
    """The LMDB environment of a directory.

    A process must not open an environment twice at a time. Before `close`, its writer and reader must be closed and no copy may be in
    progress. Opening the environment for writing first applies the redo log that an earlier process left. `settled` states that the
    environment is a copy that already contains the data of the log. With read_only=True the log is ignored: see store/redotail.py.
    """

    def __cinit__(
        self, path, *, size_t map_size=1 << 40, bint read_only=False, bint read_ahead=True, bint settled=False
    ):
        cdef bytes name = os.fsencode(path)
        cdef const char* directory = name
        cdef const char* names[TABLE_COUNT + 1]
        cdef char problem[512]
        cdef int status, i, required = FIRST_TABLES
        cdef unsigned int flags = (MDB_RDONLY if read_only else 0) | (0 if read_ahead else MDB_NORDAHEAD)
        self._path = name
        problem[0] = 0
        for i in range(TABLE_COUNT):
            names[i] = <bytes>DATABASES[i]
        names[<int>TABLE_COUNT] = NULL
        with nogil:
            status = store_open(&self._store, directory, map_size, flags, names, required)
            if status == 0 and not read_only:
                status = redo_replay(&self._store, directory, settled, problem, sizeof(problem))
        if status == REDO_REFUSED:
            raise StoreError(problem.decode(errors="replace"), MDB_CORRUPTED)
        if status:
            raise store_error(f"cannot open the store in {os.fsdecode(path)}", status)

    def __dealloc__(self):
        self._end()

    cdef int _end(self) except -1:
        cdef RedoStore* redo = self._store.redo
        if redo != NULL:
            with nogil:
                redo_finish(redo, True)     # its writer is closed, or was never there
            self._store.redo = NULL
            redo_free(redo)
        if self._store.env != NULL:
            lmdb_api.env_close(self._store.env)
            self._store.env = NULL
        return 0

    def start_log(self, size_t size):
        """Puts a redo log of `size` bytes in front of the store until its writer is closed.

        A log that belongs to another state of the store is renamed. Returns the number in its new name, or 0 if there was no such log.
        Raises StoreError.
        """
        cdef const char* path = self._path
        cdef int status, moved = 0
        if self._store.env == NULL or self._store.redo != NULL:
            raise StoreError("cannot start a redo log: the store is closed or already has one")
        with nogil:
            status = redo_start(&self._store, path, size, &moved)
        if status == REDO_REFUSED:
            raise StoreError("cannot open a redo log: the store does not have a known schema version")
        if status:
            raise store_error(f"cannot open the redo log in {os.fsdecode(self._path)}/log", status)
        return moved

    def settle(self):
        """Waits, without the GIL, until everything that is durable now is in LMDB and not only in the redo log. Returns at once if there is
        no redo log.
        """
        cdef RedoStore* redo = self._store.redo
        cdef int status
        if redo == NULL:
            return
        with nogil:
            status = redo_settle(redo)
        if status:
            raise store_error("cannot apply the redo log", status)

    cdef RedoStore* _view(self, int table, bytes lower, bytes upper, RedoView* over) except? NULL:
        """Collects the records of the redo log with lower <= key < upper. Begin the read transaction after this call, and call
        `redo_view_end` at the end.
        """
        cdef RedoStore* redo = self._store.redo
        cdef const char* end = NULL if upper is None else PyBytes_AS_STRING(upper)
        cdef int status
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"the store has no table number {table}")
        status = redo_view(redo, table, PyBytes_AS_STRING(lower), len(lower), end, 0 if upper is None else len(upper), over)
        if status:
            redo_view_end(redo, over)
            raise store_error("cannot read the store", status)
        return redo

    cdef bint _lacks(self, int table) except -1:
        """Whether the store lacks a table, because an earlier version made the store and the store is open for reading only. The table then
        counts as empty.
        """
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"the store has no table number {table}")
        return self._store.env != NULL and self._store.dbi[table] == NO_TABLE

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
        status = lmdb_api.cursor_open(txn, self._store.dbi[table], &cursor)
        if status:
            raise store_error("cannot read the store", status)
        return cursor

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        self.settle()
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
        """The value under `key` in a table, or None if there is no such record."""
        cdef RedoStore* redo = self._store.redo
        cdef Generation* gen
        cdef MemItem item
        cdef MDB_txn* txn
        cdef MDB_val name, value
        cdef int status
        if self._lacks(table):
            return None
        if redo != NULL and redo_find(redo, table, PyBytes_AS_STRING(key), len(key), &item, &gen):
            try:
                return (<char*>item_value(&item))[:item.value_len] if item_is_value(&item) else None
            finally:
                redo_unpin(redo, gen)
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
        """Returns at most `limit` records with lower <= key < upper, in key order, from one short read transaction."""
        if self._lacks(table):
            return []
        cdef RedoView over
        cdef RedoStore* redo = self._view(table, lower, upper, &over)
        cdef MDB_txn* txn = NULL
        cdef MDB_cursor* cursor = NULL
        cdef MDB_val key, value
        cdef MemItem* item
        cdef size_t at = 0
        cdef int order, status, step = MDB_SET_RANGE if lower else MDB_NEXT
        cdef bint more = True       # the cursor may have another record
        cdef list found = []
        key.mv_size = len(lower)
        key.mv_data = PyBytes_AS_STRING(lower)
        try:
            txn = self._begin()
            cursor = self._cursor(txn, table)
            while <size_t>len(found) < limit:
                if more and step:
                    status = lmdb_api.cursor_get(cursor, &key, &value, step)
                    step = 0        # a record is examined until it was added
                    if status and status != MDB_NOTFOUND:
                        raise store_error("cannot read the store", status)
                    more = status == 0 and (upper is None or (<char*>key.mv_data)[:key.mv_size] < upper)
                item = &over.view.items[at] if at < over.view.count else NULL
                if item == NULL and not more:
                    break
                order = -1 if item == NULL else 1 if not more else compare_keys(
                    <const uint8_t*>key.mv_data, key.mv_size, item.key, item.key_len
                )
                if order < 0:
                    found.append(((<char*>key.mv_data)[:key.mv_size], (<char*>value.mv_data)[:value.mv_size]))
                elif item_is_value(item):
                    found.append(((<char*>item.key)[:item.key_len], (<char*>item_value(item))[:item.value_len]))
                at += order >= 0
                if order <= 0:
                    step = MDB_NEXT
            return found
        finally:
            if cursor != NULL:
                lmdb_api.cursor_close(cursor)
            if txn != NULL:
                lmdb_api.txn_abort(txn)
            redo_view_end(redo, &over)

    def last(self, int table):
        """The (key, value) of the record with the greatest key of a table, or None if the table is empty."""
        if self._lacks(table):
            return None
        cdef RedoView over
        cdef RedoStore* redo = self._view(table, b"", None, &over)
        cdef MDB_txn* txn = NULL
        cdef MDB_cursor* cursor = NULL
        cdef MDB_val key, value
        cdef MemItem* item
        cdef size_t at = over.view.count
        cdef int order, status
        try:
            txn = self._begin()
            cursor = self._cursor(txn, table)
            status = lmdb_api.cursor_get(cursor, &key, &value, MDB_LAST)
            while True:
                if status and status != MDB_NOTFOUND:
                    raise store_error("cannot read the store", status)
                item = &over.view.items[at - 1] if at else NULL
                if item == NULL and status:
                    return None
                order = 1 if item == NULL else -1 if status else compare_keys(
                    <const uint8_t*>key.mv_data, key.mv_size, item.key, item.key_len
                )
                if order > 0:
                    return (<char*>key.mv_data)[:key.mv_size], (<char*>value.mv_data)[:value.mv_size]
                if item_is_value(item):
                    return (<char*>item.key)[:item.key_len], (<char*>item_value(item))[:item.value_len]
                at -= 1
                if order == 0:
                    status = lmdb_api.cursor_get(cursor, &key, &value, MDB_PREV)
        finally:
            if cursor != NULL:
                lmdb_api.cursor_close(cursor)
            if txn != NULL:
                lmdb_api.txn_abort(txn)
            redo_view_end(redo, &over)

    def read_content(self, uint64_t content_id, uint32_t size):
        """Returns a stored packet. Raises StoreError if it is missing or damaged."""
        cdef bytes packet = PyBytes_FromStringAndSize(NULL, size)
        cdef MDB_txn* txn = self._begin()
        cdef int status = read_content_anew(&self._store, txn, content_id, size, PyBytes_AS_STRING(packet))
        lmdb_api.txn_abort(txn)
        if status:
            raise store_error(f"cannot read content {content_id}", status)
        return packet

    def count(self, int table):
        """The number of records of a table."""
        if self._lacks(table):
            return 0
        cdef RedoView over
        cdef RedoStore* redo = self._view(table, b"", None, &over)
        cdef MDB_txn* txn = NULL
        cdef MDB_stat found
        cdef MDB_val key, value
        cdef size_t i, total
        cdef int status
        try:
            txn = self._begin()
            lmdb_api.stat(txn, self._store.dbi[table], &found)
            total = found.ms_entries
            for i in range(over.view.count):
                key.mv_size = over.view.items[i].key_len
                key.mv_data = <void*>over.view.items[i].key
                status = lmdb_api.get(txn, self._store.dbi[table], &key, &value)
                if status and status != MDB_NOTFOUND:
                    raise store_error("cannot read the store", status)
                total += item_is_value(&over.view.items[i])
                total -= status == 0
            return total
        finally:
            if txn != NULL:
                lmdb_api.txn_abort(txn)
            redo_view_end(redo, &over)

    cdef MDB_stat _stat(self, int table) except *:
        cdef MDB_txn* txn
        cdef MDB_stat found
        if self._lacks(table):
            memset(&found, 0, sizeof(found))
            return found
        txn = self._begin()
        lmdb_api.stat(txn, self._store.dbi[table], &found)
        lmdb_api.txn_abort(txn)
        return found

    def space(self):
        """Returns figures of the store's file as a dict with the keys "page_size", "pages", "free_pages", "map_size", "last_transaction",
        "log_bytes" and "tables".

        "log_bytes" is the number of bytes that are only in the redo log until they are moved to the file; the other values do not include
        them: see `settle`.
        """
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
            page_size = max(page_size, one.ms_psize)
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
            "log_bytes": 0 if self._store.redo == NULL else redo_unapplied(self._store.redo),
            "tables": tables,
        }

    def copy(self, int fd, bint compact=False):
        """Writes a consistent copy of the file to the descriptor `fd`, without the GIL. The file may grow meanwhile, because pages that the
        copy still needs are not reused.
        """
        cdef int status
        cdef unsigned int flags = MDB_CP_COMPACT if compact else 0
        cdef MDB_env* env = self._store.env
        if env == NULL:
            raise StoreError("the store is closed")
        self._users += 1
        try:
            self.settle()
            with nogil:
                status = lmdb_api.env_copyfd2(env, fd, flags)
        finally:
            self._users -= 1
        if status:
            raise store_error("cannot copy the store", status)

    def close(self):
        """Closes the environment. Closing twice has no effect."""
        if self._users:
            raise StoreError("the store's writer and reader must be closed first, and a copy must have ended")
        self._end()
