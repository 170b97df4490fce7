# Cutting the byte stream of a session into packets.

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from msmq_fast._native.framing cimport UserMessage


cdef enum PacketKind:
    PACKET_NONE = 0             # not complete yet
    PACKET_USER_MESSAGE = 1     # also OrderAck, FinalAck, administration acknowledgments
    PACKET_SESSION_ACK = 2
    PACKET_ESTABLISH_CONNECTION = 3
    PACKET_CONNECTION_PARAMETERS = 4
    PACKET_BAD = -1             # malformed: the session closes; see the error code


@cython.final
cdef class PacketScanner:
    """A growing receive buffer that returns whole packets. It never holds more than one packet of the largest size."""
    cdef object _store                      # bytearray; a memoryview handed out keeps it alive
    cdef uint8_t* _data
    cdef size_t _capacity, _start, _end
    cdef readonly size_t max_packet
    cdef readonly int fault                 # why PACKET_BAD was returned
    # After PACKET_USER_MESSAGE: `message` is filled and `packet` points at it until the next call.
    cdef UserMessage message
    cdef const uint8_t* packet
    cdef size_t packet_size
    cdef int next_packet(self) except? -2   # a PacketKind
    cpdef object buffer(self, Py_ssize_t hint)
    cpdef int commit(self, Py_ssize_t count) except -1
    cdef int _resize(self, size_t capacity) except -1
