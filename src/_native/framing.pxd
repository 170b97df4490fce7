# The numbers and fields of packets, and how the fields of a UserMessage are found; scanner.pxd cuts a stream into
# packets, packetbuild.pxd writes them.

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef enum:
    MAX_PACKET = 0x00400000     # MS-MQMQ 2.2.19.1
    SESSION_HEADER_SIZE = 16
    SOURCE_OFFSET = 16          # UserHeader.SourceQueueManager in a UserMessage packet
    USER_MESSAGE_FIXED = 120    # BaseHeader 16, UserHeader 48, MessagePropertiesHeader 56
    VERSION = 0x10
    SIGNATURE = 0x524F494C      # "LIOR"
    LABEL_LIMIT = 0xFA          # WCHARs with the NUL


cdef enum:
    INFINITE = 0xFFFFFFFF       # a TimeToReachQueue or TimeToBeReceived that never ends; packet/base.py INFINITE


cdef enum Fault:
    # msmq_fast.protocol.errors.PacketFaultCode has the same numbers and their meanings.
    FAULT_NONE = 0
    FAULT_TRUNCATED = 1
    FAULT_VERSION = 2
    FAULT_SIGNATURE = 3
    FAULT_PACKET_SIZE = 4
    FAULT_PACKET_TYPE = 5
    FAULT_ESTABLISH_SIZE = 6
    FAULT_PARAMETERS_SIZE = 7
    FAULT_SESSION_ACK_SIZE = 8
    FAULT_SESSION_ACK_NO_HEADER = 9
    FAULT_INTERNAL = 10
    FAULT_USER_SIZE = 11
    FAULT_DESTINATION_TYPE = 12
    FAULT_ADMIN_TYPE = 13
    FAULT_DELIVERY = 14
    FAULT_TRANSACTION_EXPRESS = 15
    FAULT_NO_PROPERTIES = 16
    FAULT_QUEUE_NAME_SIZE = 17
    FAULT_QUEUE_NAME = 18
    FAULT_TRANSACTION_SIZE = 19
    FAULT_SECURITY_SIZE = 20
    FAULT_SENDER_ID = 21
    FAULT_CERTIFICATE_SIZE = 22
    FAULT_PROVIDER_SIZE = 23
    FAULT_PROPERTIES_SIZE = 24
    FAULT_LABEL_LENGTH = 25
    FAULT_EXTENSION_SIZE = 26
    FAULT_BODY_SIZE = 27
    FAULT_DEBUG_SIZE = 28
    FAULT_DEBUG_TYPE = 29
    FAULT_ENVELOPE_SIZE = 30
    FAULT_COMPOUND_SIZE = 31
    FAULT_SOAP_SECTION = 32
    FAULT_SOAP_SIZE = 33
    FAULT_MQF_SECTION = 34
    FAULT_MQF_SIZE = 35
    FAULT_MQF_ELEMENT = 36
    FAULT_LENGTH_MISMATCH = 37


cdef enum:
    # BaseHeader.Flags
    BASE_PRIORITY = 0x0007
    BASE_INTERNAL = 0x0008
    BASE_SESSION = 0x0010
    BASE_DEBUG = 0x0020
    BASE_TRACE = 0x0100
    # UserHeader.Flags
    USER_HOPS = 0x0000001F
    USER_DELIVERY_SHIFT = 5
    USER_JOURNAL_NEGATIVE = 0x00000100
    USER_JOURNAL_POSITIVE = 0x00000200
    USER_DEST_SHIFT = 10
    USER_ADMIN_SHIFT = 13
    USER_RESPONSE_SHIFT = 16
    USER_SECURITY = 0x00080000
    USER_TRANSACTION = 0x00100000
    USER_PROPERTIES = 0x00200000
    USER_CONNECTOR = 0x00400000
    USER_MULTI_QUEUE = 0x00800000
    USER_HTTP = 0x02000000
    USER_SOAP = 0x10000000


cdef struct UserMessage:
    # Offsets count from the first byte of the BaseHeader. A missing part has offset 0 and length 0.
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


# Returns 0, or the code of the first rule that the packet breaks (a Fault). FAULT_TRUNCATED: `length` is less than the packet;
# out.wire_size then has the number of bytes needed, at least.
cdef int parse_user_message(const uint8_t* data, size_t length, UserMessage* out) noexcept nogil

# Returns the bytes of a received message that are stored: no SessionHeader, SH clear, PacketSize adjusted.
cdef bytes kept_packet(const uint8_t* packet, const UserMessage* m)

# Writes fields of a packet that change in transit. `packet` points to the BaseHeader.
cdef inline void put_u16(uint8_t* p, uint16_t value) noexcept nogil:
    p[0] = value & 0xFF
    p[1] = value >> 8

cdef inline void put_u32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = value & 0xFF
    p[1] = (value >> 8) & 0xFF
    p[2] = (value >> 16) & 0xFF
    p[3] = value >> 24

cdef inline uint16_t get_u16(const uint8_t* p) noexcept nogil:
    return <uint16_t>(p[0] | (<uint32_t>p[1] << 8))

cdef inline uint32_t get_u32(const uint8_t* p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)

cdef inline void patch_message_id(uint8_t* packet, uint32_t ordinal) noexcept nogil:
    put_u32(packet + 56, ordinal)

cdef inline void patch_hops(uint8_t* packet, uint32_t hops) noexcept nogil:
    packet[60] = (packet[60] & ~0x1F) | (hops & 0x1F)

cdef inline void patch_session_flag(uint8_t* packet, bint present) noexcept nogil:
    packet[2] = (packet[2] | 0x10) if present else (packet[2] & ~0x10)


cdef inline uint64_t align4(uint64_t value) noexcept nogil:
    return (value + 3) & ~<uint64_t>3

cdef inline int check_base(const uint8_t* data, size_t limit) noexcept nogil:
    """Checks the BaseHeader rules that apply to every packet. The caller has checked that at least 16 bytes are present."""
    cdef uint32_t size
    if data[0] != VERSION:
        return FAULT_VERSION
    if get_u32(data + 4) != SIGNATURE:
        return FAULT_SIGNATURE
    size = get_u32(data + 8)
    if size < 20 or size > limit:
        return FAULT_PACKET_SIZE
    return 0


@cython.final
cdef class ParsedMessage:
    """A UserMessage packet and the offsets of its parts."""
    cdef readonly bytes packet
    cdef UserMessage m
    cdef dict _fields
    cdef object _view(self, uint32_t offset, uint32_t length)
