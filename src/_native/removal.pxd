# How messages leave a queue: removed from list and store in one unit, or in small batches after a purge; and how an OrderAck or a FinalAck
# concludes sent messages.

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from msmq_fast._native.ledgerbase cimport LedgerBase, PendingDelete
from msmq_fast._native.positions cimport PositionList, Slot
from msmq_fast._native.queuebase cimport QueueBase, Received
from msmq_fast._native.record cimport NumberedPosition
from msmq_fast._native.tables cimport ReadListener
from msmq_fast._native.undo cimport Undoable


cdef class QueueRemoval(QueueBase):
    """The layer of a queue that removes messages. QueueCore (queue.pxd) completes it."""
    cdef int _erase(self, Slot* slot, int event) except -1
    # `packet`: that of the message, if the caller has read it.
    cdef int _take_out(self, Slot* slot, int event, bytes packet=*) except -1
    cdef int _postpone(self, Slot* slot, int event, int reason) except -1
    # Deletes the stored record of a received message, inside a unit, with the side effects. Returns True if the content was moved.
    # `reason`: it was received, or rejected by its application.
    cdef bint forget(self, uint64_t key, bytes packet, int reason) except -1
    cdef bint _has_side_effects(self, const Slot* slot, int reason) noexcept
    # Removes a message for a plain receive. The side effects are recorded in case its reader no longer exists when the receive is durable.
    cdef int _leave(self, Slot* slot, Received received) except -1
    # Deletes a message that was purged while it was locked or held by a reader. If the store fails, reap() tries again.
    cdef int _let_purged_go(self, Slot* slot) except -1
    cdef int _return(self, Slot* slot) except -1
    cdef int _back(self, Slot* slot) except -1
    cdef int _available(self, Slot* slot) except -1
    cdef int _expire(self, Slot* slot) except -1
    cdef int _late(self, Slot* slot) except -1
    # Removes those of `keys` that `owner` has locked (an acknowledged transfer, or an acknowledged delivery).
    cdef size_t remove_keys(self, const uint64_t* keys, size_t count, uint32_t owner, int event) except? 0
    # Removes a message that `owner` locked, with the current unit; drop_locked() follows when that is durable. Returns whether it must be
    # stored.
    cdef bint commit_dequeue(self, Slot* slot, int reason) except -1
    cdef int drop_locked(self, uint64_t key, int status) except -1
    # Undoes a receive: the message is back at its place with AbortCount + 1, unless the queue was purged or the message expired meanwhile.
    cdef int abort_dequeue(self, Slot* slot) except -1


@cython.final
cdef class Drain(Undoable):
    """The messages of a purged or deleted queue, which are in no list any more and are being removed from memory and store."""
    cdef LedgerBase _ledger
    cdef uint32_t _queue
    cdef uint8_t _role
    cdef bint _outgoing
    cdef int _reason
    cdef PositionList _positions
    cdef size_t run(self, size_t limit) except? 0


@cython.final
cdef class DeferredDelete(ReadListener):
    """Pending deletes with side effects: their packets are read, then all are deleted in one unit."""
    cdef LedgerBase _ledger
    cdef PendingDelete* _entries
    cdef size_t _count, _left
    cdef uint64_t _bytes
    cdef list _packets
    cdef object _sink
    # Returns False, without adding the message, if the batch already has as many packets as are read at a time.
    cdef bint add(self, const PendingDelete* entry) except -1
    cdef int start(self, object sink) except -1
    cdef int _remove(self) except -1
    cdef int _remove_one(self, size_t number, bint has_side_effects) except -1


# Undoes the side effects of a removal, with the current unit. Returns False if an acknowledgment has already been sent.
cdef bint undo_side_effects(list side_effects) except -1
# Called when the receiver has confirmed that it has a message: removes it, or keeps it for its FinalAck (DU-14). Call inside a unit; the
# next two functions have units of their own.
cdef int retire(QueueRemoval core, uint64_t key) except -1
cdef int retire_one(QueueRemoval core, uint64_t key) except -1
cdef int retire_all(QueueRemoval core, uint64_t[::1] keys) except -1
# Keeps a message locked until its FinalAck arrives, or can no longer arrive (AMB-35).
cdef int hold_for_final(QueueRemoval core, Slot* slot, const NumberedPosition* record) except -1
# Called when the outcome of a sent message is known, or can never become known: removes the message. `reason` is a MessageClass (DU-15).
cdef int finish_outgoing(QueueRemoval core, uint64_t key, int reason) except -1
