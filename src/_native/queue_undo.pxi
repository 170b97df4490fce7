# How queues and their ledger take back what a unit of work did to them, see undo.pxd.
#
# To make one more change undoable: 1. add a kind; 2. log it before the change, with what the change overwrites; 3. put that back in
# `undo_in_queue` or `undo_in_ledger`. Entries run in reverse order: when one runs, everything is as it was right behind its change.

cdef enum UndoKind:
    UNDO_PLACED = 1             # a message came into the list
    UNDO_COMMITTED = 2          # the same in a transaction, whose reservation comes back
    UNDO_CHANGED = 3            # state, lock and counts of a message
    UNDO_REMOVED = 4            # a message left the list; `kept` is its packet
    UNDO_SHARED = 5             # so many bytes are counted in two queues of the family
    UNDO_EXPECTED = 6           # how many moves come here
    UNDO_DOOMED = 7             # a message waits for reap()
    UNDO_REAPED = 8             # one of them was taken
    UNDO_FINALS = 9             # the messages that wait for the FinalAcks of an ordinal; `kept` is the tuple
    UNDO_STREAM = 10            # which queue sends a sequence; `kept` is the queue
    UNDO_RESERVING = 11         # a block of SequentialIDs is asked for


cdef struct QueueUndo:
    int kind
    uint8_t state
    uint8_t flags
    uint16_t abort_count
    uint32_t owner
    uint32_t deadline
    uint64_t total              # arrived or removed since start; bytes; a number


cdef struct RemovalUndo:
    QueueUndo head
    Slot slot
    uint8_t source[16]


cdef struct ReapUndo:
    QueueUndo head
    Doomed entry
    uint8_t source[16]


cdef int log_placed(QueueCore core, uint64_t key, int kind) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    undo.total = core.arrived_total
    return core.ledger.writer.undo.add(core, key, &undo, sizeof(undo), None)


cdef int log_number(QueueCore core, int kind, uint64_t number) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    undo.total = number
    core.ledger.writer.undo.add(core, 0, &undo, sizeof(undo), None)
    return 0


cdef int log_changed(QueueCore core, const Slot* slot) except -1:
    cdef QueueUndo undo
    undo.kind = UNDO_CHANGED
    undo.state = slot.state
    undo.flags = slot.flags
    undo.abort_count = slot.abort_count
    undo.owner = slot.owner
    undo.deadline = slot.deadline
    core.ledger.writer.undo.add(core, slot.key, &undo, sizeof(undo), None)
    return 0


cdef int log_removed(Undoable owner, Ledger ledger, const Slot* slot, uint64_t total) except -1:
    """`owner`: the QueueCore or the Drain in whose list it stands."""
    cdef RemovalUndo undo
    cdef UndoLog log = ledger.writer.undo
    if log.depth:
        undo.head.kind = UNDO_REMOVED
        undo.head.total = total
        undo.slot = slot[0]
        memcpy(undo.source, ledger.sources.guid(slot.source), 16)
        log.add(owner, slot.key, &undo, sizeof(undo), <object>slot.body if slot.body != NULL else None)
    return 0


cdef int log_in_ledger(Ledger ledger, int kind, uint64_t token, object kept) except -1:
    cdef QueueUndo undo
    undo.kind = kind
    ledger.writer.undo.add(ledger, token, &undo, sizeof(undo), kept)
    return 0


cdef int log_reaped(Ledger ledger, const Doomed* entry) except -1:
    cdef ReapUndo undo
    undo.head.kind = UNDO_REAPED
    undo.entry = entry[0]
    memcpy(undo.source, ledger.sources.guid(entry.source), 16)
    ledger.writer.undo.add(ledger, 0, &undo, sizeof(undo), None)
    return 0


cdef int undo_in_queue(QueueCore core, uint64_t key, const QueueUndo* undo, object kept) except -1:
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


cdef int _undo_change(QueueCore core, Slot* slot, const QueueUndo* undo) except -1:
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
        core._arm(slot)
    return 0


cdef Slot* put_back(PositionList positions, Ledger ledger, const RemovalUndo* undo, object packet) except NULL:
    """A slot as it was when it was removed, without a timer and outside the accounts."""
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
    slot.wishes = undo.slot.wishes
    slot.source = ledger.sources.intern(undo.source)
    if packet is not None:
        positions.set_body(slot, packet)
    return slot


cdef int _undo_removal(QueueCore core, const RemovalUndo* undo, object packet) except -1:
    cdef Ledger ledger = core.ledger
    cdef Slot* slot = put_back(core.positions, ledger, undo, packet)
    core._use(slot.size)
    if slot.flags & FLAG_COUNTED:
        core.bytes += slot.size
        core.messages += 1
        if not slot.flags & FLAG_RECOVERABLE:
            ledger.express_bytes += slot.size
            if ledger.express_bytes > ledger.express_mid:
                ledger.fill()
    if slot.flags & FLAG_CACHED:
        ledger.cached_bytes += slot.size
    core._arm(slot)
    note_passing(core, slot)
    core.removed_total = undo.head.total
    return 0


cdef int undo_in_ledger(Ledger ledger, uint64_t token, const QueueUndo* undo, object kept) except -1:
    cdef Doomed entry
    if undo.kind == UNDO_DOOMED:
        ledger._doomed_count -= 1
        ledger.sources.release(ledger._doomed[ledger._doomed_count].source)
    elif undo.kind == UNDO_REAPED:
        entry = (<const ReapUndo*>undo).entry
        entry.source = ledger.sources.intern((<const ReapUndo*>undo).source)
        ledger.doom(&entry)
    elif undo.kind == UNDO_RESERVING:
        ledger._reserving = False
    elif undo.kind == UNDO_STREAM:
        if kept is None:
            ledger._streams.pop(token, None)
        else:
            ledger._streams[token] = kept
    elif kept is None:
        ledger._finals.pop(<uint32_t>token, None)
    else:
        ledger._finals[<uint32_t>token] = kept
    return 0
