# The transactional sequences of outgoing queues: assigns numbers to messages, and stores the state of a sequence (MS-MQQB 3.1.5.6,
# 3.1.5.7).

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage
from msmq_fast._native.ledgerbase cimport ROLE_NONE, LedgerBase
from msmq_fast._native.positions cimport FLAG_TRANSACTIONAL, Slot
from msmq_fast._native.queuebase cimport QueueBase
from msmq_fast._native.record cimport NumberedPosition


cdef enum:
    CONCLUDING_BYTES = 16 << 20 # of acknowledgments for one receiver that come although the queue manager is full


# Whether the next message can get a number; a new sequence may begin.
cdef bint stream_left(QueueBase core) except -1
# Assigns a number to a message that enters an outgoing queue, and completes its record (AMB-04, DU-19).
cdef int number(QueueBase core, const Slot* slot, NumberedPosition* record) except -1
# Stores the state of a sequence with the current batch.
cdef int stream_changed(QueueBase core) except -1
# Notes that queue `core` now sends the sequence `identifier`; None: no queue sends it any more.
cdef int send_stream(LedgerBase ledger, uint64_t identifier, QueueBase core) except -1
# Notes that a FinalAck for message number `number` of the sequence `identifier` belongs to the message `key` of this queue.
cdef int expect_final(QueueBase core, uint32_t ordinal, uint64_t key, uint64_t identifier, uint32_t number) except -1


cdef inline bint to_be_numbered(QueueBase core, const Slot* slot) noexcept:
    """Whether a message gets a number in the sequence to its receiver. Other queue managers number their own messages."""
    return (
        core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL and slot.source == core.ledger._own_source
        and core.ledger.open_stream is not None
    )


cdef inline bint is_terminal_ack(QueueBase core, const UserMessage* m, const char* packet) noexcept:
    """Whether a message reports to another queue manager the end of one of its messages. Such messages have some room beyond the quota,
    since the other queue manager would otherwise wait for ever.

    Applies only to messages of this queue manager: other senders could claim it for any message.
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
