# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Moves between a queue and its subqueues; see moving.pxd."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport STATUS_OK, Callback, CommitListener, in_unit
from msmq_fast._native.ledgerbase cimport (
    COUNT_LIMIT,
    EVENT_MOVED,
    OWNER_POISON,
    OWNER_STORE,
    REASON_NONE,
    UNDO_EXPECTED,
    UNDO_PLACED,
    UNDO_SHARED,
    LedgerBase,
)
from msmq_fast._native.positions cimport (
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    FLAG_TRANSACTIONAL,
    STATE_AVAILABLE,
    STATE_LOCKED,
    STATE_PENDING,
    STATE_PURGE_PENDING,
    Slot,
)
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport (
    arm,
    in_two_queues,
    log_changed,
    log_number,
    log_placed,
    note_out_of_order,
    stored_record,
    use_room,
)
from msmq_fast._native.record cimport POSITION_PREPARED, POSITION_PURGE_PENDING, NumberedPosition


@cython.final
cdef class Relocation(CommitListener):
    """A message that moves to another queue: until the unit is durable, it is in the lists of both queues, but counts once."""
    cdef QueueCore _source, _target
    cdef uint32_t _owner            # of the lock: a transaction, or OWNER_STORE
    cdef uint32_t _size

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef Slot* slot = self._source.positions.find(token)
        # The accounts count it twice until one of the two slots is removed.
        in_two_queues(self._source, -<int64_t>self._size)
        self._target.expected -= 1
        if slot != NULL and slot.flags & FLAG_REMOVING:
            if status == STATUS_OK:
                self._source._drop(slot)
            elif self._owner == OWNER_STORE or self._owner == OWNER_POISON:
                self._source._return(slot)
            else:
                slot.flags &= ~FLAG_REMOVING    # its transaction is notified after this, and decides whether it stays locked
        return 0

    cdef int settled(self) except -1:
        return 0


cdef int _relocate(QueueCore source, Slot* original, QueueCore target, uint32_t owner, object sink) except -1:
    """Begins to move a message with the current unit: adds it to the list of the target queue."""
    cdef LedgerBase ledger = source.ledger
    cdef NumberedPosition record
    cdef Relocation relocation
    cdef Slot* slot = NULL
    cdef uint64_t key = original.key
    cdef bint recoverable = original.flags & FLAG_RECOVERABLE
    assert in_unit(source.ledger.writer), "call inside a unit"
    if recoverable:
        stored_record(source, original, &record)
        record.position.arrival_seq = target._arrival(key)      # may raise: before the message is in two lists
    slot = target.positions.insert(key, STATE_PENDING)
    slot.content_id = original.content_id
    slot.arrived = original.arrived
    slot.size = original.size
    slot.source = original.source
    slot.ordinal = original.ordinal
    slot.message_class = original.message_class
    slot.dead_letter = original.dead_letter
    slot.reason = original.reason
    slot.ack_flags = original.ack_flags
    slot.deadline = original.deadline
    slot.flags = original.flags & (FLAG_RECOVERABLE | FLAG_TRANSACTIONAL)
    slot.move_count = original.move_count + 1 if original.move_count < COUNT_LIMIT else COUNT_LIMIT
    ledger.sources.retain(slot.source)
    if original.body != NULL:
        target.positions.set_body(slot, <object>original.body)
    use_room(target, slot.size)
    log_placed(target, key, UNDO_PLACED)
    arm(target, slot)
    if not recoverable:
        if ledger.feed:
            ledger.event(EVENT_MOVED, target.ordinal, False, original, True, REASON_NONE, source.ordinal, ledger.caller)
        source._drop(original)
        note_out_of_order(target, slot)
        target._available(slot)
        if target.interested:
            target.mark()
        if sink is not None:
            sink(STATUS_OK)
        return 0
    record.position.abort_count = 0
    record.position.move_count += 1
    record.position.last_move_s = ledger.now_s
    record.position.flags &= ~(POSITION_PURGE_PENDING | POSITION_PREPARED)
    record.position.prepared_slot = 0
    log_changed(source, original)
    if original.state == STATE_AVAILABLE:
        source.positions.set_state(original, STATE_LOCKED)
        original.owner = owner
    original.flags |= FLAG_REMOVING
    log_number(source, UNDO_SHARED, original.size)
    in_two_queues(source, original.size)
    expect(target, 1)
    relocation = Relocation.__new__(Relocation)
    relocation._source = source
    relocation._target = target
    relocation._owner = owner
    relocation._size = original.size
    ledger.writer.delete_position(source.ordinal, key)
    ledger.writer.put_position(target.ordinal, key, &record.position)
    if ledger.feed:
        ledger.event(EVENT_MOVED, target.ordinal, False, original, False, REASON_NONE, source.ordinal, ledger.caller)
    ledger.writer.notify(relocation, key)
    ledger.writer.notify(target, key)
    if sink is not None:
        ledger.writer.notify(Callback(sink), 0)
    return 0


