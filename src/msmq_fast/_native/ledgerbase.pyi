"""Types of what all queues share; see src/_native/ledgerbase.pyx."""

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

class FeedEvent(IntEnum):
    EVENT_NONE = 0
    EVENT_SENT = 1
    EVENT_ARRIVED = 2
    EVENT_RECEIVED = 3
    EVENT_REMOVED = 4
    EVENT_EXPIRED = 5
    EVENT_MOVED = 6
    EVENT_PURGED = 7
    EVENT_JOURNALED = 8
    EVENT_DEAD_LETTERED = 9
    EVENT_ACKED = 10
    EVENT_NACKED = 11
    EVENT_ABORTED_RETURN = 16
    EVENT_RETURNED = 18

class FeedTransport(IntEnum):
    TRANSPORT_LOCAL = 0
    TRANSPORT_MQQB = 1
    TRANSPORT_SRMP = 3

class Removals(CommitListener):
    failed: int
