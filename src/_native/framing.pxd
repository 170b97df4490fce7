# Cutting the stream into packets and finding the fields of a UserMessage, every size checked once.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef enum PacketKind:
    PACKET_NONE = 0             # not complete yet
    PACKET_USER_MESSAGE = 1     # also OrderAck, FinalAck, administration acknowledgments
    PACKET_SESSION_ACK = 2
    PACKET_ESTABLISH_CONNECTION = 3
    PACKET_CONNECTION_PARAMETERS = 4
    PACKET_BAD = -1             # malformed: the session closes; see the error code


cdef struct UserMessage:
    # Offsets count from the first byte of the BaseHeader; an absent part has offset 0 and length 0.
    uint32_t size               # BaseHeader.PacketSize without a SessionHeader: what is kept
    uint32_t wire_size          # bytes taken from the stream, SessionHeader included
    uint16_t base_flags
    uint8_t priority
    uint8_t delivery            # UserHeader.Flags.DM
    uint32_t time_to_reach_queue
    uint32_t time_to_be_received
    uint32_t sent_time
    uint32_t message_id
    uint32_t user_flags
    uint8_t dest_type, admin_type, response_type
    uint8_t ack_flags           # MessagePropertiesHeader.Flags & 0x0F
    uint16_t message_class
    uint32_t dest_offset, dest_length
    uint32_t admin_offset, admin_length
    uint32_t response_offset, response_length
    uint32_t connector_offset
    uint32_t transaction_offset
    uint32_t security_offset
    uint32_t sender_id_offset, sender_id_length
    uint32_t encryption_key_offset, encryption_key_length
    uint32_t signature_offset, signature_length
    uint32_t certificate_offset, certificate_length
    uint32_t provider_offset, provider_length
    uint32_t properties_offset
    uint32_t label_offset, label_chars
    uint32_t extension_offset, extension_length
    uint32_t body_offset, body_length
    uint32_t body_type
    uint32_t app_specific
    uint32_t debug_offset
    uint32_t envelope_offset, compound_offset
    uint32_t soap_offset
    uint32_t mqf_offset
    uint32_t session_offset     # of the SessionHeader inside the wire bytes, 0 if none


# 0, or the code of the first rule that the packet breaks (msmq_fast.packet.errors.PacketFault holds the names).
cdef int parse_user_message(const uint8_t* data, size_t length, UserMessage* out) noexcept nogil


cdef class PacketScanner:
    """A growing receive buffer that hands out whole packets; never holds more than one packet of the largest size."""
    cdef uint8_t* _data
    cdef size_t _capacity, _start, _end
    cdef size_t max_packet
    cdef readonly int fault                 # why PACKET_BAD was returned
    # After PACKET_USER_MESSAGE: `message` is filled and `packet` points at it until the next call.
    cdef UserMessage message
    cdef const uint8_t* packet
    cdef size_t packet_size
    cdef int next_packet(self) except? -2   # a PacketKind