cdef int expect(QueueCore core, int more) except -1:
    """Adds `more` (1 or -1) to the number of moves to this queue that transactions may still make. While it is not 0, the queue is kept
    even if it is empty.
    """
    log_number(core, UNDO_EXPECTED, core.expected)
    core.expected += more
    return 0


def move(QueueCore source not None, uint64_t key, QueueCore target not None, sink=None, uint32_t caller=0) -> bool:
    """Moves an available message between a queue and a subqueue, or between two subqueues (DM-142, DU-11). Returns False if it is not
    available, or if the target queue was deleted.

    `sink(status)` is called when the move is durable or has failed; for an express message, before this returns. If the commit fails, the
    message returns to its old place. `caller` is the number of the program for the feed.
    """
    cdef Slot* slot = source.positions.find(key)
    if slot == NULL or slot.state != STATE_AVAILABLE or target.gone:
        return False
    source.ledger.writer.begin_unit()
    source.ledger.caller = caller
    try:
        _relocate(source, slot, target, OWNER_STORE, sink)
    except BaseException:
        source.ledger.caller = 0
        source.ledger.writer.roll_back()
        raise
    source.ledger.caller = 0
    source.ledger.writer.keep_unit()
    return True


def lock_for_move(QueueCore source not None, uint64_t key, uint32_t owner, QueueCore target not None) -> bool:
    """Locks an available message that a transaction will move (DM-145). The target queue is kept even if it is empty."""
    if target.gone or not source.claim(key, owner):
        return False
    target.expected += 1
    return True


def move_locked(QueueCore source not None, uint64_t key, uint32_t owner, QueueCore target not None) -> bool:
    """Moves a message that `owner` has locked, within a unit. Returns False if the message has been removed. If the unit fails, the message
    is available again.

    Raises ValueError if the message has no record in the store; the message then stays locked.
    """
    expect(target, 1)
    return complete_move(source, key, owner, target)


def keep_counts(QueueCore core not None, const uint64_t[::1] keys not None) -> None:
    """Stores the abort and move counts of those of these messages that are available, in one unit."""
    cdef Py_ssize_t index
    core.ledger.writer.begin_unit()
    try:
        for index in range(keys.shape[0]):
            core.put_counts(keys[index], 0)
    except BaseException:
        core.ledger.writer.roll_back()
        raise
    core.ledger.writer.keep_unit()


cpdef bint complete_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1:
    """Moves a message to the queue `target` with the current unit, because the transaction commits. Returns False if the message or the
    target queue has been removed.

    A message that was purged meanwhile is moved all the same (X-57). If the unit fails, the message is locked as before.
    """
    cdef Slot* slot = source.positions.find(key)
    expect(target, -1)
    if slot == NULL or slot.owner != owner or (slot.state != STATE_LOCKED and slot.state != STATE_PURGE_PENDING):
        return False
    if target.gone:
        source.abort_dequeue(slot)
        return False
    _relocate(source, slot, target, owner, None)
    return True


cpdef bint abort_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1:
    """Cancels a move, because its transaction aborts: the message becomes available in its old queue, with AbortCount + 1. Returns False if
    the message has been removed.
    """
    cdef Slot* slot = source.positions.find(key)
    target.expected -= 1
    if slot == NULL or slot.owner != owner or (slot.state != STATE_LOCKED and slot.state != STATE_PURGE_PENDING):
        return False
    source.abort_dequeue(slot)
    return True
