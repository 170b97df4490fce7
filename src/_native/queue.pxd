# One queue of the queue manager: its position list, its accounting, and the store mutations of its operations.

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.tables cimport PositionVisitor, Reader, ReadListener, Tables
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.outsequence cimport OutSequence
from msmq_fast._native.positions cimport PositionList, Slot
from msmq_fast._native.record cimport NumberedPosition, PositionRecord
from msmq_fast._native.sources cimport SourceTable
from msmq_fast._native.undo cimport Undoable
from msmq_fast._native.wheel cimport TimerWheel


cpdef enum EnqueueResult:
    # What became of a message that was to be enqueued. Functions return it as a plain int.
    ENQUEUED = 0                # express: available now, nothing more will be heard
    QUEUE_QUOTA = 1             # DM-097
    MACHINE_QUOTA = 2           # DM-096: throttled, or the queue manager's quota
    EXPIRED = 3                 # DM-098
    ENQUEUED_PENDING = 4        # recoverable: `origin.committed(token, status)` follows when durable
    QUEUE_GONE = 5              # the queue was deleted


cpdef enum FeedEvent:
    # `kind` of a feed entry: the events that native code writes. store/decode.py EventKind has all of them under the
    # same names; tests/store/test_decode.py compares the two, because readers of a store need not have native modules.
    EVENT_NONE = 0
    EVENT_SENT = 1
    EVENT_ARRIVED = 2
    EVENT_RECEIVED = 3
    EVENT_REMOVED = 4
    EVENT_EXPIRED = 5
    EVENT_MOVED = 6
    EVENT_PURGED = 7
    EVENT_JOURNALED = 8
    EVENT_DEAD_LETTERED = 9
    EVENT_ACKED = 10            # the next queue manager keeps it, or an acknowledgment was sent
    EVENT_NACKED = 11
    EVENT_ABORTED_RETURN = 16
    EVENT_RETURNED = 18


cpdef enum FeedTransport:
    # `flags` of a feed entry, as FeedEvent: store/decode.py Transport.
    TRANSPORT_LOCAL = 0
    TRANSPORT_MQQB = 1
    TRANSPORT_SRMP = 3


cdef enum Owner:
    # Owners of locks; sessions and subscriptions take numbers from OWNER_FIRST on (Ledger.new_owner).
    OWNER_NONE = 0
    OWNER_STORE = 1             # a plain receive whose removal is not durable yet
    OWNER_DAMAGED = 2           # its body could not be read from the store, or was not kept by it
    OWNER_RETURNED = 3          # pending: given back, not durable yet
    OWNER_PURGED = 4            # as OWNER_STORE, and the queue was purged meanwhile
    OWNER_POISON = 5            # its last abort was one too many: it is about to be moved
    OWNER_FINAL = 7             # sent and ordered: it waits for its FinalAck
    OWNER_FIRST = 16
    OWNER_LEASE = 0x40000000    # bit of the numbers of leases: a purge takes what they lock
    OWNER_TRANSFER = 0x80000000     # bit of the numbers of sessions to other queue managers: what they lock is under way


cdef enum Memory:
    # How full the memory is with express messages.
    MEMORY_ENOUGH = 0
    MEMORY_SHORT = 1            # above the mark in the middle: senders are slowed down
    MEMORY_FULL = 2             # above the high mark, until the low one is reached: nothing is let in


cdef enum Role:
    # What a queue is to what follows from a removal.
    ROLE_NONE = 0               # nothing follows: journals, dead-letter queues, internal queues
    ROLE_DESTINATION = 1
    ROLE_OUTGOING = 2


cdef enum Reason:
    # Why a message leaves, or what became of it: values of packet.classes.MessageClass.
    REASON_NONE = -1            # nothing follows
    REASON_SENT = 0             # the next queue manager keeps it
    REASON_ARRIVED = 0x0002
    REASON_RECEIVED = 0x4000
    REASON_UNSENT = 0x8001      # purged before it was sent
    REASON_LATE = 0x8002        # expired before it was sent
    REASON_DELETED = 0xC000     # with its queue
    REASON_PURGED = 0xC001
    REASON_TIMEOUT = 0xC002
    REASON_REJECTED = 0xC004    # by its application
    REASON_UNANSWERED = 0xC003  # its receiver never said what became of it
    REASON_NEGATIVE = 0x8000    # bit of every failure


