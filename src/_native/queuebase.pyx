# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The fields and accounts of a queue, and how a message enters and leaves its list."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.framing cimport SOURCE_OFFSET, USER_HTTP, UserMessage, parse_user_message
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    EVENT_ABORTED_RETURN,
    EVENT_ARRIVED,
    EVENT_MOVED,
    EVENT_PURGED,
    EVENT_REMOVED,
    EVENT_SENT,
    OWNER_FINAL,
    REASON_NONE,
    UNDO_CHANGED,
    UNDO_COMMITTED,
    UNDO_EXPECTED,
    UNDO_FINALS,
    UNDO_PLACED,
    UNDO_REMOVED,
    UNDO_SHARED,
    LedgerBase,
    QueueUndo,
    log_in_ledger,
    stopped,
)
from msmq_fast._native.positions cimport (
    FLAG_CACHED,
    FLAG_COUNTED,
    FLAG_EXPIRE_WHEN_UNLOCKED,
    FLAG_FETCHING,
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    FLAG_TRANSACTIONAL,
    NO_DEADLINE,
    NO_TIMER,
    STATE_AVAILABLE,
    STATE_LOCKED,
    STATE_PENDING,
    PositionList,
    Slot,
    has_slot,
)
from msmq_fast._native.record cimport (
    POSITION_FINAL,
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_PREPARED,
    POSITION_PURGE_PENDING,
    POSITION_RECOVERABLE,
    POSITION_TRANSACTIONAL,
    POSITION_VERSION,
    SEQUENCE_MASK,
    NumberedPosition,
    PositionRecord,
    position_key,
)
from msmq_fast._native.tablenumbers cimport TABLE_POSITION
from msmq_fast._native.undo cimport UndoLog, Undoable

from msmq_fast._native.tables import StoreError


cdef bint is_packet(bytes packet) noexcept:
    """Whether bytes from the store are a valid UserMessage packet. Readers never get other data."""
    cdef UserMessage m
    return parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m) == 0


cdef void describe(PositionRecord* record, const Slot* slot, const UserMessage* m, const char* packet) noexcept nogil:
    """Fills `record` with the stored form of a message's position."""
    memset(record, 0, sizeof(record[0]))
    record.version = POSITION_VERSION
    record.flags = POSITION_RECOVERABLE | (POSITION_TRANSACTIONAL if slot.flags & FLAG_TRANSACTIONAL else 0)
    record.priority = <uint8_t>(7 - (slot.key >> 56))
    record.ack_flags = 0 if slot.reason else ack_flags_of(m, packet)
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


cdef int stored_record(QueueBase core, const Slot* slot, NumberedPosition* record) except -1:
    """Reads the record of a stored message that is available or was locked while it was available. Raises ValueError if the store has no
    record of it.
    """
    cdef uint8_t key[POSITION_KEY_SIZE]
    position_key(&key[0], core.ordinal, slot.key)
    value = core.ledger.tables.get(TABLE_POSITION, PyBytes_FromStringAndSize(<const char*>&key[0], POSITION_KEY_SIZE))
    if value is None or len(<bytes>value) < <Py_ssize_t>sizeof(PositionRecord):
        raise ValueError("the store does not have the record of a message's position")
    memset(record, 0, sizeof(record[0]))
    memcpy(record, PyBytes_AS_STRING(<bytes>value), min(<size_t>len(<bytes>value), sizeof(record[0])))
    return 0


cdef int add_passing(QueueBase core, const Slot* slot) except -1:
    if slot.source != core.ledger._own_source:
        core._passing.add(<uint64_t>slot.source << 32 | slot.ordinal)
    return 0


cdef void in_two_queues(QueueBase core, int64_t size) noexcept:
    """Counts `size` bytes only once although the accounts of two queues of one family (a queue and its subqueues) now both contain them."""
    cdef QueueBase family = core if core.parent is None else core.parent
    family.moving_bytes += size
    core.ledger.bytes -= size


cdef void mark_dead_letter(QueueBase core, Slot* slot) noexcept:
    """Marks a message as a dead letter: it does not expire, whatever its queue, and its removal has no further side effects."""
    slot.ack_flags = 0
    slot.deadline = NO_DEADLINE
    if slot.timer != NO_TIMER:
        core.ledger.wheel.stop(slot.timer)
        slot.timer = NO_TIMER


