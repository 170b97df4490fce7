# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The messages of one queue: arrival, commits, purge.

MS-MQDMPR 3.1.7.1.9 (Enqueue Message), 3.1.7.1.10 (Dequeue Message), 3.1.7.1.7 (Purge Queue), 3.1.6.12 (TTBR), states of ST-1 in the
inventory. Nothing here knows about names, sessions or clients. Everything runs on the event loop.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport STATUS_OK, Callback, CommitListener, Writer, in_unit
from msmq_fast._native.effects cimport arrived
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage, parse_user_message
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport (
    ENQUEUED,
    ENQUEUED_PENDING,
    EVENT_ARRIVED,
    EVENT_PURGED,
    EVENT_SENT,
    EVERY_STATE,
    MACHINE_QUOTA,
    OWNER_DAMAGED,
    OWNER_FINAL,
    OWNER_LEASE,
    OWNER_PURGED,
    OWNER_RETURNED,
    OWNER_STORE,
    REASON_ARRIVED,
    REASON_NONE,
    UNDO_COMMITTED,
    LedgerBase,
    flags_for,
    sequence_left,
)
from msmq_fast._native.numbering cimport is_terminal_ack, number, number_left
from msmq_fast._native.outsequence cimport OutSequence
from msmq_fast._native.positions cimport (
    FLAG_COUNTED,
    FLAG_REMOVING,
    STATE_LOCKED,
    STATE_PENDING,
    STATE_PURGE_PENDING,
    PositionList,
    Slot,
)
from msmq_fast._native.queuebase cimport (
    ack_flags_of,
    describe,
    effective_priority,
    forget_final,
    log_placed,
    note_out_of_order,
    note_passing,
    reason_of,
    refusal,
)
from msmq_fast._native.reading cimport BodyFetcher, QueueReading
from msmq_fast._native.record cimport HistoryEntry, NumberedPosition, PositionRecord
from msmq_fast._native.removal cimport Drain
from msmq_fast._native.tablenumbers cimport TABLE_HISTORY

TAKEN = (<int>ENQUEUED, <int>ENQUEUED_PENDING)  # plain numbers: `in` finds them by identity


cdef inline bint is_stored(const UserMessage* m) noexcept nogil:
    """Whether the store keeps a message: recoverable messages, of which transactional ones are a kind."""
    return m.delivery == 1 or m.transaction_offset != 0


cdef int keep_identity(LedgerBase ledger, const UserMessage* m, bytes packet, uint64_t fingerprint, bint lazy) except -1:
    """Adds a message to the stored duplicate history. `lazy`: this does not by itself cause a commit."""
    cdef HistoryEntry entry
    entry.fingerprint = fingerprint
    memcpy(entry.source, PyBytes_AS_STRING(packet) + SOURCE_OFFSET, 16)
    entry.ordinal = m.message_id
    entry.time_s = ledger.now_s
    ledger.writer.append_entry(TABLE_HISTORY, <const uint8_t*>&entry, sizeof(entry), lazy)
    return 0


