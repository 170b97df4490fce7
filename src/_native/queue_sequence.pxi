# Transactional messages of outgoing queues that were sent here: their numbers, and when they leave (MS-MQQB 3.1.5.6, 3.1.5.7).

cdef inline bint to_be_numbered(QueueCore core, const Slot* slot) noexcept:
    """Whether a message has a place in the sequence to its receiver; what other queue managers sent is theirs to number."""
    return (
        core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL and slot.source == core.ledger._own_source
        and core.ledger.open_stream is not None
    )


cdef inline bint concludes(QueueCore core, const UserMessage* m, const char* packet) noexcept:
    """Whether a message tells another queue manager of the end of its message, which would wait for ever: there is room for some beyond the quota.

    Only for our own: what others send through us says of itself what it likes.
    """
    return (
        core.outgoing and core.role == ROLE_NONE and m.message_class != 0 and core.used_bytes < CONCLUDING_BYTES
        and memcmp(packet + SOURCE_OFFSET, core.ledger._guid, 16) == 0
    )


cdef int note_passing(QueueCore core, const Slot* slot) except -1:
    if core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL and slot.source != core.ledger._own_source:
        core._passing.add(<uint64_t>slot.source << 32 | slot.ordinal)
    return 0


cdef bint stream_left(QueueCore core) except -1:
    """Whether the next message can have a number; a new sequence begins if no message of the one before waits for an OrderAck."""
    cdef OutSequence sequence = core.sequence
    if sequence.unordered or (sequence.identifier and sequence.next_number == 1):
        return sequence.next_number <= LAST_NUMBER
    return core.ledger._begin_stream(core)


cdef bint number_left(QueueCore core, const UserMessage* m, const char* packet) except -1:
    """`stream_left`, for a message that may need no number."""
    if core.sequence is None or not m.transaction_offset or core.ledger.open_stream is None:
        return True
    return memcmp(packet + SOURCE_OFFSET, core.ledger._guid, 16) != 0 or stream_left(core)


cdef int number(QueueCore core, const Slot* slot, NumberedPosition* record) except -1:
    """Gives a message that comes into an outgoing queue its number, and completes its record (AMB-04, DU-19)."""
    cdef OutSequence sequence = core.sequence
    if not to_be_numbered(core, slot):
        return 0
    if not stream_left(core):
        raise OverflowError("no number is left for a message: the store or the receiver does not keep up")
    record.sequence_number = sequence.assign(slot.key, slot.ordinal)
    record.sequence_id = sequence.identifier
    record.position.version = POSITION_NUMBERED
    return stream_changed(core)


cdef int stream_changed(QueueCore core) except -1:
    """The state of a sequence joins the current batch: one record in each, which is brought up to date in place."""
    cdef uint8_t key[STREAM_KEY_SIZE]
    cdef RenamedStream whole
    cdef OutgoingStream* record = &whole.stream
    cdef OutSequence sequence = core.sequence
    cdef Writer writer = core.ledger.writer
    cdef size_t size = sizeof(whole) if core.srmp else sizeof(whole.stream)
    memset(&whole, 0, sizeof(whole))
    record.version = STREAM_RENAMED if core.srmp else STREAM_VERSION
    record.resend_index = <uint8_t>min(sequence.resend_index, 255)
    record.stamp = sequence.stamp
    record.last_ack = sequence.last_ack
    record.sequence_id = sequence.identifier
    record.next_number = sequence.next_number
    record.ack_count = sequence.ack_count
    record.last_ack_s = sequence.last_ack_s
    whole.alias = sequence.alias
    whole.base = sequence.base
    whole.answered = sequence.answered
    if core._stream_handles == writer.handles():
        return writer.patch_head(core._stream_place, &whole, size)
    stream_key(key, core.ordinal)
    core._stream_place = writer.put_head(TABLE_SEQUENCE, key, STREAM_KEY_SIZE, <const uint8_t*>&whole, size)
    core._stream_handles = writer.handles()
    return 0


