# The transactional sequences of outgoing queues: which number a message gets, and what is stored of a sequence (MS-MQQB 3.1.5.6, 3.1.5.7).

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage
from msmq_fast._native.ledgerbase cimport ROLE_NONE, LedgerBase
from msmq_fast._native.positions cimport FLAG_TRANSACTIONAL, Slot
from msmq_fast._native.queuebase cimport QueueBase
from msmq_fast._native.record cimport NumberedPosition


cdef enum:
    CONCLUDING_BYTES = 16 << 20 # of acknowledgments for one receiver that come although the queue manager is full


# Whether the next message can have a number; a new sequence may begin.
cdef bint stream_left(QueueBase core) except -1
# Gives a message that comes into an outgoing queue its number, and completes its record (AMB-04, DU-19).
cdef int number(QueueBase core, const Slot* slot, NumberedPosition* record) except -1
# The state of a sequence joins the current batch.
cdef int stream_changed(QueueBase core) except -1
# A queue sends this sequence now; None: no queue does.
cdef int send_stream(LedgerBase ledger, uint64_t identifier, QueueBase core) except -1
# A FinalAck for this place in a sequence is for the message `key`.
cdef int expect_final(QueueBase core, uint32_t ordinal, uint64_t key, uint64_t identifier, uint32_t number) except -1


cdef inline bint to_be_numbered(QueueBase core, const Slot* slot) noexcept:
    """Whether a message has a place in the sequence to its receiver; what other queue managers sent is theirs to number."""
    return (
        core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL and slot.source == core.ledger._own_source
        and core.ledger.open_stream is not None
    )


cdef inline bint is_terminal_ack(QueueBase core, const UserMessage* m, const char* packet) noexcept:
    """Whether a message tells another queue manager of the end of its message, which would wait for ever: there is room for some beyond the quota.

    Only for our own: what others send through us says of itself what it likes.
    """
    return (
        core.outgoing and core.role == ROLE_NONE and m.message_class != 0 and core.used_bytes < CONCLUDING_BYTES
        and memcmp(packet + SOURCE_OFFSET, core.ledger._guid, 16) == 0
    )


cdef inline bint number_left(QueueBase core, const UserMessage* m, const char* packet) except -1:
    """`stream_left`, for a message that may need no number."""
    if core.sequence is None or not m.transaction_offset or core.ledger.open_stream is None:
        return True
    return memcmp(packet + SOURCE_OFFSET, core.ledger._guid, 16) != 0 or stream_left(core)
