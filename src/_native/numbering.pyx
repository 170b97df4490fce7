# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The transactional sequences of outgoing queues: assigns numbers and stores the state."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.string cimport memset
from msmq_fast._native.batch cimport Writer, in_unit
from msmq_fast._native.ledgerbase cimport UNDO_STREAM, LedgerBase, log_in_ledger
from msmq_fast._native.outsequence cimport LAST_NUMBER, OutEntry, OutSequence
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.queuebase cimport QueueBase, forget_final, set_finals
from msmq_fast._native.record cimport (
    POSITION_NUMBERED,
    STREAM_KEY_SIZE,
    STREAM_RENAMED,
    STREAM_VERSION,
    NumberedPosition,
    OutgoingStream,
    RenamedStream,
    stream_key,
)
from msmq_fast._native.tablenumbers cimport TABLE_SEQUENCE


cdef bint begin_stream(QueueBase core) except -1:
    """Begins a new transactional sequence of an outgoing queue (QB-112). Returns False if no identifier for it is reserved in the store."""
    cdef uint64_t identifier = core.ledger.open_stream()
    if not identifier:
        return False
    leave_sequence(core)
    core.sequence.begin(identifier)
    send_stream(core.ledger, identifier, core)
    return True


cdef bint stream_left(QueueBase core) except -1:
    """Returns whether the next message can get a number. Begins a new sequence if no message of the current one waits for an OrderAck."""
    cdef OutSequence sequence = core.sequence
    if sequence.unordered or (sequence.identifier and sequence.next_number == 1):
        return sequence.next_number <= LAST_NUMBER
    return begin_stream(core)


cdef int number(QueueBase core, const Slot* slot, NumberedPosition* record) except -1:
    """Assigns a sequence number to a transactional message that enters an outgoing queue, and puts the number into its record (AMB-04,
    DU-19).
    """
    cdef OutSequence sequence = core.sequence
    if not to_be_numbered(core, slot):
        return 0
    if not stream_left(core):
        raise OverflowError("no sequence number is left for a message: the store or the receiver does not keep up")
    record.sequence_number = sequence.assign(slot.key, slot.ordinal)
    record.sequence_id = sequence.identifier
    record.position.version = POSITION_NUMBERED
    return stream_changed(core)


cdef int stream_changed(QueueBase core) except -1:
    """Stores the state of a sequence with the current batch: one record per batch, which is updated in place."""
    cdef uint8_t key[STREAM_KEY_SIZE]
    cdef RenamedStream whole
    cdef OutgoingStream* record = &whole.stream
    cdef OutSequence sequence = core.sequence
    cdef Writer writer = core.ledger.writer
    cdef size_t size = sizeof(whole) if core.srmp else sizeof(whole.stream)
    assert in_unit(core.ledger.writer), "call inside a unit"
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


cdef int send_stream(LedgerBase ledger, uint64_t identifier, QueueBase core) except -1:
    """Records that queue `core` now sends the sequence `identifier`. `core` is None if no queue sends it any more."""
    log_in_ledger(ledger, UNDO_STREAM, identifier, ledger._streams.get(identifier))
    if core is None:
        ledger._streams.pop(identifier, None)
    else:
        ledger._streams[identifier] = core
    return 0


cdef int expect_final(QueueBase core, uint32_t ordinal, uint64_t key, uint64_t identifier, uint32_t number) except -1:
    """Records that a FinalAck for message number `number` of the sequence `identifier` belongs to the message `key` of this queue."""
    cdef LedgerBase ledger = core.ledger
    forget_final(ledger, ordinal, core, key)    # its sequence may have ended before its session acknowledged it
    # Copies for several destinations may share an identifier.
    return set_finals(ledger, ordinal, ledger._finals.get(ordinal, ()) + ((core, key, identifier, number),))


cdef int leave_sequence(QueueBase core) except -1:
    """Ends the sequence of a queue; called before its next sequence begins. OrderAcks cover all messages that remain of the old sequence.
    Registers these messages for their FinalAcks, since a FinalAck may arrive before the session's acknowledgment (QB-216).
    """
    cdef OutSequence sequence = core.sequence
    cdef OutEntry* entry
    cdef uint64_t key
    for key in sequence.current():
        entry = sequence.find(key)
        expect_final(core, entry.ordinal, key, sequence.known_as(), entry.number - sequence.base)
    return send_stream(core.ledger, sequence.known_as(), None)
