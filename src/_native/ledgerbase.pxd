# What all queues share: sequence numbers, the budget of memory and quotas, the feed, and what has yet to leave the store.
#
# The classes Ledger and QueueCore are built in layers, each a module that imports only those before it:
#   ledgerbase < queuebase < numbering < effects < removal < reading < ledger < queue
#   and above them: outbound, moving, lease, seek, operations, watermark, recovery
# Fields and calls that cross a border are declared in the .pxd of the one that has them.
#
# To add an event kind of the feed:
#   1. Name it in EventKind (store/decode.py), with the next number, and say what it means. All readers get name and number from there;
#      the build makes EVENT_NAME in feedkinds.pxd of it, for native code (commit that file). An event of a message that is or was in a
#      queue has the columns of the message. Without a LookupIdentifier it has none: if it is about a message that came into no queue, or
#      about a queue whose GUID it carries, add it to NOT_TAKEN or ABOUT_QUEUES, below EventKind, and to `expected` in
#      tests/bulk/test_events.py.
#   2. Write it at its cause.
#      - Native code calls `core._tell` with the slot (`ledger.event` with ordinal and slot, where there is no QueueBase; `ledger.untaken`
#        for a message without a slot), if `ledger.feed` is set, and cimports EVENT_NAME and TRANSPORT_NAME from `ledgerbase`. What
#        changes the store calls it inside its unit, with lazy=False. What changes memory only, for example a lock or an express message,
#        needs no unit and passes lazy=True: the event waits for the next commit and causes none, so a test writes something durable
#        before it looks. The call may raise StoreError, so it comes before the change, and an inline function that is `noexcept`
#        becomes `except -1`. Readers lock, receive and return messages in reading.pyx and lease.pyx; removal.pyx has every other
#        removal; queuebase.pyx and queue.pyx have the arrival; `refusal` of queuebase.pxd decides most refusals, but not those of
#        encrypted messages, of transactions and of stages. A helper is best a function of its module, if all its callers are there;
#        else it needs a line in the .pxd. State for a kind that is told once is a field of queuebase.pxd; if it is set inside a unit, it
#        needs an undo entry (end of this file).
#      - Python code calls a method of `EventFeed` (qm/feed/eventfeed.py), which knows the GUIDs of queues: take it for events about
#        queues. `Receiver.tell` is for a message that was not taken.
#   3. Add a row to the table in docs/reference/event-feed.md: the only list of the kinds for operators and readers.
#   Test it in tests/qm/test_feed.py, with `told` and `kinds`, and from outside with `table_of` in tests/bulk/test_events.py. A kind that is
#   told beside another one changes the sequences that test_feed.py of tests/mqqb and tests/srmp expect. A change of EventKind rebuilds
#   every module above this one, which takes about a minute. For a try, build the module that writes the event alone, if no other .pxd
#   changed: MSMQ_FAST_ONLY="reading" (docs/project/development.md).

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.feedkinds cimport *    # EVENT_…, TRANSPORT_…
from msmq_fast._native.positions cimport STATE_AVAILABLE, STATE_LOCKED, STATE_PENDING, STATE_PURGE_PENDING, Slot
from msmq_fast._native.record cimport POSITION_FINAL, POSITION_JOURNAL_NEGATIVE, POSITION_JOURNAL_POSITIVE
from msmq_fast._native.sources cimport SourceTable
from msmq_fast._native.tables cimport Reader, Tables
from msmq_fast._native.undo cimport Undoable
from msmq_fast._native.wheel cimport TimerWheel


cpdef enum EnqueueResult:
    # The result of enqueuing a message. Functions return it as a plain int.
    ENQUEUED = 0                # express: available now, no notification follows
    QUEUE_QUOTA = 1             # DM-097
    MACHINE_QUOTA = 2           # DM-096: throttled, or the queue manager's quota
    EXPIRED = 3                 # DM-098
    ENQUEUED_PENDING = 4        # recoverable: `origin.committed(token, status)` follows when durable
    QUEUE_GONE = 5              # the queue was deleted


