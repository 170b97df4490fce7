# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""How messages leave their queue; see removal.pxd."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from msmq_fast._native.batch cimport STATUS_OK, Callback, Writer, also, in_unit
from msmq_fast._native.effects cimport apply_side_effects, packet_of
from msmq_fast._native.framing cimport INFINITE
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    EVENT_ACKED,
    EVENT_EXPIRED,
    EVENT_NACKED,
    EVENT_PURGED,
    EVENT_RECEIVED,
    EVENT_REMOVED,
    EVERY_STATE,
    MDB_CORRUPTED,
    OWNER_FINAL,
    OWNER_NONE,
    OWNER_POISON,
    OWNER_PURGED,
    OWNER_TRANSFER,
    REASON_ARRIVED,
    REASON_NEGATIVE,
    REASON_RECEIVED,
    REASON_UNANSWERED,
    ROLE_NONE,
    ROLE_OUTGOING,
    LedgerBase,
    PendingDelete,
    flags_for,
    mark_side_effects,
    pending_delete_of,
    slot_of,
)
from msmq_fast._native.numbering cimport expect_final
from msmq_fast._native.outsequence cimport ANSWER_OVER, ENTRY_ORDERED, OutEntry
from msmq_fast._native.positions cimport (
    FLAG_CACHED,
    FLAG_COUNTED,
    FLAG_EXPIRE_WHEN_UNLOCKED,
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
    has_slot,
)
from msmq_fast._native.queuebase cimport (
    QueueBase,
    Received,
    RemovalUndo,
    arm,
    is_packet,
    log_changed,
    log_removed,
    note_latency,
    put_back,
    reason_of,
    stored_record,
)
from msmq_fast._native.record cimport (
    POSITION_FINAL,
    POSITION_JOURNAL_NEGATIVE,
    POSITION_JOURNAL_POSITIVE,
    POSITION_ORDERED,
    NumberedPosition,
)

from msmq_fast._native.tables import StoreError

cdef enum:
    DEFERRED_DELETE_COUNT = 256 # packets read at a time for what follows from removals
    DEFERRED_DELETE_BYTES = 8 << 20


cdef bint undo_side_effects(list side_effects) except -1:
    """Undoes the side effects of a removal, with the current unit. Returns False if an acknowledgment has already been sent."""
    cdef QueueRemoval core
    cdef Slot* slot
    cdef bint everything = True
    for core, key in side_effects:
        slot = core.positions.find(<uint64_t>key)
        if slot != NULL and slot.state == STATE_AVAILABLE:
            core._erase(slot, EVENT_REMOVED)
        elif core.role != ROLE_NONE:
            everything = False
    return everything


cdef int retire(QueueRemoval core, uint64_t key) except -1:
    """Removes a message that its receiver has confirmed from the outgoing queue, or keeps it until the FinalAck that its sender requested
    arrives (DU-14). Call within a unit.
    """
    cdef Slot* slot = core.positions.find(key)
    assert in_unit(core.ledger.writer), "call inside a unit"
    if slot == NULL:
        core.sequence.remove(key)
        return 0
    if slot.flags & FLAG_REMOVING:
        return 0    # its removal is already in progress; `_return` calls this again if that fails
    if slot.ack_flags & (POSITION_JOURNAL_NEGATIVE if core.srmp else POSITION_JOURNAL_POSITIVE | POSITION_JOURNAL_NEGATIVE | POSITION_FINAL):
        return await_final(core, slot)
    if core.srmp and slot.ack_flags & POSITION_JOURNAL_POSITIVE:
        return finish_outgoing(core, key, REASON_ARRIVED)     # no acknowledgment will report its outcome (MC-MQSRM 3.1.1.3.3)
    return core._take_out(slot, EVENT_ACKED)


cdef int retire_one(QueueRemoval core, uint64_t key) except -1:
    core.ledger.writer.begin_unit()
    try:
        retire(core, key)
        core.ledger.removals.watch()
    except BaseException:
        core.ledger.writer.roll_back()
        raise
    core.ledger.writer.keep_unit()
    return 0


