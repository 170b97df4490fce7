# Incoming transactional streams: which messages of each were accepted, and which of those are durable (MS-MQQB 3.1.1.3.1, 3.1.5.8.6;
# AMB-10).

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.framing cimport UserMessage, get_u32
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore


cdef enum Order:
    ORDER_NEXT = 0              # it is the next one, to be accepted
    ORDER_REPEATED = 1          # it was accepted before
    ORDER_AHEAD = 2             # a message before it is missing


cdef struct Touch:
    # The changes of one batch to one stream.
    void* stream                # owned
    uint64_t batch
    uint64_t identifier
    uint32_t number


cdef struct StreamUndo:
    # The state of a stream before a unit accepted a message of it.
    uint64_t identifier, opening, batch, touch, told
    uint32_t number, rejects, stored_rejects, queue
    bint unsettled
    bint touched                # the latest touch belongs to the unit


cdef enum:
    MAX_HOMES = 8               # streams of one source and destination
    MAX_SLOTS = 12              # the same, including those whose homes are vouched for


@cython.final
cdef class InStream:
    """One stream: the messages of one queue manager to one destination, by its wire name, from one home (a group of addresses)."""
    cdef readonly bytes source              # GUID of the queue manager that sends, as on the wire
    cdef readonly int dest_type             # UserHeader.Flags.DQ
    cdef readonly bytes name                # DestinationQueue as first received
    cdef readonly str address               # address of the peer that sent the latest message; receives the OrderAcks
    cdef readonly str home                  # group of addresses whose sessions begin its sequences, "" for any
    cdef uint64_t _opening                  # fingerprint of the first message of its sequence, 0: unknown
    cdef InStream _next                     # the next stream of the same source and destination, in the order in which they began
    cdef object _bunch                      # their key
    cdef int _slot                          # which of these streams it is
    cdef uint32_t _guessed_s                # of the first of these streams: Unix seconds until which the budget for wrong guesses is used
    cdef readonly uint64_t identifier       # IncomingTxSequenceID: TimeStamp << 32 | Ordinal
    cdef readonly uint32_t number           # IncomingTxSequenceNumber
    cdef readonly uint64_t durable_identifier
    cdef readonly uint32_t durable_number
    cdef readonly uint32_t rejects          # TxMessageRejectCount
    cdef readonly uint32_t accessed         # LastAccessTime, Unix seconds
    cdef readonly uint32_t queue            # ordinal of the queue that accepted the latest message, 0: none
    cdef readonly uint64_t heard_us         # Unix microseconds of the latest message that must be acknowledged
    cdef public double acknowledged_at      # monotonic seconds of the last OrderAck
    cdef public bint armed                  # a timer of the caller will check heard_us
    cdef bytes _key                         # the key of its record
    cdef uint64_t _batch, _touch            # the latest batch with its record, and the index in the ring of touches
    cdef uint64_t _handles, _place          # position of the record in that batch, see Writer.put_head
    cdef uint32_t _stored_rejects
    cdef bint _unsettled                    # that batch has not ended
    cdef readonly object peer               # GUID of the peer that sent the latest message: the source or a router; None: unknown
    cdef QueueCore _core                    # the queue of the fast path, valid for one generation of the routes
    cdef uint64_t _generation


cdef inline bint begins(const uint8_t* header) noexcept nogil:
    # Whether the message with this TransactionHeader is the first of its sequence.
    return get_u32(header + 16) == 0


@cython.final
cdef class InStreams(CommitListener):
    cdef Ledger _ledger
    cdef Writer _writer
    cdef dict _streams          # (source, type and folded name, slot) -> InStream
    cdef dict _heads            # source, type and folded name -> the first InStream of them
    cdef dict _names            # source, type and name as received -> the same
    cdef dict _shares           # home -> number of its streams
    cdef object _group          # function that returns the home of an address
    cdef object _vouches        # see InStreams
    cdef size_t _limit
    cdef uint32_t _full_s       # Unix seconds at which no stream could be replaced for the last time
    cdef bytes _prefix          # prefix of the keys of its records
    cdef readonly uint64_t generation       # grows when streams were forgotten; cached streams must then be looked up again
    cdef Touch* _touches        # ring of `_capacity` (a power of two)
    cdef uint64_t _capacity, _head, _tail
    cdef uint64_t _told         # number of the last batch whose end will be reported
    cdef list _ack_due
    cdef readonly uint64_t rejected         # messages out of order since the start
    # Returns the first stream of the source and destination. None if it is unknown, see `stream`.
    cdef InStream find(self, const uint8_t* packet, const UserMessage* m)
    # Returns the stream to which a message from `address`, at `home`, belongs. None if it belongs to none and no stream can begin.
    # `fingerprint` is that of the message; it is needed if the message begins a sequence (`begins`).
    cdef InStream choose(self, InStream first, const uint8_t* header, str home, str address, uint64_t fingerprint)
    # Returns an Order. In any case, an OrderAck will tell the sender which messages were accepted, if the sender knows the stream.
    cdef int judge(self, InStream stream, const uint8_t* header, str home, str address) except -1
    # Advances the stream behind the message with this TransactionHeader, which is accepted, or rejected for good, within the unit that
    # stores the outcome. `opening` is its fingerprint if it is the first of its sequence, otherwise 0.
    cdef int accept(self, InStream stream, const uint8_t* header, uint32_t queue, uint64_t opening) except -1
    # The same for the values of the header.
    cdef int place(self, InStream stream, uint64_t identifier, uint32_t number, uint32_t previous) except -1
    cdef InStream _begin(self, InStream first, str home, str address)
    cdef bint _vouched(self, InStream first, str address) except -1
    cdef int _move(self, InStream stream, str home) except -1
    cdef int _remove(self, InStream stream) except -1
    cdef int advance(self, InStream stream, uint64_t identifier, uint32_t number, uint32_t queue) except -1
    cdef int _put(self, InStream stream) except -1
    cdef int _log(self, InStream stream, bint touched) except -1
    cdef size_t _forget(self, uint32_t before, size_t limit, bint homeless) except? 0
    cdef int _hear(self, InStream stream) except -1
    cdef Touch* _new_touch(self) except NULL
