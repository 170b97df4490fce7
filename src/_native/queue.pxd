# One queue of the queue manager: its position list, its accounting, and the store mutations of its operations.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Reader, ReadListener, Writer
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.positions cimport PositionList


cdef enum EnqueueResult:
    ENQUEUED = 0                # express: available now, nothing more will be heard
    QUEUE_QUOTA = 1             # DM-097
    MACHINE_QUOTA = 2           # DM-096: throttled, or the queue manager's quota
    EXPIRED = 3                 # DM-098
    ENQUEUED_PENDING = 4        # recoverable: `origin.committed(token, status)` follows when durable


cdef class Ledger:
    """What all queues of one queue manager share: the sequence, the quotas, the body cache, the time, the store."""
    cdef public Writer writer
    cdef public Reader reader
    cdef uint64_t sequence                  # last SequentialID given out (DM-099); also the arrival sequence
    cdef uint64_t sequence_limit            # reserved durably up to here (DU-18)
    cdef uint64_t bytes, quota_bytes        # DM-096
    cdef uint64_t cached_bytes, cache_limit
    cdef bint throttled
    cdef bint feed
    cdef uint32_t now_s                     # Unix seconds, wall clock; set by tick()
    cdef uint64_t now_us                    # Unix microseconds, wall clock


cdef class QueueCore(CommitListener):
    cdef readonly uint32_t ordinal
    cdef readonly PositionList positions
    cdef Ledger ledger
    cdef uint64_t quota_bytes
    # `packet` is the UserMessage packet without SessionHeader, its SH flag clear; `m` describes it.
    # A recoverable message becomes available, and `origin` is told, when it is durable.
    # remember=1 also writes the message id to the duplicate history in the same commit.
    cdef int enqueue(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                     bint remember) except -1
