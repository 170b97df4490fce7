# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Messages that an operator exports, imports, moves or copies: lists them, enqueues them with their earlier state, removes them."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp
from msmq_fast._native.batch cimport STATUS_OK, CommitListener, in_unit
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage, parse_user_message
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    ENQUEUED,
    ENQUEUED_PENDING,
    EVENT_PURGED,
    EVERY_STATE,
    MACHINE_QUOTA,
    OWNER_STORE,
    QUEUE_GONE,
    QUEUE_QUOTA,
    LedgerBase,
)
from msmq_fast._native.numbering cimport number, number_left
from msmq_fast._native.positions cimport (
    BANDS,
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    STATE_AVAILABLE,
    STATE_LOCKED,
    PositionList,
    Slot,
)
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport Received, describe, effective_priority, family_bytes, log_changed, mark_dead_letter
from msmq_fast._native.record cimport SEQUENCE_MASK, NumberedPosition


@cython.final
cdef class Withdrawal(CommitListener):
    """Messages that leave a queue with one unit: they are removed when the unit is durable, and return to their places if it fails."""
    cdef QueueCore _core
    cdef list _keys

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef QueueCore core = self._core
        cdef Slot* slot = NULL
        cdef uint64_t key
        for key in self._keys:
            slot = core.positions.find(key)
            if slot == NULL or not slot.flags & FLAG_REMOVING:
                continue
            if status == STATUS_OK:
                core.removed_total += 1
                core._drop(slot)
            else:
                core._return(slot)
        return 0

    cdef int settled(self) except -1:
        return 0


cdef enum:
    EXAMINED = 32768                # slots that one call of `survey` looks at

cdef struct Wanted:
    uint64_t since, until           # arrival in Unix microseconds, both included
    int message_class               # -1: any
    const uint8_t* identifier       # source GUID and ordinal, 20 bytes; NULL: any


def survey(
    QueueCore core not None,
    uint64_t after,
    uint64_t upto,
    size_t count,
    *,
    int priority=-1,
    int message_class=-1,
    uint64_t since=0,
    uint64_t until=0xFFFFFFFFFFFFFFFF,
    bytes identifier=None,
    list keys=None,
) -> tuple:
    """Finds available messages whose arrival sequence is greater than `after` and not greater than `upto`, in the order of their arrival.

    The other arguments select messages: by `priority`, by MessageClass (that of a dead letter is the reason why it became one; that of any
    other message is its own class), by arrival in Unix microseconds (both ends included), by message identifier (20 bytes: source GUID,
    ordinal as u32 little-endian), or those of `keys`, lookup ids sorted by arrival sequence. -1 and None select all.

    Returns (messages, reached, finished): at most `count` messages, as (lookup id, packet size in bytes); the arrival sequence up to which
    the queue was examined, where the next call continues; and whether no message is left behind it. Raises ValueError for an identifier
    that does not have 20 bytes.
    """
    cdef Slot* heads[BANDS]
    cdef Slot* slot = NULL
    cdef Wanted wanted = Wanted(since, until, message_class, NULL)
    cdef size_t band, best = BANDS, examined = 0, given = 0
    cdef uint64_t key
    cdef list result = []
    if identifier is not None:
        if len(identifier) != 20:
            raise ValueError("a message identifier has 20 bytes")
        wanted.identifier = <const uint8_t*>PyBytes_AS_STRING(identifier)
    after = min(after, SEQUENCE_MASK)
    for band in range(BANDS):
        heads[band] = NULL
        if keys is None and (priority < 0 or band == <size_t>(7 - priority)):
            heads[band] = _next_in_band(core.positions, <uint64_t>band << 56 | after)
    while True:
        if keys is None:
            best = _earliest(heads)
            slot = heads[best] if best < BANDS else NULL
        else:
            slot = _next_of_keys(core.positions, keys, &given, after, priority)
        if slot == NULL or slot.key & SEQUENCE_MASK > upto:
            return result, after, True
        if <size_t>len(result) == count or examined == EXAMINED:
            return result, after, False
        key = slot.key
        after = key & SEQUENCE_MASK
        examined += 1
        if _fits(core, slot, &wanted):
            result.append((key, slot.size))
        if keys is None:
            heads[best] = _next_in_band(core.positions, key)


cdef inline size_t _earliest(Slot** heads) noexcept:
    """Returns the number of the band whose head arrived first; BANDS if all are NULL."""
    cdef size_t band, best = BANDS
    for band in range(BANDS):
        if heads[band] != NULL and (best == BANDS or heads[band].key & SEQUENCE_MASK < heads[best].key & SEQUENCE_MASK):
            best = band
    return best


cdef Slot* _next_of_keys(PositionList positions, list keys, size_t* given, uint64_t after, int priority) except? NULL:
    """Returns the first available message of `keys`, from the index `given` on, that arrived after `after`, and increases `given` beyond it.
    NULL if there is none.
    """
    cdef Slot* slot = NULL
    cdef uint64_t key
    while given[0] < <size_t>len(keys):
        key = keys[given[0]]
        given[0] += 1
        if key & SEQUENCE_MASK <= after or (priority >= 0 and key >> 56 != <uint64_t>(7 - priority)) or key >> 56 >= BANDS:
            continue
        slot = positions.find(key)
        if slot != NULL and slot.state == STATE_AVAILABLE:
            return slot
    return NULL


