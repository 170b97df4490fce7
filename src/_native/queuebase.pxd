# The base of all layers of a queue: its fields, its accounts, how a message enters and leaves the list, and how both are undone.

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.framing cimport INFINITE, USER_JOURNAL_NEGATIVE, USER_JOURNAL_POSITIVE, UserMessage
from msmq_fast._native.ledgerbase cimport (
    ENQUEUED,
    EVENT_ACKED,
    EVENT_EXPIRED,
    EVENT_PURGED,
    EVENT_RECEIVED,
    EXPIRED,
    LATENCY_BINS,
    MACHINE_QUOTA,
    QUEUE_GONE,
    QUEUE_QUOTA,
    REASON_DELETED,
    REASON_LATE,
    REASON_NONE,
    REASON_PURGED,
    REASON_RECEIVED,
    REASON_SENT,
    REASON_TIMEOUT,
    REASON_UNSENT,
    ROLE_DESTINATION,
    LedgerBase,
    QueueUndo,
    stopped,
)
from msmq_fast._native.outsequence cimport OutSequence
from msmq_fast._native.positions cimport FLAG_TRANSACTIONAL, NO_DEADLINE, PositionList, Slot
from msmq_fast._native.record cimport (
    POSITION_ACK_MASK,
    POSITION_FINAL,
    POSITION_JOURNAL_NEGATIVE,
    POSITION_JOURNAL_POSITIVE,
    SEQUENCE_MASK,
    NumberedPosition,
    PositionRecord,
)
from msmq_fast._native.undo cimport Undoable


cdef enum:
    SEQUENCE_OFFSET = 4         # TransactionHeader.TxSequenceID, TxSequenceNumber behind it
    FINAL_ACK_REQUIRED = 2      # TransactionHeader.Flags.FA


@cython.final
cdef class Received:
    """A message that was handed out to a reader (DM-118)."""
    cdef readonly uint64_t lookup_id, arrival_seq
    cdef readonly uint64_t content_id
    cdef readonly uint64_t arrived_us
    cdef readonly bytes packet
    cdef readonly uint32_t abort_count, move_count
    cdef readonly uint32_t reason           # a MessageClass: why it is in a dead-letter queue, otherwise 0
    cdef readonly uint32_t dead_letter      # ordinal of the queue that its application chose for its failure, otherwise 0
    cdef uint32_t _purges                   # of its queue, when it was handed out
    cdef list _side_effects                 # (QueueBase, key) of each message that its removal created, or None


cdef class QueueBase(CommitListener):
    cdef readonly uint32_t ordinal
    cdef readonly PositionList positions
    cdef readonly LedgerBase ledger
    cdef public uint64_t quota_bytes
    cdef readonly bint outgoing             # an outgoing queue: TTRQ applies
    cdef readonly OutSequence sequence      # of an outgoing queue
    cdef uint64_t _stream_handles, _stream_place    # where its state stands in the current batch, see Writer.put_head
    cdef public bint srmp                   # an outgoing queue whose messages leave by SRMP
    cdef set _passing                       # source << 32 | ordinal of transactional messages of other queue managers that wait here
    cdef public uint8_t role                # a Role
    cdef public bint timeless               # messages do not expire: journals and dead-letter queues
    cdef public QueueBase journal           # receives a copy of each message that is received from here (X-60), or None
    cdef uint64_t _entered                  # key of the latest message that was added
    cdef readonly uint64_t bytes            # TotalBytes (Q-21): of messages that are not pending
    cdef readonly uint64_t used_bytes       # counted by the quota: includes pending and reserved messages
    cdef readonly uint64_t reserved_bytes   # of messages of transactions that are not committed (X-33)
    cdef readonly QueueBase parent          # of a subqueue: its quota applies (X-34)
    cdef readonly uint64_t sub_bytes        # used_bytes of the subqueues
    cdef readonly uint64_t moving_bytes     # of messages that are counted in two queues of the family
    cdef readonly uint32_t expected         # moves to this queue that are in progress
    cdef readonly uint64_t messages         # number of messages that are not pending
    cdef readonly uint64_t arrived_total, removed_total, expired_total     # since start
    cdef readonly uint64_t out_of_order     # messages that became available below the watermark: moved or given back
    cdef readonly bint gone                 # deleted
    cdef readonly uint64_t purged_to        # no message that arrived up to this sequence is left or will be restored
    cdef public bint interested             # a reader waits: call `ready` when a message becomes available
    cdef public bint watched                # a cursor waits: fresh() tells what became available
    cdef uint32_t _purges
    cdef list _fresh
    cdef public uint32_t poison_after       # aborts after which a message is moved away, 0: never
    cdef list _poisoned
    cdef public object ready                # called without arguments, at most once per batch and tick
    cdef bint _dirty
    cdef uint32_t _fetching
    cdef uint32_t _consumed
    cdef object _fetcher
    # Written by QueueSampler (series.pyx) only.
    cdef readonly double in_per_second, out_per_second      # messages that arrived and left, over the last sampled interval
    cdef uint64_t _sampled_in, _sampled_out                 # arrived_total and removed_total of the last sample
    cdef double _activity                                   # messages that arrived or left; halves in an hour
    cdef object _history                                    # its QueueHistory, or None
    # Adds a feed event about a message; for an arrival, with its position in its transactional sequence.
    cdef int _tell(self, int kind, const Slot* slot, bint lazy, int reason=*) except -1
    cdef int _came(self, const Slot* slot, const UserMessage* m, const char* packet, const NumberedPosition* record) except -1
    cdef int _tell_of_abort(self, const Slot* slot) except -1
    # Whether `count` messages of `size` bytes in total would all be accepted now.
    cdef bint has_room(self, uint64_t count, uint64_t size) noexcept
    # Returns the arrival sequence to store for a message: above the purge marker, so that the message does not count as purged.
    cdef uint64_t _arrival(self, uint64_t key) except 0
    cdef Slot* _place(self, uint64_t key, uint64_t content_id, uint64_t arrived, bytes packet, const UserMessage* m) except NULL
    cdef int _count(self, Slot* slot) except -1
    cdef int mark(self) except -1
    cdef int _drop(self, Slot* slot) except -1
    # Whether a transactional message of another queue manager waits here to be relayed.
    cdef bint passes(self, const uint8_t* source, uint32_t ordinal) except -1
    # Called when a transactional message leaves the list of an outgoing queue.
    cdef int _unnumber(self, Slot* slot) except -1
    cdef Received _received(self, Slot* slot)
    # For transactions. Returns ENQUEUED with the quota reserved (X-33), or why the message cannot be accepted.
    cdef int reserve(self, const UserMessage* m, uint64_t size) except -1
    cdef void reserve_again(self, uint64_t size) noexcept
    cdef void unreserve(self, uint64_t size) noexcept
    # Writes the record of a message whose counts have changed, or will grow by `more`, with the current unit.
    cdef int put_counts(self, uint64_t key, uint32_t more) except -1
    cdef int shed_body(self, uint64_t key) except -1
    cdef Slot* _put_slot(self, uint64_t key, const PositionRecord* record, int state) except NULL