cdef int send_stream(Ledger ledger, uint64_t identifier, QueueCore core) except -1:
    """A queue sends this sequence now; None: no queue does."""
    log_in_ledger(ledger, UNDO_STREAM, identifier, ledger._streams.get(identifier))
    if core is None:
        ledger._streams.pop(identifier, None)
    else:
        ledger._streams[identifier] = core
    return 0


cdef int retire(QueueCore core, uint64_t key) except -1:
    """The receiver has a message: it leaves, or waits for the FinalAck that its sender asked for (DU-14). Within a unit."""
    cdef Slot* slot = core.positions.find(key)
    if slot == NULL:
        core.sequence.remove(key)
        return 0
    if slot.flags & FLAG_REMOVING:
        return 0    # somebody has taken it out already; `_return` asks again should that not be kept
    if slot.wishes & (POSITION_JOURNAL_NEGATIVE if core.srmp else POSITION_JOURNAL_POSITIVE | POSITION_JOURNAL_NEGATIVE | POSITION_FINAL):
        return await_final(core, slot)
    if core.srmp and slot.wishes & POSITION_JOURNAL_POSITIVE:
        return conclude(core, key, REASON_ARRIVED)     # nobody tells what becomes of it (MC-MQSRM 3.1.1.3.3)
    return core._take_out(slot, EVENT_ACKED)


cdef int await_final(QueueCore core, Slot* slot) except -1:
    """Its place in the store says from now on that the receiver has it, so that it is never sent again."""
    cdef NumberedPosition record
    stored_record(core, slot, &record)
    record.position.flags |= POSITION_ORDERED
    if core.sequence.alias and record.sequence_id == core.sequence.identifier:
        record.sequence_id = core.sequence.alias
        record.sequence_number -= core.sequence.base
    for waiting in core.ledger._finals.get(slot.ordinal, ()):
        if waiting[0] is core and waiting[1] == slot.key:   # its sequence is over, and with it what that was renamed to
            record.sequence_id, record.sequence_number = waiting[2], waiting[3]
    core.ledger.writer.put_position(core.ordinal, slot.key, &record.position)
    log_changed(core, slot)
    core.sequence.remove(slot.key)
    if slot.state != STATE_LOCKED:
        core.positions.set_state(slot, STATE_LOCKED)
    slot.flags &= ~FLAG_EXPIRE_WHEN_UNLOCKED
    hold_for_final(core, slot, &record)
    return core.shed_body(slot.key)


cdef int hold_for_final(QueueCore core, Slot* slot, const NumberedPosition* record) except -1:
    """Locked until its FinalAck comes, or until there is no hope of one (AMB-35)."""
    cdef Ledger ledger = core.ledger
    cdef uint64_t end = <uint64_t>record.position.sent_s + record.position.time_to_be_received + ledger.final_grace
    slot.owner = OWNER_FINAL
    if slot.timer != NO_TIMER:
        ledger.wheel.stop(slot.timer)
        slot.timer = NO_TIMER
    slot.deadline = NO_DEADLINE
    if record.position.time_to_be_received != INFINITE and end < NO_DEADLINE:
        slot.deadline = <uint32_t>end
    core._arm(slot)
    core.sequence.count_final(1)
    return expect_final(core, slot.ordinal, slot.key, record.sequence_id, record.sequence_number)


cdef int expect_final(QueueCore core, uint32_t ordinal, uint64_t key, uint64_t identifier, uint32_t number) except -1:
    """A FinalAck for this place in a sequence is for the message `key`."""
    cdef Ledger ledger = core.ledger
    forget_final(ledger, ordinal, core, key)    # its sequence may have ended before its session spoke
    # Copies for several destinations may share an identifier.
    return set_finals(ledger, ordinal, ledger._finals.get(ordinal, ()) + ((core, key, identifier, number),))


cdef int set_finals(Ledger ledger, uint32_t ordinal, tuple waiting) except -1:
    log_in_ledger(ledger, UNDO_FINALS, ordinal, ledger._finals.get(ordinal))
    if waiting:
        ledger._finals[ordinal] = waiting
    else:
        ledger._finals.pop(ordinal, None)
    return 0


