# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Leased messages: locked from the front of the queue, and removed or put back in ranges by the holder of the lease."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.batch cimport in_unit
from msmq_fast._native.effects cimport packet_of
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport EVENT_RECEIVED, REASON_RECEIVED
from msmq_fast._native.positions cimport STATE_AVAILABLE, STATE_LOCKED, Slot
from msmq_fast._native.queue cimport QueueCore

from array import array



def lease(QueueCore core not None, uint32_t owner, size_t max_count, uint64_t max_bytes, bint one=True) -> tuple:
    """Locks messages from the front for `owner`. Returns (array("Q") of their lookup ids in queue order, total size of their packets in
    bytes).

    The packets need not be in memory. At most `max_count` messages of `max_bytes` in total are locked; with `one`, the first message is
    locked even if it is larger.
    """
    cdef uint64_t size = 0
    cdef size_t count = 0
    cdef Slot* slot = NULL
    cdef uint64_t[::1] keys
    max_count = min(max_count, core.positions.available)
    result = array("Q", bytes(8 * max_count))
    keys = result
    while count < max_count:
        slot = core.positions.first_takeable(False)
        if slot == NULL or (size + slot.size > max_bytes and not (one and count == 0)):
            break
        core.positions.set_state(slot, STATE_LOCKED)
        slot.owner = owner
        size += slot.size
        keys[count] = slot.key
        count += 1
    return (result if count == max_count else result[:count]), size


def lock_again(QueueCore core not None, const uint64_t[::1] keys not None, uint32_t owner) -> int:
    """Locks, for `owner`, those of the messages `keys` that are available. Returns how many messages it locked."""
    cdef Py_ssize_t number
    cdef Slot* slot = NULL
    cdef int locked = 0
    for number in range(keys.shape[0]):
        slot = core.positions.find(keys[number])
        if slot != NULL and slot.state == STATE_AVAILABLE:
            core.positions.set_state(slot, STATE_LOCKED)
            slot.owner = owner
            locked += 1
    return locked


def leased(QueueCore core not None, const uint64_t[::1] keys not None, uint64_t first, uint32_t owner) -> tuple:
    """Returns those of the messages `keys` that `owner` still has locked: (array("Q") of their lookup ids, array("Q") of their numbers).
    The number of a message is `first` plus its index in `keys`.
    """
    cdef Py_ssize_t number, count = 0
    cdef Slot* slot = NULL
    cdef uint64_t[::1] kept, numbers
    found, numbered = array("Q", bytes(8 * keys.shape[0])), array("Q", bytes(8 * keys.shape[0]))
    kept, numbers = found, numbered
    for number in range(keys.shape[0]):
        slot = core.positions.find(keys[number])
        if slot != NULL and slot.owner == owner and slot.state == STATE_LOCKED:
            kept[count] = keys[number]
            numbers[count] = first + number
            count += 1
    kept = numbers = None
    return found[:count], numbered[:count]


def settle(QueueCore core not None, const uint64_t[::1] keys not None, uint32_t owner, uint32_t caller=0) -> int:
    """Removes, with the current unit, those of the messages that `owner` has locked. Returns how many it removed.

    Messages that were purged or deleted meanwhile do not count. Messages whose packets are needed for side effects and cannot be read stay
    locked as damaged. If the commit of a removal fails, Ledger.reap repeats the removal.
    """
    cdef Py_ssize_t number
    cdef Slot* slot = NULL
    cdef int received = 0
    assert in_unit(core.ledger.writer), "call inside a unit"
    for number in range(keys.shape[0]):
        slot = core.positions.find(keys[number])
        if slot == NULL or slot.owner != owner or slot.state != STATE_LOCKED:
            continue
        if slot.body == NULL and core._has_side_effects(slot, REASON_RECEIVED):
            packet = packet_of(core, slot)
            if packet is None:
                continue
            core.positions.set_body(slot, packet)
        core.ledger.caller = caller
        try:
            core._take_out(slot, EVENT_RECEIVED)
        finally:
            core.ledger.caller = 0
        received += 1
    core.ledger.removals.watch()
    return received


def chain(Ledger ledger not None, uint64_t after) -> int:
    """Makes the current batch fail if the batch with the number `after` fails (0 means none). Returns the number of the current batch, for
    batches that depend on it.
    """
    if after:
        ledger.writer.depends_on(after)
    return ledger.writer.batch_number()