cdef int set_finals(LedgerBase ledger, uint32_t ordinal, tuple waiting) except -1:
    log_in_ledger(ledger, UNDO_FINALS, ordinal, ledger._finals.get(ordinal))
    if waiting:
        ledger._finals[ordinal] = waiting
    else:
        ledger._finals.pop(ordinal, None)
    return 0


cdef int forget_final(LedgerBase ledger, uint32_t ordinal, QueueBase core, uint64_t key) except -1:
    if not ledger._finals or ordinal not in ledger._finals:
        return 0
    left = tuple([waiting for waiting in ledger._finals[ordinal] if waiting[0] is not core or waiting[1] != key])
    return set_finals(ledger, ordinal, left)


cdef int log_placed(QueueBase core, uint64_t key, int kind) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    undo.total = core.arrived_total
    return core.ledger.writer.undo.add(core, key, &undo, sizeof(undo), None)


cdef int log_number(QueueBase core, int kind, uint64_t number) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    undo.total = number
    core.ledger.writer.undo.add(core, 0, &undo, sizeof(undo), None)
    return 0


cdef int log_changed(QueueBase core, const Slot* slot) except -1:
    cdef QueueUndo undo
    undo.kind = UNDO_CHANGED
    undo.state = slot.state
    undo.flags = slot.flags
    undo.abort_count = slot.abort_count
    undo.owner = slot.owner
    undo.deadline = slot.deadline
    core.ledger.writer.undo.add(core, slot.key, &undo, sizeof(undo), None)
    return 0


cdef int log_removed(Undoable owner, LedgerBase ledger, const Slot* slot, uint64_t total) except -1:
    """Logs the removal of a slot, so that it can be undone. `owner` is the QueueBase or the Drain whose list has the slot."""
    cdef RemovalUndo undo
    cdef UndoLog log = ledger.writer.undo
    if log.depth:
        undo.head.kind = UNDO_REMOVED
        undo.head.total = total
        undo.slot = slot[0]
        memcpy(undo.source, ledger.sources.guid(slot.source), 16)
        log.add(owner, slot.key, &undo, sizeof(undo), <object>slot.body if slot.body != NULL else None)
    return 0


cdef int undo_in_queue(QueueBase core, uint64_t key, const QueueUndo* undo, object kept) except -1:
    cdef Slot* slot
    cdef uint32_t size
    if undo.kind == UNDO_SHARED:
        in_two_queues(core, -<int64_t>undo.total)
        return 0
    if undo.kind == UNDO_EXPECTED:
        core.expected = <uint32_t>undo.total
        return 0
    if undo.kind == UNDO_REMOVED:
        return _undo_removal(core, <const RemovalUndo*>undo, kept)
    slot = core.positions.find(key)
    if slot == NULL:
        return 0
    if undo.kind == UNDO_CHANGED:
        return _undo_change(core, slot, undo)
    size = slot.size
    core._drop(slot)
    core.arrived_total = undo.total
    if undo.kind == UNDO_COMMITTED:
        core.reserve_again(size)
    return 0


cdef int _undo_change(QueueBase core, Slot* slot, const QueueUndo* undo) except -1:
    cdef uint8_t mask = FLAG_REMOVING | FLAG_EXPIRE_WHEN_UNLOCKED
    if slot.state != undo.state:
        core.positions.set_state(slot, undo.state)
    slot.owner = undo.owner
    slot.flags = (slot.flags & ~mask) | (undo.flags & mask)
    slot.abort_count = undo.abort_count
    if slot.deadline != undo.deadline:
        if slot.timer != NO_TIMER:
            core.ledger.wheel.stop(slot.timer)
            slot.timer = NO_TIMER
        slot.deadline = undo.deadline
        arm(core, slot)
    return 0


cdef Slot* put_back(PositionList positions, LedgerBase ledger, const RemovalUndo* undo, object packet) except NULL:
    """Puts a removed slot back into a list, with its fields as before the removal. The caller starts its timer and updates the accounts."""
    cdef Slot* slot = positions.insert(undo.slot.key, undo.slot.state)
    slot.content_id = undo.slot.content_id
    slot.arrived = undo.slot.arrived
    slot.size = undo.slot.size
    slot.deadline = undo.slot.deadline
    slot.owner = undo.slot.owner
    slot.ordinal = undo.slot.ordinal
    slot.abort_count = undo.slot.abort_count
    slot.move_count = undo.slot.move_count
    slot.message_class = undo.slot.message_class
    slot.flags = undo.slot.flags & ~FLAG_FETCHING
    slot.dead_letter = undo.slot.dead_letter
    slot.reason = undo.slot.reason
    slot.ack_flags = undo.slot.ack_flags
    slot.source = ledger.sources.intern(undo.source)
    if packet is not None:
        positions.set_body(slot, packet)
    return slot