cdef int leave_sequence(QueueCore core) except -1:
    """The next sequence is about to begin: what is still here is ordered, and has to be found when its FinalAck is quicker than its session (QB-216)."""
    cdef OutSequence sequence = core.sequence
    cdef OutEntry* entry
    cdef uint64_t key
    for key in sequence.current():
        entry = sequence.find(key)
        expect_final(core, entry.ordinal, key, sequence.known_as(), entry.number - sequence.base)
    return send_stream(core.ledger, sequence.known_as(), None)


cdef int forget_final(Ledger ledger, uint32_t ordinal, QueueCore core, uint64_t key) except -1:
    if not ledger._finals or ordinal not in ledger._finals:
        return 0
    left = tuple([waiting for waiting in ledger._finals[ordinal] if waiting[0] is not core or waiting[1] != key])
    return set_finals(ledger, ordinal, left)


cdef int conclude(QueueCore core, uint64_t key, int reason) except -1:
    """It is known what became of a message, or will never be: `reason` is a MessageClass (DU-15)."""
    cdef Ledger ledger = core.ledger
    cdef Slot* slot = core.positions.find(key)
    cdef Slot left
    cdef bytes packet
    cdef bint moved = False
    cdef bint negative = reason & REASON_NEGATIVE != 0
    if slot == NULL or slot.flags & FLAG_REMOVING:
        return 0
    left = slot[0]
    # Acknowledgments were the receiver's to send: what follows here is the sender's own copy.
    left.wishes &= POSITION_JOURNAL_NEGATIVE if negative else POSITION_JOURNAL_POSITIVE
    if not negative:
        reason = REASON_ARRIVED
    if left.wishes:
        packet = packet_of(core, slot)
        if packet is None:
            return 0
    ledger.writer.begin_unit()
    try:
        if left.wishes:
            moved = hand_on(ledger, core.ordinal, ROLE_OUTGOING, None, &left, packet, reason)
            slot = core.positions.find(key)
        if left.flags & FLAG_RECOVERABLE:
            ledger._condemn(core.ordinal, ROLE_OUTGOING, &left, EVENT_NACKED if negative else EVENT_ACKED, reason, moved)
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


def give_up(QueueCore core not None, uint64_t key, int reason) -> None:
    """A message of an outgoing queue cannot be sent at all: it leaves, for a dead-letter queue if it asks for that. `reason` is a negative MessageClass."""
    conclude(core, key, reason)


def order_ack(Ledger ledger not None, uint64_t identifier, uint32_t number) -> "QueueCore | None":
    """An OrderAck for a sequence up to `number`: what it covers leaves in the current unit. The queue that it is for.

    None if no queue sends this sequence now, or if no message with this number was ever transmitted (AMB-14).
    """
    cdef QueueCore core = ledger._streams.get(identifier)
    if core is None or number > LAST_NUMBER - core.sequence.base:
        return None
    ledger.writer.begin_unit()
    try:
        over = core.sequence.order(number + core.sequence.base)
        if over is None:
            core = None
        else:
            core.sequence.last_ack_s = ledger.now_s
            if core.sequence.ack_count == 1:
                stream_changed(core)
                retire_all(core, over)
    except BaseException:
        ledger.writer.roll_back()
        raise
    ledger.writer.keep_unit()
    return core


cdef int retire_one(QueueCore core, uint64_t key) except -1:
    core.ledger.writer.begin_unit()
    try:
        retire(core, key)
        core.ledger.removals.watch()
    except BaseException:
        core.ledger.writer.roll_back()
        raise
    core.ledger.writer.keep_unit()
    return 0


cdef int retire_all(QueueCore core, uint64_t[::1] keys) except -1:
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


def sender_of(Ledger ledger not None, uint64_t identifier, uint32_t ordinal=0, uint32_t number=0) -> "QueueCore | None":
    """The queue that sends a sequence, or in which the message `ordinal` with this place waits for its FinalAck."""
    for waiting in ledger._finals.get(ordinal, ()):
        if (waiting[2], waiting[3]) == (identifier, number):
            return waiting[0]
    return ledger._streams.get(identifier)


