# Cold reads of what is durable.

cdef class PositionVisitor:
    cdef int begin_queue(self, uint32_t queue) except -1:
        raise NotImplementedError

    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1:
        raise NotImplementedError


    def damage(self, bytes key, str problem):
        """A record that cannot be a position; a visitor that knows better passes it over."""
        raise StoreError(f"damaged position record, key {key.hex()}: {problem}", MDB_CORRUPTED)


cdef class _Packer(PositionVisitor):
    """Collects the positions of each queue as rows of LookupIdentifier (u64, little-endian) and record."""
    cdef dict queues
    cdef bytearray rows

    def __cinit__(self):
        self.queues = {}

    cdef int begin_queue(self, uint32_t queue) except -1:
        self.rows = self.queues[queue] = bytearray()
        return 0

    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1:
        self.rows += (<char*>&lookup_id)[:8]
        self.rows += (<char*>record)[:sizeof(PositionRecord)]
        return 0


cdef int _visit(PositionVisitor visitor, MDB_val* key, MDB_val* value, int64_t* queue) except -1:
    cdef const uint8_t* name = <const uint8_t*>key.mv_data
    cdef uint32_t ordinal
    cdef const PositionRecord* record = <const PositionRecord*>value.mv_data
    if key.mv_size != POSITION_KEY_SIZE or value.mv_size < sizeof(PositionRecord) or value.mv_size < position_size(record) or \
            (record.version != POSITION_VERSION and record.version != POSITION_NUMBERED):
        visitor.damage((<char*>key.mv_data)[:key.mv_size], "no position record of a known version")
        return 0
    ordinal = load_be32(name)
    if ordinal != queue[0]:
        queue[0] = ordinal
        visitor.begin_queue(ordinal)
    visitor.position(load_be64(name + 4), record)
    return 0


cdef class Tables:
    """What is durable, for cold reads on the loop: start-up, tools, tests."""

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        raise NotImplementedError

    def pack_positions(self):
        """All positions, as {queue ordinal: rows of LookupIdentifier u64 and position record}."""
        cdef _Packer packer = _Packer()
        self.load_positions(packer)
        return {queue: bytes(rows) for queue, rows in packer.queues.items()}

    def next_number(self, int table):
        """The number that the next entry of a packed table gets, as far as its records tell."""
        last = self.last(table)
        if last is None:
            return 1
        key, value = last
        size = int.from_bytes(value[2:4], "little")
        count = int.from_bytes(value[4:8], "little")
        number = int.from_bytes(key, "big") + count
        if len(key) != 8 or len(value) != <Py_ssize_t>sizeof(PackHead) + size * count or number >> 63:
            raise StoreError(f"damaged packed record, key {key.hex()}", MDB_CORRUPTED)
        return number

    def last_content(self):
        """The greatest content id that is stored, or 0."""
        last = self.last(TABLE_CONTENT)
        return 0 if last is None else int.from_bytes(last[0][:8], "big")


