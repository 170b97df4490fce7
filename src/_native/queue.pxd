# One queue of the queue manager: the functions that other native modules call. ledgerbase.pxd lists the layers below, and how to add an
# event kind.

# Everything runs on the event loop. Pointers to slots are valid until the next insert into, or removal from, their list. Code that calls
# Python or enqueues may do either, so look a slot up again after it. Call everything that changes the store inside a unit.

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.reading cimport QueueReading
from msmq_fast._native.record cimport PositionRecord


@cython.final
cdef class QueueCore(QueueReading):
    """A queue."""
    # `packet` is the UserMessage packet without SessionHeader, its SH flag clear; `m` describes it. A recoverable message becomes
    # available, and `origin` (if not None) is notified, when it is durable. With a `fingerprint` (see history.pxd) the same commit adds the
    # message to the stored duplicate history; 0: it does not.
    cdef int enqueue(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                     uint64_t fingerprint) except -1
    # The same with the ordinal of the dead-letter queue that the application chose, or 0.
    cdef int enqueue_with(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                          uint32_t dead_letter) except -1
    # The same as `enqueue`, in the unit of a caller that rolls it back if this raises.
    cdef int enqueue_within(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token,
                            uint64_t fingerprint) except -1
    cdef inline int _refused(self, bytes packet, const UserMessage* m) except -1
    cdef int _enqueue_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                              uint32_t dead_letter) except -1
    cdef inline int _enter_in_unit(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                                   uint32_t dead_letter) except -1
    cdef inline Slot* _enter(self, bytes packet, const UserMessage* m, uint32_t dead_letter) except NULL
    cdef inline Slot* _enter_express(self, bytes packet, const UserMessage* m, uint64_t fingerprint, uint32_t dead_letter) except NULL
    cdef int _enter_stored(self, bytes packet, const UserMessage* m, CommitListener origin, uint64_t token, uint64_t fingerprint,
                           uint32_t dead_letter) except -1
    # Adds a message whose quota was reserved to the current unit; it is available when that is durable. `record` gets its position.
    # `sequence`: a SequentialID that is reserved for it, or 0.
    cdef int commit_enqueue(self, uint64_t content_id, bytes packet, PositionRecord* record, uint64_t sequence) except -1
    cdef uint64_t _set_aside(self, bint everything) except? 0
