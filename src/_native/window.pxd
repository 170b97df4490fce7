# Session acknowledgment in both directions (MS-MQQB 3.1.1.6.1, 3.1.5.5, 3.1.5.8.7): counts, ack bits, messages in flight.

# Counters have 64 bits in memory and 16 on the wire; received values are compared by serial arithmetic.

cimport cython
from cpython.array cimport array
from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener


cdef enum:
    ACK_REACH = 32              # bits of RecoverableMsgAckFlags
    MAX_IN_FLIGHT = 4096        # entries a SendWindow keeps: fewer than a receiver remembers identifiers (10,000)


cdef enum HeaderResult:
    HEADER_OK = 0
    HEADER_ACK_UNSENT = 1       # acknowledges a message that was never sent
    HEADER_COUNT_MISMATCH = 2   # claims to have sent another number of messages than arrived


cdef struct InFlight:
    PyObject* queue             # owned; NULL once the message was removed
    uint64_t lookup_id
    uint64_t sequence
    uint64_t recoverable        # 0: express


@cython.final
cdef class ReceiveWindow(CommitListener):
    cdef uint64_t _received, _recoverable       # MessageReceivedCount, RecoverableMessageReceivedCount
    cdef uint64_t _durable                      # every recoverable message up to this one has its disposition on disk
    cdef uint64_t _acked                        # LastAckedRecoverableMsgSeqNumber
    cdef uint64_t _unacked                      # UnackedReceivedMsgCount
    cdef set _early                             # dispositions that wait for an earlier one
    cdef public uint16_t size                   # WindowSize that is advertised
    cdef readonly int failure                   # status of the first commit that failed, 0 if none
    cdef object _on_settled
    # Counts a message as it is parsed; returns its recoverable number, 0 for an express one.
    cdef uint64_t count(self, bint recoverable) noexcept
    # Notes that the outcome of recoverable message `number` is durable.
    cdef int dispose(self, uint64_t number) except -1


@cython.final
cdef class SendWindow:
    cdef InFlight* _ring
    cdef size_t _capacity, _head, _count        # _capacity is a power of two
    cdef uint64_t _sent, _recoverable           # MessageSentCount, RecoverableMessageSentCount
    cdef uint64_t _acked                        # AckSequenceNumber, widened
    cdef size_t _covered                        # entries from the head on that _acked covers: no express one is left
    cdef list _removed
    cdef PyObject* _group_queue
    cdef array _group
    cdef public uint16_t size
    cdef public list traced     # gets the packets with BaseHeader.Flags.TR that were transmitted; None: they are not collected
    cdef uint16_t _peer_size
    # Checks and applies a SessionHeader; returns a HeaderResult.
    cdef int apply(self, const uint8_t* header, ReceiveWindow received) except -1
    cdef int number(self, object queue, uint64_t lookup_id, bint recoverable) except -1
    cdef int _drop(self, InFlight* entry) except -1


# Writes the SessionHeader with the current state of `received` and `sent`, and notes that it was sent.
cdef int fill_header(ReceiveWindow received, SendWindow sent, uint8_t* header) except -1
