# The writer that gathers operations into batches: declarations for the native modules that add operations.

# One Batch is one LMDB transaction. The event loop fills the current batch. `submit` passes it to a native thread that never takes the GIL.
# When it is on disk, the thread signals an eventfd, and `complete` calls every completion on the loop, in the order in which they were
# added.

# To be notified of the outcome: 1. derive the class from CommitListener; 2. call `notify` with it inside the unit; 3. in `committed`, do
# what depends on the status; 4. in `undone`, restore what the unit changed in memory (undo.pxd).

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.gather cimport Batch, GatherStats, Mark
from msmq_fast._native.record cimport PositionRecord
from msmq_fast._native.undo cimport Undoable, UndoLog


cdef enum:
    PUT_APPEND = 1          # the key is greater than all keys of the table
    STATUS_OK = 0           # any other status that a listener gets is a negative errno or an MDB_* code


cdef class CommitListener(Undoable):
    """Notified, on the event loop, of the outcome of the batches to which it has added operations."""
    cdef bint _settling
    # Called once for each completion registered with Writer.notify, in registration order.
    cdef int committed(self, uint64_t token, int status) except -1
    # Called once after the completions of a batch, or of several batches that ended together, if one of them was this listener's.
    cdef int settled(self) except -1


@cython.final
cdef class Callback(CommitListener):
    """Calls a Python function with the status. For rare operations."""
    cdef object function


# Adds an exception to an earlier one (or None): an exception group. For loops that must process every item before they raise.
cdef object also(object fault, object error)


cdef struct Savepoint:
    # The fill level of the batch when a unit began.
    Mark mark
    uint64_t next_number[2]
    size_t undo_count


cdef class Writer(Undoable):
    cdef Batch* _current
    cdef Batch* _spare              # an ended one, kept for reuse
    cdef int _depth                 # nesting depth of begin_unit
    cdef uint64_t _refused          # one bit for each open unit in which an operation failed
    cdef Savepoint* _savepoints     # the savepoints of the open units
    cdef int _savepoint_room
    cdef uint64_t _handles          # grows when positions in the batch become invalid: with each batch, and when a unit is rolled back
    cdef readonly UndoLog undo      # the undo log of the open units
    cdef bint _closed
    cdef bint _strict               # operations must be checked: the writer has failed or is closed, or a test counts them
    cdef uint64_t _last_content     # the greatest content id so far; greater ones are appended
    cdef uint64_t _next_number[2]   # the next entry numbers of TABLE_FEED and TABLE_HISTORY
    cdef readonly bint failed       # after an I/O or sync error: the writer accepts nothing more
    cdef readonly object on_failure     # Signal: emitted once, with the status, when `failed` becomes true
    cdef readonly object before_seal    # Signal: emitted before submit() or complete() seals a batch (fused receive)
    cdef size_t _max_bytes
    cdef uint32_t _max_units
    cdef size_t _flying_bytes, _flying_units
    cdef uint64_t _reported         # number of the last batch whose listeners have been notified
    cdef list _settling
    cdef list _waiting              # (pending bytes, function)
    cdef GatherStats _stats

    # Call before a unit of about `size` bytes. If it would make the batch too large, the unit gets a new batch.
    cdef int make_room(self, size_t size) except -1
    # A unit of work: everything from begin_unit to keep_unit is in one batch, all or nothing. A unit may be empty. Units nest.
    cpdef int begin_unit(self) except -1
    # Raises StoreError if an operation of the unit failed and its caller continued; the unit is then rolled back.
    cpdef int keep_unit(self) except -1
    # Call instead of keep_unit: restores the batch and, by the undo log, the memory to the state before the unit began. Outer units stay
    # open. Every unit must end in one of the two ways, even if its code raises.
    cpdef int roll_back(self) except -1
    # `head` is copied. `body` (bytes or None) is referenced until the batch is durable, and never copied on the loop. The stored value is
    # head followed by body.
    cdef int put(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len,
                 object body, int flags) except -1
    cdef int delete(self, int table, const uint8_t* key, size_t key_len) except -1
    # Content is stored in chunks and read back by content id.
    cpdef int put_content(self, uint64_t content_id, bytes packet) except -1
    cpdef int delete_content(self, uint64_t content_id, uint32_t size) except -1
    # The caller packs the position record; these functions build its key. `is_new` means that the key was never stored before.
    cdef int put_position(self, uint32_t queue, uint64_t lookup_id, const PositionRecord* record, bint is_new=*) except -1
    cdef int delete_position(self, uint32_t queue, uint64_t lookup_id) except -1
    # Appends an entry to the one packed record that this commit writes to TABLE_FEED or TABLE_HISTORY. An entry added with lazy=1 does not
    # by itself cause a commit. All entries of a table have the same length (record.h). Returns the number that the entry gets if no earlier
    # commit fails.
    cdef uint64_t append_entry(self, int table, const uint8_t* entry, size_t length, bint lazy) except? 0
    cdef int notify(self, CommitListener listener, uint64_t token) except -1
    # Starts writing the current batch, unless another batch is being written or it has only lazy entries.
    cpdef int submit(self) except -1
    # Like submit, but may commit a lone batch on the calling thread and call its listeners at once. Returns 1 if it did.
    cpdef int submit_or_commit(self) except -1
    # Calls the listeners of ended batches. Call it when fileno() is readable.
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
    cdef object _fault              # an exception from a listener, kept until all listeners were called
    # The number of the batch that is being gathered. Later batches have greater numbers.
    cdef uint64_t batch_number(self) noexcept
    # The current batch depends on batch `number`: it fails if that batch, or one between them, fails.
    cdef int depends_on(self, uint64_t number) except -1
    # The same for every batch whose outcome has not been reported: the caller uses state in memory that those batches changed.
    cdef int depends_on_unreported(self) except -1
    # Like put, without a body. Returns the position of the head in the batch. `head_at` returns its address, and `patch_head` changes it in
    # place. Valid while `handles` does not change.
    cdef uint64_t put_head(self, int table, const uint8_t* key, size_t key_len, const uint8_t* head, size_t head_len) except 0
    cdef const uint8_t* head_at(self, uint64_t place) noexcept
    cdef int patch_head(self, uint64_t place, const void* head, size_t size) except -1
    cdef uint64_t handles(self) noexcept


# For assertions in functions that must be called inside a unit.
cdef inline bint in_unit(Writer writer) noexcept:
    return writer._depth > 0


# Discards a held batch, because the store is closed before the batch was complete.
cdef int break_hold(Writer writer) except -1
