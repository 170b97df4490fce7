# What follows when a message reaches its queue, leaves it, or fails (DM-203, X-60 … X-69): copies, moves to journals and dead-letter
# queues, acknowledgments. All of it joins the unit of its cause.

cdef inline int concerning(uint8_t role, int reason) noexcept nogil:
    """The wishes that matter when a message leaves (or reaches) a queue for a reason."""
    cdef int final = POSITION_FINAL if role == ROLE_DESTINATION else 0
    if role == ROLE_NONE or reason < 0:
        return 0
    if reason & REASON_NEGATIVE:
        return WISH_NEGATIVE_ARRIVAL | WISH_NEGATIVE_RECEIVE | POSITION_JOURNAL_NEGATIVE | final
    if reason == REASON_RECEIVED:
        return WISH_POSITIVE_RECEIVE | final
    return POSITION_JOURNAL_POSITIVE if role == ROLE_OUTGOING else WISH_POSITIVE_ARRIVAL | POSITION_JOURNAL_POSITIVE


cdef inline uint16_t failure(int reason) noexcept nogil:
    """What the feed is told of why a message left: 0 if it did not fail."""
    return <uint16_t>(reason if reason > 0 and reason & REASON_NEGATIVE else 0)


cdef inline uint8_t wishes_of(const UserMessage* m, const char* packet) noexcept nogil:
    """What the sender asked for, as a position record has it."""
    return (
        (m.ack_flags & POSITION_ACK_MASK if m.admin_type else 0)
        | (POSITION_JOURNAL_NEGATIVE if m.user_flags & USER_JOURNAL_NEGATIVE else 0)
        | (POSITION_JOURNAL_POSITIVE if m.user_flags & USER_JOURNAL_POSITIVE else 0)
        | (POSITION_FINAL if m.transaction_offset and packet[m.transaction_offset] & FINAL_ACK_REQUIRED else 0)
    )


cdef inline uint8_t final_wishes(uint8_t role, bint transactional, bint own, uint8_t wishes) noexcept nogil:
    """At its destination, a transactional message from elsewhere whose sender journals it wants a FinalAck (MS-MQQB 2.2.5).

    So does one that this queue manager sent to itself over HTTP: it is kept in an outgoing queue meanwhile.
    """
    if role != ROLE_DESTINATION:
        return wishes
    if transactional and not own and wishes & (POSITION_JOURNAL_POSITIVE | POSITION_JOURNAL_NEGATIVE | POSITION_FINAL):
        return wishes | POSITION_FINAL
    return wishes & ~POSITION_FINAL


cdef inline int reason_of(QueueCore core, int event) noexcept:
    """Why a message leaves a queue, by what the feed is told: a MessageClass, REASON_SENT or REASON_NONE."""
    if event == EVENT_RECEIVED:
        return REASON_RECEIVED
    if event == EVENT_ACKED:
        return REASON_SENT
    if event == EVENT_EXPIRED:
        return REASON_LATE if core.outgoing else REASON_TIMEOUT
    if event == EVENT_PURGED:
        return REASON_DELETED if core.gone else REASON_UNSENT if core.outgoing else REASON_PURGED
    return REASON_NONE


cdef bytes packet_of(QueueCore core, Slot* slot):
    """The packet of a message that leaves, for what follows from that. None: it cannot be read; the message stays, locked as damaged."""
    if slot.body != NULL:
        return <bytes>slot.body
    try:
        return core.ledger.tables.read_content(slot.content_id, slot.size)
    except StoreError as error:
        if core.sequence is not None:
            core._unnumber(slot)
        if slot.state != STATE_LOCKED:
            core.positions.set_state(slot, STATE_LOCKED)
        slot.owner = OWNER_DAMAGED
        core._report_damage(slot.key, error.status)
    return None


