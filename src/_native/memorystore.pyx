"""The store in memory, for tests and simulators: classes with the interfaces of lmdbstore.pyx and lmdbthreads.pyx, without threads."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from msmq_fast._native.batch cimport Writer, also, break_hold
from msmq_fast._native.gather cimport (
    CHUNK_BYTES, OP_DELETE, WHOLE_BYTES, Batch, Op, Pack, batch_clear, batch_free, list_pop, list_push, pack_close,
)
from msmq_fast._native.lmdbapi cimport MDB_CORRUPTED, MDB_NOTFOUND
from msmq_fast._native.lmdbstore cimport store_error
from msmq_fast._native.record cimport CONTENT_KEY_SIZE, content_key
from msmq_fast._native.tablenumbers cimport TABLE_CONTENT, TABLE_COUNT, TABLE_FEED, TABLE_HISTORY, TABLE_POSITION
from msmq_fast._native.tables cimport PositionVisitor, Reader, ReadListener, Tables, visit

from bisect import bisect_left

from msmq_fast._native.tables import StoreError


cdef class MemoryTables(Tables):
    """Tables as dicts, for tests and simulators."""

    def __cinit__(self):
        self.tables = [{} for _ in range(TABLE_COUNT)]

    cdef uint64_t load_positions(self, PositionVisitor visitor) except? 0:
        cdef dict positions = self.tables[TABLE_POSITION]
        cdef int64_t queue = -1
        cdef bytes name, record
        for name in sorted(positions):
            record = positions[name]
            visit(
                visitor, <const uint8_t*>PyBytes_AS_STRING(name), len(name), <const uint8_t*>PyBytes_AS_STRING(record), len(record),
                &queue,
            )
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
                raise store_error(f"cannot read content {content_id}", MDB_NOTFOUND)
            parts.append(part[1:])
        packet = b"".join(parts)
        if len(packet) != size:
            raise store_error(f"cannot read content {content_id}", MDB_CORRUPTED)
        return packet

    def close(self):
        """Does nothing; provided so that both kinds of stores can be closed in the same way."""


cdef class MemoryWriter(Writer):
    """For tests and simulators: a batch becomes durable when `complete_one` is called, and can be made to fail."""

    def __cinit__(self, MemoryTables tables=None, **kwargs):
        self.tables = MemoryTables() if tables is None else tables
        self._strict = True     # `fail_call` counts operations
        self._next_number[0] = self.tables.next_number(TABLE_FEED)
        self._next_number[1] = self.tables.next_number(TABLE_HISTORY)
        self._last_content = self.tables.last_content()

    def __dealloc__(self):
        self._drop()

    cdef int _drop(self):
        cdef Batch* batch
        batch = list_pop(&self._flying)
        while batch != NULL:
            batch_free(batch)
            batch = list_pop(&self._flying)
        batch = list_pop(&self._done)
        while batch != NULL:
            batch_free(batch)
            batch = list_pop(&self._done)
        return 0

    def fail_call(self, uint64_t nth):
        """Makes the nth operation from now on (1 is the next) raise StoreError."""
        self._fail_call = self._calls + nth

    @property
    def reached(self) -> bool:
        """Whether the operation of `fail_call` has been called and refused."""
        return self._calls >= self._fail_call

    def fail_commit(self, uint64_t nth, int status):
        """Makes the nth commit from now on (1 is the next) fail with `status` and store nothing."""
        self._fail_commit = self._commits + nth
        self._fail_status = status

    cdef int _check(self) except -1:
        Writer._check(self)
        self._calls += 1
        if self._calls == self._fail_call:
            self._refused |= <uint64_t>1 << min(self._depth, 63)
            raise StoreError("refused by the test")
        return 0

    cdef int _start(self, Batch* batch) except -1:
        batch.taken_ns = batch.first_ns
        batch.done_ns = batch.first_ns
        list_push(&self._flying, batch)
        return 0

    cdef Batch* _take(self):
        return list_pop(&self._done)

    cdef bint _busy(self):
        return self._flying.head != NULL

    @property
    def flying(self):
        """True while a submitted batch waits for `complete_one`."""
        return self._flying.head != NULL

    def complete_one(self, int status=0):
        """Ends the oldest submitted batch with `status` (0: it is durable) and calls its listeners. Returns False if there is none."""
        cdef Batch* batch = list_pop(&self._flying)
        if batch == NULL:
            return False
        self._commits += 1
        if self._commits == self._fail_commit:
            status = self._fail_status
        if self.failed:
            status = status or MDB_CORRUPTED
        status = status or batch.status
        if batch.after and batch.after <= self._failed_number:
            status = status or self._failed_status
        if status:
            self._failed_number, self._failed_status = batch.number, status
        batch.status = status
        if status == 0:
            self._apply(batch)
        list_push(&self._done, batch)
        self.complete()
        return True

    def complete_all(self, int status=0):
        """Submits and ends batches, as `complete_one` does, until no operation is left."""
        self.submit()
        while self.complete_one(status):
            pass

    def crash(self):
        """Simulates a crash: returns the durable tables, as a new process reads them. This writer accepts nothing more and calls no listener."""
        self._drop()
        batch_clear(self._current)
        self._closed = self._strict = True
        return self.tables

    def close(self):
        """Commits the gathered batch and calls its listeners."""
        if self._closed:
            return
        while self._depth:
            self.roll_back()
        break_hold(self)
        self.flush()
        while self.complete_one():
            pass
        self._closed = self._strict = True

    cdef int _apply(self, Batch* batch) except -1:
        cdef Batch* fields = batch
        cdef Op* op
        cdef Pack* pack
        cdef size_t i
        cdef const char* at
        cdef dict table
        for i in range(fields.op_count):
            op = &fields.ops[i]
            at = <const char*>fields.arena + op.at
            table = self.tables.tables[op.table]
            key = at[:op.key_len]
            if op.kind == OP_DELETE:
                table.pop(key, None)
            else:
                at += op.key_len
                table[key] = at[:op.head_len] + (op.body[:op.body_len] if op.body_len else b"")
        for i in range(2):
            pack = &fields.packs[i]
            if pack.count:
                pack_close(pack)
                table = self.tables.tables[TABLE_FEED + i]
                number = self.tables.next_number(TABLE_FEED + <int>i)
                table[number.to_bytes(8, "big")] = (<char*>pack.data)[:pack.used]
        return 0


cdef class MemoryReader(Reader):
    """A reader in memory: it answers requests when `complete` is called."""

    def __cinit__(self, MemoryTables tables not None):
        self._tables = tables
        self._requests = []

    @property
    def waiting(self):
        """The number of requests that `complete` would answer."""
        return len(self._requests)

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        self._requests.append((content_id, size, listener, token))
        return 0

    cpdef int complete(self) except -1:
        cdef ReadListener listener
        cdef object fault = None
        requests, self._requests = self._requests, []
        for content_id, size, listener, token in requests:
            try:
                body, status = self._tables.read_content(content_id, size), 0
            except StoreError as error:
                body, status = None, error.status
            try:
                listener.body_read(token, body, status)
            except Exception as error:
                fault = also(fault, error)
        if fault is not None:
            raise fault
        return 0

    def close(self):
        """Answers the requests that wait, as `complete` does."""
        self.complete()
