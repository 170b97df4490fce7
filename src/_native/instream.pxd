# Transactional streams that arrive: what was taken of each, and what of that is durable (MS-MQQB 3.1.1.3.1, 3.1.5.8.6; AMB-10).

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.framing cimport UserMessage, get_u32
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore


cdef enum Order:
    ORDER_NEXT = 0              # to be taken
    ORDER_REPEATED = 1          # it was taken before
    ORDER_AHEAD = 2             # something before it is missing


cdef struct Touch:
    # What one batch makes of one stream.
    void* stream                # owned
    uint64_t batch
    uint64_t identifier
    uint32_t number


cdef struct StreamUndo:
    # A stream before a unit took a message of it.
    uint64_t identifier, opening, batch, touch, told
    uint32_t number, rejects, stored_rejects, queue
    bint unsettled
    bint touched                # the latest touch is of the unit


cdef enum:
    MAX_HOMES = 8               # streams of one source and destination
    MAX_SLOTS = 12              # the same with those of homes that are vouched for


@cython.final
cdef class InStream:
    """One stream: the messages of one queue manager to one destination, by its name on the wire, that begin at one home."""
    cdef readonly bytes source              # GUID of the queue manager that sends, as on the wire
    cdef readonly int dest_type             # UserHeader.Flags.DQ
    cdef readonly bytes name                # DestinationQueue as it came first
    cdef readonly str address               # of the peer that brought the latest message: OrderAcks go there
    cdef readonly str home                  # group of addresses whose sessions begin its sequences, "" for any
    cdef uint64_t _opening                  # fingerprint of the first message of its sequence, 0: not known
    cdef InStream _next                     # the streams of the same source and destination, in the order of their begin
    cdef object _bunch                      # their key
    cdef int _slot                          # which of them it is
    cdef uint32_t _guessed_s                # of the first of them: Unix seconds until which wrong guesses are paid for
    cdef readonly uint64_t identifier       # IncomingTxSequenceID: TimeStamp << 32 | Ordinal
    cdef readonly uint32_t number           # IncomingTxSequenceNumber
    cdef readonly uint64_t durable_identifier
    cdef readonly uint32_t durable_number
    cdef readonly uint32_t rejects          # TxMessageRejectCount
    cdef readonly uint32_t accessed         # LastAccessTime, Unix seconds
    cdef readonly uint32_t queue            # ordinal of the queue that took the latest message, 0: none did
    cdef readonly uint64_t heard_us         # Unix microseconds of the latest thing to be acknowledged
    cdef public double acknowledged_at      # monotonic seconds of the last OrderAck
    cdef public bint armed                  # a timer of the caller will look at heard_us
    cdef bytes _key                         # of its record
    cdef uint64_t _batch, _touch            # the latest batch that has its record, and where in the ring of touches
    cdef uint64_t _handles, _place          # where in it, see Writer.put_head
    cdef uint32_t _stored_rejects
    cdef bint _unsettled                    # that batch has not ended
    cdef readonly object peer               # GUID of the peer that brought the latest message: the source or a router; None: not known
    cdef QueueCore _core                    # the plain route, valid for one generation of the routes
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
    cdef dict _names            # source, type and name as it came -> the same
    cdef dict _shares           # home -> how many streams it has
    cdef object _group          # the home of an address
    cdef object _vouches        # see InStreams
    cdef size_t _limit
    cdef uint32_t _full_s       # Unix seconds, when no stream made room for another one last
    cdef bytes _prefix          # of the keys of its records
    cdef readonly uint64_t generation       # grows when streams were forgotten: what was found before is found anew
    cdef Touch* _touches        # ring of `_capacity` (a power of two)
    cdef uint64_t _capacity, _head, _tail
    cdef uint64_t _told         # number of the last batch that tells of its end
    cdef list _ack_due
    cdef readonly uint64_t rejected         # messages out of order since the start
    # The first stream of its source and destination; None: it is not known yet, see `stream`.
    cdef InStream find(self, const uint8_t* packet, const UserMessage* m)
    # Which of them a message from `address`, at `home`, belongs to; None: to none of them, and none can be begun.
    # `fingerprint` is that of the message, needed if it begins a sequence (`begins`).
    cdef InStream choose(self, InStream first, const uint8_t* header, str home, str address, uint64_t fingerprint)
    # An Order. Whatever it is, the sender is to hear how far the stream is, if it knows the stream.
    cdef int judge(self, InStream stream, const uint8_t* header, str home, str address) except -1
    # The message with this TransactionHeader is taken, or rejected for good, within the unit that stores what follows. `opening`: its
    # fingerprint, if it is the first of its sequence, else 0.
    cdef int accept(self, InStream stream, const uint8_t* header, uint32_t queue, uint64_t opening) except -1
    # The same by what the header says.
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
