# Collects the messages to encode on the event loop: a bounded amount of work per call, and no Python object per message.

cimport cython
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.positions cimport BANDS
from msmq_fast._native.queue cimport QueueCore


cdef enum:
    MOVE_UNKNOWN = 0xFFFFFFFF   # Row.last_move_s: read it from the stored record
    SEQUENCE_BITS = 56          # bits of the arrival sequence in a LookupIdentifier; the others hold the inverted priority


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
    uint64_t sequence_id        # position in the sequence of an outgoing queue; 0: read it from the packet
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
    """Messages of one queue that are to be encoded, with references to the packets in memory."""
    cdef Row* _rows
    cdef size_t _count, _capacity
    cdef readonly uint32_t ordinal      # of the queue
    cdef readonly uint64_t bytes        # of the packets
    cdef readonly uint64_t next         # everything before this sequence (or LookupIdentifier) has been examined
    cdef readonly bint finished         # nothing is left after `next`
    cdef readonly size_t gone           # how many of the requested LookupIdentifiers no longer exist
    cdef readonly list damaged          # keys of invalid position records
    cdef Row* _add(self) except NULL


cdef struct Walk:
    # The messages of a queue in the order of arrival: one cursor for each priority.
    uint64_t index[BANDS]
    uint64_t sequence[BANDS]    # of the message (or of the first unexamined slot) at the cursor; WALK_ENDED after the last one
    size_t examined, limit      # number of slots examined, and its limit
    uint64_t stop


@cython.final
cdef class Tally:
    """Counts the messages in a range of a queue, a bounded number per call."""
    cdef QueueCore _core
    cdef uint64_t _stop, _max_rows, _max_bytes
    cdef uint64_t _every, _since        # rows between two marks, and since the last mark
    cdef list _marks                    # (sequence at which a range may begin, rows before it, bytes before it)
    cdef readonly uint64_t start, next, rows, bytes
    cdef readonly bint finished