cdef struct RemovalUndo:
    QueueUndo head
    Slot slot
    uint8_t source[16]


# Functions that log a coming change, see undo.pxd.
cdef int log_placed(QueueBase core, uint64_t key, int kind) except -1
cdef int log_number(QueueBase core, int kind, uint64_t number) except -1
cdef int log_changed(QueueBase core, const Slot* slot) except -1
cdef int log_removed(Undoable owner, LedgerBase ledger, const Slot* slot, uint64_t total) except -1


# Restores a slot as it was when it was removed, without a timer and outside the accounts.
cdef Slot* put_back(PositionList positions, LedgerBase ledger, const RemovalUndo* undo, object packet) except NULL
# Fills in the stored record of a position, as far as the slot and the packet determine it.
cdef void describe(PositionRecord* record, const Slot* slot, const UserMessage* m, const char* packet) noexcept nogil
# Reads the record of a message that is available, or was before it was locked. Raises ValueError if there is none.
cdef int stored_record(QueueBase core, const Slot* slot, NumberedPosition* record) except -1
# Whether stored bytes are still a UserMessage packet.
cdef bint is_packet(bytes packet) noexcept
# For `note_passing`: the message is from another queue manager.
cdef int add_passing(QueueBase core, const Slot* slot) except -1
# Notes that `size` more bytes are counted in two queues of the family, and must count once.
cdef void in_two_queues(QueueBase core, int64_t size) noexcept
# Marks a dead letter: it does not expire, and its removal has no further side effects.
cdef void mark_dead_letter(QueueBase core, Slot* slot) noexcept
cdef int set_finals(LedgerBase ledger, uint32_t ordinal, tuple waiting) except -1
cdef int forget_final(LedgerBase ledger, uint32_t ordinal, QueueBase core, uint64_t key) except -1


cdef inline uint32_t deadline_of(uint32_t sent, uint32_t reach, uint32_t received, bint outgoing) noexcept nogil:
    """Returns when a message expires in its current queue (DA-031): seconds, or NO_DEADLINE."""
    cdef uint64_t best = NO_DEADLINE
    if received != INFINITE:
        best = <uint64_t>sent + received
    if outgoing and reach != INFINITE and <uint64_t>sent + reach < best:
        best = <uint64_t>sent + reach
    return <uint32_t>best if best < NO_DEADLINE else NO_DEADLINE


cdef inline int effective_priority(const UserMessage* m) noexcept nogil:
    """A transactional message counts as priority 0 (DM-100)."""
    return 0 if m.transaction_offset else m.priority & 7


