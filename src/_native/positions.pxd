# The MessagePositionList of one queue: eight priority bands of sorted slots, independent of the store.

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cpdef enum PositionState:
    # The state of a message between its arrival and its removal. Functions return it as a plain int, 0 for no position.
    STATE_DELETED = 0           # a tombstone, dropped by the next compaction
    STATE_AVAILABLE = 1
    STATE_LOCKED = 2            # by `owner`
    STATE_PENDING = 3           # enqueued, not yet durable or not yet committed
    STATE_PURGE_PENDING = 4     # was locked when the queue was purged

cdef enum Flag:
    FLAG_RECOVERABLE = 1        # stored
    FLAG_TRANSACTIONAL = 2
    FLAG_EXPIRE_WHEN_UNLOCKED = 8
    FLAG_COUNTED = 16           # part of TotalBytes
    FLAG_FETCHING = 32          # its body is being read from the store
    FLAG_REMOVING = 64          # its removal is in a batch that is not durable yet
    FLAG_CACHED = 128           # its body could be dropped from memory, because the store has it

cdef enum:
    BANDS = 8
    NO_DEADLINE = 0xFFFFFFFF
    NO_TIMER = 0xFFFFFFFF

cdef struct Slot:
    uint64_t key                # LookupIdentifier
    uint64_t content_id
    uint64_t arrived            # Unix microseconds
    PyObject* body              # packet bytes, owned, or NULL: in the store only
    uint32_t size               # bytes of the packet
    uint32_t deadline           # Unix seconds, or NO_DEADLINE
    uint32_t timer              # handle in a TimerWheel, or NO_TIMER
    uint32_t owner              # of the lock: a reader, a transaction or an OWNER_… number
    uint32_t source             # queue manager of the message identifier: number in a SourceTable
    uint32_t ordinal            # of the message identifier
    uint16_t abort_count        # 0xFFFF: that many or more
    uint16_t move_count
    uint16_t message_class
    uint8_t state
    uint8_t flags
    uint32_t dead_letter        # ordinal of the queue its application chose for its failure, or 0
    uint16_t reason             # why it is in a dead-letter queue, or 0
    uint8_t ack_flags           # acknowledgments and copies that its sender asked for, as in the stored record

cdef struct Band:
    Slot* slots                 # ring of `capacity` (a power of two) slots
    uint64_t capacity
    uint64_t head, tail         # logical indexes; physical = index & (capacity - 1)
    uint64_t available_hint     # no AVAILABLE slot is before it
    uint64_t pending_hint       # no PENDING slot is before it
    uint64_t live, available, pending


cdef inline Slot* at(Band* band, uint64_t index) noexcept nogil:
    return &band.slots[index & (band.capacity - 1)]

# Returns the logical index of the first slot whose key is not below `key`. From there to `tail`, tombstones may be between live slots.
cdef inline uint64_t lower_bound(Band* band, uint64_t key) noexcept nogil:
    cdef uint64_t low = band.head, high = band.tail, middle
    while low < high:
        middle = low + (high - low) // 2
        if at(band, middle).key < key:
            low = middle + 1
        else:
            high = middle
    return low


@cython.final
cdef class PositionList:
    cdef Band _bands[BANDS]
    cdef readonly uint64_t live         # slots that are not tombstones
    cdef readonly uint64_t available
    cdef readonly uint64_t pending
    cdef readonly uint64_t purge_pending

    # Pointers to slots are valid until the next insert, remove or compact.
    cdef Slot* insert(self, uint64_t key, int state) except NULL
    cdef Slot* find(self, uint64_t key) noexcept nogil
    cdef Slot* first_available(self) noexcept nogil
    cdef Slot* first_takeable(self, bint pending) noexcept nogil
    cdef Slot* last_available(self) noexcept nogil
    # Returns the first slot after (before) `key`, which need not exist. `states` is a bit set: 1 << STATE_….
    cdef Slot* following(self, uint64_t key, uint32_t states) noexcept nogil
    cdef Slot* preceding(self, uint64_t key, uint32_t states) noexcept nogil
    cdef void set_state(self, Slot* slot, int state) noexcept nogil
    cdef void set_body(self, Slot* slot, object body) noexcept
    cdef void remove(self, Slot* slot) noexcept
    # Moves a live slot of `other` into this list, with its state and its body.
    cdef Slot* adopt(self, PositionList other, Slot* slot) except NULL
    cdef inline void _count_in(self, Band* band, Slot* slot, uint64_t index, int state) noexcept nogil
    cdef int _grow(self, Band* band) except -1
    cdef void _compact(self, Band* band) noexcept nogil


# Whether a pointer still points to a slot of this list; for assertions. After an insert or a removal it may not.
cdef inline bint has_slot(PositionList positions, const Slot* slot) noexcept:
    cdef Band* band = &positions._bands[(slot.key >> 56) & (BANDS - 1)]
    return band.slots <= slot < band.slots + band.capacity and slot.state != STATE_DELETED