cdef bint hand_on(Ledger ledger, uint32_t queue, uint8_t role, QueueCore journal, const Slot* slot, bytes packet, int reason) except -1:
    """Does what follows, inside a unit. True: the stored content belongs to another queue now.

    `slot` may be invalid afterwards: an acknowledgment can go into the very list that it stands in.
    """
    cdef Slot left = slot[0]
    cdef QueueCore target
    cdef bint moved = False, told
    cdef int what
    if ledger.dispose is not None and left.wishes & concerning(role, reason):
        what, told, goal = ledger.dispose(role, packet, reason, left.wishes, left.dead_letter)
        if told and ledger.feed:
            _tell_of(ledger, queue, role, &left, what)
        if goal is not None:
            target = goal
            moved = transfer(ledger, &left, packet, target, what)
    if journal is not None and reason == REASON_RECEIVED and not moved:
        moved = transfer(ledger, &left, packet, journal, 0)
    return moved


cdef int _tell_of(Ledger ledger, uint32_t queue, uint8_t role, const Slot* slot, int reason) except -1:
    """The feed hears of an acknowledgment, with its class."""
    cdef Slot told = slot[0]
    told.message_class = <uint16_t>reason
    ledger.event(
        EVENT_NACKED if reason & REASON_NEGATIVE else EVENT_ACKED, queue, role == ROLE_OUTGOING, &told,
        not slot.flags & FLAG_RECOVERABLE, reason
    )
    return 0


cdef bint transfer(Ledger ledger, const Slot* slot, bytes packet, QueueCore target, int reason) except -1:
    """Gives what a message leaves behind to a journal or dead-letter queue, inside a unit: the stored content changes hands.

    False: there is no room, and the copy is discarded (X-35, X-36), counted and told. The quota of the queue manager still
    counts the original. Flow control is not asked: what is here was let in before.
    """
    cdef UserMessage m
    cdef uint64_t sequence
    cdef Slot* there = NULL
    # Dead letters of messages from elsewhere leave half of the room to those of local programs: strangers cause them at will.
    cdef uint64_t room = target.quota_bytes
    if reason & REASON_NEGATIVE and slot.source != ledger._own_source:
        room //= 2
    if not _has_place(target, slot.size, room):
        return discard(ledger, target)
    if parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m):
        return False
    sequence = ledger.next_sequence()
    there = target._place(
        slot.key & ~SEQUENCE_MASK | sequence, slot.content_id if slot.content_id else sequence, ledger.now_us, packet, &m
    )
    if ledger._followed is not None:
        ledger._followed.append((target, there.key))
    return _settle(ledger, slot, there, packet, &m, target, reason, slot.content_id == 0)


cdef bint duplicate(Ledger ledger, const Slot* slot, bytes packet, QueueCore target, int reason) except -1:
    """As `transfer`, with a content of its own: the original stays where it is."""
    cdef Slot alone = slot[0]
    alone.content_id = 0
    if slot.size > ledger.quota_bytes or ledger.bytes > ledger.quota_bytes - slot.size:
        return discard(ledger, target)
    return transfer(ledger, &alone, packet, target, reason)


cdef bint discard(Ledger ledger, QueueCore target) except -1:
    """A copy does not come into its queue. Returns False."""
    ledger.discarded += 1
    if ledger.on_discard is not None and ledger.now_s - ledger._discard_told >= DISCARD_SILENCE:
        ledger._discard_told = ledger.now_s
        ledger.on_discard(target.ordinal)
    return False


cdef bint _has_place(QueueCore target, uint64_t size, uint64_t room) noexcept:
    cdef Ledger ledger = target.ledger
    if target.gone or ledger.sequence >= ledger.sequence_limit:
        return False
    return size <= room and target.used_bytes <= room - size


cdef void lay_to_rest(QueueCore core, Slot* slot) noexcept:
    """A dead letter, in whatever queue: it does not expire, and nothing more follows from its removal."""
    slot.wishes = 0
    slot.deadline = NO_DEADLINE
    if slot.timer != NO_TIMER:
        core.ledger.wheel.stop(slot.timer)
        slot.timer = NO_TIMER