cdef int retire_all(QueueRemoval core, uint64_t[::1] keys) except -1:
    cdef Py_ssize_t index
    core.ledger.writer.begin_unit()
    try:
        for index in range(keys.shape[0]):
            retire(core, keys[index])
        core.ledger.removals.watch()
    except BaseException:
        core.ledger.writer.roll_back()
        raise
    core.ledger.writer.keep_unit()
    return 0


cdef int await_final(QueueRemoval core, Slot* slot) except -1:
    """Stores that the receiver has the message, so that it is never sent again, and keeps it for its FinalAck."""
    cdef NumberedPosition record
    stored_record(core, slot, &record)
    record.position.flags |= POSITION_ORDERED
    if core.sequence.alias and record.sequence_id == core.sequence.identifier:
        record.sequence_id = core.sequence.alias
        record.sequence_number -= core.sequence.base
    for waiting in core.ledger._finals.get(slot.ordinal, ()):
        if waiting[0] is core and waiting[1] == slot.key:   # its sequence has ended, and so has any renamed identifier
            record.sequence_id, record.sequence_number = waiting[2], waiting[3]
    core.ledger.writer.put_position(core.ordinal, slot.key, &record.position)
    log_changed(core, slot)
    core.sequence.remove(slot.key)
    if slot.state != STATE_LOCKED:
        core.positions.set_state(slot, STATE_LOCKED)
    slot.flags &= ~FLAG_EXPIRE_WHEN_UNLOCKED
    hold_for_final(core, slot, &record)
    return core.shed_body(slot.key)


cdef int hold_for_final(QueueRemoval core, Slot* slot, const NumberedPosition* record) except -1:
    """Keeps a message locked until its FinalAck arrives, or can no longer arrive (AMB-35)."""
    cdef LedgerBase ledger = core.ledger
    cdef uint64_t end = <uint64_t>record.position.sent_s + record.position.time_to_be_received + ledger.final_grace
    slot.owner = OWNER_FINAL
    if slot.timer != NO_TIMER:
        ledger.wheel.stop(slot.timer)
        slot.timer = NO_TIMER
    slot.deadline = NO_DEADLINE
    if record.position.time_to_be_received != INFINITE and end < NO_DEADLINE:
        slot.deadline = <uint32_t>end
    arm(core, slot)
    core.sequence.count_final(1)
    return expect_final(core, slot.ordinal, slot.key, record.sequence_id, record.sequence_number)


cdef int finish_outgoing(QueueRemoval core, uint64_t key, int reason) except -1:
    """Removes a sent message from its outgoing queue, because its outcome is known or can no longer become known. `reason` is the
    MessageClass of the outcome (DU-15).
    """
    cdef LedgerBase ledger = core.ledger
    cdef Slot* slot = core.positions.find(key)
    cdef Slot left
    cdef bytes packet
    cdef bint moved = False
    cdef bint negative = reason & REASON_NEGATIVE != 0
    if slot == NULL or slot.flags & FLAG_REMOVING:
        return 0
    left = slot[0]
    # The receiver sends acknowledgments; the only side effect here is the sender's own copy.
    left.ack_flags &= POSITION_JOURNAL_NEGATIVE if negative else POSITION_JOURNAL_POSITIVE
    if not negative:
        reason = REASON_ARRIVED
    if left.ack_flags:
        packet = packet_of(core, slot)
        if packet is None:
            return 0
    ledger.writer.begin_unit()
    try:
        if left.ack_flags:
            moved = apply_side_effects(ledger, core.ordinal, ROLE_OUTGOING, None, &left, packet, reason)
            slot = core.positions.find(key)
        if left.flags & FLAG_RECOVERABLE:
            ledger._delete_stored(core.ordinal, ROLE_OUTGOING, &left, EVENT_NACKED if negative else EVENT_ACKED, reason, moved)
        if ledger.feed:
            core._tell(EVENT_NACKED if negative else EVENT_ACKED, slot, not left.flags & FLAG_RECOVERABLE, reason)
        core._drop(slot)
        core.removed_total += 1
        ledger.removals.watch()
    except BaseException:
        ledger.writer.roll_back()
        raise
    ledger.writer.keep_unit()
    return 0


