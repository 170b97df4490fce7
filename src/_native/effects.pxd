# The side effects of a message that reaches its queue, leaves it, or fails (DM-203, X-60 … X-69): copies, moves to journals and dead-letter
# queues, acknowledgments. Call these functions inside the unit of the cause: all side effects join that unit.

from libc.stdint cimport uint32_t, uint8_t
from msmq_fast._native.ledgerbase cimport LedgerBase
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.queuebase cimport QueueBase


# Returns the packet of a message that is about to leave. None: the packet cannot be read, and the message stays, locked as damaged.
cdef bytes packet_of(QueueBase core, Slot* slot)
# Applies the side effects of a removal. Returns True if the stored content now belongs to another queue. `slot` may be invalid afterwards.
cdef bint apply_side_effects(LedgerBase ledger, uint32_t queue, uint8_t role, QueueBase journal, const Slot* slot, bytes packet, int reason) except -1
# Applies the side effects of an arrival, inside the unit that enqueues the message. `slot` may be invalid afterwards.
cdef int arrived(QueueBase core, const Slot* slot, bytes packet) except -1