cdef enum Owner:
    # Owners of locks. Sessions and subscriptions get numbers from OWNER_FIRST on (Ledger.new_owner).
    OWNER_NONE = 0
    OWNER_STORE = 1             # a plain receive whose removal is not durable yet
    OWNER_DAMAGED = 2           # its body could not be read from the store, or the store failed to keep it
    OWNER_RETURNED = 3          # pending: given back, not durable yet
    OWNER_PURGED = 4            # as OWNER_STORE, and the queue was purged meanwhile
    OWNER_POISON = 5            # aborted too often: it is about to be moved
    OWNER_FINAL = 7             # sent and ordered: it waits for its FinalAck
    OWNER_FIRST = 16
    OWNER_LEASE = 0x40000000    # bit of the numbers of leases: a purge removes what they lock
    OWNER_TRANSFER = 0x80000000     # bit of the numbers of sessions to other queue managers: the messages that they lock are in transit


cdef enum Memory:
    # How full the memory for express messages is.
    MEMORY_ENOUGH = 0
    MEMORY_SHORT = 1            # above the middle watermark: senders are slowed down
    MEMORY_FULL = 2             # above the high watermark, until the low one is reached: no message is accepted


cdef enum Role:
    # The role of a queue, which determines the side effects of a removal.
    ROLE_NONE = 0               # no side effects: journals, dead-letter queues, internal queues
    ROLE_DESTINATION = 1
    ROLE_OUTGOING = 2


cdef enum Reason:
    # Why a message leaves, or its outcome: values of protocol.classes.MessageClass.
    REASON_NONE = -1            # no side effects
    REASON_SENT = 0             # the next queue manager has stored it
    REASON_ARRIVED = 0x0002
    REASON_RECEIVED = 0x4000
    REASON_UNSENT = 0x8001      # purged before it was sent
    REASON_LATE = 0x8002        # expired before it was sent
    REASON_DELETED = 0xC000     # with its queue
    REASON_PURGED = 0xC001
    REASON_TIMEOUT = 0xC002
    REASON_REJECTED = 0xC004    # by its application
    REASON_UNANSWERED = 0xC003  # its receiver never reported the outcome
    REASON_NEGATIVE = 0x8000    # bit of every failure


cdef enum AckRequest:
    # Bits of PositionRecord.ack_flags; record.pxd has the others.
    ACK_POSITIVE_ARRIVAL = 1
    ACK_POSITIVE_RECEIVE = 2
    ACK_NEGATIVE_ARRIVAL = 4
    ACK_NEGATIVE_RECEIVE = 8


cdef enum:
    SEQUENCE_MARGIN = 1 << 19   # a new block is reserved when fewer numbers are left
    COUNT_LIMIT = 0xFFFF        # of AbortCount and MoveCount in memory
    EVERY_STATE = 1 << STATE_AVAILABLE | 1 << STATE_LOCKED | 1 << STATE_PENDING | 1 << STATE_PURGE_PENDING
    LATENCY_BINS = 36           # bin i: times below 2**i microseconds that no lower bin counts; the last bin has all longer ones
    MDB_CORRUPTED = -30796      # the status of bytes that cannot be a packet; lmdbapi.pxd has it for modules that call liblmdb


cdef struct PendingDelete:
    # A stored message that is in no list any more and must be deleted from the store.
    uint64_t key, content_id
    uint32_t queue, size, source, ordinal, dead_letter
    uint16_t message_class, reason, abort_count, move_count
    uint8_t event               # that the feed gets in the commit of the removal
    uint8_t role, ack_flags
    bint has_side_effects       # its packet is needed for the side effects of the removal


@cython.final
cdef class Removals(CommitListener):
    """Messages that were removed from the lists and are being deleted from the store. If the commit fails, they become pending deletes
    again.
    """
    cdef LedgerBase _ledger
    cdef PendingDelete* _entries    # ring of `_capacity` (a power of two)
    cdef uint64_t _capacity, _head, _tail, _told
    cdef readonly uint64_t failed
    cdef int add(self, const PendingDelete* entry) except -1
    # Makes the next commit report the outcome of everything that was added.
    cdef int watch(self) except -1


