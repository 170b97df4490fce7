# Which messages are to be encoded: noted on the event loop, in bounded work a call, without a Python object for each message.

cimport cython
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.positions cimport BANDS
from msmq_fast._native.queue cimport QueueCore


cdef enum:
    MOVE_UNKNOWN = 0xFFFFFFFF   # Row.last_move_s: the stored record says it
    SEQUENCE_BITS = 56          # of a LookupIdentifier; the others are the priority, reversed


cdef enum RowState:
    ROW_AVAILABLE = 1
    ROW_LOCKED = 2
    ROW_PURGED = 3              # stored: deleted when the reader or transaction that locks it ends
    ROW_PREPARED = 4            # stored: locked by a prepared transaction
    ROW_ORDERED = 5             # stored: OrderAck received, FinalAck expected


cdef struct Row:
    uint64_t key                # LookupIdentifier
    uint64_t content_id
    uint64_t arrived            # Unix microseconds
    uint64_t delivery           # number in a lease
    uint64_t sequence_id        # its place in the sequence of an outgoing queue, 0: see the packet
    PyObject* body              # packet bytes, owned, or NULL: in the store only
    const uint8_t* packet       # of `body`
    uint32_t size               # bytes of the packet
    uint32_t owner              # of the lock: a reader, a transaction or an OWNER_… number
    uint32_t sequence_number
    uint32_t last_move_s        # Unix seconds, or MOVE_UNKNOWN
    uint16_t abort_count
    uint16_t move_count
    uint16_t reason             # why it is in a dead-letter queue, or 0
    uint8_t state               # a RowState
    uint8_t recoverable


@cython.final
cdef class Rows:
    """Messages of one queue that are to be encoded; they hold the packets that are in memory."""
    cdef Row* _rows
    cdef size_t _count, _capacity
    cdef readonly uint32_t ordinal      # of the queue
    cdef readonly uint64_t bytes        # of the packets
    cdef readonly uint64_t next         # everything before this sequence (or LookupIdentifier) has been looked at
    cdef readonly bint finished         # nothing is left behind `next`
    cdef readonly size_t gone           # of those asked for by LookupIdentifier
    cdef readonly list damaged          # keys of stored positions that are none
    cdef Row* _add(self) except NULL


cdef struct Walk:
    # The messages of a queue in the order of their arrival: one cursor for each priority.
    uint64_t index[BANDS]
    uint64_t sequence[BANDS]    # of the message (or of the first unseen slot) at the cursor; WALK_ENDED behind the last
    size_t examined, limit      # slots looked at
    uint64_t stop


@cython.final
cdef class Tally:
    """Counts what a stretch of a queue holds, a bounded number of messages a call."""
    cdef QueueCore _core
    cdef uint64_t _stop, _max_rows, _max_bytes
    cdef uint64_t _every, _since        # rows between two marks, and since the latest
    cdef list _marks                    # (sequence that a range may begin at, rows before it, bytes before it)
    cdef readonly uint64_t start, next, rows, bytes
    cdef readonly bint finished
