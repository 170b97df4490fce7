# The transactional sequence of one outgoing queue: the number of each message, and its state.

cimport cython
from cpython.array cimport array
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.undo cimport Undoable, UndoLog


cdef enum EntryFlag:
    ENTRY_SENT = 1              # transmitted on a session that has not ended
    ENTRY_KEPT = 2              # acknowledged by that session
    ENTRY_ORDERED = 4           # covered by an OrderAck
    ENTRY_GONE = 8              # removed from the queue: a tombstone until it is at the front


cdef enum Answer:
    # What `acknowledged` and `returned` report about a message.
    ANSWER_OTHER = 0            # it has no number here
    ANSWER_WAITS = 1            # it stays, or must be sent again
    ANSWER_OVER = 2             # its receiver has it


cdef enum:
    LAST_NUMBER = 0xFFFFFFFF
    RESTART_GAP = 1 << 24             # more messages than a sequence has before it ends


cdef struct OutEntry:
    uint64_t key                # LookupIdentifier
    uint32_t number             # TxSequenceNumber
    uint32_t ordinal            # of the message identifier
    uint8_t flags


cdef enum SequenceUndoKind:
    UNDO_FIELDS = 0             # nothing but the fields
    UNDO_APPENDED = 1           # an entry was appended
    UNDO_ENTRY = 2              # an entry changed, or was removed


cdef struct SequenceUndo:
    # The state before a change. `index` is the position of `entry`.
    int kind
    bint answered, state_not_durable
    OutEntry entry
    uint64_t index, first
    uint64_t identifier, next_number, unordered, sent, finals, alias
    uint32_t last_ack, ack_count, highest, base, last_ack_s, resend_index, resend_s
    uint16_t stamp


@cython.final
cdef class OutSequence(Undoable):
    cdef UndoLog _undo
    cdef OutEntry* _ring        # sorted by key, and from `_first` on by number
    cdef size_t _capacity       # a power of two
    cdef uint64_t _head, _tail  # logical indexes
    cdef uint64_t _first        # the index at which the entries of the current sequence begin
    cdef readonly uint64_t identifier       # TxSequenceID: TimeStamp << 32 | Ordinal; 0 before the first message
    cdef readonly uint64_t next_number      # TxSequenceNumber of the next message
    cdef readonly uint32_t last_ack         # LastAck.SeqNo
    cdef readonly uint32_t ack_count        # LastAckCount
    cdef readonly uint32_t highest          # the highest number that may have been transmitted
    cdef readonly uint64_t unordered        # messages that no OrderAck covers
    cdef readonly uint64_t sent             # those of them that were transmitted and not returned
    cdef readonly uint64_t finals           # messages that wait for a FinalAck
    cdef readonly uint16_t stamp            # low bits of the time stamp of the incarnation that the numbers are of
    # Of a queue whose messages leave by SRMP, where message 1 must be the first that a receiver gets (MC-MQSRM 2.2.5.3.4):
    cdef readonly uint64_t alias            # the identifier that receivers know; 0: `identifier`
    cdef readonly uint32_t base             # subtracted from a number before it is sent
    cdef public bint answered               # the receiver has confirmed a message of this sequence
    cdef public bint state_not_durable      # one of these fields has changed and may not be durable: nothing may be sent
    cdef public uint32_t last_ack_s         # TimeOfLastAck, Unix seconds; 0: none yet
    cdef public uint32_t resend_index       # ResendIntervalIndex
    cdef public uint32_t resend_interval    # ResendInterval, seconds
    cdef public uint32_t resend_s           # ResendTime, Unix seconds; 0: the timer does not run
    # Call before a change. NULL: only the fields change.
    cdef int log(self, int kind, const OutEntry* entry) except -1
    cdef int count_final(self, int more) except -1
    cdef void _put_back(self, const OutEntry* entry, uint64_t index) noexcept
    # Number of messages, including tombstones between them.
    cdef uint64_t held(self) noexcept
    cdef OutEntry* find(self, uint64_t key) noexcept
    cdef OutEntry* numbered(self, uint64_t identifier, uint32_t number) noexcept
    # Marks an entry as transmitted. Returns NULL if the message has no number. Sets `previous` to PreviousTxSequenceNumber.
    cdef OutEntry* depart(self, uint64_t key, uint32_t* previous) noexcept
    cdef uint32_t previous_of(self, const OutEntry* entry) noexcept
    cpdef int begin(self, uint64_t identifier) except -1
    # The identifier on the wire.
    cdef uint64_t known_as(self) noexcept
    # Makes the first remaining message number 1 of the sequence `alias` for receivers.
    cdef int rename(self, uint64_t alias) except -1
    # Whether the first message here must become number 1, because nothing of the sequence has ever reached its receiver.
    cdef bint needs_restart(self) noexcept
    cpdef bint skip_numbers(self, uint32_t stamp) noexcept
    cpdef uint32_t assign(self, uint64_t key, uint32_t ordinal) except 0
    cpdef int acknowledged(self, uint64_t key) except -1
    cpdef int returned(self, uint64_t key) except -1
    cpdef bint remove(self, uint64_t key) except -1
    cdef OutEntry* _append(self, uint64_t key, uint32_t number, uint32_t ordinal) except NULL
    cdef void _trim(self) noexcept
    cdef uint64_t _index(self, uint64_t key) noexcept
    # Keys of the messages of the current sequence.
    cdef array current(self)
    cdef array _keys(self, uint8_t mask, uint8_t wanted, uint64_t first)
    cdef tuple _place(self, uint64_t index)
