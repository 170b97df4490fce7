# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The side effects of a message that reaches its queue, leaves it, or fails; see effects.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memset
from msmq_fast._native.batch cimport in_unit
from msmq_fast._native.framing cimport UserMessage, parse_user_message
from msmq_fast._native.ledgerbase cimport (
    EVENT_ACKED,
    EVENT_DEAD_LETTERED,
    EVENT_JOURNALED,
    EVENT_NACKED,
    OWNER_DAMAGED,
    REASON_ARRIVED,
    REASON_NEGATIVE,
    REASON_RECEIVED,
    ROLE_DESTINATION,
    ROLE_OUTGOING,
    LedgerBase,
    flags_for,
    stopped,
)
from msmq_fast._native.positions cimport FLAG_RECOVERABLE, STATE_LOCKED, Slot
from msmq_fast._native.queuebase cimport QueueBase, describe, effective_priority, mark_dead_letter
from msmq_fast._native.record cimport POSITION_JOURNAL_POSITIVE, SEQUENCE_MASK, PositionRecord

from msmq_fast._native.tables import StoreError

cdef enum:
    DISCARD_SILENCE = 60        # seconds between two reports of copies that were discarded for lack of room


cdef bytes packet_of(QueueBase core, Slot* slot):
    """Returns the packet of a message that is about to leave its queue, for the side effects. Returns None if the packet cannot be read;
    the message then stays in the queue, locked as damaged.
    """
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


cdef bint apply_side_effects(LedgerBase ledger, uint32_t queue, uint8_t role, QueueBase journal, const Slot* slot, bytes packet, int reason) except -1:
    """Applies the side effects of a removal, inside a unit. Returns True if the stored content now belongs to another queue.

    `slot` may be invalid afterwards: an acknowledgment can be inserted into the same list.
    """
    cdef Slot original = slot[0]
    cdef QueueBase target
    cdef bint moved = False, acknowledged
    cdef int what
    assert in_unit(ledger.writer), "call inside a unit"
    if ledger.on_removed is not None and original.ack_flags & flags_for(role, reason):
        what, acknowledged, target = ledger.on_removed(role, packet, reason, original.ack_flags, original.dead_letter)
        if acknowledged and ledger.feed:
            _tell_of(ledger, queue, role, &original, what)
        if target is not None:
            moved = transfer(ledger, &original, packet, target, what)
    if journal is not None and reason == REASON_RECEIVED and not moved:
        moved = transfer(ledger, &original, packet, journal, 0)
    return moved


cdef int _tell_of(LedgerBase ledger, uint32_t queue, uint8_t role, const Slot* slot, int reason) except -1:
    """Adds the feed event for a sent acknowledgment; `reason` is the MessageClass of the acknowledgment."""
    cdef Slot event = slot[0]
    event.message_class = <uint16_t>reason
    ledger.event(
        EVENT_NACKED if reason & REASON_NEGATIVE else EVENT_ACKED, queue, role == ROLE_OUTGOING, &event,
        not slot.flags & FLAG_RECOVERABLE, reason
    )
    return 0


cdef bint transfer(LedgerBase ledger, const Slot* original, bytes packet, QueueBase target, int reason) except -1:
    """Moves the content of a removed message to a journal or dead-letter queue, inside a unit: the stored content changes its owner.

    Returns False if there is no room: the copy is discarded (X-35, X-36), counted and reported. The quota of the queue manager still counts
    the original. Flow control does not apply, since the message was already accepted.
    """
    cdef UserMessage m
    cdef uint64_t sequence
    cdef Slot* slot = NULL
    assert in_unit(ledger.writer), "call inside a unit"
    # Dead letters of messages from other computers may use only half of the room, since unauthenticated peers can cause them at will.
    cdef uint64_t room = target.quota_bytes
    if reason & REASON_NEGATIVE and original.source != ledger._own_source:
        room //= 2
    if not _has_place(target, original.size, room):
        return discard(ledger, target)
    if parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m):
        return False
    sequence = ledger.next_sequence()
    slot = target._place(
        original.key & ~SEQUENCE_MASK | sequence, original.content_id if original.content_id else sequence, ledger.now_us, packet, &m
    )
    if ledger._side_effects is not None:
        ledger._side_effects.append((target, slot.key))
    return _settle(ledger, original, slot, packet, &m, target, reason, original.content_id == 0)


