# Reads messages: locks and releases them, receives one or many, peeks, reads ahead from the store, gives back.

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener
from msmq_fast._native.framing cimport UserMessage
from msmq_fast._native.positions cimport Slot
from msmq_fast._native.queuebase cimport Received
from msmq_fast._native.removal cimport QueueRemoval
from msmq_fast._native.tables cimport ReadListener


cdef class QueueReading(QueueRemoval):
    """The layer of a queue that locks, receives and returns messages. QueueCore (queue.pxd) completes it."""
    cdef size_t _transferred(self, const uint64_t[::1] keys, uint32_t owner) except? 0
    cdef bint _release(self, uint64_t key, uint32_t owner) except -1
    cdef int _expire_later(self, uint64_t key) except -1
    cdef int _receive_one(self, Slot* slot, Received received, sink, wanted, uint32_t caller) except -1
    cdef int _read_ahead(self) except -1
    cdef int _fetched(self, uint64_t key, object body, int status) except -1
    cdef int _requeue(self, Received received, bint received_is_in_feed) except -1
    cdef int _purged_outside(self, Received received, const UserMessage* m) except -1


@cython.final
cdef class BodyFetcher(ReadListener):
    """Reads packets ahead."""
    cdef QueueReading _core


@cython.final
cdef class Delivery(CommitListener):
    """One plain bulk receive: the messages are removed in the current batch, and passed to the sink when that is durable."""
    cdef QueueReading _core
    cdef list _messages
    cdef object _sink
    cdef object _wanted         # called when it is durable: returns whether the reader still exists; None: it does
    cdef int _status