cdef struct Doomed:
    # A stored message that is out of every list and has to leave the store.
    uint64_t key, content_id
    uint32_t queue, size, source, ordinal, dead_letter
    uint16_t message_class, reason, abort_count, move_count
    uint8_t event               # that the feed gets in the commit of the removal
    uint8_t role, wishes
    bint follows                # its packet is needed for what follows from the removal


@cython.final
cdef class Removals(CommitListener):
    """What has left the lists and is leaving the store: doomed anew when the commit of the removal fails."""
    cdef Ledger _ledger
    cdef Doomed* _entries       # ring of `_capacity` (a power of two)
    cdef uint64_t _capacity, _head, _tail, _told
    cdef readonly uint64_t failed
    cdef int add(self, const Doomed* entry) except -1
    # Has the next commit tell of everything that was added.
    cdef int watch(self) except -1


@cython.final
cdef class Drain(Undoable):
    """The messages of a purged or deleted queue, in no list any more, on their way out of memory and store."""
    cdef Ledger _ledger
    cdef uint32_t _queue
    cdef uint8_t _role
    cdef bint _outgoing
    cdef int _reason
    cdef PositionList _positions
    cdef size_t run(self, size_t limit) except? 0


@cython.final
cdef class Received:
    """A message handed out (DM-118)."""
    cdef readonly uint64_t lookup_id, arrival_seq
    cdef readonly uint64_t content_id
    cdef readonly uint64_t arrived_us
    cdef readonly bytes packet
    cdef readonly uint32_t abort_count, move_count
    cdef readonly uint32_t reason           # a MessageClass: why it is in a dead-letter queue, else 0
    cdef readonly uint32_t dead_letter      # ordinal of the queue its application chose for its failure, else 0
    cdef uint32_t _purges                   # of its queue, when it was handed out
    cdef list _followed                     # (QueueCore, key) of what followed from its removal, or None


