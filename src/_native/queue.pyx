# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The messages of one queue: enqueue, claim, receive, removal, expiry, accounting and the store mutations of each.

MS-MQDMPR 3.1.7.1.9 (Enqueue Message), 3.1.7.1.10 (Dequeue Message), 3.1.7.1.7 (Purge Queue), 3.1.6.12 (TTBR), states of ST-1 in the
inventory. Nothing here knows about names, sessions or clients. Everything runs on the event loop.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport EAGAIN, ENOSPC
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from array import array

from msmq_fast._native.tables import StoreError

cimport cython
from msmq_fast._native.batch cimport STATUS_OK, Callback, CommitListener, Writer, also
from msmq_fast._native.tables cimport (
    TABLE_FEED,
    TABLE_HISTORY,
    TABLE_POSITION,
    TABLE_SEQUENCE,
    PositionVisitor,
    Reader,
    ReadListener,
    Tables,
)
from msmq_fast._native.framing cimport (
    INFINITE, SOURCE_OFFSET, USER_HTTP, USER_JOURNAL_NEGATIVE, USER_JOURNAL_POSITIVE, UserMessage, parse_user_message,
)
from msmq_fast._native.outsequence cimport ANSWER_OTHER, ANSWER_OVER, ENTRY_ORDERED, LAST_NUMBER, OutEntry, OutSequence
from msmq_fast._native.positions cimport (
    BANDS,
    FLAG_CACHED,
    FLAG_COUNTED,
    FLAG_EXPIRE_WHEN_UNLOCKED,
    FLAG_FETCHING,
    FLAG_PEEK_WHEN_LOCKED,
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    FLAG_TRANSACTIONAL,
    NO_DEADLINE,
    NO_TIMER,
    STATE_AVAILABLE,
    STATE_LOCKED,
    STATE_PENDING,
    STATE_PURGE_PENDING,
    PositionList,
    Slot,
)
from msmq_fast._native.record cimport (
    POSITION_ACK_MASK,
    POSITION_FINAL,
    POSITION_JOURNAL_NEGATIVE,
    POSITION_JOURNAL_POSITIVE,
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_ORDERED,
    POSITION_PREPARED,
    POSITION_PURGE_PENDING,
    POSITION_RECOVERABLE,
    POSITION_TRANSACTIONAL,
    POSITION_VERSION,
    STREAM_KEY_SIZE,
    STREAM_RENAMED,
    STREAM_VERSION,
    FeedEntry,
    HistoryEntry,
    NumberedPosition,
    OutgoingStream,
    PositionRecord,
    RenamedStream,
    position_key,
    position_size,
    stream_key,
)
from msmq_fast._native.sources cimport SourceTable
from msmq_fast._native.undo cimport Undoable, UndoLog
from msmq_fast._native.wheel cimport Timer, TimerWheel

cdef enum:
    EXPIRE_AGAIN = 60           # seconds until a message is tried again whose expiry raised
    DISCARD_SILENCE = 60        # seconds between two words on copies that find no room
    SEQUENCE_MARGIN = 1 << 19   # a new block is reserved when fewer are left
    CONCLUDING_BYTES = 16 << 20 # of acknowledgments for one receiver that come although the queue manager is full
    FINAL_GRACE = 21600         # the last step of the resend ladder: 6 hours
    COUNT_LIMIT = 0xFFFF        # of AbortCount and MoveCount in memory
    MAX_PACKET = 1 << 26        # no stored packet is greater; a record that says so is damaged
    AHEAD_COUNT = 4096          # bodies read ahead of a reader
    AHEAD_BYTES = 8 << 20
    AHEAD_STEP = 1024           # messages consumed between two looks ahead
    EVERY_STATE = 1 << STATE_AVAILABLE | 1 << STATE_LOCKED | 1 << STATE_PENDING | 1 << STATE_PURGE_PENDING
    MDB_CORRUPTED = -30796
    SEQUENCE_OFFSET = 4         # TransactionHeader.TxSequenceID, TxSequenceNumber behind it
    FINAL_ACK_REQUIRED = 2      # TransactionHeader.Flags.FA
    WISH_POSITIVE_ARRIVAL = 1   # bits of PositionRecord.wishes
    WISH_POSITIVE_RECEIVE = 2
    WISH_NEGATIVE_ARRIVAL = 4
    WISH_NEGATIVE_RECEIVE = 8
    DISPOSAL_COUNT = 256        # packets read at a time for what follows from removals
    DISPOSAL_BYTES = 8 << 20

cdef uint64_t SEQUENCE_MASK = (<uint64_t>1 << 56) - 1
SEQUENCE_BLOCK = 1 << 20
TAKEN = (<int>ENQUEUED, <int>ENQUEUED_PENDING)  # plain numbers: `in` finds them by identity


cdef uint32_t deadline_of(uint32_t sent, uint32_t reach, uint32_t received, bint outgoing) noexcept nogil:
    """When a message expires where it stands (DA-031): seconds, or NO_DEADLINE."""
    cdef uint64_t best = NO_DEADLINE
    if received != INFINITE:
        best = <uint64_t>sent + received
    if outgoing and reach != INFINITE and <uint64_t>sent + reach < best:
        best = <uint64_t>sent + reach
    return <uint32_t>best if best < NO_DEADLINE else NO_DEADLINE


cdef int effective_priority(const UserMessage* m) noexcept nogil:
    """A transactional message counts as priority 0 (DM-100)."""
    return 0 if m.transaction_offset else m.priority & 7


cdef bint is_packet(bytes packet) noexcept:
    """Whether what the store kept is still a UserMessage packet: nobody is handed anything else."""
    cdef UserMessage m
    return parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m) == 0


cdef void describe(PositionRecord* record, const Slot* slot, const UserMessage* m, const char* packet) noexcept nogil:
    """The stored record of a position."""
    memset(record, 0, sizeof(record[0]))
    record.version = POSITION_VERSION
    record.flags = POSITION_RECOVERABLE | (POSITION_TRANSACTIONAL if slot.flags & FLAG_TRANSACTIONAL else 0)
    record.priority = <uint8_t>(7 - (slot.key >> 56))
    record.wishes = 0 if slot.reason else wishes_of(m, packet)
    record.reason = slot.reason
    record.dead_letter_queue = slot.dead_letter
    record.message_class = m.message_class
    record.content_id = slot.content_id
    record.content_bytes = slot.size
    record.sent_s = m.sent_time
    record.arrived_us = slot.arrived
    record.time_to_reach_queue = m.time_to_reach_queue
    record.time_to_be_received = m.time_to_be_received
    memcpy(record.source, packet + SOURCE_OFFSET, 16)
    record.ordinal = m.message_id
    record.abort_count = slot.abort_count
    record.arrival_seq = slot.key & SEQUENCE_MASK
    record.move_count = slot.move_count


include "queue_undo.pxi"
include "queue_horizon.pxi"
include "queue_disposition.pxi"
include "queue_sequence.pxi"
include "queue_ledger.pxi"
include "queue_core.pxi"
include "queue_delivery.pxi"
include "queue_relocation.pxi"
include "queue_seek.pxi"
include "queue_moving.pxi"
include "queue_lease.pxi"