cdef class QueueCore(QueueReading):
    """``QueueCore(ledger, ordinal, quota_bytes, outgoing=False, parent=None, ready=None)``: registers itself with the ledger."""

    def __init__(self, Ledger ledger, uint32_t ordinal, uint64_t quota_bytes=0xFFFFFFFFFFFFFFFF, bint outgoing=False,
                 QueueCore parent=None, ready=None):
        cdef BodyFetcher fetcher = BodyFetcher()
        if ordinal in ledger._cores:
            raise ValueError("another queue already has this ordinal")
        self.ledger = ledger
        self.ordinal = ordinal
        self.quota_bytes = quota_bytes
        self.outgoing = outgoing
        self.sequence = OutSequence(ledger.writer.undo) if outgoing else None
        self._passing = set() if outgoing else None
        self.parent = parent
        self.ready = ready
        self._fresh = []
        self._poisoned = []
        self.positions = PositionList()
        fetcher._core = self
        self._fetcher = fetcher
        ledger._cores[ordinal] = self

    # ---- arrival

    cdef int enqueue(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                     uint64_t fingerprint) except -1:
        return self.enqueue_with(packet, m, origin, token, fingerprint, 0)

    cdef int enqueue_with(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                          uint32_t dead_letter) except -1:
        cdef int refused = self._refused(packet, m)
        if refused:
            return refused
        if is_stored(m) or ack_flags_of(m, PyBytes_AS_STRING(packet)):
            return self._enqueue_in_unit(packet, m, origin, token, fingerprint, dead_letter)
        # Most messages take this path, without a unit, since beginning and ending one would cost as much as the rest.
        self._enter_express(packet, m, fingerprint, dead_letter)
        return ENQUEUED

    cdef int enqueue_within(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                            uint64_t fingerprint) except -1:
        cdef int refused = self._refused(packet, m)
        assert in_unit(self.ledger.writer), "call inside a unit"
        if refused:
            return refused
        return self._enter_in_unit(packet, m, origin, token, fingerprint, 0)

    cdef inline int _refused(self, bytes packet, const UserMessage* m) except -1:
        """Returns why a message cannot be accepted, otherwise ENQUEUED."""
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef int refused = refusal(self, m, PyBytes_GET_SIZE(packet), is_terminal_ack(self, m, data))
        if refused:
            return refused
        return ENQUEUED if sequence_left(self.ledger) and number_left(self, m, data) else MACHINE_QUOTA

    cdef int _enqueue_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                              uint32_t dead_letter) except -1:
        """Does the work of `enqueue_with`, in a unit, for a message that must be stored or whose arrival has side effects."""
        cdef Writer writer = self.ledger.writer
        cdef int result
        writer.begin_unit()
        try:
            result = self._enter_in_unit(packet, m, origin, token, fingerprint, dead_letter)
        except BaseException:
            # The caller learns that it was not accepted, so it must not be in the queue.
            writer.roll_back()
            raise
        writer.keep_unit()
        return result

    cdef inline int _enter_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                                   uint32_t dead_letter) except -1:
        """Adds an accepted message, with the side effects of its arrival. Returns ENQUEUED or ENQUEUED_PENDING."""
        cdef Slot* slot
        if is_stored(m):
            self._enter_stored(packet, m, origin, token, fingerprint, dead_letter)
            return ENQUEUED_PENDING
        slot = self._enter_express(packet, m, fingerprint, dead_letter)
        if slot.ack_flags:
            arrived(self, slot, packet)
        return ENQUEUED

    cdef inline Slot* _enter(self, bytes packet, const UserMessage* m, uint32_t dead_letter) except NULL:
        """Puts an accepted message into the position list, with the next SequentialID."""
        cdef uint64_t sequence = self.ledger.next_sequence()
        cdef Slot* slot = self._place(
            <uint64_t>(7 - effective_priority(m)) << 56 | sequence, sequence, self.ledger.now_us, packet, m
        )
        slot.dead_letter = dead_letter
        self._entered = slot.key
        self.arrived_total += 1
        if self.ledger._side_effects is not None:
            self.ledger._side_effects.append((self, slot.key))
        return slot

    cdef inline Slot* _enter_express(self, bytes packet, const UserMessage* m, uint64_t fingerprint, uint32_t dead_letter) except NULL:
        """Adds an express message to the position list as available. Call inside a unit if its arrival has side effects."""
        cdef Slot* slot = self._enter(packet, m, dead_letter)
        if fingerprint:
            keep_identity(self.ledger, m, packet, fingerprint, True)
        if self.ledger.feed:
            self.ledger.event(EVENT_SENT if self.outgoing else EVENT_ARRIVED, self.ordinal, self.outgoing, slot, True)
        self._count(slot)
        if self.interested:
            self.mark()
        return slot

    cdef int _enter_stored(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                           uint32_t dead_letter) except -1:
        """Adds a recoverable message to the position list. Call inside a unit; the message becomes available when the unit is durable."""
        cdef Writer writer = self.ledger.writer
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef Slot* slot = self._enter(packet, m, dead_letter)
        cdef NumberedPosition record
        assert in_unit(self.ledger.writer), "call inside a unit"
        describe(&record.position, slot, m, data)
        number(self, slot, &record)
        writer.put_position(self.ordinal, slot.key, &record.position, True)
        writer.put_content(slot.content_id, packet)
        if self.ledger.feed:
            self._came(slot, m, data, &record)
        writer.notify(self, slot.key)
        if slot.ack_flags:
            arrived(self, slot, packet)
        if fingerprint:
            keep_identity(self.ledger, m, packet, fingerprint, False)
        if origin is not None:
            writer.notify(origin, token)
        return 0

    cdef int commit_enqueue(self, uint64_t content_id, bytes packet, PositionRecord* record, uint64_t sequence) except -1:
        """Enqueues a message that a transaction or a stage sent, with the current unit. If `content_id` is 0, `packet` is written now;
        otherwise it was written earlier. `packet` is None if it is durable under `content_id`.
        """
        cdef LedgerBase ledger = self.ledger
        cdef Slot* slot = NULL
        cdef NumberedPosition numbered
        assert in_unit(self.ledger.writer), "call inside a unit"
        if sequence == 0:
            sequence = ledger.next_sequence()
        record.arrival_seq = sequence
        record.arrived_us = ledger.now_us
        record.content_id = content_id or sequence
        slot = self._put_slot(<uint64_t>(7 - record.priority) << 56 | sequence, record, STATE_PENDING)
        self.positions.set_body(slot, packet)
        self.reserved_bytes -= slot.size
        log_placed(self, slot.key, UNDO_COMMITTED)
        self._entered = slot.key
        self.arrived_total += 1
        memset(&numbered, 0, sizeof(numbered))
        numbered.position = record[0]
        # A commit in slices reserved its places earlier, so a purge in the meantime does not remove its messages.
        numbered.position.arrival_seq = self._arrival(slot.key)
        number(self, slot, &numbered)
        ledger.writer.put_position(self.ordinal, slot.key, &numbered.position, True)
        if content_id == 0:
            ledger.writer.put_content(sequence, packet)
        if ledger.feed:
            ledger.event(
                EVENT_SENT if self.outgoing else EVENT_ARRIVED, self.ordinal, self.outgoing, slot, False, REASON_NONE,
                numbered.sequence_id, numbered.sequence_number
            )
        ledger.writer.notify(self, slot.key)
        if slot.ack_flags & flags_for(self.role, REASON_ARRIVED):
            arrived(self, slot, packet if packet is not None else ledger.tables.read_content(slot.content_id, slot.size))
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        """Makes a recoverable message available once it is durable; drops the message if it could not be stored."""
        cdef Slot* slot = self.positions.find(token)
        if slot == NULL:
            return 0
        if status != STATUS_OK:
            if slot.flags & FLAG_REMOVING:
                # It was received before it was durable: the Delivery, perhaps of a later batch, must not return it.
                slot.owner = OWNER_DAMAGED
            else:
                if slot.owner == OWNER_RETURNED:
                    self.ledger._returned.append((self, self._received(slot)))
                self._drop(slot)
        elif slot.state == STATE_PENDING:
            note_out_of_order(self, slot)
            self._available(slot)
        elif slot.state == STATE_PURGE_PENDING and not slot.flags & FLAG_COUNTED:
            self._erase(slot, EVENT_PURGED)
        return 0

    cdef int settled(self) except -1:
        if self.interested and self.positions.available and self.ready is not None:
            self.ready()
        return 0

    # ---- whole queues

    def purge(self) -> int:
        """Removes every available message (DM-092, DM-093, DM-094). Returns how many.

        Readers no longer see them; Ledger.reap deletes them in small batches. A locked message is removed when it is released, a pending
        one when it is durable. A message that a reader has received but returns later is also removed, not put back into the queue.
        """
        self.purged_to = self.ledger.sequence
        self._purges += 1
        return self._set_aside(False)

    def abandon(self) -> int:
        """Ends the use of a deleted queue: its messages are deleted later, it accepts no more messages, and the ledger forgets it. Returns
        the number of messages.
        """
        cdef uint64_t removed
        self.gone = True
        self.interested = False
        self.ready = None
        if self.sequence is not None:
            self.ledger._streams.pop(self.sequence.known_as(), None)
        removed = self._set_aside(True)
        self.ledger._cores.pop(self.ordinal, None)
        return removed

    cdef uint64_t _set_aside(self, bint everything) except? 0:
        """Replaces the position list. Locked messages stay in the new list; a Drain deletes the rest in the background.

        The time does not depend on the number of messages, as long as the locked messages are at the front.
        """
        cdef PositionList old = self.positions, kept
        cdef LedgerBase ledger = self.ledger
        cdef Drain drain
        cdef Slot* slot = NULL
        cdef uint64_t key, left, removed, used = self.reserved_bytes, counted = 0, messages = 0
        if old.live == 0:
            return 0
        kept = PositionList()
        if not everything:
            slot = old.following(0, 1 << STATE_PENDING)
            while slot != NULL:
                key = slot.key
                slot = kept.adopt(old, slot)
                kept.set_state(slot, STATE_PURGE_PENDING)
                used += slot.size
                slot = old.following(key, 1 << STATE_PENDING)
        left = old.live - old.available - old.pending
        key = 0
        while left:
            slot = old.following(key, 1 << STATE_LOCKED | 1 << STATE_PURGE_PENDING)
            key = slot.key
            left -= 1
            if not slot.flags & FLAG_REMOVING and (everything or slot.owner == OWNER_DAMAGED or slot.owner & <uint32_t>OWNER_LEASE):
                continue
            slot = kept.adopt(old, slot)
            if slot.owner == OWNER_FINAL:
                pass    # it has been sent, which cannot be undone
            elif slot.owner == OWNER_STORE or slot.flags & FLAG_REMOVING:
                slot.owner = slot.owner if slot.owner == OWNER_DAMAGED else OWNER_PURGED
            else:
                kept.set_state(slot, STATE_PURGE_PENDING)
            used += slot.size
            if slot.flags & FLAG_COUNTED:
                counted += slot.size
                messages += 1
        self.positions = kept
        if self.sequence is not None:
            forget_purged(self)
        ledger.bytes -= self.used_bytes - used
        if self.parent is not None:
            self.parent.sub_bytes -= self.used_bytes - used
        self.used_bytes = used
        self.bytes = counted
        self.messages = messages
        removed = old.live
        self.removed_total += removed
        if removed:
            drain = Drain.__new__(Drain)
            drain._ledger = ledger
            drain._queue = self.ordinal
            drain._role = self.role
            drain._outgoing = self.outgoing
            drain._reason = reason_of(self, EVENT_PURGED)
            drain._positions = old
            ledger._drains.append(drain)
        return removed

    # ---- by packet

    def enqueue_packets(self, list packets not None, sink=None, uint64_t fingerprint=0, list dead_letters=None) -> tuple:
        """Enqueues UserMessage packets in one unit. Returns (results, lookup ids); the lookup id of a rejected packet is 0.

        With a `fingerprint` (`DuplicateHistory.fingerprint`), the accepted messages are added to the duplicate history.

        `sink(status)` is called once, when all accepted messages are durable; before this returns if no message must be stored.
        `dead_letters` has for each packet the ordinal of the dead-letter queue that its application chose, or 0. Raises ValueError for a
        malformed packet; then no packet is enqueued.
        """
        cdef UserMessage* parsed
        cdef bytes packet
        cdef size_t total = 0
        cdef int code, number = 0, result
        cdef bint stored = False
        cdef Writer writer = self.ledger.writer
        cdef list results = [], keys = []
        if dead_letters is not None and len(dead_letters) != len(packets):
            raise ValueError("give a dead-letter queue for each packet, or none at all")
        if not packets:
            if sink is not None:
                sink(STATUS_OK)
            return results, keys
        parsed = <UserMessage*>realloc(NULL, len(packets) * sizeof(UserMessage))
        if parsed == NULL:
            raise MemoryError("no memory for messages")
        try:
            for packet in packets:
                code = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &parsed[number])
                if code:
                    raise ValueError(f"not a UserMessage packet (fault {code})")
                number += 1
                total += PyBytes_GET_SIZE(packet)
            writer.make_room(total)
            writer.begin_unit()
            try:
                number = 0
                for packet in packets:
                    result = self.enqueue_with(
                        packet, &parsed[number], None, 0, fingerprint, 0 if dead_letters is None else dead_letters[number]
                    )
                    number += 1
                    stored = stored or result == ENQUEUED_PENDING
                    results.append(result)
                    if result == ENQUEUED or result == ENQUEUED_PENDING:
                        keys.append(self._entered)
                    else:
                        keys.append(0)
                if stored and sink is not None:
                    writer.notify(Callback(sink), 0)
            except BaseException:
                writer.roll_back()
                raise
            writer.keep_unit()
        finally:
            free(parsed)
        if not stored and sink is not None:
            sink(STATUS_OK)
        return results, keys


cdef int forget_purged(QueueCore core) except -1:
    """Removes the purged messages of an outgoing queue from its sequence, where their numbers leave a gap (QB-113)."""
    cdef uint64_t key
    cdef Slot* slot = NULL
    for key in core.sequence.keys():
        if core.positions.find(key) == NULL:
            core.sequence.remove(key)
    core._passing.clear()
    key = 0
    slot = core.positions.following(key, EVERY_STATE)
    while slot != NULL:
        key = slot.key
        note_passing(core, slot)
        slot = core.positions.following(key, EVERY_STATE)
    if not core.gone:
        return 0
    core.ledger._streams.pop(core.sequence.known_as(), None)
    for ordinal, waiting in list(core.ledger._finals.items()):
        for _, final_key, _, _ in [one for one in waiting if one[0] is core]:
            forget_final(core.ledger, ordinal, core, final_key)
    return 0