@cython.final
cdef class Ledger(Undoable):
    """What all queues of one queue manager share: the sequence, the quotas, the body cache, the time, the store."""
    cdef public Writer writer
    cdef public Reader reader
    cdef public Tables tables               # what is durable
    cdef public uint64_t sequence           # last SequentialID given out (DM-099); also the arrival sequence
    cdef public uint64_t sequence_limit     # reserved durably up to here (DU-18)
    cdef public uint64_t bytes, quota_bytes     # DM-096
    cdef public uint64_t cached_bytes, cache_limit
    cdef public bint throttled              # Begin and End Flow Control, set from outside
    cdef readonly uint64_t express_bytes    # of express messages in queues: the memory is their only place
    cdef public uint64_t express_low, express_mid, express_high     # watermarks of express_bytes (X-38)
    cdef readonly int memory                # MEMORY_…
    cdef public object on_memory            # called with `memory` when it has changed
    cdef public bint feed
    cdef readonly uint64_t horizon          # readers in bulk look for nothing new below this sequence, see Horizon
    cdef readonly uint32_t now_s            # Unix seconds, wall clock; set by tick()
    cdef readonly uint64_t now_us           # Unix microseconds, wall clock
    cdef public object reserve              # called with the new limit when the sequence runs low
    cdef public object on_poison            # called with (queue ordinal, lookup ids) of locked messages, see OWNER_POISON
    cdef public object on_read_error        # called with (queue ordinal, lookup id, status)
    # Called inside a unit with (role, packet, reason, wishes, ordinal of the chosen dead-letter queue or 0) when wishes may apply to what
    # becomes of a message. It sends acknowledgments and returns (MessageClass, whether it sent one, QueueCore for the copy or None).
    cdef public object dispose
    # Called for the TxSequenceID (TimeStamp << 32 | Ordinal) of a sequence that begins. None: messages get no numbers.
    cdef public object open_stream
    cdef public uint64_t final_grace        # seconds after TimeToBeReceived in which a FinalAck may come (AMB-35)
    cdef dict _streams                      # TxSequenceID -> QueueCore: the current sequence of each outgoing queue
    cdef dict _finals                       # ordinal of the message identifier -> tuples (QueueCore, key, TxSequenceID, number)
    cdef readonly TimerWheel wheel
    cdef readonly SourceTable sources
    cdef readonly Removals removals
    cdef readonly bint reaping              # a reap is not durable yet
    cdef bint _reserving
    cdef dict _cores
    cdef list _dirty
    cdef uint8_t _guid[16]
    cdef uint32_t _last_owner
    cdef Doomed* _doomed
    cdef size_t _doomed_count, _doomed_capacity
    cdef size_t _disposing                  # doomed ones whose packets are being read
    cdef size_t _reaped                     # by the reap that is not durable yet
    cdef uint32_t _own_source
    cdef list _followed                     # (QueueCore, key) of what follows from a removal, while it is a list
    cdef list _drains
    cdef list _returned                     # (QueueCore, Received) whose return was not kept
    cdef readonly uint64_t discarded        # journal copies and dead letters for which there was no room
    cdef public object on_discard           # called with the ordinal of a queue that had no room for a copy, once a minute
    cdef uint32_t _discard_told
    cdef uint64_t next_sequence(self) except 0
    cdef bint _begin_stream(self, QueueCore core) except -1
    cdef bint stopped(self) noexcept
    cdef int fill(self) except -1
    cdef int empty(self, uint32_t size) except -1
    cdef int _set_memory(self, int memory) except -1
    cdef int doom(self, const Doomed* entry) except -1
    # `moved`: the content belongs to another queue now.
    cdef int _condemn(self, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason, bint moved) except -1
    # One feed event about a message; `reason` is a Reason. `outgoing`: of a queue that leads elsewhere.
    cdef int event(self, int kind, uint32_t queue, bint outgoing, const Slot* slot, bint ride, int reason=*, uint64_t identifier=*,
                   uint32_t number=*) except -1
    # One about a message that came and was not taken; `source` has 16 bytes. It causes no commit.
    cdef int untaken(self, int kind, int transport, uint32_t queue, const uint8_t* source, uint32_t ordinal, uint32_t size,
                     uint16_t message_class, uint16_t reason, uint64_t identifier, uint32_t number) except -1