def final_ack(Ledger ledger not None, uint32_t ordinal, uint64_t identifier, uint32_t number, int reason) -> bool:
    """A FinalAck for the message with the identifier `ordinal` of this queue manager, of the class `reason`; False if none waits for it.

    It may come before the OrderAck, and says as much as one about this message.
    """
    cdef QueueCore core
    cdef OutEntry* entry = NULL
    for waiting in ledger._finals.get(ordinal, ()):
        if (waiting[2], waiting[3]) == (identifier, number):
            conclude(waiting[0], waiting[1], reason)
            return True
    core = ledger._streams.get(identifier)
    if core is None or number > LAST_NUMBER - core.sequence.base:
        return False
    entry = core.sequence.numbered(core.sequence.identifier, number + core.sequence.base)
    if entry == NULL or entry.ordinal != ordinal or entry.number > core.sequence.highest:
        return False
    conclude(core, entry.key, reason)
    return True


def resend(QueueCore core not None) -> int:
    """Everything that was transmitted and is covered by no OrderAck is to be sent again, in order, with the same numbers. Returns how many."""
    cdef Slot* slot = NULL
    cdef uint64_t key
    cdef int released = 0
    for key in core.sequence.underway():
        slot = core.positions.find(key)
        if slot != NULL and slot.owner & <uint32_t>OWNER_TRANSFER:
            released += core.release(array("Q", (key,)), slot.owner)
    return released


def resent(QueueCore core not None) -> None:
    """ResendIntervalIndex has changed: it is kept."""
    stream_changed(core)


def session_ended(QueueCore core not None, uint32_t owner) -> int:
    """As `resend`, of what a session had sent that has ended; what an OrderAck covers leaves. Returns how many are sent again."""
    cdef Slot* slot = NULL
    cdef uint64_t key
    cdef list keys = []
    for key in core.sequence.underway():
        slot = core.positions.find(key)
        if slot != NULL and slot.owner == owner:
            keys.append(key)
    return core.release(array("Q", keys), owner) if keys else 0


# ---- queues whose messages leave by SRMP: an answer to each message, then stream receipts


def may_continue(QueueCore core not None, sink) -> bool:
    """Whether the next message of an SRMP queue may be sent. If not, `sink(status)` is called when that is to be asked again; a status other
    than 0: the store does not keep up.

    A receiver takes a sequence from its message 1 on only, so that one of which nothing was ever answered and whose first message has left
    begins again under an identifier of its own (A-14). What was answered is known for ever before anything else is sent: a sequence that
    began again though its receiver has a part of it would be received twice.
    """
    cdef OutSequence sequence = core.sequence
    cdef Ledger ledger = core.ledger
    cdef uint64_t alias = 0
    if not sequence.unsure:
        if not sequence.headless():
            return True
        alias = ledger.open_stream()
        if not alias:
            sink(-EAGAIN)
            return False
    ledger.writer.begin_unit()
    try:
        if alias:
            send_stream(ledger, sequence.known_as(), None)
            sequence.rename(alias)
            send_stream(ledger, alias, core)
        stream_changed(core)
        ledger.writer.notify(Callback(sink), 0)
    except BaseException:
        ledger.writer.roll_back()
        raise
    ledger.writer.keep_unit()
    return False


def depart(QueueCore core not None, uint64_t key) -> tuple:
    """A message that is locked is about to be sent: (identifier, number, previous) of its place in the sequence as its receiver knows it,
    zeros if it has none. `previous`: the one before that is still here, else the last that a receipt covers, else 0."""
    cdef OutSequence sequence = core.sequence
    cdef uint32_t previous = 0
    cdef OutEntry* entry = sequence.depart(key, &previous)
    if entry == NULL:
        return 0, 0, 0
    return sequence.known_as(), entry.number - sequence.base, previous - sequence.base if previous > sequence.base else 0