cdef class LedgerBase(Undoable):
    """The state that all queues of one queue manager share, except the queues themselves."""
    cdef public Writer writer
    cdef public Reader reader
    cdef public Tables tables               # the stored data
    cdef public uint64_t sequence           # last SequentialID issued (DM-099); also the arrival sequence
    cdef public uint64_t sequence_limit     # durably reserved up to here (DU-18)
    cdef public uint64_t bytes, quota_bytes     # DM-096
    cdef public uint64_t cached_bytes, cache_limit
    cdef public bint throttled              # Begin and End Flow Control, set from outside
    cdef readonly uint64_t express_bytes    # bytes of express messages in queues, which exist only in memory
    cdef public uint64_t express_low, express_mid, express_high     # watermarks of express_bytes (X-38)
    cdef readonly int memory                # MEMORY_…
    cdef public object on_memory            # called with `memory` when it has changed
    cdef public bint feed
    cdef readonly uint64_t watermark        # bulk readers look for no new messages below this sequence, see VisibilityWatermark
    cdef readonly uint32_t now_s            # Unix seconds, wall clock; set by tick()
    cdef readonly uint64_t now_us           # Unix microseconds, wall clock
    cdef public object reserve              # called with the new limit when the sequence runs low
    cdef public object on_poison            # called with (queue ordinal, lookup ids) of locked messages, see OWNER_POISON
    cdef public object on_read_error        # called with (queue ordinal, lookup id, status)
    # Called inside a unit with (role, packet, reason, ack_flags, ordinal of the chosen dead-letter queue or 0) if one of the flags may
    # apply to the outcome of a message. It sends acknowledgments and returns (MessageClass, whether it sent one, QueueBase for the copy or
    # None).
    cdef public object on_removed
    # Called for the TxSequenceID (TimeStamp << 32 | Ordinal) of a new sequence. None: messages get no numbers.
    cdef public object open_stream
    cdef public uint64_t final_grace        # seconds after TimeToBeReceived in which a FinalAck may still arrive (AMB-35)
    cdef dict _streams                      # TxSequenceID -> QueueBase: the current sequence of each outgoing queue
    cdef dict _finals                       # ordinal of the message identifier -> tuples (QueueBase, key, TxSequenceID, number)
    cdef readonly TimerWheel wheel
    cdef readonly SourceTable sources
    cdef readonly bint reaping              # whether a reap is not durable yet
    cdef bint _reserving
    cdef dict _cores
    cdef list _dirty
    cdef uint8_t _guid[16]
    cdef uint32_t _last_owner
    cdef PendingDelete* _pending
    cdef size_t _pending_count, _pending_capacity
    cdef size_t _deleting                   # pending deletes whose packets are being read
    cdef size_t _reaped                     # by the reap that is not durable yet
    cdef uint32_t _own_source
    cdef list _side_effects                 # (QueueBase, key) of each message that a removal creates; None: not recorded
    cdef list _drains
    cdef list _returned                     # (QueueBase, Received) whose return could not be stored
    cdef readonly uint64_t discarded        # journal copies and dead letters that were discarded for lack of room
    # Called with (a list of (queue ordinal, GUID of the source, ordinal of the identifier) of expired messages, how many more expired).
    cdef public object on_expired
    cdef public object on_discard           # called with the ordinal of a queue that had no room for a copy, once a minute
    cdef uint32_t _discard_told
    cdef uint64_t _latency[LATENCY_BINS]    # see note_latency
    cdef uint64_t _latency_us               # sum of all measured times
    # Number of the caller of the operation that is under way (qm/feed/callers.py), for the events RECEIVED, REMOVED, PURGED and MOVED; 0: not known.
    # Each method with an argument `caller` sets it, and sets it back to 0 before it returns or calls a sink.
    cdef uint32_t caller
    cdef readonly Removals removals
    cdef uint64_t next_sequence(self) except 0
    cdef int fill(self) except -1
    cdef int empty(self, uint32_t size) except -1
    cdef int _set_memory(self, int memory) except -1
    cdef int defer_delete(self, const PendingDelete* entry) except -1
    # `moved`: the content now belongs to another queue.
    cdef int _delete_stored(self, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason, bint moved) except -1
    # Adds one feed event about a message. `reason` is a Reason. `outgoing`: the queue is an outgoing queue.
    cdef int event(self, int kind, uint32_t queue, bint outgoing, const Slot* slot, bint lazy, int reason=*, uint64_t identifier=*,
                   uint32_t number=*) except -1
    # Adds one feed event about a message that arrived but was not accepted; `source` has 16 bytes. It causes no commit.
    cdef int untaken(self, int kind, int transport, uint32_t queue, const uint8_t* source, uint32_t ordinal, uint32_t size,
                     uint16_t message_class, uint16_t reason, uint64_t identifier, uint32_t number) except -1