@cython.final
cdef class QueueCore(CommitListener):
    cdef readonly uint32_t ordinal
    cdef readonly PositionList positions
    cdef readonly Ledger ledger
    cdef public uint64_t quota_bytes
    cdef readonly bint outgoing             # TTRQ counts here
    cdef readonly OutSequence sequence      # of an outgoing queue
    cdef uint64_t _stream_handles, _stream_place    # where its state stands in the current batch, see Writer.put_head
    cdef public bint srmp                   # an outgoing queue whose messages leave by SRMP
    cdef set _passing                       # source << 32 | ordinal of the transactional messages of others that wait here
    cdef public uint8_t role                # a Role
    cdef public bint timeless               # nothing expires: journals and dead-letter queues
    cdef public QueueCore journal           # gets what is received from here (X-60), or None
    cdef uint64_t _entered                  # key of the latest message that came
    cdef readonly uint64_t bytes            # TotalBytes (Q-21): of messages that are not pending
    cdef readonly uint64_t used_bytes       # what the quota counts: pending and reserved ones too
    cdef readonly uint64_t reserved_bytes   # of messages of transactions that are not committed (X-33)
    cdef readonly QueueCore parent          # of a subqueue: its quota counts (X-34)
    cdef readonly uint64_t sub_bytes        # used_bytes of the subqueues
    cdef readonly uint64_t moving_bytes     # of messages that are counted in two queues of the family
    cdef readonly uint32_t expected         # moves to this queue that are under way
    cdef readonly uint64_t messages         # number of messages that are not pending
    cdef readonly uint64_t arrived_total, removed_total, expired_total     # since start
    cdef readonly uint64_t late             # messages that came behind the horizon: moved or given back
    cdef readonly bint gone                 # deleted
    cdef readonly uint64_t purged_to        # nothing that arrived up to this sequence is left or comes back
    cdef public bint interested             # somebody waits: call `ready` when something becomes available
    cdef public bint watched                # a cursor waits: fresh() tells what became available
    cdef bint _peek_when_locked             # a message may have AllowPeekWhenLocked
    cdef uint32_t _purges
    cdef list _fresh
    cdef public uint32_t poison_after       # aborts after which a message is moved away, 0: never
    cdef list _poisoned
    cdef public object ready                # called without arguments, at most once per batch and tick
    cdef bint _dirty
    cdef uint32_t _fetching
    cdef uint32_t _consumed
    cdef object _fetcher
    # `packet` is the UserMessage packet without SessionHeader, its SH flag clear; `m` describes it.
    # A recoverable message becomes available, and `origin` (if not None) is told, when it is durable.
    # With a `fingerprint` (see history.pxd) the same commit adds the message to the stored duplicate history; 0: it does not.
    cdef int enqueue(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                     uint64_t fingerprint) except -1
    # Whether a transactional message of another queue manager waits here to be passed on.
    cdef bint passes(self, const uint8_t* source, uint32_t ordinal) except -1
    # The same with the ordinal of the dead-letter queue that the application chose, or 0.
    cdef int enqueue_with(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                          uint32_t dead_letter) except -1
    # Whether `count` messages of `size` bytes together would all be taken now.
    cdef bint has_room(self, uint64_t count, uint64_t size) noexcept
    # Removes those of `keys` that `owner` holds (an acknowledged transfer, or an acknowledged delivery).
    cdef size_t remove_keys(self, const uint64_t* keys, size_t count, uint32_t owner, int event) except? 0
    cdef int mark(self) except -1
    # The feed hears of a message: of one that came, with its place in its transactional sequence.
    cdef int _tell(self, int kind, const Slot* slot, bint ride, int reason=*) except -1
    cdef int _came(self, const Slot* slot, const UserMessage* m, const char* packet, const NumberedPosition* record) except -1
    cdef int _tell_of_abort(self, const Slot* slot) except -1
    cdef uint64_t family_bytes(self) noexcept
    cdef void _use(self, uint64_t size) noexcept
    # The arrival sequence to be stored for a message: behind the purge marker, so that it is not taken for a purged one.
    cdef uint64_t _arrival(self, uint64_t key) except 0
    cdef Received _received(self, Slot* slot)
    cdef int _count(self, Slot* slot) except -1
    cdef int _drop(self, Slot* slot) except -1
    cdef int _enqueue_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                              uint32_t dead_letter, bint recoverable) except -1
    cdef inline Slot* _enter(self, bytes packet, const UserMessage* m, uint32_t dead_letter) except NULL
    cdef inline Slot* _enter_express(self, bytes packet, const UserMessage* m, uint64_t fingerprint, uint32_t dead_letter) except NULL
    cdef int _enter_stored(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                           uint32_t dead_letter) except -1
    cdef int _give_back(self, Received received, bint received_is_in_feed) except -1
    cdef int _erase(self, Slot* slot, int event) except -1
    cdef int _take_out(self, Slot* slot, int event) except -1
    cdef int _postpone(self, Slot* slot, int event, int reason) except -1
    # Deletes what is stored of a message that is received, inside a unit, with what follows. True: the content has moved.
    # `reason`: it was received, or rejected by its application.
    cdef bint forget(self, uint64_t key, bytes packet, int reason) except -1
    cdef bint _is_followed(self, const Slot* slot, int reason) noexcept
    # A plain receive removes a message; what follows is remembered, in case its reader is gone by then.
    cdef int _leave(self, Slot* slot, Received received) except -1
    # What was purged while it was locked or out goes; if the store takes nothing now, reap() repeats it.
    cdef int _let_purged_go(self, Slot* slot) except -1
    cdef int _return(self, Slot* slot) except -1
    cdef int _back(self, Slot* slot) except -1
    cdef uint64_t _set_aside(self, bint everything) except? 0
    cdef int _available(self, Slot* slot) except -1
    cdef int _arm(self, Slot* slot) except -1
    cdef int _expire(self, Slot* slot) except -1
    cdef int _fetched(self, uint64_t key, object body, int status) except -1
    cdef int _read_ahead(self) except -1
    cdef int _receive_one(self, Slot* slot, Received received, sink, wanted) except -1
    cdef Slot* _place(self, uint64_t key, uint64_t content_id, uint64_t arrived, bytes packet, const UserMessage* m) except NULL
    cdef int _purged_outside(self, Received received, const UserMessage* m) except -1
    cdef int _restore(self, uint64_t key, const PositionRecord* record) except -1
    cdef Slot* _put_slot(self, uint64_t key, const PositionRecord* record, int state) except NULL
    cdef inline int _refusal(self, const UserMessage* m, uint64_t size, bint in_any_case) noexcept
    # For transactions. ENQUEUED with the quota taken (X-33), or why the message cannot come.
    cdef int reserve(self, const UserMessage* m, uint64_t size) except -1
    cdef void reserve_again(self, uint64_t size) noexcept
    cdef void unreserve(self, uint64_t size) noexcept
    # A message whose quota was reserved joins the current unit; available when that is durable. `record` gets its place.
    # `sequence`: a SequentialID that is reserved for it, or 0.
    cdef int commit_enqueue(self, uint64_t content_id, bytes packet, PositionRecord* record, uint64_t sequence) except -1
    # What `owner` locked leaves with the current unit; drop_locked() follows when that is durable. Whether it has to be stored.
    cdef bint commit_dequeue(self, Slot* slot, int reason) except -1
    cdef int drop_locked(self, uint64_t key, int status) except -1
    # An aborted receive: back to its place, AbortCount + 1, unless the queue was purged or the message expired meanwhile.
    cdef int abort_dequeue(self, Slot* slot) except -1
    # Writes the record of a message whose counts have changed, or will be `more` greater, with the current unit.
    cdef int put_counts(self, uint64_t key, uint32_t more) except -1
    cdef int shed_body(self, uint64_t key) except -1
    # A transactional message leaves the list of an outgoing queue.
    cdef int _unnumber(self, Slot* slot) except -1
    cdef size_t _transferred(self, const uint64_t[::1] keys, uint32_t owner) except? 0
    cdef int _late(self, Slot* slot) except -1
    cdef bint _release(self, uint64_t key, uint32_t owner) except -1
    cdef int _expire_later(self, uint64_t key) except -1


