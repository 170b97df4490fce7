"""The durable batch writer: gathers units of work into batches and reports the outcome of each batch.

One batch is one LMDB transaction. The loop gathers operations (an arena in C, bodies by reference). A native thread that never takes the
GIL commits them (lmdbstore.pyx). An eventfd notifies the loop, where `complete` calls the listeners.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_NoMemory
from libc.errno cimport ENOMEM
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

cimport cython
from msmq_fast._native.gather cimport (
    CHUNK_BYTES,
    OP_DELETE,
    OP_PUT,
    PUT_IS_LAST,
    PUT_IS_NEW,
    WHOLE_BYTES,
    Batch,
    GatherStats,
    Pack,
    batch_clear,
    batch_empty,
    batch_entry,
    batch_free,
    batch_hold,
    batch_mark,
    batch_notice,
    batch_op,
    batch_rewind,
    stats_add,
)
from msmq_fast._native.lmdbapi cimport status_is_space
from msmq_fast._native.record cimport (
    CONTENT_KEY_SIZE, CONTENT_VERSION, POSITION_KEY_SIZE, PositionRecord, content_key, position_key, position_size,
)
from msmq_fast._native.tablenumbers cimport TABLE_CONTENT, TABLE_COUNT, TABLE_FEED, TABLE_HISTORY, TABLE_POSITION
from msmq_fast._native.undo cimport UndoLog, log_call

from msmq_fast._native.tables import StoreError
from msmq_fast.signals import Signal

DEFAULT_BATCH_BYTES = 1 << 20
DEFAULT_BATCH_UNITS = 4096


cdef object also(object fault, object error):
    """Returns one exception for an earlier one (or None) and `error`, so that a loop can process every item and raise all exceptions at the
    end.
    """
    if fault is None:
        return error
    if isinstance(fault, ExceptionGroup):
        return ExceptionGroup("several faults", [*fault.exceptions, error])
    return ExceptionGroup("several faults", [fault, error])


cdef class CommitListener:
    cdef int committed(self, uint64_t token, int status) except -1:
        raise NotImplementedError

    cdef int settled(self) except -1:
        return 0


cdef class Callback(CommitListener):
    def __cinit__(self, function):
        self.function = function

    cdef int committed(self, uint64_t token, int status) except -1:
        self.function(status)
        return 0


cdef int _refuse(Writer writer) except -1:
    writer._refused |= <uint64_t>1 << min(writer._depth, 63)    # the unit is incomplete and must not be kept
    PyErr_NoMemory()


cdef int break_hold(Writer writer) except -1:
    cdef Batch* batch = writer._current
    if batch.held:
        batch.held = 0
        batch.status = ENOMEM
    return 0


cdef int _fail(Writer writer, int status) except -1:
    writer.failed = writer._strict = True
    try:
        writer.on_failure(status)
    except Exception as error:
        writer._fault = also(writer._fault, error)
    return 0


cdef int _more_savepoints(Writer writer) except -1:
    cdef int room = writer._savepoint_room * 2 if writer._savepoint_room else 8
    cdef void* grown = realloc(writer._savepoints, room * sizeof(Savepoint))
    if grown == NULL:
        raise MemoryError("no memory for a unit of work")
    writer._savepoints = <Savepoint*>grown
    writer._savepoint_room = room
    return 0


@cython.final
cdef class Unit:
    """A unit of work as a context manager; created by `Writer.unit`."""
    cdef Writer _writer

    def __enter__(self):
        self._writer.begin_unit()
        return self._writer

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self._writer.keep_unit()
        else:
            self._writer.roll_back()


cdef class Writer:
    """Gathers operations into batches. Subclasses make the batches durable."""

    def __cinit__(self, *args, size_t max_bytes=DEFAULT_BATCH_BYTES, uint32_t max_units=DEFAULT_BATCH_UNITS, **kwargs):
        self._max_bytes = max_bytes
        self._max_units = max_units
        self.on_failure = Signal()
        self.before_seal = Signal()
        self.undo = UndoLog.__new__(UndoLog)
        self._handles = 1
        self._settling = []
        self._waiting = []
        self._next_number[0] = self._next_number[1] = 1
        memset(&self._stats, 0, sizeof(self._stats))
        self._current = <Batch*>calloc(1, sizeof(Batch))
        if self._current == NULL:
            raise MemoryError
        self._current.number = 1

    def __dealloc__(self):
        batch_free(self._current)
        batch_free(self._spare)
        free(self._savepoints)

    # -- gathering

    cdef int _check(self) except -1:
        if self.failed:
            raise StoreError("the store has failed and accepts nothing more")
        if self._closed:
            raise StoreError("the store is closed")
        return 0

    cdef int _room(self) except -1:
        # Between units, a full batch is submitted, so that a large batch does not delay small ones for long.
        cdef Batch* batch = self._current
        if self._strict:
            self._check()
        if self._depth == 0 and not batch.held and (batch.bytes >= self._max_bytes or batch.units >= self._max_units):
            self._seal()
        if self._depth == 0:
            self._current.units += 1
        return 0

    cpdef int begin_unit(self) except -1:
        cdef Savepoint* point
        self._room()
        if self._depth == self._savepoint_room:
            _more_savepoints(self)
        point = &self._savepoints[self._depth]
        batch_mark(self._current, &point.mark)
        point.next_number[0], point.next_number[1] = self._next_number[0], self._next_number[1]
        point.undo_count = self.undo.count
        self._depth += 1
        self.undo.depth = self._depth
        return 0

    cpdef int keep_unit(self) except -1:
        if self._depth == 0:
            raise RuntimeError("keep_unit was called without begin_unit")
        if self._refused >> min(self._depth, 63):
            self.roll_back()
            raise StoreError("an operation of this unit of work was refused")
        self._depth -= 1
        self.undo.depth = self._depth
        if self._depth == 0 and self.undo.count:
            self.undo.clear()
        return 0

    cpdef int roll_back(self) except -1:
        cdef Savepoint* point
        cdef object fault = None
        if self._depth == 0:
            raise RuntimeError("roll_back was called without begin_unit")
        point = &self._savepoints[self._depth - 1]
        try:
            self.undo.roll_back(point.undo_count)
        except Exception as error:
            fault = error
        batch_rewind(self._current, &point.mark)
        self._next_number[0], self._next_number[1] = point.next_number[0], point.next_number[1]
        self._handles += 1
        self._depth -= 1
        self.undo.depth = self._depth
        self._refused &= (<uint64_t>1 << min(self._depth + 1, 63)) - 1  # the outer units are complete
        if self._depth == 0:
            self._current.units -= 1
        if fault is not None:
            # Memory and store now disagree.
            _fail(self, ENOMEM)
            raise fault
        return 0

    def unit(self):
        """Returns a context manager for a unit of work, which is kept at the end, or rolled back if an exception is raised. Its value is
        the writer.
        """
        cdef Unit unit = Unit.__new__(Unit)
        unit._writer = self
        return unit

    def on_roll_back(self, function):
        """Makes function() run if the open unit is rolled back, to undo changes in memory. The function that was added last runs first."""
        log_call(self.undo, function)

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        memcpy(self._current.arena + token, data, size)
        return 0

    cdef int put(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len,
                 object body, int flags) except -1:
        self._room()
        if key_len == 0 or key_len > 511 or not 0 <= table < TABLE_COUNT:
            raise ValueError("a key has 1 to 511 bytes, and the table must exist")
        if body is None:
            if batch_op(self._current, OP_PUT, table, flags & PUT_APPEND, key, key_len, head, head_len, NULL, 0) < 0:
                _refuse(self)
            return 0
        if batch_hold(self._current, <bytes?>body) < 0 or batch_op(
            self._current, OP_PUT, table, flags & PUT_APPEND, key, key_len, head, head_len,
            PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body),
        ) < 0:
            _refuse(self)
        return 0

    cdef int delete(self, int table, const uint8_t* key, size_t key_len) except -1:
        self._room()
        if key_len == 0 or key_len > 511 or not 0 <= table < TABLE_COUNT:
            raise ValueError("a key has 1 to 511 bytes, and the table must exist")
        if batch_op(self._current, OP_DELETE, table, 0, key, key_len, NULL, 0, NULL, 0) < 0:
            _refuse(self)
        return 0

    cpdef int put_content(self, uint64_t content_id, bytes packet) except -1:
        cdef uint8_t key[CONTENT_KEY_SIZE]
        cdef uint8_t version = CONTENT_VERSION
        cdef const char* data
        cdef size_t left, part
        cdef uint16_t chunk = 0
        # Content identifiers are never reused.
        cdef int flags = PUT_IS_LAST | PUT_IS_NEW if content_id > self._last_content else 0
        if packet is None or len(packet) >= <Py_ssize_t>65535 * CHUNK_BYTES:
            raise ValueError("content must be bytes, not larger than its chunk numbers allow")
        self._room()
        data = PyBytes_AS_STRING(packet)
        left = PyBytes_GET_SIZE(packet)
        if flags:
            self._last_content = content_id
        if batch_hold(self._current, packet) < 0:
            _refuse(self)
        part = left if left <= WHOLE_BYTES else CHUNK_BYTES
        while True:
            if part > left:
                part = left
            content_key(key, content_id, chunk)
            if batch_op(self._current, OP_PUT, TABLE_CONTENT, flags, key, sizeof(key), &version, 1, data, part) < 0:
                _refuse(self)
            data += part
            left -= part
            chunk += 1
            if left == 0:
                return 0

    cpdef int delete_content(self, uint64_t content_id, uint32_t size) except -1:
        cdef uint8_t key[CONTENT_KEY_SIZE]
        cdef uint32_t chunk, chunks = 1
        self._room()
        if size > WHOLE_BYTES:
            chunks = <uint32_t>((<uint64_t>size + CHUNK_BYTES - 1) // CHUNK_BYTES)
        for chunk in range(chunks):
            content_key(key, content_id, <uint16_t>chunk)
            if batch_op(self._current, OP_DELETE, TABLE_CONTENT, 0, key, sizeof(key), NULL, 0, NULL, 0) < 0:
                _refuse(self)
        return 0

    cdef int put_position(self, uint32_t queue, uint64_t lookup_id, const PositionRecord* record, bint is_new=False) except -1:
        cdef uint8_t key[POSITION_KEY_SIZE]
        self._room()
        position_key(key, queue, lookup_id)
        if batch_op(self._current, OP_PUT, TABLE_POSITION, PUT_IS_NEW if is_new else 0, key, sizeof(key), <const uint8_t*>record,
                    position_size(record), NULL, 0) < 0:
            _refuse(self)
        return 0

    cdef int delete_position(self, uint32_t queue, uint64_t lookup_id) except -1:
        cdef uint8_t key[POSITION_KEY_SIZE]
        self._room()
        position_key(key, queue, lookup_id)
        if batch_op(self._current, OP_DELETE, TABLE_POSITION, 0, key, sizeof(key), NULL, 0, NULL, 0) < 0:
            _refuse(self)
        return 0

    cdef uint64_t append_entry(self, int table, const uint8_t* entry, size_t length, bint lazy) except? 0:
        cdef int which = table - TABLE_FEED
        cdef Pack* pack
        cdef uint64_t number
        if not 0 <= which < 2:
            raise ValueError("only the tables of the feed and of the duplicate history have numbered entries")
        if self._strict:
            self._check()
        pack = &self._current.packs[which]
        if length == 0 or length > 0xFFFF or (pack.count and pack.entry_size != length):
            raise ValueError("all entries of a table must have the same length, from 1 to 65535")
        if batch_entry(self._current, which, entry, length, lazy) < 0:
            _refuse(self)
        number = self._next_number[which]
        self._next_number[which] += 1
        return number

    cdef int notify(self, CommitListener listener, uint64_t token) except -1:
        if self._strict:
            self._check()
        if batch_notice(self._current, listener, token) < 0:
            _refuse(self)
        return 0

    cdef uint64_t batch_number(self) noexcept:
        return self._current.number

    cdef int depends_on(self, uint64_t number) except -1:
        cdef Batch* batch = self._current
        self._check()
        if number < batch.number and (batch.after == 0 or number < batch.after):
            batch.after = number
        return 0

    cdef int depends_on_unreported(self) except -1:
        return self.depends_on(self._reported + 1)

    cdef uint64_t put_head(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len) except 0:
        self.put(table, key, key_len, head, head_len, None, 0)
        return self._current.used - head_len

    cdef const uint8_t* head_at(self, uint64_t place) noexcept:
        return self._current.arena + place

    cdef int patch_head(self, uint64_t place, const void* head, size_t size) except -1:
        cdef uint8_t* target = self._current.arena + place
        self.undo.add(self, place, target, size, None)
        memcpy(target, head, size)
        return 0

    cdef uint64_t handles(self) noexcept:
        return self._handles

    # -- the same for Python callers (cold operations, tests)

    def put_record(self, int table, bytes key not None, bytes value not None):
        """Stores one record. The value is copied only when the batch is written, so it must not change until then (bytes never do)."""
        return self.put(table, <const uint8_t*>PyBytes_AS_STRING(key), len(key), NULL, 0, value, 0)

    def delete_record(self, int table, bytes key not None):
        """Deletes one record. A missing record is not an error."""
        return self.delete(table, <const uint8_t*>PyBytes_AS_STRING(key), len(key))

    def add_entry(self, int table, bytes entry not None, bint lazy=False):
        """Appends an entry to the feed or the duplicate history. Returns the number that the entry gets if no earlier commit fails. `lazy`:
        the entry does not by itself cause a commit.
        """
        return self.append_entry(table, <const uint8_t*>PyBytes_AS_STRING(entry), len(entry), lazy)

    def when_durable(self, function):
        """Calls function(status) on the loop when the current batch is durable (status 0) or has failed."""
        self.notify(Callback(function), 0)

    def when_room(self, size_t pending_bytes, function):
        """Calls function() once, from `complete` on the loop, when no more than `pending_bytes` bytes wait to become durable."""
        self._current.needs_commit = True   # lazy entries alone would never be written
        self._waiting.append((pending_bytes, function))

    cdef int make_room(self, size_t size) except -1:
        # A large item gets a batch of its own, so that it does not delay what was gathered before it.
        cdef Batch* batch = self._current
        if self._depth == 0 and not batch.held and batch.units and batch.bytes + size > self._max_bytes:
            self._seal()
        return 0

    # A caller may need several turns of the loop to gather what must be in one batch. Writes of other callers join the batch.

    def pin(self):
        """Keeps the current batch from being submitted before `unpin`."""
        self._current.held += 1

    def unpin(self):
        """Ends a `pin`."""
        self._current.held -= 1

    def fail_batch(self, int status):
        """Discards the current batch: its listeners get `status`, as if its commit had failed, for example because the disk is full."""
        self._current.status = status

    # -- to the disk and back

    cdef int _seal(self) except -1:
        cdef Batch* batch = self._current
        cdef Batch* fields = batch
        cdef Batch* fresh = self._spare
        if fresh == NULL:
            fresh = <Batch*>calloc(1, sizeof(Batch))
            if fresh == NULL:
                PyErr_NoMemory()
        self._spare = NULL
        fresh.number = fields.number + 1
        self._current = fresh
        self._handles += 1
        self._flying_bytes += fields.bytes
        self._flying_units += fields.units
        self._start(batch)
        return 0

    cpdef int submit(self) except -1:
        cdef Batch* fields
        cdef object fault = None
        if self._depth:
            raise RuntimeError("submit was called inside a unit of work")
        if self._busy() or self._closed or self._current.held:
            return 0
        try:
            self.before_seal()
        except Exception as error:
            fault = error   # the batch is still submitted for the other callers
        fields = self._current
        if (fields.needs_commit or fields.bytes >= self._max_bytes) and not self._busy():
            self._seal()
        if fault is not None:
            raise fault
        return 0

    cpdef int submit_or_commit(self) except -1:
        return self.submit()

    def flush(self):
        """Like `submit`, but also commits a batch that has only lazy entries or is pinned. For start-up and shutdown."""
        break_hold(self)
        if not self._closed and not batch_empty(self._current):
            self._current.needs_commit = True
        self.submit()

    cpdef int complete(self) except -1:
        cdef Batch* batch = self._take()
        while batch != NULL:
            self._tell(batch)
            batch = self._take()
        # Submits the next batch before calling Python code for this one.
        try:
            if self._depth == 0:
                self.submit()
        finally:
            if self._waiting:
                self._tell_room()
            self._settle()
        return 0

    cdef int _tell_room(self) except -1:
        cdef list waiting = self._waiting
        cdef size_t pending = self._flying_bytes + self._current.bytes
        self._waiting = []
        for entry in waiting:
            if pending <= <size_t>entry[0]:
                try:
                    entry[1]()
                except Exception as error:
                    self._fault = also(self._fault, error)
            else:
                self._waiting.append(entry)
        return 0

    cdef int _tell(self, Batch* batch) except -1:
        cdef Batch* fields = batch
        cdef CommitListener listener
        cdef size_t i
        cdef int status = fields.status
        stats_add(&self._stats, batch)
        self._reported = fields.number
        self._flying_bytes -= fields.bytes
        self._flying_units -= fields.units
        if status and not status_is_space(status) and not self.failed:
            _fail(self, status)
        for i in range(fields.notice_count):
            listener = <CommitListener>fields.notices[i].listener
            try:
                listener.committed(fields.notices[i].token, status)
            except Exception as error:
                self._fault = also(self._fault, error)
            if not listener._settling:
                listener._settling = True
                self._settling.append(listener)
        batch_clear(batch)
        if self._spare == NULL:
            self._spare = batch
        else:
            batch_free(batch)
        return 0

    cdef int _settle(self) except -1:
        cdef CommitListener listener
        cdef list settling = self._settling
        if settling:
            self._settling = []
            for listener in settling:
                listener._settling = False
                try:
                    listener.settled()
                except Exception as error:
                    self._fault = also(self._fault, error)
        if self._fault is not None:
            error, self._fault = self._fault, None
            raise error
        return 0

    cdef int _start(self, Batch* batch) except -1:
        raise NotImplementedError

    cdef Batch* _take(self):
        return NULL

    cdef bint _busy(self):
        return False

    # -- figures

    @property
    def in_unit(self):
        """True between begin_unit and the end of the outermost unit."""
        return self._depth > 0

    @property
    def busy(self):
        """True while a batch is being written."""
        return bool(self._busy())

    @property
    def pending_bytes(self):
        """The number of bytes that are gathered or being written, but not durable yet. Back-pressure depends on them."""
        return self._current.bytes + self._flying_bytes

    @property
    def pending_units(self):
        """The number of units that are gathered or being written."""
        return self._current.units + self._flying_units

    @property
    def pending_ops(self):
        """The number of operations of the batch that is being gathered."""
        return self._current.op_count

    @property
    def needs_commit(self):
        """True if the batch that is being gathered has an operation that must not wait for a later commit."""
        return bool(self._current.needs_commit)

    def next_entry(self, int table):
        """The number that the next entry of this table gets if no earlier commit fails."""
        if table not in (TABLE_FEED, TABLE_HISTORY):
            raise ValueError("only the tables of the feed and of the duplicate history have numbered entries")
        return self._next_number[table - TABLE_FEED]

    def statistics(self):
        """Counters since the start; histograms are lists whose i-th number counts values in [2^(i-1), 2^i)."""
        cdef GatherStats* stats = &self._stats
        return {
            "batches": stats.batches,
            "failed_batches": stats.failed_batches,
            "units": stats.units,
            "operations": stats.operations,
            "bytes": stats.bytes,
            "missing_deletes": stats.missing,
            "commit_us_total": stats.commit_ns_total // 1000,
            "commit_us_max": stats.commit_ns_max // 1000,
            "wait_us_total": stats.wait_ns_total // 1000,
            "commit_us": [stats.commit_histogram[i] for i in range(32)],
            "units_per_batch": [stats.unit_histogram[i] for i in range(16)],
        }