# How queues and their ledger undo what a unit of work did to them, see undo.pxd.

# To make one more change undoable: 1. add a kind; 2. log it before the change, with the state that the change overwrites; 3. restore that
# state in `undo_in_queue` or `undo_in_ledger`. Entries run in reverse order: when one runs, the state is that directly after its change.

cdef enum UndoKind:
    UNDO_PLACED = 1             # a message was added to the list
    UNDO_COMMITTED = 2          # the same in a transaction, whose reservation is restored
    UNDO_CHANGED = 3            # state, lock and counts of a message
    UNDO_REMOVED = 4            # a message left the list; `kept` is its packet
    UNDO_SHARED = 5             # bytes that are counted in two queues of the family
    UNDO_EXPECTED = 6           # the number of expected moves to this queue
    UNDO_PENDING_DELETE = 7             # a message waits for reap()
    UNDO_REAPED = 8             # one of them was taken
    UNDO_FINALS = 9             # the messages that wait for the FinalAcks of an ordinal; `kept` is the tuple
    UNDO_STREAM = 10            # the queue that sends a sequence; `kept` is the queue
    UNDO_RESERVING = 11         # a block of SequentialIDs was requested


cdef struct QueueUndo:
    int kind
    uint8_t state
    uint8_t flags
    uint16_t abort_count
    uint32_t owner
    uint32_t deadline
    uint64_t total              # arrived or removed since start; bytes; a number


cdef struct ReapUndo:
    QueueUndo head
    PendingDelete entry
    uint8_t source[16]


cdef int log_in_ledger(LedgerBase ledger, int kind, uint64_t token, object kept) except -1
cdef int log_reaped(LedgerBase ledger, const PendingDelete* entry) except -1
cdef int reserve_sequence(LedgerBase ledger) except -1
# Fills in what is needed to delete a message from the store later.
cdef void pending_delete_of(PendingDelete* entry, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason) noexcept
# Notes that the removal has side effects, for which the packet is needed.
cdef void mark_side_effects(PendingDelete* entry, uint8_t role, const Slot* slot, int reason) noexcept
# Restores the fields of a message's slot that its removal needs.
cdef void slot_of(Slot* slot, const PendingDelete* entry) noexcept


cdef inline bint stopped(LedgerBase ledger) noexcept:
    # Whether flow control blocks new messages (DM-096, X-38).
    return ledger.throttled or ledger.memory == MEMORY_FULL


cdef inline bint sequence_left(LedgerBase ledger) except -1:
    # Whether a SequentialID is available; if not, retries the reservation that failed.
    if ledger.sequence < ledger.sequence_limit:
        return True
    reserve_sequence(ledger)
    return False


cdef inline int flags_for(uint8_t role, int reason) noexcept nogil:
    """Returns the flags that matter when a message leaves (or reaches) a queue for a reason."""
    cdef int final = POSITION_FINAL if role == ROLE_DESTINATION else 0
    if role == ROLE_NONE or reason < 0:
        return 0
    if reason & REASON_NEGATIVE:
        return ACK_NEGATIVE_ARRIVAL | ACK_NEGATIVE_RECEIVE | POSITION_JOURNAL_NEGATIVE | final
    if reason == REASON_RECEIVED:
        return ACK_POSITIVE_RECEIVE | final
    return POSITION_JOURNAL_POSITIVE if role == ROLE_OUTGOING else ACK_POSITIVE_ARRIVAL | POSITION_JOURNAL_POSITIVE


cdef inline uint16_t failure(int reason) noexcept nogil:
    """Returns the reason for the feed event of a message that left: 0 if it did not fail."""
    return <uint16_t>(reason if reason > 0 and reason & REASON_NEGATIVE else 0)