cdef inline bint _fits(QueueCore core, const Slot* slot, const Wanted* wanted) noexcept:
    cdef int message_class = slot.reason or slot.message_class
    return (
        wanted.since <= slot.arrived <= wanted.until
        and wanted.message_class in (-1, message_class)
        and (
            wanted.identifier == NULL
            or (
                memcmp(&slot.ordinal, wanted.identifier + 16, 4) == 0
                and memcmp(core.ledger.sources.guid(slot.source), wanted.identifier, 16) == 0
            )
        )
    )


cdef Slot* _next_in_band(PositionList positions, uint64_t key) noexcept:
    """Returns the first available message after `key` with the same priority."""
    cdef Slot* slot = positions.following(key, 1 << STATE_AVAILABLE)
    return slot if slot != NULL and slot.key >> 56 == key >> 56 else NULL


cdef int _entire(bytes packet, UserMessage* m) except -1:
    """Parses a packet that is to be stored unchanged. Raises ValueError if it is invalid."""
    cdef int code = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), m)
    if code:
        raise ValueError(f"not a UserMessage packet (fault {code})")
    if m.size != <uint64_t>PyBytes_GET_SIZE(packet) or m.wire_size != m.size:
        raise ValueError("the data is not exactly one UserMessage packet, without SessionHeader")
    return 0


def is_transactional(bytes packet not None) -> bool:
    """Whether a message belongs in a transactional queue. Raises ValueError if it is not exactly one UserMessage packet."""
    cdef UserMessage m
    _entire(packet, &m)
    return m.transaction_offset != 0


def place(QueueCore core not None, list entries not None) -> list:
    """Enqueues messages with their earlier state. Each entry is (packet, arrival in Unix microseconds, abort count, move count,
    MessageClass of the reason for which it is a dead letter, or 0).

    Each message gets a new place, after all messages of its priority. Call within a unit; recoverable messages become available when the
    unit is durable. Returns an EnqueueResult for each message up to the first one that is rejected; later ones are not enqueued. Raises
    ValueError for a malformed packet; then no message is enqueued.
    """
    cdef LedgerBase ledger = core.ledger
    cdef UserMessage m
    cdef NumberedPosition record
    cdef Slot* slot = NULL
    cdef bytes packet
    cdef uint64_t arrived, sequence
    cdef uint32_t aborts, moves, reason
    cdef bint recoverable
    cdef list results = []
    assert in_unit(core.ledger.writer), "call inside a unit"
    for packet, _, _, _, _ in entries:
        _entire(packet, &m)
    for packet, arrived, aborts, moves, reason in entries:
        _entire(packet, &m)
        if not core.has_room(1, m.size) or not number_left(core, &m, PyBytes_AS_STRING(packet)):
            results.append(_refused(core, m.size))
            break
        sequence = ledger.next_sequence()
        slot = core._place(<uint64_t>(7 - effective_priority(&m)) << 56 | sequence, sequence, arrived, packet, &m)
        slot.abort_count = <uint16_t>min(aborts, COUNT_LIMIT)
        slot.move_count = <uint16_t>min(moves, COUNT_LIMIT)
        slot.reason = <uint16_t>reason
        if slot.reason:
            mark_dead_letter(core, slot)
        core.arrived_total += 1
        recoverable = slot.flags & FLAG_RECOVERABLE
        describe(&record.position, slot, &m, PyBytes_AS_STRING(packet))
        if recoverable:
            number(core, slot, &record)
        if ledger.feed:
            core._came(slot, &m, PyBytes_AS_STRING(packet), &record)
        if recoverable:
            ledger.writer.put_position(core.ordinal, slot.key, &record.position, True)
            ledger.writer.put_content(sequence, packet)
            ledger.writer.notify(core, slot.key)
            results.append(<int>ENQUEUED_PENDING)
        else:
            core._count(slot)
            if core.interested:
                core.mark()
            results.append(<int>ENQUEUED)
    return results


cdef int _refused(QueueCore core, uint64_t size) noexcept:
    """Returns an EnqueueResult: why a queue has no room for a message of `size` bytes."""
    if core.gone:
        return QUEUE_GONE
    if size > core.quota_bytes or family_bytes(core) > core.quota_bytes - size:
        return QUEUE_QUOTA
    return MACHINE_QUOTA


