# Writing a UserMessage packet.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef enum PacketProblem:
    # Errors of packet_size.
    LONG_LABEL = -1             # more than 249 characters
    BAD_LABEL = -2              # not UTF-8
    UNPADDED = -3               # a name or header that is not padded to 4 bytes


cdef struct MessageFields:
    # The fields from which build_packet writes a packet. A NULL pointer means 16 (20) zero bytes or a missing part.
    const uint8_t* source               # 16 bytes, SourceQueueManager
    const uint8_t* destination_manager  # 16 bytes, QueueManagerAddress
    uint16_t base_flags                 # extra bits (DH, TR); PR comes from `priority`, SH is never set here
    uint8_t priority
    uint8_t delivery
    uint8_t dest_type, admin_type, response_type
    uint8_t ack_flags
    uint16_t message_class
    uint32_t time_to_reach_queue
    uint32_t time_to_be_received
    uint32_t sent_time
    uint32_t message_id
    uint32_t user_flags                 # extra bits (JN, JP, RC, HH, MQ, AH); DM, DQ, AQ, RQ, SH, TH, MP, CQ are computed
    # Queue names in wire form, padded to 4 bytes (packet.names: wire()); `*_length` is their length.
    const uint8_t* dest
    uint32_t dest_length
    const uint8_t* admin
    uint32_t admin_length
    const uint8_t* response
    uint32_t response_length
    const uint8_t* connector            # 16 bytes, ConnectorType
    const uint8_t* transaction          # a whole TransactionHeader
    uint32_t transaction_length
    const uint8_t* security             # a whole SecurityHeader
    uint32_t security_length
    const uint8_t* correlation_id       # 20 bytes
    uint32_t body_type
    uint32_t app_specific
    uint32_t privacy_level, hash_algorithm, encryption_algorithm
    const uint8_t* label                # UTF-8, without NUL
    uint32_t label_length               # bytes of it
    const uint8_t* extension
    uint32_t extension_length
    const uint8_t* body
    uint32_t body_length
    const uint8_t* trailer              # whole Debug, Soap and MultiQueueFormat headers, in packet order
    uint32_t trailer_length


# Returns a new packet of at most MAX_PACKET bytes. Raises ValueError naming the field that is too long or not UTF-8.
cdef bytes build_packet(const MessageFields* f)
# The same in two steps without Python. packet_size returns the size of the packet, which may exceed MAX_PACKET, or a PacketProblem; the
# other function writes the packet.
cdef int64_t packet_size(const MessageFields* f) noexcept nogil
cdef void write_packet(const MessageFields* f, uint8_t* p, uint64_t size) noexcept nogil
cdef void clear_fields(MessageFields* f) noexcept nogil    # defaults: priority 3, direct destination, infinite times
