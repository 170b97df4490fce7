# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Operations on one queue for lookups, cursors and two-phase reads: finds messages, and hands out messages that stay locked."""

from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.ledgerbase cimport OWNER_DAMAGED
from msmq_fast._native.positions cimport STATE_AVAILABLE, STATE_LOCKED, STATE_PURGE_PENDING, Slot
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport Received


def seek(QueueCore core not None, uint64_t key, bint forward=True) -> int | None:
    """Returns the key of the first available message after `key`, or with ``forward=False`` of the last one before it (DM-221 … DM-224)."""
    cdef uint32_t states = 1 << STATE_AVAILABLE
    cdef Slot* slot = core.positions.following(key, states) if forward else core.positions.preceding(key, states)
    return None if slot == NULL else slot.key


def readable(QueueCore core not None, uint64_t key) -> bool:
    """Whether a message can be received or peeked. Locked messages cannot: AllowPeekWhenLocked (M-03) is never set."""
    cdef Slot* slot = core.positions.find(key)
    return slot != NULL and slot.state == STATE_AVAILABLE


def holds(QueueCore core not None, uint64_t key, uint32_t owner) -> bool:
    """Whether `owner` has locked the message, even if the message was purged since then."""
    cdef Slot* slot = core.positions.find(key)
    return slot != NULL and slot.owner == owner and (slot.state == STATE_LOCKED or slot.state == STATE_PURGE_PENDING)


def hand_out(QueueCore core not None, uint64_t key, uint32_t owner, sink) -> None:
    """Calls `sink(Received, status)` with a message that `owner` has locked, at once if its packet is in memory.

    If the packet cannot be read, the message stays locked as damaged, and `sink(None, status)` is called.
    """
    def read(Received message, int status):
        cdef Slot* slot = core.positions.find(key)
        if message is None and slot != NULL and slot.owner == owner and slot.state == STATE_LOCKED:
            slot.owner = OWNER_DAMAGED
            core._report_damage(key, status)
        sink(message, status)

    if not core.peek(key, read):
        sink(None, -2)


def fresh(QueueCore core not None) -> list:
    """Returns the keys of the messages that became available since the last call. They are collected only while the attribute `watched` of
    the queue is set.
    """
    keys, core._fresh = core._fresh, []
    return keys
