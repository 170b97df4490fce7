# What follows when a message reaches its queue, leaves it, or fails (DM-203, X-60 … X-69): copies, moves to journals and dead-letter
# queues, acknowledgments. Call it inside the unit of the cause: everything joins that.

from libc.stdint cimport uint32_t, uint8_t
from msmq_fast._native.ledgerbase cimport LedgerBase
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.queuebase cimport QueueBase


# The packet of a message that leaves. None: it cannot be read; the message stays, locked as damaged.
cdef bytes packet_of(QueueBase core, Slot* slot)
# Does what follows. True: the stored content belongs to another queue now. `slot` may be invalid afterwards.
cdef bint apply_side_effects(LedgerBase ledger, uint32_t queue, uint8_t role, QueueBase journal, const Slot* slot, bytes packet, int reason) except -1
# What follows when a message reaches a queue, inside the unit that enqueues it. `slot` may be invalid afterwards.
cdef int arrived(QueueBase core, const Slot* slot, bytes packet) except -1