cdef bint _settle(Ledger ledger, const Slot* slot, Slot* there, bytes packet, const UserMessage* m, QueueCore target, int reason,
                  bint whole) except -1:
    """The new position, stored as the original was. `whole`: with its content."""
    cdef PositionRecord record
    cdef bint recoverable = there.flags & FLAG_RECOVERABLE
    there.reason = <uint16_t>(reason if reason & REASON_NEGATIVE else 0)
    if there.reason:
        lay_to_rest(target, there)
    there.abort_count = slot.abort_count
    there.move_count = slot.move_count
    there.dead_letter = slot.dead_letter
    target.arrived_total += 1
    if ledger.feed:
        target._tell(EVENT_DEAD_LETTERED if there.reason else EVENT_JOURNALED, there, not recoverable, there.reason)
    if not recoverable:
        target._count(there)
        if target.interested:
            target.mark()
        return True
    describe(&record, there, m, PyBytes_AS_STRING(packet))
    ledger.writer.put_position(target.ordinal, there.key, &record, True)
    if whole:
        ledger.writer.put_content(there.content_id, packet)
    ledger.writer.notify(target, there.key)
    return True


cdef bint recall(list followed) except -1:
    """Takes back what followed from a removal, with the current unit. False: somebody has got an acknowledgment already."""
    cdef QueueCore core
    cdef Slot* slot
    cdef bint everything = True
    for core, key in followed:
        slot = core.positions.find(<uint64_t>key)
        if slot != NULL and slot.state == STATE_AVAILABLE:
            core._erase(slot, EVENT_REMOVED)
        elif core.role != ROLE_NONE:
            everything = False
    return everything


cdef int arrived(QueueCore core, const Slot* slot, bytes packet) except -1:
    """A message reached its destination queue, inside the unit that enqueues it: ACK_REACH_QUEUE, and the sender's own copy (X-61).

    `slot` may be invalid afterwards.
    """
    cdef Ledger ledger = core.ledger
    cdef Slot there = slot[0]
    if core.role != ROLE_DESTINATION or ledger.dispose is None or not there.wishes & concerning(core.role, REASON_ARRIVED):
        return 0
    if there.source != ledger._own_source:
        there.wishes &= ~POSITION_JOURNAL_POSITIVE
    _, told, goal = ledger.dispose(core.role, packet, REASON_ARRIVED, there.wishes, 0)
    if told and ledger.feed:
        _tell_of(ledger, core.ordinal, core.role, &there, REASON_ARRIVED)
    if goal is not None:
        duplicate(ledger, &there, packet, <QueueCore?>goal, 0)
    return 0


def dead_letter(QueueCore target not None, bytes packet not None, int reason) -> bool:
    """Put a message that no queue took into a dead-letter queue, in the current unit. False: there was no room, it is discarded.

    What comes from others is not let in while flow control holds. Raises ValueError for a packet that is malformed.
    """
    cdef Ledger ledger = target.ledger
    cdef UserMessage m
    cdef Slot slot
    cdef int code = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m)
    if code:
        raise ValueError(f"not a UserMessage packet (fault {code})")
    memset(&slot, 0, sizeof(slot))
    slot.key = <uint64_t>(7 - effective_priority(&m)) << 56
    slot.size = <uint32_t>PyBytes_GET_SIZE(packet)
    if ledger.stopped():
        return discard(ledger, target)
    return duplicate(ledger, &slot, packet, target, reason)


cdef void doomed_of(Doomed* entry, uint32_t queue, uint8_t role, const Slot* slot, int event, int reason) noexcept:
    """What is to be remembered of a message that leaves the store."""
    memset(entry, 0, sizeof(entry[0]))
    entry.key = slot.key
    entry.content_id = slot.content_id
    entry.queue = queue
    entry.size = slot.size
    entry.source = slot.source
    entry.ordinal = slot.ordinal
    entry.message_class = slot.message_class
    entry.event = <uint8_t>event
    entry.role = role
    entry.reason = failure(reason)
    entry.abort_count = slot.abort_count
    entry.move_count = slot.move_count
    entry.dead_letter = slot.dead_letter
    if slot.wishes & concerning(role, reason):
        let_follow(entry, role, slot, reason)