cdef int _undo_removal(QueueBase core, const RemovalUndo* undo, object packet) except -1:
    cdef LedgerBase ledger = core.ledger
    cdef Slot* slot = put_back(core.positions, ledger, undo, packet)
    use_room(core, slot.size)
    if slot.flags & FLAG_COUNTED:
        core.bytes += slot.size
        core.messages += 1
        if not slot.flags & FLAG_RECOVERABLE:
            ledger.express_bytes += slot.size
            if ledger.express_bytes > ledger.express_mid:
                ledger.fill()
    if slot.flags & FLAG_CACHED:
        ledger.cached_bytes += slot.size
    arm(core, slot)
    note_passing(core, slot)
    core.removed_total = undo.head.total
    return 0


@cython.freelist(1024)
@cython.no_gc
cdef class Received:
    @property
    def arrived_time(self) -> int:
        """ArrivalTime, Unix seconds."""
        return self.arrived_us // 1000000

    @property
    def priority(self) -> int:
        """The effective priority, which determines the order in the queue."""
        return 7 - (self.lookup_id >> 56)


cdef class QueueBase(CommitListener):
    """The base of a queue: its fields and accounts, and how a message enters and leaves its position list. QueueCore (queue.pxd) completes
    it.
    """

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        return undo_in_queue(self, token, <const QueueUndo*>data, kept)

    cdef int _tell(self, int kind, const Slot* slot, bint lazy, int reason=REASON_NONE) except -1:
        cdef uint32_t caller = self.ledger.caller
        if kind == EVENT_MOVED:     # its `sequence_id` is the origin
            return self.ledger.event(kind, self.ordinal, self.outgoing, slot, lazy, reason, 0, caller)
        if kind != EVENT_RECEIVED and kind != EVENT_REMOVED and kind != EVENT_PURGED:
            caller = 0
        return self.ledger.event(kind, self.ordinal, self.outgoing, slot, lazy, reason, caller)

    cdef int _came(self, const Slot* slot, const UserMessage* m, const char* packet, const NumberedPosition* record) except -1:
        cdef uint64_t identifier = 0
        cdef uint32_t number = 0
        if record.position.version == POSITION_NUMBERED:
            identifier, number = record.sequence_id, record.sequence_number
        elif m.transaction_offset:
            memcpy(&identifier, packet + m.transaction_offset + SEQUENCE_OFFSET, sizeof(identifier))
            memcpy(&number, packet + m.transaction_offset + SEQUENCE_OFFSET + sizeof(identifier), sizeof(number))
        return self.ledger.event(
            EVENT_SENT if self.outgoing else EVENT_ARRIVED, self.ordinal, self.outgoing, slot, not slot.flags & FLAG_RECOVERABLE,
            REASON_NONE, identifier, number
        )

    cdef int _tell_of_abort(self, const Slot* slot) except -1:
        """Writes the feed event of an abort. The abort itself does not wait for the event, and takes place even if the event cannot be
        written. The events of many aborts may be in several commits.
        """
        cdef Writer writer = self.ledger.writer
        if not self.ledger.feed:
            return 0
        try:
            writer.begin_unit()
        except StoreError:
            return 0
        try:
            self._tell(EVENT_ABORTED_RETURN, slot, True)
        except StoreError:
            writer.roll_back()
            return 0
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
        return 0

    cdef bint has_room(self, uint64_t count, uint64_t size) noexcept:
        cdef LedgerBase ledger = self.ledger
        if self.gone or stopped(ledger) or ledger.sequence + count > ledger.sequence_limit:
            return False
        if size > ledger.quota_bytes or ledger.bytes > ledger.quota_bytes - size:
            return False
        return size <= self.quota_bytes and family_bytes(self) <= self.quota_bytes - size

    cdef uint64_t _arrival(self, uint64_t key) except 0:
        if key & SEQUENCE_MASK > self.purged_to:
            return key & SEQUENCE_MASK
        return self.ledger.next_sequence()

    cdef Slot* _place(self, uint64_t key, uint64_t content_id, uint64_t arrived, bytes packet, const UserMessage* m) except NULL:
        """Inserts a slot for a packet, pending if the packet must be stored, otherwise available. Counts its size in the quotas."""
        cdef bint transactional = m.transaction_offset != 0
        cdef bint recoverable = transactional or m.delivery == 1
        cdef uint32_t source = self.ledger.sources.intern(<const uint8_t*>PyBytes_AS_STRING(packet) + SOURCE_OFFSET)
        cdef Slot* slot = self.positions.insert(key, STATE_PENDING if recoverable else STATE_AVAILABLE)
        slot.content_id = content_id
        slot.arrived = arrived
        slot.size = <uint32_t>PyBytes_GET_SIZE(packet)
        slot.source = source
        slot.ordinal = m.message_id
        slot.message_class = m.message_class
        slot.flags = (FLAG_RECOVERABLE if recoverable else 0) | (FLAG_TRANSACTIONAL if transactional else 0)
        slot.ack_flags = final_ack_flags(
            self.role, transactional, source == self.ledger._own_source and not m.user_flags & USER_HTTP,
            ack_flags_of(m, PyBytes_AS_STRING(packet))
        )
        slot.deadline = NO_DEADLINE if self.timeless else deadline_of(
            m.sent_time, m.time_to_reach_queue, m.time_to_be_received, self.outgoing
        )
        self.positions.set_body(slot, packet)
        use_room(self, slot.size)
        if self.ledger.writer._depth:
            log_placed(self, key, UNDO_PLACED)
        arm(self, slot)
        note_passing(self, slot)
        return slot

    cdef int _count(self, Slot* slot) except -1:
        """Adds a message to TotalBytes, once (DA-023). From now on its packet can be dropped from memory if the store has it."""
        if slot.flags & FLAG_COUNTED:
            return 0
        slot.flags |= FLAG_COUNTED
        self.bytes += slot.size
        self.messages += 1
        if self.watched and slot.state == STATE_AVAILABLE:
            self._fresh.append(slot.key)
        if slot.flags & FLAG_RECOVERABLE and slot.body != NULL:
            if self.ledger.cached_bytes + slot.size > self.ledger.cache_limit and slot.state != STATE_LOCKED:
                self.positions.set_body(slot, None)
            else:
                slot.flags |= FLAG_CACHED
                self.ledger.cached_bytes += slot.size
        elif not slot.flags & FLAG_RECOVERABLE:
            self.ledger.express_bytes += slot.size
            if self.ledger.express_bytes > self.ledger.express_mid:
                self.ledger.fill()
        return 0

    cdef int mark(self) except -1:
        """Makes the next Ledger.serve() call `ready` of this queue, because a message has become available while a reader waits."""
        if not self._dirty:
            self._dirty = True
            self.ledger._dirty.append(self)
        return 0

    def nudge(self) -> None:
        """Makes the next Ledger.serve() call `ready` of this queue."""
        self.mark()

    # ---- removal

    cdef int _drop(self, Slot* slot) except -1:
        """Removes a slot from the position list and from all accounts. The caller counts the removal."""
        cdef LedgerBase ledger = self.ledger
        assert has_slot(self.positions, slot), "a slot pointer was used after a change of its list"
        log_removed(self, ledger, slot, self.removed_total)
        if slot.timer != NO_TIMER:
            ledger.wheel.stop(slot.timer)
        if slot.flags & FLAG_COUNTED:
            self.bytes -= slot.size
            self.messages -= 1
            if not slot.flags & FLAG_RECOVERABLE:
                ledger.empty(slot.size)
        if slot.flags & FLAG_CACHED:
            ledger.cached_bytes -= slot.size
        self.used_bytes -= slot.size
        ledger.bytes -= slot.size
        if self.parent is not None:
            self.parent.sub_bytes -= slot.size
        if self.sequence is not None:
            self._unnumber(slot)
        ledger.sources.release(slot.source)
        self.positions.remove(slot)
        return 0

    cdef bint passes(self, const uint8_t* source, uint32_t ordinal) except -1:
        cdef uint32_t number
        if not self._passing:
            return False
        number = self.ledger.sources.intern(source)
        self.ledger.sources.release(number)
        return (<uint64_t>number << 32 | ordinal) in self._passing

    cdef int _unnumber(self, Slot* slot) except -1:
        if not slot.flags & FLAG_TRANSACTIONAL:
            return 0
        if slot.source != self.ledger._own_source:
            self._passing.discard(<uint64_t>slot.source << 32 | slot.ordinal)
            return 0
        if slot.owner == OWNER_FINAL:
            self.sequence.count_final(-1)
        else:
            self.sequence.remove(slot.key)
        forget_final(self.ledger, slot.ordinal, self, slot.key)
        return 0

    # ---- delivery

    cdef Received _received(self, Slot* slot):
        cdef Received received = Received.__new__(Received)
        received.lookup_id = slot.key
        received.arrival_seq = slot.key & SEQUENCE_MASK
        received.content_id = slot.content_id
        received.arrived_us = slot.arrived
        received.abort_count = slot.abort_count
        received.move_count = slot.move_count
        received.reason = slot.reason
        received.dead_letter = slot.dead_letter
        received._purges = self._purges
        if slot.body != NULL:
            received.packet = <bytes>slot.body
        return received

    def _report_damage(self, uint64_t key, int status):
        if self.ledger.on_read_error is not None:
            self.ledger.on_read_error(self.ordinal, key, status)

    # ---- transactions

    cdef int reserve(self, const UserMessage* m, uint64_t size) except -1:
        cdef int refused = refusal(self, m, size, False)
        if not refused:
            self.reserve_again(size)
        return refused

    cdef void reserve_again(self, uint64_t size) noexcept:
        """Reserves quota for `size` bytes that was already granted once: does not check the limits."""
        self.used_bytes += size
        self.reserved_bytes += size
        self.ledger.bytes += size

    cdef void unreserve(self, uint64_t size) noexcept:
        self.used_bytes -= size
        self.reserved_bytes -= size
        self.ledger.bytes -= size

    cdef int put_counts(self, uint64_t key, uint32_t more) except -1:
        cdef Slot* slot = self.positions.find(key)
        cdef NumberedPosition record
        if slot == NULL or slot.state != (STATE_LOCKED if more else STATE_AVAILABLE) or not slot.flags & FLAG_RECOVERABLE:
            return 0
        stored_record(self, slot, &record)
        record.position.abort_count = min(slot.abort_count + more, <uint32_t>COUNT_LIMIT)
        record.position.flags &= ~(POSITION_PURGE_PENDING | POSITION_PREPARED)
        record.position.prepared_slot = 0
        self.ledger.writer.put_position(self.ordinal, slot.key, &record.position)
        return 0

    cdef int shed_body(self, uint64_t key) except -1:
        """Drops the packet of a locked message from memory, if the store has it."""
        cdef Slot* slot = self.positions.find(key)
        if slot != NULL and slot.state == STATE_LOCKED and slot.flags & FLAG_CACHED and slot.body != NULL:
            slot.flags &= ~FLAG_CACHED
            self.ledger.cached_bytes -= slot.size
            self.positions.set_body(slot, None)
        return 0

    cdef Slot* _put_slot(self, uint64_t key, const PositionRecord* record, int state) except NULL:
        """Inserts a slot with the fields of a stored record, without its packet, and starts its timer. The caller updates the accounts."""
        cdef uint32_t source = self.ledger.sources.intern(record.source)
        cdef Slot* slot = self.positions.insert(key, state)
        slot.source = source
        slot.content_id = record.content_id
        slot.arrived = record.arrived_us
        slot.size = record.content_bytes
        slot.ordinal = record.ordinal
        slot.message_class = record.message_class
        slot.abort_count = <uint16_t>min(record.abort_count, COUNT_LIMIT)
        slot.move_count = <uint16_t>min(record.move_count, COUNT_LIMIT)
        slot.flags = FLAG_RECOVERABLE | (FLAG_TRANSACTIONAL if record.flags & POSITION_TRANSACTIONAL else 0)
        slot.ack_flags = final_ack_flags(
            self.role, record.flags & POSITION_TRANSACTIONAL,
            source == self.ledger._own_source and not record.ack_flags & POSITION_FINAL, record.ack_flags
        )
        slot.reason = record.reason
        slot.dead_letter = record.dead_letter_queue
        slot.deadline = NO_DEADLINE if self.timeless or record.reason else deadline_of(
            record.sent_s, record.time_to_reach_queue, record.time_to_be_received, self.outgoing
        )
        arm(self, slot)
        note_passing(self, slot)
        return slot
