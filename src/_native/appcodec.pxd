# Messages of application frames (msgpack arrays) to UserMessage packets, and back to frames.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.framing cimport UserMessage


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct OutMessage:
    # One message of a SEND frame; the pointers lead into the frame.
    const uint8_t* body
    const uint8_t* label            # UTF-8
    const uint8_t* extension
    const uint8_t* correlation      # 20 bytes or NULL
    const uint8_t* response         # UTF-8
    const uint8_t* admin            # UTF-8
    uint32_t body_size, label_size, extension_size, response_size, admin_size
    uint32_t body_type, app_specific, time_to_reach_queue, time_to_be_received
    uint64_t delivery, priority, acknowledge, journal, message_class


cdef class Buffer:
    """Bytes that grow; reused from frame to frame."""
    cdef uint8_t* data
    cdef size_t size, capacity
    cdef int reserve(self, size_t more) except -1


cdef class PacketBuilder:
    """Builds UserMessage packets for one destination."""
    cdef uint8_t source[16]
    cdef uint8_t address[16]
    cdef uint8_t dest_type
    cdef bytes destination          # the field as it stands in the UserHeader
    cdef object resolve
    # Reads one message and builds its packet. None: refused, `refusal` holds the HRESULT.
    cdef readonly uint32_t refusal
    cdef tuple _name(self, const uint8_t* text, uint32_t size)
    cdef bytes build(self, Cursor* cursor, uint32_t ordinal, uint32_t now_s)