def withdraw(QueueCore core not None, list keys not None, int event, uint32_t caller=0) -> int:
    """Removes those of the messages `keys` that are available, with the current unit; `event` is the kind of their feed events,
    `caller` the number of the operator in the feed. Returns how many it removed.

    If the unit fails, recoverable messages return to their places.
    """
    cdef LedgerBase ledger = core.ledger
    cdef Withdrawal withdrawal = Withdrawal.__new__(Withdrawal)
    cdef Slot* slot = NULL
    cdef uint64_t key
    cdef int taken = 0
    assert in_unit(core.ledger.writer), "call inside a unit"
    withdrawal._core = core
    withdrawal._keys = []
    ledger.caller = caller
    try:
        for key in keys:
            slot = core.positions.find(key)
            if slot == NULL or slot.state != STATE_AVAILABLE:
                continue
            taken += 1
            if not slot.flags & FLAG_RECOVERABLE:
                core._take_out(slot, event)
                continue
            log_changed(core, slot)
            core.positions.set_state(slot, STATE_LOCKED)
            slot.owner = OWNER_STORE
            slot.flags |= FLAG_REMOVING
            ledger.writer.delete_position(core.ordinal, slot.key)
            ledger.writer.delete_content(slot.content_id, slot.size)
            if ledger.feed:
                core._tell(event, slot, False)
            withdrawal._keys.append(key)
    finally:
        ledger.caller = 0
    if withdrawal._keys:
        ledger.writer.notify(withdrawal, 0)
    return taken


def discard(QueueCore core not None, list messages not None, uint32_t caller=0) -> list:
    """Removes those of `messages`, as they were read from the queue, that are available, with the current unit and with the side effects
    of a purge; `caller` is the number of the operator in the feed. Returns the removed ones.

    If the unit fails, Ledger.reap deletes recoverable messages later.
    """
    cdef Slot* slot = NULL
    cdef Received message
    cdef list removed = []
    assert in_unit(core.ledger.writer), "call inside a unit"
    core.ledger.caller = caller
    try:
        for message in messages:
            slot = core.positions.find(message.lookup_id)
            if slot != NULL and slot.state == STATE_AVAILABLE and core._take_out(slot, EVENT_PURGED, message.packet) == 0:
                removed.append(message)
    finally:
        core.ledger.caller = 0
    core.ledger.removals.watch()
    return removed


cdef class Identifiers:
    """``Identifiers(core)``: a set of message identifiers (source GUID, ordinal): at first those of the messages in a queue; `add` adds
    others.
    """
    cdef uint64_t* _table           # open addressing; source number << 32 | ordinal, 0: empty
    cdef uint64_t _mask, _count
    cdef dict _sources              # GUID -> number from 1 on

    def __cinit__(self, QueueCore core not None):
        cdef Slot* slot = NULL
        cdef PositionList positions = core.positions
        cdef uint64_t key = 0, source = 0
        cdef uint32_t latest = 0
        self._sources = {}
        self._resize(positions.live)
        slot = positions.following(0, EVERY_STATE)
        while slot != NULL:
            if slot.source != latest or not source:
                latest = slot.source
                source = self._number(PyBytes_FromStringAndSize(<const char*>core.ledger.sources.guid(latest), 16))
            self._insert(source << 32 | slot.ordinal)
            key = slot.key
            slot = positions.following(key, EVERY_STATE)

    def __dealloc__(self):
        free(self._table)

    def __len__(self) -> int:
        return self._count

    def add(self, bytes packet not None) -> bool:
        """Adds the identifier of a whole UserMessage packet. Returns False if it was already in the set."""
        cdef UserMessage m
        _entire(packet, &m)
        if (self._count + 1) * 2 > self._mask:
            self._resize(self._count + 1)
        return self._insert(<uint64_t>self._number(packet[SOURCE_OFFSET : SOURCE_OFFSET + 16]) << 32 | m.message_id)

    def __contains__(self, bytes packet not None) -> bool:
        cdef UserMessage m
        cdef uint64_t entry, index
        _entire(packet, &m)
        number = self._sources.get(packet[SOURCE_OFFSET : SOURCE_OFFSET + 16])
        if number is None:
            return False
        entry = <uint64_t>number << 32 | m.message_id
        index = _spread(entry) & self._mask
        while self._table[index]:
            if self._table[index] == entry:
                return True
            index = (index + 1) & self._mask
        return False

    cdef uint64_t _number(self, bytes guid) except 0:
        return self._sources.setdefault(guid, len(self._sources) + 1)

    cdef bint _insert(self, uint64_t entry) noexcept:
        cdef uint64_t index = _spread(entry) & self._mask
        while self._table[index]:
            if self._table[index] == entry:
                return False
            index = (index + 1) & self._mask
        self._table[index] = entry
        self._count += 1
        return True

    cdef int _resize(self, uint64_t count) except -1:
        """Makes room for `count` identifiers and as many more."""
        cdef uint64_t* old = self._table
        cdef uint64_t size = 64, index, length = self._mask + 1 if old != NULL else 0
        while size < count * 4:
            size *= 2
        self._table = <uint64_t*>calloc(size, sizeof(uint64_t))
        if self._table == NULL:
            self._table = old
            raise MemoryError("no memory for message identifiers")
        self._mask = size - 1
        self._count = 0
        for index in range(length):
            if old[index]:
                self._insert(old[index])
        free(old)
        return 0


cdef inline uint64_t _spread(uint64_t value) noexcept nogil:
    value ^= value >> 31
    value *= <uint64_t>0x9E3779B97F4A7C15
    return value ^ (value >> 29)