cdef class LmdbTables(Tables):
    """The LMDB environment of a directory. One process opens an environment once; `close` needs its writer and reader closed and no copy under way."""

    def __cinit__(self, path, *, size_t map_size=1 << 40, bint read_only=False, bint read_ahead=True):
        cdef bytes name = os.fsencode(path)
        cdef const char* directory = name
        cdef const char* names[9]
        cdef int status, i
        cdef unsigned int flags = (MDB_RDONLY if read_only else 0) | (0 if read_ahead else MDB_NORDAHEAD)
        for i in range(9):
            names[i] = <bytes>_DATABASES[i]
        with nogil:
            status = store_open(&self._store, directory, map_size, flags, names)
        if status:
            raise _error(f"cannot open the store in {os.fsdecode(path)}", status)

    def __dealloc__(self):
        if (<StoreFields*>&self._store).env != NULL:
            lmdb_api.env_close((<StoreFields*>&self._store).env)

    cdef MDB_txn* _begin(self) except NULL:
        cdef MDB_txn* txn
        cdef int status
        if (<StoreFields*>&self._store).env == NULL:
            raise StoreError("the store is closed")
        status = lmdb_api.txn_begin((<StoreFields*>&self._store).env, NULL, MDB_RDONLY, &txn)
        if status:
            raise _error("cannot read the store", status)
        return txn

    cdef MDB_cursor* _cursor(self, MDB_txn* txn, int table) except NULL:
        cdef MDB_cursor* cursor
        cdef int status
        if not 0 <= table < TABLE_COUNT:
            raise ValueError(f"no table {table}")
        status = lmdb_api.cursor_open(txn, (<StoreFields*>&self._store).dbi[table], &cursor)
        if status:
            raise _error("cannot read the store", status)
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
                    raise _error("cannot read the positions", status)
                _visit(visitor, &key, &value, &queue)
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
            status = lmdb_api.get(txn, (<StoreFields*>&self._store).dbi[table], &name, &value)
            if status == MDB_NOTFOUND:
                return None
            if status:
                raise _error("cannot read the store", status)
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
                    raise _error("cannot read the store", status)
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
                raise _error("cannot read the store", status)
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
            raise _error(f"cannot read content {content_id}", status)
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
        lmdb_api.stat(txn, (<StoreFields*>&self._store).dbi[table], &found)
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
        lmdb_api.env_info((<StoreFields*>&self._store).env, &info)
        status = free_pages(&self._store, &unused)
        if status:
            raise _error("cannot read the free list", status)
        tables = {}
        page_size = 0
        for table in range(TABLE_COUNT):
            one = self._stat(table)
            page_size = one.ms_psize
            tables[_DATABASES[table].decode()] = {
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
        cdef MDB_env* env = (<StoreFields*>&self._store).env
        if env == NULL:
            raise StoreError("the store is closed")
        self._users += 1
        with nogil:
            status = lmdb_api.env_copyfd2(env, fd, flags)
        self._users -= 1
        if status:
            raise _error("cannot copy the store", status)

    def close(self):
        """Closes the environment; closing twice is fine."""
        if self._users:
            raise StoreError("the store's writer and reader must be closed first, and a copy must have ended")
        if (<StoreFields*>&self._store).env != NULL:
            lmdb_api.env_close((<StoreFields*>&self._store).env)
            (<StoreFields*>&self._store).env = NULL


cdef class MemoryTables(Tables):
    """Tables as dicts, for tests and simulators."""

    def __cinit__(self):
        self.tables = [{} for _ in range(TABLE_COUNT)]

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        cdef dict positions = self.tables[TABLE_POSITION]
        cdef MDB_val key, value
        cdef int64_t queue = -1
        cdef bytes name, record
        for name in sorted(positions):
            record = positions[name]
            key.mv_size, key.mv_data = len(name), <void*>PyBytes_AS_STRING(name)
            value.mv_size, value.mv_data = len(record), <void*>PyBytes_AS_STRING(record)
            _visit(visitor, &key, &value, &queue)
        return len(positions)

    def get(self, int table, bytes key):
        return self.tables[table].get(key)

    def scan(self, int table, bytes lower=b"", bytes upper=None, size_t limit=1000):
        keys = sorted(self.tables[table])
        end = len(keys) if upper is None else bisect_left(keys, upper)
        return [(key, self.tables[table][key]) for key in keys[bisect_left(keys, lower):end][:limit]]

    def last(self, int table):
        key = max(self.tables[table], default=None)
        return None if key is None else (key, self.tables[table][key])

    def count(self, int table):
        return len(self.tables[table])

    def read_content(self, uint64_t content_id, uint32_t size):
        cdef uint8_t key[CONTENT_KEY_SIZE]
        cdef uint32_t step = WHOLE_BYTES if size <= WHOLE_BYTES else CHUNK_BYTES
        parts = []
        for chunk in range(1 if size <= step else (<uint64_t>size + step - 1) // step):
            content_key(key, content_id, chunk)
            part = self.tables[TABLE_CONTENT].get((<char*>key)[:CONTENT_KEY_SIZE])
            if part is None:
                raise _error(f"cannot read content {content_id}", MDB_NOTFOUND)
            parts.append(part[1:])
        packet = b"".join(parts)
        if len(packet) != size:
            raise _error(f"cannot read content {content_id}", MDB_CORRUPTED)
        return packet

    def close(self):
        """Nothing to close; here so that a store can be closed either way."""
