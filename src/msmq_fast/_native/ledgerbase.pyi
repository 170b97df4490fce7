"""Types of the state that all queues share; see src/_native/ledgerbase.pyx."""

from enum import IntEnum

from msmq_fast._native.batch import CommitListener

SEQUENCE_BLOCK: int

class EnqueueResult(IntEnum):
    ENQUEUED = 0
    QUEUE_QUOTA = 1
    MACHINE_QUOTA = 2
    EXPIRED = 3
    ENQUEUED_PENDING = 4
    QUEUE_GONE = 5

class Removals(CommitListener):
    failed: int