@cython.final
cdef class Delivery(CommitListener):
    """One plain bulk receive: removed in the current batch, handed to the sink when that is durable."""
    cdef QueueCore _core
    cdef list _messages
    cdef object _sink
    cdef object _wanted         # called when it is durable: whether the reader is still there; None: he is
    cdef int _status


@cython.final
cdef class Horizon(CommitListener):
    """Moves Ledger.horizon on."""
    cdef Ledger _ledger
    cdef uint64_t _asked, _reached
    cdef list _sinks            # (sequence, function)


@cython.final
cdef class Loader(PositionVisitor):
    """Rebuilds the position lists from the stored positions (REC-04, REC-07, REC-08)."""
    cdef Ledger _ledger
    cdef QueueCore _core
    cdef uint32_t _queue
    cdef uint64_t _purged
    cdef dict _purges
    cdef object _deleting, _silent, _held
    cdef readonly uint64_t highest_sequence
    cdef readonly dict orphans              # queue ordinal -> number of messages of a queue that nobody knows
    cdef readonly list damaged              # keys of records that cannot be what they should be
    cdef int _follows(self, Doomed* entry, const PositionRecord* record) except -1


# A transaction moves a message to another queue of its family.
cpdef bint complete_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1
cpdef bint abort_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1

# The stored record of a position, as far as it follows from the slot and the packet.
cdef void describe(PositionRecord* record, const Slot* slot, const UserMessage* m, const char* packet) noexcept nogil

# What follows when a message reaches a queue, inside the unit that enqueues it. `slot` may be invalid afterwards.
cdef int arrived(QueueCore core, const Slot* slot, bytes packet) except -1
