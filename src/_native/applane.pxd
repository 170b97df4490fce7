# The fast path of SEND frames: scan, check, build, enqueue, answer.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.appcodec cimport PacketBuilder
from msmq_fast._native.appencode cimport Buffer
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.counter cimport Counter
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.requestids cimport RequestIds


cdef class LaneTarget:
    """A queue that a connection has open for sending."""
    cdef PacketBuilder _builder
    cdef QueueCore _core
    cdef Counter _ordinals          # of message identifiers
    cdef object _take_numbers       # count -> the first of that many TransactionIdentifiers; None if the queue is not transactional
    cdef bint _plain                # accepts messages outside transactions


cdef struct Send:
    # A frame whose messages wait for the disk, or a free entry.
    uint64_t size
    uint32_t request_id, count, first, next_free
    bint ids


cdef class SendLane(CommitListener):
    """The fast path of the SEND frames of one connection."""
    cdef Ledger _ledger
    cdef RequestIds _pending
    cdef dict _reads, _deliveries, _targets
    cdef uint32_t _last_handle          # handle and target of the previous frame, which rarely change
    cdef LaneTarget _last_target
    cdef object _answered, _failed
    cdef list _failures
    cdef Buffer _answers
    cdef uint64_t _messages, _frames
    cdef uint64_t _bytes, _max_bytes    # bytes of packets that wait for the disk
    cdef uint32_t _max_frame, _max_batch, _max_pending
    cdef Send* _sends
    cdef uint32_t _capacity, _free
    cdef bint _full(self)
    cdef bint _send(self, uint32_t request_id, const uint8_t* payload, size_t size) except -1
    cdef int _enqueue(self, LaneTarget target, uint32_t request_id, uint32_t count, bytes packet, list packets, uint64_t size,
                      uint32_t flags) except -1
    cdef uint32_t _place(self) except? 0xFFFFFFFF
    cdef int _answer(self, uint32_t request_id, uint32_t count, uint32_t first, bint ids) except -1
    cdef int _flush(self) except -1