cdef inline uint8_t ack_flags_of(const UserMessage* m, const char* packet) noexcept nogil:
    """Returns the acknowledgments that the sender requested, in the form of a position record."""
    return (
        (m.ack_flags & POSITION_ACK_MASK if m.admin_type else 0)
        | (POSITION_JOURNAL_NEGATIVE if m.user_flags & USER_JOURNAL_NEGATIVE else 0)
        | (POSITION_JOURNAL_POSITIVE if m.user_flags & USER_JOURNAL_POSITIVE else 0)
        | (POSITION_FINAL if m.transaction_offset and packet[m.transaction_offset] & FINAL_ACK_REQUIRED else 0)
    )


cdef inline uint8_t final_ack_flags(uint8_t role, bint transactional, bint own, uint8_t ack_flags) noexcept nogil:
    """Returns the flag of a FinalAck: at its destination, a transactional message from another computer requires one if its sender journals
    it (MS-MQQB 2.2.5).

    So does a message that this queue manager sent to itself over HTTP: meanwhile it is stored in an outgoing queue.
    """
    if role != ROLE_DESTINATION:
        return ack_flags
    if transactional and not own and ack_flags & (POSITION_JOURNAL_POSITIVE | POSITION_JOURNAL_NEGATIVE | POSITION_FINAL):
        return ack_flags | POSITION_FINAL
    return ack_flags & ~POSITION_FINAL


cdef inline int reason_of(QueueBase core, int event) noexcept:
    """Returns why a message leaves a queue, from the feed event: a MessageClass, REASON_SENT or REASON_NONE."""
    if event == EVENT_RECEIVED:
        return REASON_RECEIVED
    if event == EVENT_ACKED:
        return REASON_SENT
    if event == EVENT_EXPIRED:
        return REASON_LATE if core.outgoing else REASON_TIMEOUT
    if event == EVENT_PURGED:
        return REASON_DELETED if core.gone else REASON_UNSENT if core.outgoing else REASON_PURGED
    return REASON_NONE


cdef extern from *:
    int count_leading_zeros "__builtin_clzll"(unsigned long long value) nogil


cdef inline void note_latency(QueueBase core, const Slot* slot, int reason) noexcept:
    """Counts the time from the arrival of a message to its receive. A receive that is rolled back and repeated counts twice."""
    cdef LedgerBase ledger = core.ledger
    cdef uint64_t took
    cdef int number
    if reason != REASON_RECEIVED or core.role != ROLE_DESTINATION:
        return
    took = ledger.now_us - slot.arrived if ledger.now_us > slot.arrived else 0
    number = 64 - count_leading_zeros(took) if took else 0
    ledger._latency[number if number < LATENCY_BINS else LATENCY_BINS - 1] += 1
    ledger._latency_us += took


cdef inline void note_out_of_order(QueueBase core, const Slot* slot) noexcept:
    """Counts a message that becomes available where bulk readers no longer look."""
    if slot.key & SEQUENCE_MASK < core.ledger.watermark:
        core.out_of_order += 1


cdef inline uint64_t family_bytes(QueueBase core) noexcept:
    # Returns the bytes that the quota counts: those of the queue and its subqueues (X-34).
    return core.used_bytes + core.sub_bytes - core.moving_bytes


cdef inline void use_room(QueueBase core, uint64_t size) noexcept:
    # Adds the bytes of a message to the accounts.
    core.used_bytes += size
    core.ledger.bytes += size
    if core.parent is not None:
        core.parent.sub_bytes += size


cdef inline int arm(QueueBase core, Slot* slot) except -1:
    # Starts the timer of a message that expires.
    if slot.deadline != NO_DEADLINE:
        slot.timer = core.ledger.wheel.start(slot.deadline, core.ordinal, slot.key)
    return 0


cdef inline int note_passing(QueueBase core, const Slot* slot) except -1:
    # Notes a transactional message that waits here to be relayed or numbered.
    if core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL:
        add_passing(core, slot)
    return 0


cdef inline int refusal(QueueBase core, const UserMessage* m, uint64_t size, bint in_any_case) noexcept:
    # Returns why a message of `size` bytes cannot be accepted (DM-096 … DM-098), otherwise ENQUEUED. `in_any_case`: accept it if the queue
    # manager has room.
    if core.gone:
        return QUEUE_GONE
    if (
        m.time_to_reach_queue != INFINITE and core.ledger.now_s > m.sent_time
        and core.ledger.now_s - m.sent_time > m.time_to_reach_queue
    ):
        return EXPIRED
    if not in_any_case and (
        stopped(core.ledger) or size > core.ledger.quota_bytes or core.ledger.bytes > core.ledger.quota_bytes - size
    ):
        return MACHINE_QUOTA
    if size > core.quota_bytes or family_bytes(core) > core.quota_bytes - size:
        return QUEUE_QUOTA
    return ENQUEUED