cdef bint duplicate(LedgerBase ledger, const Slot* slot, bytes packet, QueueBase target, int reason) except -1:
    """Like `transfer`, but leaves the original in its queue: the content of the message is copied."""
    cdef Slot alone = slot[0]
    alone.content_id = 0
    if slot.size > ledger.quota_bytes or ledger.bytes > ledger.quota_bytes - slot.size:
        return discard(ledger, target)
    return transfer(ledger, &alone, packet, target, reason)


cdef bint discard(LedgerBase ledger, QueueBase target) except -1:
    """Counts, and at intervals reports, a copy that was not put into `target`. Returns False."""
    ledger.discarded += 1
    if ledger.on_discard is not None and ledger.now_s - ledger._discard_told >= DISCARD_SILENCE:
        ledger._discard_told = ledger.now_s
        ledger.on_discard(target.ordinal)
    return False


cdef bint _has_place(QueueBase target, uint64_t size, uint64_t room) noexcept:
    cdef LedgerBase ledger = target.ledger
    if target.gone or ledger.sequence >= ledger.sequence_limit:
        return False
    return size <= room and target.used_bytes <= room - size


cdef bint _settle(LedgerBase ledger, const Slot* original, Slot* slot, bytes packet, const UserMessage* m, QueueBase target, int reason,
                  bint whole) except -1:
    """Completes the copy whose slot `transfer` has inserted into `target`. Stores its position if the message is recoverable; with `whole`,
    also its content.
    """
    cdef PositionRecord record
    cdef bint recoverable = slot.flags & FLAG_RECOVERABLE
    slot.reason = <uint16_t>(reason if reason & REASON_NEGATIVE else 0)
    if slot.reason:
        mark_dead_letter(target, slot)
    slot.abort_count = original.abort_count
    slot.move_count = original.move_count
    slot.dead_letter = original.dead_letter
    target.arrived_total += 1
    if ledger.feed:
        target._tell(EVENT_DEAD_LETTERED if slot.reason else EVENT_JOURNALED, slot, not recoverable, slot.reason)
    if not recoverable:
        target._count(slot)
        if target.interested:
            target.mark()
        return True
    describe(&record, slot, m, PyBytes_AS_STRING(packet))
    ledger.writer.put_position(target.ordinal, slot.key, &record, True)
    if whole:
        ledger.writer.put_content(slot.content_id, packet)
    ledger.writer.notify(target, slot.key)
    return True


cdef int arrived(QueueBase core, const Slot* slot, bytes packet) except -1:
    """Applies the side effects of an arrival, inside the unit that enqueues the message: the acknowledgment ACK_REACH_QUEUE, and, if this
    queue manager sent the message, the copy in its own journal (X-61).

    `slot` may be invalid afterwards.
    """
    cdef LedgerBase ledger = core.ledger
    cdef Slot original = slot[0]
    assert in_unit(core.ledger.writer), "call inside a unit"
    if core.role != ROLE_DESTINATION or ledger.on_removed is None or not original.ack_flags & flags_for(core.role, REASON_ARRIVED):
        return 0
    if original.source != ledger._own_source:
        original.ack_flags &= ~POSITION_JOURNAL_POSITIVE
    _, acknowledged, target = ledger.on_removed(core.role, packet, REASON_ARRIVED, original.ack_flags, 0)
    if acknowledged and ledger.feed:
        _tell_of(ledger, core.ordinal, core.role, &original, REASON_ARRIVED)
    if target is not None:
        duplicate(ledger, &original, packet, <QueueBase?>target, 0)
    return 0


def dead_letter(QueueBase target not None, bytes packet not None, int reason) -> bool:
    """Puts a message that no queue accepted into a dead-letter queue, in the current unit. Returns False if the message was discarded,
    because there was no room or during flow control.

    Raises ValueError for a malformed packet.
    """
    cdef LedgerBase ledger = target.ledger
    cdef UserMessage m
    cdef Slot slot
    cdef int code = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m)
    if code:
        raise ValueError(f"not a UserMessage packet (fault {code})")
    memset(&slot, 0, sizeof(slot))
    slot.key = <uint64_t>(7 - effective_priority(&m)) << 56
    slot.size = <uint32_t>PyBytes_GET_SIZE(packet)
    if stopped(ledger):
        return discard(ledger, target)
    return duplicate(ledger, &slot, packet, target, reason)
