# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Transactional messages of outgoing queues: OrderAcks, FinalAcks, retransmission and start-up; also queues whose messages are sent by
SRMP.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.errno cimport EAGAIN
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport Callback
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport EVERY_STATE, OWNER_FINAL, OWNER_TRANSFER, LedgerBase
from msmq_fast._native.numbering cimport number, send_stream, stream_changed, to_be_numbered
from msmq_fast._native.outsequence cimport ANSWER_OTHER, ANSWER_OVER, LAST_NUMBER, OutEntry, OutSequence
from msmq_fast._native.positions cimport FLAG_EXPIRE_WHEN_UNLOCKED, STATE_LOCKED, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport stored_record
from msmq_fast._native.record cimport STREAM_RENAMED, STREAM_VERSION, NumberedPosition, OutgoingStream, RenamedStream
from msmq_fast._native.removal cimport finish_outgoing, retire_all, retire_one

from array import array



def give_up(QueueCore core not None, uint64_t key, int reason) -> None:
    """Removes from an outgoing queue a message that cannot be sent at all; moves it to a dead-letter queue if the message requests that.
    `reason` is a negative MessageClass.
    """
    finish_outgoing(core, key, reason)


def order_ack(Ledger ledger not None, uint64_t identifier, uint32_t number) -> "QueueCore | None":
    """Processes an OrderAck for a sequence up to `number`: in the current unit, removes those messages that wait for nothing but this
    OrderAck. Returns the queue.

    Returns None if no queue sends this sequence now, or if no message with this number was ever transmitted (AMB-14).
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


def sender_of(Ledger ledger not None, uint64_t identifier, uint32_t ordinal=0, uint32_t number=0) -> "QueueCore | None":
    """Returns the queue that now sends the sequence `identifier`, or in which the message with the identifier `ordinal` and this number of
    that sequence waits for its FinalAck; None if there is no such queue.
    """
    for waiting in ledger._finals.get(ordinal, ()):
        if (waiting[2], waiting[3]) == (identifier, number):
            return waiting[0]
    return ledger._streams.get(identifier)


def final_ack(Ledger ledger not None, uint32_t ordinal, uint64_t identifier, uint32_t number, int reason) -> bool:
    """Processes a FinalAck of class `reason` for a message of this queue manager with the identifier `ordinal`. Returns False if no message
    waits for this FinalAck.

    A FinalAck that arrives before the OrderAck also counts as an OrderAck for its message.
    """
    cdef QueueCore core
    cdef OutEntry* entry = NULL
    for waiting in ledger._finals.get(ordinal, ()):
        if (waiting[2], waiting[3]) == (identifier, number):
            finish_outgoing(waiting[0], waiting[1], reason)
            return True
    core = ledger._streams.get(identifier)
    if core is None or number > LAST_NUMBER - core.sequence.base:
        return False
    entry = core.sequence.numbered(core.sequence.identifier, number + core.sequence.base)
    if entry == NULL or entry.ordinal != ordinal or entry.number > core.sequence.highest:
        return False
    finish_outgoing(core, entry.key, reason)
    return True


def resend(QueueCore core not None) -> int:
    """Marks for retransmission all messages that were transmitted and that no OrderAck covers; they keep their order and numbers. Returns
    how many messages.
    """
    cdef Slot* slot = NULL
    cdef uint64_t key
    cdef int released = 0
    for key in core.sequence.underway():
        slot = core.positions.find(key)
        if slot != NULL and slot.owner & <uint32_t>OWNER_TRANSFER:
            released += core.release(array("Q", (key,)), slot.owner)
    return released


def resent(QueueCore core not None) -> None:
    """Stores the state of the sequence after its ResendIntervalIndex has changed."""
    core.ledger.writer.begin_unit()
    try:
        stream_changed(core)
    except BaseException:
        core.ledger.writer.roll_back()
        raise
    core.ledger.writer.keep_unit()


def session_ended(QueueCore core not None, uint32_t owner) -> int:
    """Like `resend`, but only for the messages that the ended session `owner` had sent. Messages that an OrderAck covers leave the queue.
    Returns how many messages will be sent again.
    """
    cdef Slot* slot = NULL
    cdef uint64_t key
    cdef list keys = []
    for key in core.sequence.underway():
        slot = core.positions.find(key)
        if slot != NULL and slot.owner == owner:
            keys.append(key)
    return core.release(array("Q", keys), owner) if keys else 0


def may_continue(QueueCore core not None, sink) -> bool:
    """Whether the next message of an SRMP queue may be sent. If not, `sink(status)` is called when the caller should ask again; a status
    other than 0 means that the store fails to keep up.

    A receiver accepts a sequence only from its message 1 on. Therefore a sequence begins again, under a new identifier (A-14), if the
    receiver never answered any message of it and its first message has left the queue. That the receiver has answered is stored before
    anything else is sent: if a sequence began again although the receiver already has messages of it, these would be received twice.
    """
    cdef OutSequence sequence = core.sequence
    cdef LedgerBase ledger = core.ledger
    cdef uint64_t alias = 0
    if not sequence.state_not_durable:
        if not sequence.needs_restart():
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
    """Marks a locked message as sent; called before it is sent. Returns the position of the message in its sequence as (sequence
    identifier, number, previous number), in the values that the receiver knows; (0, 0, 0) if the message has no number.

    The previous number is that of the previous message that is still in the queue, otherwise the last one that a receipt covers, otherwise
    0.
    """
    cdef OutSequence sequence = core.sequence
    cdef uint32_t previous = 0
    cdef OutEntry* entry = sequence.depart(key, &previous)
    if entry == NULL:
        return 0, 0, 0
    return sequence.known_as(), entry.number - sequence.base, previous - sequence.base if previous > sequence.base else 0


def answered(QueueCore core not None, uint64_t key, uint32_t owner, uint32_t keeper) -> bool:
    """Processes the confirmation of the receiver that it has a message, which `owner` has locked. Returns True if the message stays in the
    queue.

    A message of a sequence stays, locked for `keeper`, until a stream receipt covers it. Any other message leaves the queue.
    """
    cdef OutSequence sequence = core.sequence
    cdef Slot* slot = NULL
    cdef int answer = sequence.acknowledged(key)
    if answer == ANSWER_OTHER:
        core.acked(array("Q", (key,)), owner)
        return False
    if answer == ANSWER_OVER:
        retire_one(core, key)   # a receipt arrived first, and covers more; it may belong to the previous sequence
        return False
    sequence.state_not_durable = sequence.state_not_durable or not sequence.answered
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


def resume_sequence(QueueCore core not None, bytes record) -> None:
    """At start, before the positions are loaded: restores the stored state of a sequence from `record`, which is None if there is none.
    Raises ValueError if it is damaged.
    """
    cdef RenamedStream whole
    cdef OutgoingStream stream
    cdef bint renamed
    if record is None:
        return
    renamed = record[:1] == bytes((STREAM_RENAMED,))
    memset(&whole, 0, sizeof(whole))
    if len(record) < <Py_ssize_t>(sizeof(whole) if renamed else sizeof(stream)) or not (renamed or record[0] == STREAM_VERSION):
        raise ValueError("not the stored state of an outgoing sequence in a known version")
    memcpy(&whole, PyBytes_AS_STRING(record), sizeof(whole) if renamed else sizeof(stream))
    stream = whole.stream
    if not stream.sequence_id or not 0 < stream.next_number <= <uint64_t>LAST_NUMBER + 1 or stream.last_ack >= stream.next_number:
        raise ValueError("the values in the stored state of an outgoing sequence contradict each other")
    core.sequence.resume(stream.sequence_id, stream.next_number, stream.last_ack, stream.ack_count, stream.stamp)
    core.sequence.resume_alias(whole.alias, whole.base, whole.answered)
    core.sequence.resend_index = stream.resend_index
    core.sequence.last_ack_s = stream.last_ack_s
    core.ledger._streams[core.sequence.known_as()] = core


def settle_sequence(QueueCore core not None, uint32_t stamp) -> None:
    """At start, after the positions are loaded: removes the messages that are known to have arrived, and numbers the messages without a
    number. Call within a unit.

    `stamp` is the TimeStamp of sequences that begin in this process.
    """
    cdef Slot* slot = NULL
    cdef NumberedPosition record
    cdef uint64_t key = 0
    if core.sequence.identifier:
        core.ledger._streams[core.sequence.known_as()] = core
    retire_all(core, core.sequence.covered())
    if core.sequence.skip_numbers(stamp):
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