def answered(QueueCore core not None, uint64_t key, uint32_t owner, uint32_t keeper) -> bool:
    """The receiver of a message that `owner` has locked says that it has it. Those of a sequence wait for a stream receipt, locked for `keeper`;
    the others leave. Whether it waits."""
    cdef OutSequence sequence = core.sequence
    cdef Slot* slot = NULL
    cdef int answer = sequence.acknowledged(key)
    if answer == ANSWER_OTHER:
        core.acked(array("Q", (key,)), owner)
        return False
    if answer == ANSWER_OVER:
        retire_one(core, key)   # a receipt was quicker, and says more; it may be of the sequence before
        return False
    sequence.unsure = sequence.unsure or not sequence.answered
    sequence.answered = True
    slot = core.positions.find(key)
    if slot == NULL or slot.owner != owner:
        return False
    slot.owner = keeper
    if slot.flags & FLAG_EXPIRE_WHEN_UNLOCKED and slot.state == STATE_LOCKED:
        slot.flags &= ~FLAG_EXPIRE_WHEN_UNLOCKED
        core._late(slot)
    elif core.ledger.cached_bytes > core.ledger.cache_limit // 2:
        core.shed_body(key)
    return True


cdef int forget_purged(QueueCore core) except -1:
    """The queue was purged: the numbers of the messages that are not in it any more lead to a gap (QB-113)."""
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


cdef int restore_numbered(QueueCore core, Slot* slot, const NumberedPosition* record) except -1:
    """A stored message of an outgoing queue that has a number."""
    if record.position.flags & POSITION_ORDERED:
        core.positions.set_state(slot, STATE_LOCKED)
        return hold_for_final(core, slot, record)
    core.sequence.restore(slot.key, slot.ordinal, record.sequence_id, record.sequence_number)
    return 0


def resume_sequence(QueueCore core not None, bytes record) -> None:
    """At start, before the positions are loaded: the stored state of a sequence, None if there is none. ValueError: it is damaged."""
    cdef RenamedStream whole
    cdef OutgoingStream stream
    cdef bint renamed
    if record is None:
        return
    renamed = record[:1] == bytes((STREAM_RENAMED,))
    memset(&whole, 0, sizeof(whole))
    if len(record) < <Py_ssize_t>(sizeof(whole) if renamed else sizeof(stream)) or not (renamed or record[0] == STREAM_VERSION):
        raise ValueError("no state of an outgoing sequence of a known version")
    memcpy(&whole, PyBytes_AS_STRING(record), sizeof(whole) if renamed else sizeof(stream))
    stream = whole.stream
    if not stream.sequence_id or not 0 < stream.next_number <= <uint64_t>LAST_NUMBER + 1 or stream.last_ack >= stream.next_number:
        raise ValueError("the state of an outgoing sequence is impossible")
    core.sequence.resume(stream.sequence_id, stream.next_number, stream.last_ack, stream.ack_count, stream.stamp)
    core.sequence.resume_alias(whole.alias, whole.base, whole.answered)
    core.sequence.resend_index = stream.resend_index
    core.sequence.last_ack_s = stream.last_ack_s
    core.ledger._streams[core.sequence.known_as()] = core


def settle_sequence(QueueCore core not None, uint32_t stamp) -> None:
    """At start, when the positions are loaded, in a unit: what is known to have arrived leaves, and what has no number gets one.

    `stamp`: the TimeStamp of sequences that begin in this incarnation.
    """
    cdef Slot* slot = NULL
    cdef NumberedPosition record
    cdef uint64_t key = 0
    if core.sequence.identifier:
        core.ledger._streams[core.sequence.known_as()] = core
    retire_all(core, core.sequence.covered())
    if core.sequence.set_apart(stamp):
        stream_changed(core)
    while True:
        slot = core.positions.following(key, EVERY_STATE)
        if slot == NULL:
            return
        key = slot.key
        if to_be_numbered(core, slot) and slot.owner != OWNER_FINAL and core.sequence.find(key) == NULL:
            stored_record(core, slot, &record)
            number(core, slot, &record)
            core.ledger.writer.put_position(core.ordinal, key, &record.position)
