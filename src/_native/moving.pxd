# Moves between a queue and its subqueues: the message keeps its LookupIdentifier and its content.

from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.queue cimport QueueCore


# A transaction moves a message to another queue of its family.
cpdef bint complete_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1
cpdef bint abort_move(QueueCore source, uint64_t key, uint32_t owner, QueueCore target) except -1
