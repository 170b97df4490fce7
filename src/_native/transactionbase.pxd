# The operations of one transaction, in order. The modules that end a transaction build on it: transactionbase < transactionahead <
# transactionend < transactionrecovery, transaction

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.record cimport PositionRecord


cdef enum OperationKind:
    OPERATION_ENQUEUE = 1
    OPERATION_DEQUEUE = 2
    OPERATION_MOVE = 3
    OPERATION_REJECT = 4        # a Dequeue whose message its application rejects


cdef struct Operation:
    PyObject* core              # QueueCore, owned
    PyObject* target_queue      # Move: QueueCore, owned
    PyObject* packet            # Enqueue: bytes, owned; NULL when they are in the store only
    uint64_t key                # LookupIdentifier; of an Enqueue since the commit
    uint64_t content_id         # Enqueue: under which it was written ahead, else 0
    uint32_t queue              # its ordinal
    uint8_t kind
    bint reserved               # Enqueue: it has its quota
    bint leaving                # Dequeue: removed with a unit that is not durable yet
    uint32_t target             # Move: ordinal of the queue
    PositionRecord record       # Enqueue: the record of the later position


cdef enum:
    TOKEN_END = 0               # of notices: the commit
    TOKEN_AHEAD = 1
    TOKEN_PREPARED = 2
    TOKEN_ABORTED = 3
    TOKEN_BITS = 2              # above them: the operation up to which it is written ahead
    TOKEN_MASK = 3
    FLAG_LAST = 1 << 3          # TransactionHeader.Flags.LM
    AHEAD_STEP = 1 << 20        # bytes written ahead in one unit
    ROW_STAGED = 1              # kinds of rows: content ids written ahead,
    ROW_OPERATIONS = 2          # and operations of a prepared transaction
    ROW_LENGTH = 4096           # entries of a row
    SLICED_FROM = 1024          # operations that are committed in one go
    COUNTS_STEP = 2048          # messages whose counts are written in one unit
    LOCKED_BYTES = 8 << 20      # of received packets that stay in memory for an abort; others are read again


cdef struct StagedEntry:
    uint64_t content_id
    uint64_t size


cdef packed struct OperationEntry:
    uint8_t kind
    uint32_t queue
    uint32_t target
    uint64_t key
    uint64_t content_id
    PositionRecord record


cdef class TransactionBase(CommitListener):
    """The list of operations of a transaction. Transaction (transaction.pxd) completes it."""
    cdef readonly Ledger ledger
    cdef readonly uint32_t owner        # under which it locks messages
    cdef public uint32_t caller         # number of its program in the feed, see LedgerBase.caller
    cdef readonly uint32_t number       # 20 bits, in the TransactionHeader of what it sends
    cdef readonly bytes identifier      # 16 bytes
    cdef readonly uint64_t enqueued, dequeued, moved
    cdef readonly uint64_t locked_bytes # of packets of received messages in memory
    cdef readonly uint64_t held_bytes   # of packets in memory
    cdef readonly uint64_t ahead_bytes  # of packets on their way to the disk before the commit
    cdef readonly bint broken           # something that was written ahead has failed: the transaction can only abort
    cdef readonly bint ended
    cdef readonly bint prepared
    cdef public uint64_t limit_bytes    # of packets in memory, above which they are written ahead
    cdef readonly bint slicing          # a commit has begun: `step` continues it
    cdef object _on_ahead               # called when what was written ahead is durable, or was not kept
    cdef object _on_slices              # called when `slicing` begins; without it there are no pauses between slices
    cdef Operation* _operations
    cdef size_t _count, _capacity
    cdef size_t _ahead                  # operations before this one are not in memory any more
    cdef size_t _flying                 # of them, on their way: up to here
    cdef dict _tails                    # QueueCore -> (index, packet) of its last Enqueue
    cdef uint32_t _rows                 # rows of the store that belong to it
    cdef uint32_t _writes               # units under way
    cdef object _deferred, _sink        # the function that waits for _writes, and the function that is called at the end
    cdef bytes _head
    cdef int _status, _result
    cdef size_t _done                   # operations of the commit
    cdef uint64_t _next                 # SequentialID that is reserved for the next Enqueue, or 0
    cdef bint _stored, _broke_off
    cdef bint _settled
    cdef Operation* _add(self, int kind, QueueCore core) except NULL
    cdef bytes _key(self, uint32_t row)
    # Returns the slot that it has locked under `key`, or NULL.
    cdef Slot* _locked(self, QueueCore core, uint64_t key) noexcept
