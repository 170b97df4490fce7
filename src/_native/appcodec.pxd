# Messages of application frames (msgpack arrays) to UserMessage packets, and back to frames.

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.counter cimport Counter
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.requestids cimport RequestIds


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct OutMessage:
    # One message of a SEND frame; the pointers lead into the frame.
    const uint8_t* body
    const uint8_t* label            # UTF-8
    const uint8_t* extension
    const uint8_t* correlation      # 20 bytes or NULL
    const uint8_t* response         # UTF-8
    const uint8_t* admin            # UTF-8
    const uint8_t* dead_letter      # UTF-8
    const uint8_t* certificate      # MD5 of the certificate to sign with, or NULL
    uint32_t body_size, label_size, extension_size, response_size, admin_size, dead_letter_size
    uint32_t body_type, app_specific, time_to_reach_queue, time_to_be_received
    uint32_t privacy_level, hash_algorithm, encryption_algorithm
    uint64_t delivery, priority, acknowledge, journal, message_class, authentication, sender


cdef class Buffer:
    """Bytes that grow. `take` hands them over as they are, without a copy, and leaves an empty buffer."""
    cdef PyObject* _bytes           # nobody else has seen it, or NULL
    cdef uint8_t* data              # of _bytes
    cdef size_t size, capacity
    cdef size_t _expected           # a little more than what was taken last
    cdef int reserve(self, size_t more) except -1
    cdef bytes take(self)


cdef class PacketBuilder:
    """Builds UserMessage packets for one destination."""
    cdef uint8_t source[16]
    cdef uint8_t address[16]
    cdef uint8_t dest_type
    cdef bytes destination          # the field as it stands in the UserHeader
    cdef object resolve
    cdef uint32_t long_lived        # seconds: TimeToReachQueue of messages without one
    # Builds the packet of one message. None: refused, `refusal` holds the HRESULT.
    cdef readonly uint32_t refusal
    cdef readonly str dead_letter   # the queue that the message built last names for its failure, or None
    cdef readonly dict dead_letters # the same by index, of the messages that `packets` built last
    # How the message built last is to be signed: (level, hash algorithm, MD5 of the certificate), level 0 for the sender's SID only; or None.
    cdef readonly tuple signature
    cdef readonly dict signatures   # the same by index
    cdef tuple _name(self, const uint8_t* text, uint32_t size)
    # `transaction`: TransactionHeader.Flags of a transactional message, or NULL.
    cdef bytes build(self, const OutMessage* m, uint32_t ordinal, uint32_t now_s, const uint32_t* transaction)


cdef class LaneTarget:
    """A queue that a connection has open for sending."""
    cdef PacketBuilder _builder
    cdef QueueCore _core
    cdef Counter _ordinals          # of message identifiers
    cdef object _take_numbers       # count -> the first of as many TransactionIdentifiers; None where there are no transactions
    cdef bint _plain                # messages outside transactions are taken


cdef struct Send:
    # A frame whose messages wait for the disk, or a free entry.
    uint64_t size
    uint32_t request_id, count, first, next_free
    bint ids


cdef class SendLane(CommitListener):
    """The plain path of the SEND frames of one connection."""
    cdef Ledger _ledger
    cdef RequestIds _pending
    cdef dict _reads, _deliveries, _targets
    cdef uint32_t _last_handle          # of the frame before, and its target: it seldom changes
    cdef LaneTarget _last_target
    cdef object _answered, _failed
    cdef list _failures
    cdef Buffer _answers
    cdef uint64_t _messages, _frames
    cdef uint64_t _bytes, _max_bytes    # of packets that wait for the disk
    cdef uint32_t _max_frame, _max_batch, _max_pending
    cdef Send* _sends
    cdef uint32_t _capacity, _free
    cdef bint _full(self)
    cdef bint _send(self, uint32_t request_id, const uint8_t* payload, size_t size) except -1
    cdef int _enqueue(self, LaneTarget target, uint32_t request_id, list packets, uint64_t size, uint32_t flags) except -1
    cdef uint32_t _place(self) except? 0xFFFFFFFF
    cdef int _answer(self, uint32_t request_id, uint32_t count, uint32_t first, bint ids) except -1
    cdef int _flush(self) except -1
