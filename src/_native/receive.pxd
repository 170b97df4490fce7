# The inbound half of a session: scans, parses, counts, checks for duplicates and enqueues, in one native loop (MS-MQQB 3.1.5.8).

cimport cython
from libc.stdint cimport uint8_t
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.receivebase cimport ReceiverBase


@cython.final
cdef class Receiver(ReceiverBase):
    cdef int _take_header(self, const uint8_t* header) except -1
    cdef int _skip(self) except -1
    cdef inline int _user_message(self) except -1
    cdef inline bint _is_plain(self) noexcept
    cdef QueueCore _find_route(self)
    cdef QueueCore _find_sender(self, bytes name)
    cdef int _drop(self) except -1
