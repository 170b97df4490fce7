# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rebuilds the position lists from the store at start."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memset
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    EVENT_PURGED,
    REASON_DELETED,
    ROLE_DESTINATION,
    ROLE_NONE,
    PendingDelete,
    flags_for,
    failure,
)
from msmq_fast._native.positions cimport BANDS, STATE_AVAILABLE, STATE_LOCKED, STATE_PURGE_PENDING, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport final_ack_flags, reason_of, use_room
from msmq_fast._native.record cimport (
    POSITION_FINAL,
    POSITION_NUMBERED,
    POSITION_ORDERED,
    POSITION_PURGE_PENDING,
    POSITION_RECOVERABLE,
    POSITION_TRANSACTIONAL,
    SEQUENCE_MASK,
    NumberedPosition,
    PositionRecord,
)
from msmq_fast._native.removal cimport hold_for_final
from msmq_fast._native.tables cimport Tables

cdef enum:
    MAX_PACKET = 1 << 26        # no stored packet is greater; a record that says so is damaged


cdef int restore_numbered(QueueCore core, Slot* slot, const NumberedPosition* record) except -1:
    """Restores a stored message that has a sequence number in an outgoing queue."""
    if record.position.flags & POSITION_ORDERED:
        core.positions.set_state(slot, STATE_LOCKED)
        return hold_for_final(core, slot, record)
    core.sequence.restore(slot.key, slot.ordinal, record.sequence_id, record.sequence_number)
    return 0


cdef int restore(QueueCore core, uint64_t key, const PositionRecord* record) except -1:
    """Restores a stored position at start, as available; its packet stays on disk."""
    cdef Slot* slot = core._put_slot(key, record, STATE_AVAILABLE)
    use_room(core, slot.size)
    core._count(slot)
    if core.sequence is not None and record.version == POSITION_NUMBERED:
        restore_numbered(core, slot, <const NumberedPosition*>record)
    return 0


cdef class Loader:
    """``Loader(ledger, purges, deleting=(), silent=())``: loads all stored positions. `purges` maps queue ordinals to the arrival sequence
    up to which the queue was purged.

    Positions of the queues in `deleting` become pending deletes, without side effects if they are also in `silent`. Positions of queues
    that do not exist stay in the store and are counted in `orphans`. Damaged records also stay; their keys are in `damaged`. Messages in
    `held`, pairs of queue ordinal and LookupIdentifier, are locked by prepared transactions; if such a message was purged, it is deleted
    when its transaction ends.
    """

    def __init__(self, Ledger ledger, dict purges, deleting=(), silent=(), held=()):
        cdef QueueCore core
        for ordinal, purged_to in purges.items():
            core = ledger._cores.get(ordinal)
            if core is not None:
                core.purged_to = purged_to
        self._ledger = ledger
        self._purges = purges
        self._deleting = frozenset(deleting)
        self._silent = frozenset(silent)
        self._held = frozenset(held)
        self.orphans = {}
        self.damaged = []

    def run(self, Tables tables not None) -> int:
        """Loads every stored position. Returns the number of positions."""
        return tables.load_positions(self)

    cdef int _mark_side_effects(self, PendingDelete* entry, const PositionRecord* record) except -1:
        """Notes in `entry` the side effects of removing a message that is still stored because the purge or deletion of its queue was not
        completed.
        """
        cdef uint8_t role = ROLE_DESTINATION
        cdef int reason = REASON_DELETED
        cdef uint8_t ack_flags
        if self._core is not None:
            role = self._core.role
            reason = reason_of(self._core, EVENT_PURGED)
        elif self._queue in self._silent:
            role = ROLE_NONE
        entry.role = role
        entry.reason = failure(reason)
        entry.abort_count = <uint16_t>min(record.abort_count, COUNT_LIMIT)
        entry.move_count = <uint16_t>min(record.move_count, COUNT_LIMIT)
        entry.dead_letter = record.dead_letter_queue
        ack_flags = final_ack_flags(
            role, record.flags & POSITION_TRANSACTIONAL,
            entry.source == self._ledger._own_source and not record.ack_flags & POSITION_FINAL, record.ack_flags
        )
        if ack_flags & flags_for(role, reason):
            entry.has_side_effects = True
            entry.ack_flags = ack_flags
        return 0

    def damage(self, bytes key, str problem) -> None:
        """Skips a record that cannot be a position."""
        self.damaged.append(key)

    cdef int begin_queue(self, uint32_t queue) except -1:
        self._queue = queue
        self._core = self._ledger._cores.get(queue)
        self._purged = self._purges.get(queue, 0)
        return 0

    cdef int position(self, uint64_t lookup_id, const PositionRecord* record) except -1:
        cdef uint64_t sequence = lookup_id & SEQUENCE_MASK
        cdef PendingDelete entry
        if (
            lookup_id >> 56 >= BANDS or sequence == 0 or sequence >> 55 or record.arrival_seq >> 55
            or record.content_bytes > MAX_PACKET or not record.flags & POSITION_RECOVERABLE
        ):
            self.damage(self._queue.to_bytes(4, "big") + lookup_id.to_bytes(8, "big"), "")
            return 0
        self.highest_sequence = max(self.highest_sequence, sequence, record.arrival_seq)
        if self._core is None and self._queue not in self._deleting:
            self.orphans[self._queue] = self.orphans.get(self._queue, 0) + 1
            return 0
        if (
            self._held and self._core is not None and record.arrival_seq <= self._purged
            and (self._queue, lookup_id) in self._held
        ):
            restore(self._core, lookup_id, record)
            self._core.positions.set_state(self._core.positions.find(lookup_id), STATE_PURGE_PENDING)
            return 0
        if self._core is None or (
            (record.flags & POSITION_PURGE_PENDING or record.arrival_seq <= self._purged) and not record.flags & POSITION_ORDERED
        ):
            memset(&entry, 0, sizeof(entry))
            entry.key = lookup_id
            entry.content_id = record.content_id
            entry.queue = self._queue
            entry.size = record.content_bytes
            entry.source = self._ledger.sources.intern(record.source)
            entry.ordinal = record.ordinal
            entry.message_class = record.message_class
            entry.event = EVENT_PURGED
            self._mark_side_effects(&entry, record)
            self._ledger.defer_delete(&entry)
            return 0
        return restore(self._core, lookup_id, record)
