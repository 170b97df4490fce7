# The writer that gathers operations into batches: declarations for the native modules that feed it.
#
# One Batch is one LMDB transaction. The event loop fills the current batch; `submit` hands it to a native
# thread that never takes the GIL; when it is on disk the thread signals an eventfd and `complete` runs,
# on the loop, every completion in the order in which it was added.
#
# To be told what became of something: 1. derive the class from CommitListener; 2. call `notify` with it inside the unit; 3. do in
# `committed` what depends on the status; 4. put back in `undone` what the unit changed in memory (undo.pxd).

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.gather cimport Batch, GatherStats, Mark
from msmq_fast._native.record cimport PositionRecord
from msmq_fast._native.undo cimport Undoable, UndoLog


cdef enum:
    PUT_APPEND = 1          # the key is greater than every key of the table
    STATUS_OK = 0           # anything else handed to a listener is a negative errno or an MDB_* code


cdef class CommitListener(Undoable):
    """Told, on the event loop, what became of what it put into a batch."""
    cdef bint _settling
    # Once for each completion registered with Writer.notify, in registration order.
    cdef int committed(self, uint64_t token, int status) except -1
    # Once after the completions of a batch, or of several that ended together, if this listener had one among them.
    cdef int settled(self) except -1


@cython.final
cdef class Callback(CommitListener):
    """Calls a Python function with the status; for cold operations."""
    cdef object function


# What was raised before, or None, and one more exception: an exception group. For loops that give everybody a turn.
cdef object also(object fault, object error)


cdef struct Savepoint:
    # Where a unit began.
    Mark mark
    uint64_t next_number[2]
    size_t undo_count


cdef class Writer(Undoable):
    cdef Batch* _current
    cdef Batch* _spare              # one kept for reuse
    cdef int _depth                 # nesting of begin_unit
    cdef uint64_t _refused          # a bit for each open unit of which an operation was refused
    cdef Savepoint* _savepoints     # of the open units
    cdef int _savepoint_room
    cdef uint64_t _handles          # grows when places in the batch end: with the batch, and with a unit that is rolled back
    cdef readonly UndoLog undo      # of the open units
    cdef bint _closed
    cdef bint _strict               # operations are to be checked: the writer has failed or is closed, or a test counts them
    cdef uint64_t _last_content     # greatest content id so far: a greater one is appended
    cdef uint64_t _next_number[2]   # next free entry number of TABLE_FEED and TABLE_HISTORY
    cdef readonly bint failed       # an I/O or sync error: nothing more is accepted
    cdef readonly object on_failure     # Signal: emitted once, with the status, when `failed` becomes true
    cdef readonly object before_seal    # Signal: emitted before a batch that submit() or complete() seals (fused receive)
    cdef size_t _max_bytes
    cdef uint32_t _max_units
    cdef size_t _flying_bytes, _flying_units
    cdef uint64_t _reported         # number of the last batch whose end its listeners know
    cdef list _settling
    cdef list _waiting              # (pending bytes, function)
    cdef GatherStats _stats

    # To be called before a unit of about `size` bytes: one that would make the batch too large gets its own.
    cdef int make_room(self, size_t size) except -1
    # A unit of work: everything from begin_unit to keep_unit lands in one batch, all or nothing; a unit may be empty. Units nest.
    cpdef int begin_unit(self) except -1
    # StoreError: an operation of the unit was refused and its caller went on; the unit is rolled back.
    cpdef int keep_unit(self) except -1
    # Instead of keep_unit: as if the unit had never begun, in the batch and, by the undo log, in memory. The units around it are open
    # as before. A unit ends in one of the two ways, whatever raises in it.
    cpdef int roll_back(self) except -1
    # `head` is copied; `body` (bytes or None) is referenced until the batch is durable, never copied on the loop.
    # The stored value is head followed by body.
    cdef int put(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len,
                 object body, int flags) except -1
    cdef int delete(self, int table, const uint8_t* key, size_t key_len) except -1
    # Content is chunked and read back by content id: one call each way.
    cpdef int put_content(self, uint64_t content_id, bytes packet) except -1
    cpdef int delete_content(self, uint64_t content_id, uint32_t size) except -1
    # Position records are packed by the caller; these build the key. `is_new`: it was never stored under this key.
    cdef int put_position(self, uint32_t queue, uint64_t lookup_id, const PositionRecord* record, bint is_new=*) except -1
    cdef int delete_position(self, uint32_t queue, uint64_t lookup_id) except -1
    # Appended to the one packed record that this commit writes to TABLE_FEED or TABLE_HISTORY; an entry
    # added with lazy=1 does not by itself cause a commit. All entries of a table have one length (record.h).
    # Returns the number that the entry gets if no earlier commit fails.
    cdef uint64_t append_entry(self, int table, const uint8_t* entry, size_t length, bint lazy) except? 0
    cdef int notify(self, CommitListener listener, uint64_t token) except -1
    # Hands the current batch to the disk unless one is under way or it holds only lazy entries.
    cpdef int submit(self) except -1
    # As submit, but a lone batch may be committed on the calling thread, and is told then: 1 if it was.
    cpdef int submit_or_commit(self) except -1
    # Runs what became durable; call when fileno() is readable.
    cpdef int complete(self) except -1
    # for subclasses
    cdef int _check(self) except -1
    cdef int _room(self) except -1
    cdef int _tell_room(self) except -1
    cdef int _seal(self) except -1
    cdef int _start(self, Batch* batch) except -1
    cdef Batch* _take(self)         # the next batch that has ended, or NULL
    cdef bint _busy(self)
    cdef int _tell(self, Batch* batch) except -1
    cdef int _settle(self) except -1
    cdef object _fault              # what a listener raised while others had still to be told
    # The number of the batch that is being gathered; later ones have greater numbers.
    cdef uint64_t batch_number(self) noexcept
    # What is gathered builds on batch `number`: the current batch fails if that one, or one between them, fails.
    cdef int depends_on(self, uint64_t number) except -1
    # The same for every batch whose end has not been told: what is known of them only in memory is made use of.
    cdef int depends_on_unreported(self) except -1
    # As put, without a body; returns where the head stands in the batch. `head_at` gives it, and `patch_head` changes it in place, as
    # long as `handles` is what it was.
    cdef uint64_t put_head(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len) except 0
    cdef const uint8_t* head_at(self, uint64_t place) noexcept
    cdef int patch_head(self, uint64_t place, const void* head, size_t size) except -1
    cdef uint64_t handles(self) noexcept


# For assertions at the borders of what has to be called inside a unit.
cdef inline bint in_unit(Writer writer) noexcept:
    return writer._depth > 0


# The store is closed before all of a held batch was gathered: then none of it is kept.
cdef int break_hold(Writer writer) except -1