cdef class QueueRemoval(QueueBase):
    """The part of a queue that removes messages."""

    cdef int _erase(self, Slot* slot, int event) except -1:
        """Message Position Deleted: removes a message from the list, and from the store with the current batch."""
        cdef LedgerBase ledger = self.ledger
        if not slot.flags & FLAG_RECOVERABLE and not slot.ack_flags and self.journal is None:
            return self._take_out(slot, event)  # no side effects, and nothing is stored
        ledger.writer.begin_unit()
        try:
            self._take_out(slot, event)
            ledger.removals.watch()
        except BaseException:
            ledger.writer.roll_back()
            raise
        ledger.writer.keep_unit()
        return 0

    cdef int _take_out(self, Slot* slot, int event, bytes packet=None) except -1:
        """Like `_erase`, but inside the caller's unit, which must call `removals.watch()`. Returns 1 if the message stays because its
        packet cannot be read (`packet_of`), else 0. Without `packet`, it can be read and deleted after the unit (`_postpone`)."""
        cdef LedgerBase ledger = self.ledger
        cdef bint recoverable = slot.flags & FLAG_RECOVERABLE, moved = False
        cdef uint64_t key = slot.key
        cdef int reason = reason_of(self, event)
        assert has_slot(self.positions, slot), "a slot pointer was used after a change of its list"
        if slot.ack_flags or self.journal is not None:
            if slot.ack_flags & flags_for(self.role, reason) or (self.journal is not None and reason == REASON_RECEIVED):
                if packet is None:
                    if slot.body == NULL and reason & REASON_NEGATIVE:
                        return self._postpone(slot, event, reason)
                    packet = packet_of(self, slot)  # read now: a reader learns of the removal when this unit is durable
                    if packet is None:
                        return 1
                moved = apply_side_effects(ledger, self.ordinal, self.role, self.journal, slot, packet, reason)
                slot = self.positions.find(key)
        note_latency(self, slot, reason)
        if recoverable:
            ledger._delete_stored(self.ordinal, self.role, slot, event, reason, moved)
        if ledger.feed and event:
            self._tell(event, slot, not recoverable, reason)
        self._drop(slot)
        self.removed_total += 1
        return 0

    cdef int _postpone(self, Slot* slot, int event, int reason) except -1:
        """Removes a message from the list only. Later, reap() reads the packet for the side effects, and deletes the stored message."""
        cdef PendingDelete entry
        pending_delete_of(&entry, self.ordinal, self.role, slot, event, reason)
        mark_side_effects(&entry, self.role, slot, reason)
        self.ledger.sources.retain(slot.source)
        self.ledger.defer_delete(&entry)
        self._drop(slot)
        self.removed_total += 1
        return 0

    cdef bint forget(self, uint64_t key, bytes packet, int reason) except -1:
        """Deletes a message from the store (Message Position Deleted), and applies the side effects (X-60, X-67). Returns True if the
        stored content now belongs to another queue.
        """
        cdef LedgerBase ledger = self.ledger
        cdef Slot* slot = self.positions.find(key)
        cdef bint moved = False
        assert in_unit(self.ledger.writer), "call inside a unit"
        ledger.writer.delete_position(self.ordinal, key)
        if self._has_side_effects(slot, reason):
            moved = apply_side_effects(ledger, self.ordinal, self.role, self.journal, slot, packet, reason)
            slot = self.positions.find(key)
        note_latency(self, slot, reason)
        if not moved:
            ledger.writer.delete_content(slot.content_id, slot.size)
        if ledger.feed:
            self._tell(EVENT_RECEIVED if reason == REASON_RECEIVED else EVENT_REMOVED, slot, False, reason)
        return moved

    cdef bint _has_side_effects(self, const Slot* slot, int reason) noexcept:
        return (self.journal is not None and reason == REASON_RECEIVED) or slot.ack_flags & flags_for(self.role, reason) != 0

    cdef int _leave(self, Slot* slot, Received received) except -1:
        cdef list side_effects = []
        self.ledger._side_effects = side_effects
        try:
            if not slot.flags & FLAG_RECOVERABLE:
                self._erase(slot, EVENT_RECEIVED)
            elif self.forget(slot.key, received.packet, REASON_RECEIVED):
                received.content_id = 0
        finally:
            self.ledger._side_effects = None
        if side_effects:
            received._side_effects = side_effects
        return 0

    cdef int _let_purged_go(self, Slot* slot) except -1:
        cdef uint64_t key = slot.key
        try:
            return self._erase(slot, EVENT_PURGED)
        except Exception:
            slot = self.positions.find(key)
            if slot == NULL or not slot.flags & FLAG_RECOVERABLE or self.ledger.writer.failed:
                raise
            return self._postpone(slot, EVENT_PURGED, reason_of(self, EVENT_PURGED))

    cdef int _return(self, Slot* slot) except -1:
        """Puts a received message, whose removal failed, back at its old place and makes it available again. Purges it instead if the queue
        was purged or deleted meanwhile.
        """
        slot.flags &= ~FLAG_REMOVING
        if self.gone or slot.owner == OWNER_PURGED:
            return self._erase(slot, EVENT_PURGED)
        return self._back(slot)

    cdef int _back(self, Slot* slot) except -1:
        """Changes a message from LOCKED to AVAILABLE, or removes it if an OrderAck has covered it meanwhile."""
        if self.sequence is not None and self.sequence.returned(slot.key) == ANSWER_OVER:
            return retire_one(self, slot.key)
        return self._available(slot)

    cdef int _available(self, Slot* slot) except -1:
        """Changes a message from PENDING or LOCKED to AVAILABLE, or removes it if it expired meanwhile (ST-1)."""
        cdef LedgerBase ledger = self.ledger
        assert has_slot(self.positions, slot), "a slot pointer was used after a change of its list"
        self._count(slot)
        slot.owner = OWNER_NONE
        self.positions.set_state(slot, STATE_AVAILABLE)
        if self.watched:
            self._fresh.append(slot.key)
        if slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED or slot.deadline <= self.ledger.now_s:
            self._expire(slot)
        return 0

    cdef int _expire(self, Slot* slot) except -1:
        """Removes a message whose TimeToBeReceived or TimeToReachQueue has passed; if it is locked, marks it to expire when it is unlocked
        (DM-213, ST-1).
        """
        if slot.state == STATE_AVAILABLE:
            self._erase(slot, EVENT_EXPIRED)
            self.expired_total += 1
            return 0
        if slot.state == STATE_LOCKED and slot.owner == OWNER_FINAL:
            return finish_outgoing(self, slot.key, REASON_UNANSWERED)
        if slot.state == STATE_LOCKED and slot.owner & <uint32_t>OWNER_TRANSFER:
            return self._late(slot)
        slot.flags |= FLAG_EXPIRE_WHEN_UNLOCKED
        return 0

    cdef int _late(self, Slot* slot) except -1:
        """Removes a transmitted message that has expired, without waiting for its acknowledgment (AMB-39). A message that an OrderAck
        covers stays.

        The session ignores acknowledgments that still arrive.
        """
        cdef OutEntry* entry = NULL
        if self.sequence is not None and slot.flags & FLAG_TRANSACTIONAL:
            entry = self.sequence.find(slot.key)
        if entry != NULL and entry.flags & ENTRY_ORDERED:
            return 0    # it has arrived: it leaves with the acknowledgment of its session
        self.expired_total += 1
        return self._erase(slot, EVENT_EXPIRED)

    cdef size_t remove_keys(self, const uint64_t* keys, size_t count, uint32_t owner, int event) except? 0:
        cdef size_t number, removed = 0
        cdef Slot* slot = NULL
        cdef bint purged
        self.ledger.writer.begin_unit()
        try:
            for number in range(count):
                slot = self.positions.find(keys[number])
                if slot == NULL or slot.owner != owner or (slot.state != STATE_LOCKED and slot.state != STATE_PURGE_PENDING):
                    continue
                # DM-124: a message that was purged while a reader held it counts as purged, whatever the reader reports.
                purged = event == EVENT_RECEIVED and slot.state == STATE_PURGE_PENDING
                if self._take_out(slot, EVENT_PURGED if purged else event) == 0:
                    removed += 1
            self.ledger.removals.watch()
        except BaseException:
            self.ledger.writer.roll_back()
            raise
        self.ledger.writer.keep_unit()
        return removed

    def remove(self, uint64_t key, uint32_t owner=OWNER_NONE) -> bool:
        """Remove the message `key` if it is available, or locked by `owner`. Returns whether it was removed."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.state == STATE_PENDING or slot.owner != owner:
            return False
        self._erase(slot, EVENT_REMOVED)
        return True

    cdef bint commit_dequeue(self, Slot* slot, int reason) except -1:
        cdef bytes packet = None
        assert in_unit(self.ledger.writer), "call inside a unit"
        log_changed(self, slot)
        slot.flags |= FLAG_REMOVING
        if not slot.flags & FLAG_RECOVERABLE:
            return False
        if slot.body != NULL:
            packet = <bytes>slot.body
        elif self._has_side_effects(slot, reason):
            try:
                packet = self.ledger.tables.read_content(slot.content_id, slot.size)
            except StoreError as error:
                self._report_damage(slot.key, error.status)
                raise
        self.forget(slot.key, packet, reason)
        return True

    cdef int drop_locked(self, uint64_t key, int status) except -1:
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or not slot.flags & FLAG_REMOVING:
            return 0
        slot.flags &= ~FLAG_REMOVING
        if status != STATUS_OK:
            return self.abort_dequeue(slot)
        if not slot.flags & FLAG_RECOVERABLE:
            return self._erase(slot, EVENT_RECEIVED)
        self.removed_total += 1
        return self._drop(slot)

    cdef int abort_dequeue(self, Slot* slot) except -1:
        if slot.state == STATE_PURGE_PENDING or slot.owner == OWNER_PURGED or self.gone:
            return self._let_purged_go(slot)
        if slot.abort_count < COUNT_LIMIT:
            slot.abort_count += 1
        self._tell_of_abort(slot)
        if self.poison_after and slot.abort_count >= self.poison_after and not slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED:
            # It is moved before a reader sees it again.
            slot.owner = OWNER_POISON
            self._poisoned.append(slot.key)
            return self.mark()
        self._back(slot)
        if self.interested:
            self.mark()
        return 0


cdef class Drain:
    cdef size_t run(self, size_t limit) except? 0:
        """Deletes up to `limit` messages of the drained list, inside a unit. Returns how many it deleted."""
        cdef LedgerBase ledger = self._ledger
        cdef PositionList positions = self._positions
        cdef size_t count = 0
        cdef Slot* slot = NULL
        cdef PendingDelete entry
        cdef bint recoverable, moved
        while count < limit:
            slot = positions.following(0, EVERY_STATE)
            if slot == NULL:
                break
            count += 1
            # The slot drops its timer and body before anything can raise, so that the next run finds the same slot again.
            if slot.timer != NO_TIMER:
                ledger.wheel.stop(slot.timer)
                slot.timer = NO_TIMER
            if slot.flags & FLAG_CACHED:
                slot.flags &= ~FLAG_CACHED
                ledger.cached_bytes -= slot.size
            recoverable = slot.flags & FLAG_RECOVERABLE
            if slot.flags & FLAG_COUNTED:
                slot.flags &= ~FLAG_COUNTED
                if not recoverable:
                    ledger.empty(slot.size)
            moved = False
            if slot.ack_flags & flags_for(self._role, self._reason):
                if slot.body == NULL:
                    pending_delete_of(&entry, self._queue, self._role, slot, EVENT_PURGED, self._reason)
                    ledger.defer_delete(&entry)
                    log_removed(self, ledger, slot, 0)
                    positions.remove(slot)
                    continue
                # The acknowledgment cannot enter this list: the queue has another list by now.
                moved = apply_side_effects(ledger, self._queue, self._role, None, slot, <bytes>slot.body, self._reason)
            if recoverable:
                ledger._delete_stored(self._queue, self._role, slot, EVENT_PURGED, self._reason, moved)
            if ledger.feed:
                ledger.event(EVENT_PURGED, self._queue, self._outgoing, slot, not recoverable, self._reason)
            log_removed(self, ledger, slot, 0)
            ledger.sources.release(slot.source)
            positions.remove(slot)
        return count

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        put_back(self._positions, self._ledger, <const RemovalUndo*>data, kept).timer = NO_TIMER
        return 0


cdef class DeferredDelete:
    """A batch of pending deletes with side effects: reads the packets of the messages, then deletes all of them in one unit."""
    def __dealloc__(self):
        free(self._entries)

    cdef bint add(self, const PendingDelete* entry) except -1:
        """Adds a message to the batch. Returns False, without adding it, if the batch already has as many packets as are read at a time."""
        if self._entries == NULL:
            self._entries = <PendingDelete*>realloc(NULL, DEFERRED_DELETE_COUNT * sizeof(PendingDelete))
            if self._entries == NULL:
                raise MemoryError("no memory for removals")
        if self._count == DEFERRED_DELETE_COUNT or (self._count and self._bytes + entry.size > DEFERRED_DELETE_BYTES):
            return False
        self._entries[self._count] = entry[0]
        self._count += 1
        self._bytes += entry.size
        return True

    cdef int start(self, object sink) except -1:
        cdef size_t number
        self._sink = sink
        self._left = self._count
        self._packets = [None] * self._count
        for number in range(self._count):
            self._ledger.reader.fetch(self._entries[number].content_id, self._entries[number].size, self, number)
        return 0

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        cdef PendingDelete* entry = &self._entries[token]
        if status == STATUS_OK and is_packet(<bytes>body):
            self._packets[token] = body
        elif self._ledger.on_read_error is not None:
            self._ledger.on_read_error(entry.queue, entry.key, status if status != STATUS_OK else MDB_CORRUPTED)
        self._left -= 1
        if self._left == 0:
            self._remove()
        return 0

    cdef int _remove(self) except -1:
        """Deletes all messages of the batch in one unit. If the side effects of a message cannot be applied, it is deleted without them,
        and the exception is raised at the end.
        """
        cdef LedgerBase ledger = self._ledger
        cdef Writer writer = ledger.writer
        cdef object fault = None
        cdef size_t number
        if writer.failed:
            return 0
        ledger._deleting = 0
        writer.begin_unit()
        try:
            for number in range(self._count):
                try:
                    self._remove_one(number, True)
                except Exception as error:
                    fault = also(fault, error)
                    self._remove_one(number, False)
            ledger.removals.watch()
            writer.notify(Callback(ledger._reap_ended(self._sink)), 0)
        except BaseException:
            writer.roll_back()
            ledger.reaping = False
            for number in range(self._count):
                ledger.defer_delete(&self._entries[number])     # for the next reap
            raise
        writer.keep_unit()
        ledger._reaped = self._count
        for number in range(self._count):
            ledger.sources.release(self._entries[number].source)
        if fault is not None:
            raise fault
        return 0

    cdef int _remove_one(self, size_t number, bint has_side_effects) except -1:
        cdef LedgerBase ledger = self._ledger
        cdef PendingDelete* entry = &self._entries[number]
        cdef QueueRemoval core = ledger._cores.get(entry.queue)
        cdef Slot slot
        cdef bint moved = False
        packet = self._packets[number]
        slot_of(&slot, entry)
        ledger.writer.begin_unit()
        try:
            if has_side_effects and packet is not None:
                moved = apply_side_effects(
                    ledger, entry.queue, entry.role, core.journal if core is not None else None, &slot, packet, entry.reason
                )
            ledger._delete_stored(entry.queue, entry.role, &slot, entry.event, entry.reason, moved)
            if ledger.feed and entry.event:
                ledger.event(entry.event, entry.queue, entry.role == ROLE_OUTGOING, &slot, False, entry.reason)
        except BaseException:
            ledger.writer.roll_back()
            raise
        ledger.writer.keep_unit()
        return 0
