# Fixed stored records (record.h); only declarations, nothing to import at run time.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "record.h" nogil:
    enum:
        POSITION_VERSION
        POSITION_NUMBERED
        STREAM_VERSION
        STREAM_RENAMED
        CONTENT_VERSION
        PACK_VERSION
        IN_STREAM_VERSION
        POSITION_RECOVERABLE
        POSITION_TRANSACTIONAL
        POSITION_PURGE_PENDING
        POSITION_PREPARED
        POSITION_ORDERED
        POSITION_ACK_MASK
        POSITION_JOURNAL_POSITIVE
        POSITION_JOURNAL_NEGATIVE
        POSITION_FINAL
        POSITION_KEY_SIZE
        STREAM_KEY_SIZE
        CONTENT_KEY_SIZE
    const uint64_t SEQUENCE_MASK    # of a LookupIdentifier: its SequentialID

    ctypedef struct PositionRecord:
        uint8_t version
        uint8_t flags
        uint8_t priority
        uint8_t ack_flags
        uint16_t message_class
        uint16_t reason
        uint64_t content_id
        uint32_t content_bytes
        uint32_t sent_s
        uint64_t arrived_us
        uint32_t time_to_reach_queue
        uint32_t time_to_be_received
        uint8_t source[16]
        uint32_t ordinal
        uint32_t abort_count
        uint64_t arrival_seq
        uint32_t move_count
        uint32_t last_move_s
        uint32_t dead_letter_queue
        uint32_t prepared_slot

    ctypedef struct NumberedPosition:
        PositionRecord position
        uint64_t sequence_id
        uint32_t sequence_number

    ctypedef struct OutgoingStream:
        uint8_t version
        uint8_t resend_index
        uint16_t stamp
        uint32_t last_ack
        uint64_t sequence_id
        uint64_t next_number
        uint32_t ack_count
        uint32_t last_ack_s

    ctypedef struct RenamedStream:
        OutgoingStream stream
        uint64_t alias
        uint32_t base
        uint8_t answered

    ctypedef struct IncomingStream:
        uint8_t version
        uint8_t dest_type
        uint8_t address_size
        uint8_t reserved
        uint32_t queue
        uint64_t identifier
        uint32_t number
        uint32_t rejects
        uint32_t accessed_s

    ctypedef struct FeedEntry:
        uint8_t kind
        uint8_t flags
        uint16_t message_class
        uint32_t queue
        uint64_t arrival_seq
        uint64_t lookup_id
        uint64_t time_us
        uint8_t source[16]
        uint32_t ordinal
        uint32_t size
        uint64_t sequence_id
        uint32_t sequence_number
        uint16_t abort_count
        uint16_t reason

    ctypedef struct HistoryEntry:
        uint8_t source[16]
        uint32_t ordinal
        uint32_t time_s
        uint64_t fingerprint

    ctypedef struct PackHead:
        uint8_t version
        uint8_t reserved
        uint16_t entry_size
        uint32_t count

    void store_be16(uint8_t* out, uint16_t value) noexcept
    void store_be32(uint8_t* out, uint32_t value) noexcept
    void store_be64(uint8_t* out, uint64_t value) noexcept
    uint32_t load_be32(const uint8_t* data) noexcept
    uint64_t load_be64(const uint8_t* data) noexcept
    void position_key(uint8_t* out, uint32_t queue, uint64_t lookup_id) noexcept
    void stream_key(uint8_t* out, uint32_t queue) noexcept
    size_t position_size(const PositionRecord* record) noexcept
    void content_key(uint8_t* out, uint64_t content_id, uint16_t chunk) noexcept