cdef void let_follow(Doomed* entry, uint8_t role, const Slot* slot, int reason) noexcept:
    """Something follows from the removal, for which the packet is needed."""
    entry.follows = True
    entry.role = role
    entry.reason = <uint16_t>reason
    entry.wishes = slot.wishes


cdef void slot_of(Slot* slot, const Doomed* entry) noexcept:
    """The slot that a message had, as far as it matters for its removal."""
    memset(slot, 0, sizeof(slot[0]))
    slot.key = entry.key
    slot.content_id = entry.content_id
    slot.size = entry.size
    slot.source = entry.source
    slot.ordinal = entry.ordinal
    slot.message_class = entry.message_class
    slot.flags = FLAG_RECOVERABLE
    slot.abort_count = entry.abort_count
    slot.move_count = entry.move_count
    slot.dead_letter = entry.dead_letter
    slot.wishes = entry.wishes


cdef class Disposal(ReadListener):
    """Doomed messages from whose removal something follows: their packets are read, then they go in one unit."""
    cdef Ledger _ledger
    cdef Doomed* _entries
    cdef size_t _count, _left
    cdef uint64_t _bytes
    cdef list _packets
    cdef object _sink

    def __dealloc__(self):
        free(self._entries)

    cdef bint add(self, const Doomed* entry) except -1:
        """False: what is read at a time is enough."""
        if self._entries == NULL:
            self._entries = <Doomed*>realloc(NULL, DISPOSAL_COUNT * sizeof(Doomed))
            if self._entries == NULL:
                raise MemoryError("no memory for removals")
        if self._count == DISPOSAL_COUNT or (self._count and self._bytes + entry.size > DISPOSAL_BYTES):
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
        cdef Doomed* entry = &self._entries[token]
        if status == STATUS_OK and is_packet(<bytes>body):
            self._packets[token] = body
        elif self._ledger.on_read_error is not None:
            self._ledger.on_read_error(entry.queue, entry.key, status if status != STATUS_OK else MDB_CORRUPTED)
        self._left -= 1
        if self._left == 0:
            self._remove()
        return 0

    cdef int _remove(self) except -1:
        """Everything in one unit. A message of which nothing can follow leaves without that, and what raised is raised at the end."""
        cdef Ledger ledger = self._ledger
        cdef Writer writer = ledger.writer
        cdef object fault = None
        cdef size_t number
        if writer.failed:
            return 0
        ledger._disposing = 0
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
                ledger.doom(&self._entries[number])     # for the next reap
            raise
        writer.keep_unit()
        ledger._reaped = self._count
        for number in range(self._count):
            ledger.sources.release(self._entries[number].source)
        if fault is not None:
            raise fault
        return 0

    cdef int _remove_one(self, size_t number, bint follows) except -1:
        cdef Ledger ledger = self._ledger
        cdef Doomed* entry = &self._entries[number]
        cdef QueueCore core = ledger._cores.get(entry.queue)
        cdef Slot slot
        cdef bint moved = False
        packet = self._packets[number]
        slot_of(&slot, entry)
        ledger.writer.begin_unit()
        try:
            if follows and packet is not None:
                moved = hand_on(
                    ledger, entry.queue, entry.role, core.journal if core is not None else None, &slot, packet, entry.reason
                )
            ledger._condemn(entry.queue, entry.role, &slot, entry.event, entry.reason, moved)
            if ledger.feed and entry.event:
                ledger.event(entry.event, entry.queue, entry.role == ROLE_OUTGOING, &slot, False, entry.reason)
        except BaseException:
            ledger.writer.roll_back()
            raise
        ledger.writer.keep_unit()
        return 0
