# One queue: arrival, removal, reading, read-ahead, purge.

cdef class BodyFetcher(ReadListener):
    cdef QueueCore _core

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        return self._core._fetched(token, body, status)


cdef class BodyRead(ReadListener):
    """One packet read from the store for a peek or a lookup, kept by nobody."""
    cdef Received _received
    cdef object _sink

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        if status == STATUS_OK and not is_packet(<bytes>body):
            status = MDB_CORRUPTED
        if status == STATUS_OK:
            self._received.packet = body
            self._sink(self._received, STATUS_OK)
        else:
            self._sink(None, status)
        return 0


cdef int keep_identity(Ledger ledger, const UserMessage* m, bytes packet, uint64_t fingerprint, bint ride) except -1:
    """The stored duplicate history gets a message; `ride`: this does not by itself cause a commit."""
    cdef HistoryEntry entry
    entry.fingerprint = fingerprint
    memcpy(entry.source, PyBytes_AS_STRING(packet) + SOURCE_OFFSET, 16)
    entry.ordinal = m.message_id
    entry.time_s = ledger.now_s
    ledger.writer.append_entry(TABLE_HISTORY, <const uint8_t*>&entry, sizeof(entry), ride)
    return 0


cdef class QueueCore(CommitListener):
    """``QueueCore(ledger, ordinal, quota_bytes, outgoing=False, parent=None)``: registers itself with the ledger."""

    def __init__(self, Ledger ledger, uint32_t ordinal, uint64_t quota_bytes=0xFFFFFFFFFFFFFFFF, bint outgoing=False,
                 QueueCore parent=None):
        cdef BodyFetcher fetcher = BodyFetcher()
        if ordinal in ledger._cores:
            raise ValueError("the ordinal is in use")
        self.ledger = ledger
        self.ordinal = ordinal
        self.quota_bytes = quota_bytes
        self.outgoing = outgoing
        self.sequence = OutSequence(ledger.writer.undo) if outgoing else None
        self._passing = set() if outgoing else None
        self.parent = parent
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
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef bint recoverable = m.delivery == 1 or m.transaction_offset != 0
        cdef int refused = self._refusal(m, PyBytes_GET_SIZE(packet), concludes(self, m, data))
        if refused:
            return refused
        if not sequence_left(self.ledger) or not number_left(self, m, data):
            return MACHINE_QUOTA
        if recoverable or wishes_of(m, data):
            return self._enqueue_in_unit(packet, m, origin, token, fingerprint, dead_letter, recoverable)
        # The path of most messages: without a unit, whose begin and end would cost as much as the rest.
        self._enter_express(packet, m, fingerprint, dead_letter)
        return ENQUEUED

    cdef int _enqueue_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                              uint32_t dead_letter, bint recoverable) except -1:
        """The rest of `enqueue_with` for a message that is stored, or whose arrival has side effects."""
        cdef Writer writer = self.ledger.writer
        cdef Slot* slot
        writer.begin_unit()
        try:
            if recoverable:
                self._enter_stored(packet, m, origin, token, fingerprint, dead_letter)
            else:
                slot = self._enter_express(packet, m, fingerprint, dead_letter)
                if slot.wishes:
                    arrived(self, slot, packet)
        except BaseException:
            # The caller hears that it did not come, so it must not be there.
            writer.roll_back()
            raise
        writer.keep_unit()
        return ENQUEUED_PENDING if recoverable else ENQUEUED

    cdef inline Slot* _enter(self, bytes packet, const UserMessage* m, uint32_t dead_letter) except NULL:
        """Puts an accepted message into the list, with the next SequentialID."""
        cdef uint64_t sequence = self.ledger.next_sequence()
        cdef Slot* slot = self._place(
            <uint64_t>(7 - effective_priority(m)) << 56 | sequence, sequence, self.ledger.now_us, packet, m
        )
        slot.dead_letter = dead_letter
        self._entered = slot.key
        self.arrived_total += 1
        if self.ledger._followed is not None:
            self.ledger._followed.append((self, slot.key))
        return slot

    cdef inline Slot* _enter_express(self, bytes packet, const UserMessage* m, uint64_t fingerprint, uint32_t dead_letter) except NULL:
        """An express message is in the list, and available. Call inside a unit if its arrival has side effects."""
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
        """A recoverable message is in the list, and available when the unit is durable. Call inside the unit."""
        cdef Writer writer = self.ledger.writer
        cdef const char* data = PyBytes_AS_STRING(packet)
        cdef Slot* slot = self._enter(packet, m, dead_letter)
        cdef NumberedPosition record
        describe(&record.position, slot, m, data)
        number(self, slot, &record)
        writer.put_position(self.ordinal, slot.key, &record.position, True)
        writer.put_content(slot.content_id, packet)
        if self.ledger.feed:
            self._came(slot, m, data, &record)
        writer.notify(self, slot.key)
        if slot.wishes:
            arrived(self, slot, packet)
        if fingerprint:
            keep_identity(self.ledger, m, packet, fingerprint, False)
        if origin is not None:
            writer.notify(origin, token)
        return 0

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        return undo_in_queue(self, token, <const QueueUndo*>data, kept)

    cdef int _tell(self, int kind, const Slot* slot, bint ride, int reason=REASON_NONE) except -1:
        return self.ledger.event(kind, self.ordinal, self.outgoing, slot, ride, reason)

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
        """Aborts wait for nobody, and one that cannot be told of is done all the same. Many of them are told in several commits."""
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

    cdef inline int _refusal(self, const UserMessage* m, uint64_t size, bint in_any_case) noexcept:
        """Why a message of `size` bytes cannot come (DM-096 … DM-098), else ENQUEUED. `in_any_case`: whatever the queue manager has room for."""
        if self.gone:
            return QUEUE_GONE
        if (
            m.time_to_reach_queue != INFINITE and self.ledger.now_s > m.sent_time
            and self.ledger.now_s - m.sent_time > m.time_to_reach_queue
        ):
            return EXPIRED
        if not in_any_case and (
            self.ledger.stopped() or size > self.ledger.quota_bytes or self.ledger.bytes > self.ledger.quota_bytes - size
        ):
            return MACHINE_QUOTA
        if size > self.quota_bytes or self.family_bytes() > self.quota_bytes - size:
            return QUEUE_QUOTA
        return ENQUEUED

    cdef bint has_room(self, uint64_t count, uint64_t size) noexcept:
        cdef Ledger ledger = self.ledger
        if self.gone or ledger.stopped() or ledger.sequence + count > ledger.sequence_limit:
            return False
        if size > ledger.quota_bytes or ledger.bytes > ledger.quota_bytes - size:
            return False
        return size <= self.quota_bytes and self.family_bytes() <= self.quota_bytes - size

    cdef uint64_t family_bytes(self) noexcept:
        """What the quota counts: the queue and its subqueues (X-34)."""
        return self.used_bytes + self.sub_bytes - self.moving_bytes

    cdef void _use(self, uint64_t size) noexcept:
        """A message takes up room."""
        self.used_bytes += size
        self.ledger.bytes += size
        if self.parent is not None:
            self.parent.sub_bytes += size

    cdef uint64_t _arrival(self, uint64_t key) except 0:
        if key & SEQUENCE_MASK > self.purged_to:
            return key & SEQUENCE_MASK
        return self.ledger.next_sequence()

    cdef Slot* _place(self, uint64_t key, uint64_t content_id, uint64_t arrived, bytes packet, const UserMessage* m) except NULL:
        """A slot for a packet, within the quotas' accounts: pending if it has to be stored."""
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
        slot.wishes = final_wishes(
            self.role, transactional, source == self.ledger._own_source and not m.user_flags & USER_HTTP,
            wishes_of(m, PyBytes_AS_STRING(packet))
        )
        slot.deadline = NO_DEADLINE if self.timeless else deadline_of(
            m.sent_time, m.time_to_reach_queue, m.time_to_be_received, self.outgoing
        )
        self.positions.set_body(slot, packet)
        self._use(slot.size)
        if self.ledger.writer._depth:
            log_placed(self, key, UNDO_PLACED)
        self._arm(slot)
        note_passing(self, slot)
        return slot

    cdef int committed(self, uint64_t token, int status) except -1:
        """A recoverable message became durable, or could not be stored."""
        cdef Slot* slot = self.positions.find(token)
        if slot == NULL:
            return 0
        if status != STATUS_OK:
            if slot.flags & FLAG_REMOVING:
                # Taken before it was durable: the Delivery, perhaps of a later batch, must not hand it out.
                slot.owner = OWNER_DAMAGED
            else:
                if slot.owner == OWNER_RETURNED:
                    self.ledger._returned.append((self, self._received(slot)))
                self._drop(slot)
        elif slot.state == STATE_PENDING:
            note_late(self, slot)
            self._available(slot)
        elif slot.state == STATE_PURGE_PENDING and not slot.flags & FLAG_COUNTED:
            self._erase(slot, EVENT_PURGED)
        return 0

    cdef int settled(self) except -1:
        if self.interested and self.positions.available and self.ready is not None:
            self.ready()
        return 0

    cdef int _available(self, Slot* slot) except -1:
        """PENDING or LOCKED -> AVAILABLE, or gone if its time was over meanwhile (ST-1)."""
        cdef Ledger ledger = self.ledger
        self._count(slot)
        slot.owner = OWNER_NONE
        self.positions.set_state(slot, STATE_AVAILABLE)
        if self.watched:
            self._fresh.append(slot.key)
        if slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED or slot.deadline <= self.ledger.now_s:
            self._expire(slot)
        return 0

    cdef int _count(self, Slot* slot) except -1:
        """Adds a message to TotalBytes, once (DA-023); from now on the store could give its body back."""
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

    cdef int _arm(self, Slot* slot) except -1:
        if slot.deadline != NO_DEADLINE:
            slot.timer = self.ledger.wheel.start(slot.deadline, self.ordinal, slot.key)
        return 0

    cdef int mark(self) except -1:
        """Something became available while somebody waits: `ready` is called by the next Ledger.serve()."""
        if not self._dirty:
            self._dirty = True
            self.ledger._dirty.append(self)
        return 0

    def nudge(self) -> None:
        """Have `ready` called by the next Ledger.serve()."""
        self.mark()

    # ---- removal

    cdef int _drop(self, Slot* slot) except -1:
        """Takes a slot out of the list and of every account. Count the removal behind it."""
        cdef Ledger ledger = self.ledger
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

    cdef int _erase(self, Slot* slot, int event) except -1:
        """Message Position Deleted: out of the list, and out of the store with the current batch."""
        cdef Ledger ledger = self.ledger
        if not slot.flags & FLAG_RECOVERABLE:
            return self._take_out(slot, event)
        ledger.writer.begin_unit()
        try:
            self._take_out(slot, event)
            ledger.removals.watch()
        except BaseException:
            ledger.writer.roll_back()
            raise
        ledger.writer.keep_unit()
        return 0

    cdef int _take_out(self, Slot* slot, int event) except -1:
        """_erase as a part of a unit whose end watches over the removals. 1: it stays, see `packet_of`."""
        cdef Ledger ledger = self.ledger
        cdef bint recoverable = slot.flags & FLAG_RECOVERABLE, moved = False
        cdef uint64_t key = slot.key
        cdef int reason = reason_of(self, event)
        cdef bytes packet
        if slot.wishes or self.journal is not None:
            if slot.wishes & concerning(self.role, reason) or (self.journal is not None and reason == REASON_RECEIVED):
                if slot.body == NULL and reason & REASON_NEGATIVE:
                    return self._postpone(slot, event, reason)
                packet = packet_of(self, slot)  # now: somebody is told that it is gone when this unit is durable
                if packet is None:
                    return 1
                moved = hand_on(ledger, self.ordinal, self.role, self.journal, slot, packet, reason)
                slot = self.positions.find(key)
        if recoverable:
            ledger._condemn(self.ordinal, self.role, slot, event, reason, moved)
        if ledger.feed and event:
            self._tell(event, slot, not recoverable, reason)
        self._drop(slot)
        self.removed_total += 1
        return 0

    cdef int _postpone(self, Slot* slot, int event, int reason) except -1:
        """Out of the list; reap() reads the packet, which is needed for what follows, and removes it from the store."""
        cdef Doomed entry
        doomed_of(&entry, self.ordinal, self.role, slot, event, reason)
        let_follow(&entry, self.role, slot, reason)
        self.ledger.sources.retain(slot.source)
        self.ledger.doom(&entry)
        self._drop(slot)
        self.removed_total += 1
        return 0

    cdef bint forget(self, uint64_t key, bytes packet, int reason) except -1:
        """Message Position Deleted as far as the store is concerned, and what follows from it (X-60, X-67)."""
        cdef Ledger ledger = self.ledger
        cdef Slot* slot = self.positions.find(key)
        cdef bint moved = False
        ledger.writer.delete_position(self.ordinal, key)
        if self._is_followed(slot, reason):
            moved = hand_on(ledger, self.ordinal, self.role, self.journal, slot, packet, reason)
            slot = self.positions.find(key)
        if not moved:
            ledger.writer.delete_content(slot.content_id, slot.size)
        if ledger.feed:
            self._tell(EVENT_RECEIVED if reason == REASON_RECEIVED else EVENT_REMOVED, slot, False, reason)
        return moved

    cdef bint _is_followed(self, const Slot* slot, int reason) noexcept:
        return (self.journal is not None and reason == REASON_RECEIVED) or slot.wishes & concerning(self.role, reason) != 0

    cdef int _leave(self, Slot* slot, Received received) except -1:
        cdef list followed = []
        self.ledger._followed = followed
        try:
            if not slot.flags & FLAG_RECOVERABLE:
                self._erase(slot, EVENT_RECEIVED)
            elif self.forget(slot.key, received.packet, REASON_RECEIVED):
                received.content_id = 0
        finally:
            self.ledger._followed = None
        if followed:
            received._followed = followed
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
        """The removal of a received message was not kept: it is where it was, unless the queue was purged or deleted meanwhile."""
        slot.flags &= ~FLAG_REMOVING
        if self.gone or slot.owner == OWNER_PURGED:
            return self._erase(slot, EVENT_PURGED)
        return self._back(slot)

    cdef int _back(self, Slot* slot) except -1:
        """LOCKED -> AVAILABLE, unless an OrderAck has come meanwhile."""
        if self.sequence is not None and self.sequence.returned(slot.key) == ANSWER_OVER:
            return retire_one(self, slot.key)
        return self._available(slot)

    cdef int _expire(self, Slot* slot) except -1:
        """TimeToBeReceived or TimeToReachQueue is over (DM-213, ST-1)."""
        if slot.state == STATE_AVAILABLE:
            self._erase(slot, EVENT_EXPIRED)
            self.expired_total += 1
            return 0
        if slot.state == STATE_LOCKED and slot.owner == OWNER_FINAL:
            return conclude(self, slot.key, REASON_UNANSWERED)
        if slot.state == STATE_LOCKED and slot.owner & <uint32_t>OWNER_TRANSFER:
            return self._late(slot)
        slot.flags |= FLAG_EXPIRE_WHEN_UNLOCKED
        return 0

    cdef int _late(self, Slot* slot) except -1:
        """The time of a message is over that was transmitted: nobody waits for its acknowledgments any more (AMB-39).

        The session passes over it when they come.
        """
        cdef OutEntry* entry = NULL
        if self.sequence is not None and slot.flags & FLAG_TRANSACTIONAL:
            entry = self.sequence.find(slot.key)
        if entry != NULL and entry.flags & ENTRY_ORDERED:
            return 0    # it has arrived: it leaves with the acknowledgment of its session
        self._erase(slot, EVENT_EXPIRED)
        self.expired_total += 1
        return 0

    cdef size_t remove_keys(self, const uint64_t* keys, size_t count, uint32_t owner, int event) except? 0:
        cdef size_t number, removed = 0
        cdef Slot* slot = NULL
        cdef bint purged
        self.ledger.writer.begin_unit()
        try:
            for number in range(count):
                slot = self.positions.find(keys[number])
                if slot == NULL or slot.owner != owner:
                    continue
                if slot.state != STATE_LOCKED and slot.state != STATE_PURGE_PENDING:
                    continue
                # DM-124: what was purged while it was out was purged, whatever its reader says.
                purged = event == EVENT_RECEIVED and slot.state == STATE_PURGE_PENDING
                if self._take_out(slot, EVENT_PURGED if purged else event) == 0:
                    removed += 1
            self.ledger.removals.watch()
        except BaseException:
            self.ledger.writer.roll_back()
            raise
        self.ledger.writer.keep_unit()
        return removed

    def acked(self, const uint64_t[::1] keys not None, uint32_t owner, sink=None) -> int:
        """Remove what `owner` locked and has got rid of: sent and acknowledged, or delivered and acknowledged.

        Keys that it does not hold are passed over. `sink(status)` is called when the removal is durable. Returns how many were removed.
        A removal that the store does not keep is repeated by reap(). If this raises nothing is locked any more: the messages are
        available, and are sent or handed out again.
        """
        cdef size_t removed = 0
        cdef Writer writer = self.ledger.writer
        writer.begin_unit()
        try:
            if keys.shape[0] and self.sequence is not None and self.sequence.held():
                removed = self._transferred(keys, owner)
            elif keys.shape[0]:
                removed = self.remove_keys(&keys[0], keys.shape[0], owner, EVENT_ACKED if self.outgoing else EVENT_RECEIVED)
            if sink is not None:
                writer.notify(Callback(sink), 0)
        except BaseException:
            writer.roll_back()
            self.release(keys, owner)
            raise
        writer.keep_unit()
        return removed

    cdef size_t _transferred(self, const uint64_t[::1] keys, uint32_t owner) except? 0:
        """The next queue manager keeps messages: those with a number wait for an OrderAck (QB-125), the others leave."""
        cdef Py_ssize_t index, start = 0, count = keys.shape[0]
        cdef size_t removed = 0
        cdef int answer
        for index in range(count):
            answer = self.sequence.acknowledged(keys[index])
            if answer == ANSWER_OTHER:
                continue
            if index > start:
                removed += self.remove_keys(&keys[start], index - start, owner, EVENT_ACKED)
            start = index + 1
            if answer == ANSWER_OVER:
                retire(self, keys[index])
                removed += 1
            elif self.ledger.cached_bytes > self.ledger.cache_limit // 2:
                self.shed_body(keys[index])     # it is seldom sent again
        if count > start:
            removed += self.remove_keys(&keys[start], count - start, owner, EVENT_ACKED)
        self.ledger.removals.watch()
        return removed

    # ---- claims

    def claim(self, uint64_t key, uint32_t owner) -> bool:
        """Lock an available message for `owner`; False if it is not available."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.state != STATE_AVAILABLE:
            return False
        self.positions.set_state(slot, STATE_LOCKED)
        slot.owner = owner
        return True

    def release(self, const uint64_t[::1] keys not None, uint32_t owner) -> int:
        """Make what `owner` locked available again at its old place (DM-125). Returns how many became available.

        What raises for one message holds up no other one, and is raised at the end.
        """
        cdef size_t number
        cdef int released = 0
        cdef object fault = None
        for number in range(keys.shape[0]):
            try:
                released += self._release(keys[number], owner)
            except Exception as error:
                fault = also(fault, error)
                self._expire_later(keys[number])
        if released and self.interested:
            self.mark()
        if fault is not None:
            raise fault
        return released

    cdef bint _release(self, uint64_t key, uint32_t owner) except -1:
        """Whether a message that `owner` locked is available."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.owner != owner:
            return False
        if slot.state == STATE_PURGE_PENDING:
            self._let_purged_go(slot)
            return False
        if slot.state != STATE_LOCKED:
            return False
        if self.sequence is not None and self.sequence.returned(key) == ANSWER_OVER:
            retire_one(self, key)
            return False
        self._available(slot)
        return True

    cdef int _expire_later(self, uint64_t key) except -1:
        """A message whose time is over could not be removed: that is tried again after EXPIRE_AGAIN seconds."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or not (slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED or slot.deadline <= self.ledger.now_s):
            return 0
        if slot.timer != NO_TIMER:
            self.ledger.wheel.stop(slot.timer)
        slot.timer = self.ledger.wheel.start(<uint64_t>self.ledger.now_s + EXPIRE_AGAIN, self.ordinal, key)
        return 0

    def remove(self, uint64_t key, uint32_t owner=OWNER_NONE) -> bool:
        """Remove one message that is available, or locked by `owner`."""
        cdef Slot* slot = self.positions.find(key)
        if slot == NULL or slot.state == STATE_PENDING or slot.owner != owner:
            return False
        self._erase(slot, EVENT_REMOVED)
        return True

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

    def take(self, uint32_t max_count, uint64_t max_bytes, uint32_t owner) -> list:
        """Lock messages from the front for `owner` and return them (list of Received).

        Stops at a message whose packet must first be read from the store: reading starts, and `ready` is called when it can go on.
        At least one message is returned whatever its size, if there is one whose packet is in memory.
        """
        cdef Slot* slot = NULL
        cdef list result = []
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        while count < max_count:
            slot = self.positions.first_takeable(False)
            if slot == NULL or slot.body == NULL or (count and size + slot.size > max_bytes):
                break
            self.positions.set_state(slot, STATE_LOCKED)
            slot.owner = owner
            size += slot.size
            count += 1
            result.append(self._received(slot))
        self._consumed += count
        if slot != NULL and (slot.body == NULL or self._consumed >= AHEAD_STEP):
            self._read_ahead()
        return result

    def receive_bulk(self, uint32_t max_count, uint64_t max_bytes, sink, bint pending=False, bint ordered=False, wanted=None) -> int:
        """Receive messages from the front: remove them, and call `sink(list of Received, status)` when that is durable (DU-03).

        Without a recoverable one among them the sink is called before this returns, unless `ordered`: then it is called
        behind the deliveries that are still under way. With `pending`, messages that are not durable yet are taken too; it is meant
        for the moment before a batch is sealed. Stops as `take` does. Returns the number of messages taken.
        If the store fails, the status is not 0 and the messages are where they were. If `wanted()` says False when the removal is
        durable, the reader is gone: the messages go back, as `give_back` does it, and the sink gets none.
        """
        cdef Slot* slot = NULL
        cdef Delivery delivery
        cdef Received received
        cdef Ledger ledger = self.ledger
        cdef list result = []
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        cdef bint stored = False, early = False
        ledger.writer.begin_unit()
        try:
            while count < max_count:
                slot = self.positions.first_takeable(pending)
                if slot == NULL or slot.body == NULL or (count and size + slot.size > max_bytes):
                    break
                if slot.state == STATE_PENDING and slot.deadline <= ledger.now_s:
                    break
                size += slot.size
                count += 1
                result.append(self._received(slot))
                if slot.flags & FLAG_RECOVERABLE:
                    stored = True
                    early = early or slot.state == STATE_PENDING
                    log_changed(self, slot)
                    self.positions.set_state(slot, STATE_LOCKED)
                    slot.owner = OWNER_STORE
                    slot.flags |= FLAG_REMOVING
                    if slot.wishes or self.journal is not None:
                        received = <Received>result[count - 1]
                        self._leave(slot, received)
                        slot = self.positions.find(received.lookup_id)
                        continue
                    ledger.writer.delete_position(self.ordinal, slot.key)
                    ledger.writer.delete_content(slot.content_id, slot.size)
                    if ledger.feed:
                        self._tell(EVENT_RECEIVED, slot, False)
                else:
                    if slot.wishes or self.journal is not None:
                        self._leave(slot, <Received>result[count - 1])
                    else:
                        self._erase(slot, EVENT_RECEIVED)
                    slot = NULL
            self._consumed += count
            if (slot != NULL and slot.body == NULL) or self._consumed >= AHEAD_STEP:
                self._read_ahead()
            if early:
                ledger.writer.build_on_untold()     # it may be in a batch that has failed already
            if count and (stored or ordered):
                delivery = Delivery.__new__(Delivery)
                delivery._core = self
                delivery._messages = result
                delivery._sink = sink
                delivery._wanted = wanted
                ledger.writer.notify(delivery, 0)
        except BaseException:
            ledger.writer.roll_back()
            raise
        ledger.writer.keep_unit()
        if count and not (stored or ordered):
            sink(result, STATUS_OK)
        return count

    def receive_key(self, uint64_t key, sink, wanted=None) -> bool:
        """Receive one available message by its key, as receive_bulk; False if it is not available.

        A packet that is not in memory is read first; the message is locked meanwhile.
        """
        cdef Slot* slot = self.positions.find(key)
        cdef BodyRead read
        cdef Received received
        if slot == NULL or slot.state != STATE_AVAILABLE:
            return False
        received = self._received(slot)
        if slot.body != NULL:
            self._receive_one(slot, received, sink, wanted)
            return True
        self.positions.set_state(slot, STATE_LOCKED)
        slot.owner = OWNER_STORE
        read = BodyRead.__new__(BodyRead)
        read._received = received

        def fetched(Received message, int status):
            cdef Slot* there = self.positions.find(key)
            if there == NULL:
                sink([], -2)
            elif message is None:
                if there.owner == OWNER_PURGED:
                    self._erase(there, EVENT_PURGED)
                else:
                    there.owner = OWNER_DAMAGED
                self._report_damage(key, status)
                sink([], status)
            else:
                self._receive_one(there, message, sink, wanted)

        read._sink = fetched
        self.ledger.reader.fetch(slot.content_id, slot.size, read, key)
        return True

    def _report_damage(self, uint64_t key, int status):
        if self.ledger.on_read_error is not None:
            self.ledger.on_read_error(self.ordinal, key, status)

    cdef int _receive_one(self, Slot* slot, Received received, sink, wanted) except -1:
        cdef Delivery delivery
        cdef Ledger ledger = self.ledger
        if not slot.flags & FLAG_RECOVERABLE:
            self._erase(slot, EVENT_RECEIVED)
            sink([received], STATUS_OK)
            return 0
        ledger.writer.begin_unit()
        try:
            log_changed(self, slot)
            if slot.state == STATE_AVAILABLE:
                self.positions.set_state(slot, STATE_LOCKED)
                slot.owner = OWNER_STORE
            slot.flags |= FLAG_REMOVING
            self._leave(slot, received)
            delivery = Delivery.__new__(Delivery)
            delivery._core = self
            delivery._messages = [received]
            delivery._sink = sink
            delivery._wanted = wanted
            ledger.writer.notify(delivery, 0)
        except BaseException:
            ledger.writer.roll_back()
            slot = self.positions.find(received.lookup_id)
            if slot != NULL and slot.state == STATE_LOCKED and slot.owner == OWNER_STORE:
                self._back(slot)    # its packet had to be read first
            raise
        ledger.writer.keep_unit()
        return 0

    def peek(self, uint64_t key, sink) -> bool:
        """Call `sink(Received, status)` for a message that is in the list, now if its packet is in memory; False if it is not there."""
        cdef Slot* slot = self.positions.find(key)
        cdef BodyRead read
        if slot == NULL or slot.state == STATE_PENDING:
            return False
        received = self._received(slot)
        if slot.body != NULL:
            sink(received, STATUS_OK)
            return True
        read = BodyRead.__new__(BodyRead)
        read._received = received
        read._sink = sink
        self.ledger.reader.fetch(slot.content_id, slot.size, read, key)
        return True

    def head_in_memory(self, bint pending=False) -> bool:
        """Whether the first available message can be handed out without reading the store; if not, reading starts."""
        cdef Slot* slot = self.positions.first_takeable(pending)
        if slot == NULL:
            return False
        if slot.body == NULL:
            self._read_ahead()
            return False
        # What was sent in a transaction may be over before it is there (ST-1).
        return slot.state != STATE_PENDING or slot.deadline > self.ledger.now_s

    cdef int _read_ahead(self) except -1:
        """Starts reading the packets of the next available messages."""
        cdef uint64_t size = 0
        cdef uint32_t count = 0
        cdef Slot* slot = self.positions.first_takeable(False)
        self._consumed = 0
        while slot != NULL and count < AHEAD_COUNT and size < AHEAD_BYTES:
            if slot.body == NULL and not slot.flags & FLAG_FETCHING:
                slot.flags |= FLAG_FETCHING
                self._fetching += 1
                self.ledger.reader.fetch(slot.content_id, slot.size, self._fetcher, slot.key)
            count += 1
            size += slot.size
            slot = self.positions.following(slot.key, 1 << STATE_AVAILABLE)
        return 0

    cdef int _fetched(self, uint64_t key, object body, int status) except -1:
        cdef Slot* slot = self.positions.find(key)
        self._fetching -= 1
        if slot != NULL and slot.flags & FLAG_FETCHING:
            slot.flags &= ~FLAG_FETCHING
            if status == STATUS_OK and not is_packet(<bytes>body):
                status = MDB_CORRUPTED
            if status == STATUS_OK:
                self.positions.set_body(slot, body)
                slot.flags |= FLAG_CACHED
                self.ledger.cached_bytes += slot.size
            elif slot.state == STATE_AVAILABLE:
                self.positions.set_state(slot, STATE_LOCKED)
                slot.owner = OWNER_DAMAGED
                if self.sequence is not None:
                    self._unnumber(slot)    # nothing behind it waits for it, nor for a repetition of it
                self._report_damage(key, status)
        if self.interested:
            self.mark()
        return 0

    # ---- transactions

    cdef int reserve(self, const UserMessage* m, uint64_t size) except -1:
        cdef int refused = self._refusal(m, size, False)
        if not refused:
            self.reserve_again(size)
        return refused

    cdef void reserve_again(self, uint64_t size) noexcept:
        """What had its quota once has it again, whatever the quota is now."""
        self.used_bytes += size
        self.reserved_bytes += size
        self.ledger.bytes += size

    cdef void unreserve(self, uint64_t size) noexcept:
        self.used_bytes -= size
        self.reserved_bytes -= size
        self.ledger.bytes -= size

    cdef int commit_enqueue(self, uint64_t content_id, bytes packet, PositionRecord* record, uint64_t sequence) except -1:
        """`content_id` 0: the packet has not been written yet. A `packet` of None has been, and is durable."""
        cdef Ledger ledger = self.ledger
        cdef Slot* slot = NULL
        cdef NumberedPosition numbered
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
        # A commit in slices has its places from before: what was purged meanwhile does not take it along.
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
        if slot.wishes & concerning(self.role, REASON_ARRIVED):
            arrived(self, slot, packet if packet is not None else ledger.tables.read_content(slot.content_id, slot.size))
        return 0

    cdef bint commit_dequeue(self, Slot* slot, int reason) except -1:
        cdef bytes packet = None
        log_changed(self, slot)
        slot.flags |= FLAG_REMOVING
        if not slot.flags & FLAG_RECOVERABLE:
            return False
        if slot.body != NULL:
            packet = <bytes>slot.body
        elif self._is_followed(slot, reason):
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
            # It is moved before anybody sees it again.
            slot.owner = OWNER_POISON
            self._poisoned.append(slot.key)
            return self.mark()
        self._back(slot)
        if self.interested:
            self.mark()
        return 0

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
        """The packet of a locked message leaves the memory, if the store has it."""
        cdef Slot* slot = self.positions.find(key)
        if slot != NULL and slot.state == STATE_LOCKED and slot.flags & FLAG_CACHED and slot.body != NULL:
            slot.flags &= ~FLAG_CACHED
            self.ledger.cached_bytes -= slot.size
            self.positions.set_body(slot, None)
        return 0

    # ---- whole queues

    def purge(self) -> int:
        """Remove every available message (DM-092, DM-093, DM-094). Returns how many.

        They are out of sight at once; Ledger.reap lets go of them bit by bit. Locked ones go when they are released, pending
        ones when they are durable, and one that is out with a reader does not come back.
        """
        self.purged_to = self.ledger.sequence
        self._purges += 1
        return self._set_aside(False)

    def abandon(self) -> int:
        """The queue is deleted: everything in it is doomed, it takes nothing more, the ledger forgets it. Returns the number of messages."""
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
        """Swaps the list for one with those only that somebody has still to let go of; a Drain gets the others.

        Takes no longer for a million messages than for one, as long as those that are locked stand at the front.
        """
        cdef PositionList old = self.positions, kept
        cdef Ledger ledger = self.ledger
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
                pass    # it has been sent, and nothing can take that back
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
        """Enqueue UserMessage packets in one unit. Returns (results, lookup ids); a lookup id of a refused one is 0.

        With a `fingerprint` (`DuplicateHistory.fingerprint`) they are kept in the duplicate history.

        `sink(status)` is called once, when all that were accepted are durable: before this returns if none has to be stored.
        `dead_letters`: for each the ordinal of the dead-letter queue that its application chose, or 0. Raises ValueError for a packet that is malformed; then none of them is enqueued.
        """
        cdef UserMessage* parsed
        cdef bytes packet
        cdef size_t total = 0
        cdef int code, number = 0, result
        cdef bint stored = False
        cdef Writer writer = self.ledger.writer
        cdef list results = [], keys = []
        if dead_letters is not None and len(dead_letters) != len(packets):
            raise ValueError("a dead-letter queue for each packet, or none at all")
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

    def give_back(self, list messages not None, bint received_is_in_feed=True) -> None:
        """Put messages back in their old places that were received for a reader who is gone (DM-119).

        `received_is_in_feed`: or on its way there; then the feed hears of each that it is back. A message for which this raises waits in
        `Ledger.returned`; the others are back. One that was out while the queue was purged counts as locked then: it is purged now (DM-093). In an outgoing queue a
        transactional one has lost its number, and comes behind the others.
        """
        cdef Received received
        cdef Writer writer = self.ledger.writer
        cdef object fault = None, followed
        if self.gone:
            return
        for received in messages:
            if self.positions.find(received.lookup_id) != NULL:
                continue
            try:
                writer.begin_unit()
            except Exception as error:
                self.ledger._returned.append((self, received))
                fault = also(fault, error)
                continue
            followed = received._followed
            try:
                self._give_back(received, received_is_in_feed)
            except BaseException as error:
                writer.roll_back()
                received._followed = followed
                self.ledger._returned.append((self, received))
                if not isinstance(error, Exception):
                    raise
                fault = also(fault, error)
            else:
                writer.keep_unit()
        if fault is not None:
            raise fault

    cdef int _give_back(self, Received received, bint received_is_in_feed) except -1:
        """One of them, within a unit of its own."""
        cdef UserMessage m
        cdef Slot* slot = NULL
        cdef NumberedPosition record
        cdef Writer writer = self.ledger.writer
        cdef const char* data = PyBytes_AS_STRING(received.packet)
        cdef bint recoverable, acknowledged
        if parse_user_message(<const uint8_t*>data, PyBytes_GET_SIZE(received.packet), &m):
            return 0
        if received._purges != self._purges:
            return self._purged_outside(received, &m)
        recoverable = m.delivery == 1 or m.transaction_offset != 0
        if self.sequence is not None and m.transaction_offset:
            received.lookup_id = <uint64_t>7 << 56 | self.ledger.next_sequence()
        if received.content_id == 0:
            received.content_id = self.ledger.next_sequence()   # what it had belongs to its journal copy
        slot = self._place(received.lookup_id, received.content_id, received.arrived_us, received.packet, &m)
        slot.abort_count = <uint16_t>min(received.abort_count, COUNT_LIMIT)
        slot.move_count = <uint16_t>min(received.move_count, COUNT_LIMIT)
        slot.reason = <uint16_t>received.reason
        if slot.reason:
            lay_to_rest(self, slot)
        slot.dead_letter = received.dead_letter
        if received._followed is not None:
            followed, received._followed = received._followed, None
            acknowledged = not recall(followed)
            slot = self.positions.find(received.lookup_id)
            if acknowledged:    # one acknowledgment for each message: this one has had its own
                slot.wishes &= ~(WISH_POSITIVE_RECEIVE | WISH_NEGATIVE_RECEIVE | POSITION_FINAL)
        if recoverable:
            slot.owner = OWNER_RETURNED
            describe(&record.position, slot, &m, data)
            record.position.wishes = slot.wishes
            record.position.arrival_seq = self._arrival(slot.key)
            number(self, slot, &record)
            writer.put_position(self.ordinal, slot.key, &record.position)
            writer.put_content(slot.content_id, received.packet)
            writer.notify(self, slot.key)
        else:
            note_late(self, slot)
            self._count(slot)
            if self.interested:
                self.mark()
        if received_is_in_feed and self.ledger.feed:
            self._tell(EVENT_RETURNED, self.positions.find(received.lookup_id), True)
        return 0

    cdef int _purged_outside(self, Received received, const UserMessage* m) except -1:
        """A message that is in no list and in no store any more was purged."""
        cdef Ledger ledger = self.ledger
        cdef Slot slot
        if not ledger.feed:
            return 0
        memset(&slot, 0, sizeof(slot))
        slot.key = received.lookup_id
        slot.size = <uint32_t>PyBytes_GET_SIZE(received.packet)
        slot.ordinal = m.message_id
        slot.message_class = m.message_class
        slot.source = ledger.sources.intern(<const uint8_t*>PyBytes_AS_STRING(received.packet) + SOURCE_OFFSET)
        self._tell(EVENT_PURGED, &slot, True, reason_of(self, EVENT_PURGED))
        ledger.sources.release(slot.source)
        return 0

    cdef int _restore(self, uint64_t key, const PositionRecord* record) except -1:
        """A stored position at start: available, its packet on disk."""
        cdef Slot* slot = self._put_slot(key, record, STATE_AVAILABLE)
        self._use(slot.size)
        self._count(slot)
        if self.sequence is not None and record.version == POSITION_NUMBERED:
            restore_numbered(self, slot, <const NumberedPosition*>record)
        return 0

    cdef Slot* _put_slot(self, uint64_t key, const PositionRecord* record, int state) except NULL:
        """A slot for what a record describes, without its packet and outside the accounts; its timer runs."""
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
        slot.wishes = final_wishes(
            self.role, record.flags & POSITION_TRANSACTIONAL,
            source == self.ledger._own_source and not record.wishes & POSITION_FINAL, record.wishes
        )
        slot.reason = record.reason
        slot.dead_letter = record.dead_letter_queue
        slot.deadline = NO_DEADLINE if self.timeless or record.reason else deadline_of(
            record.sent_s, record.time_to_reach_queue, record.time_to_be_received, self.outgoing
        )
        self._arm(slot)
        note_passing(self, slot)
        return slot
