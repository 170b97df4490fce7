/* Fixed stored records in the form in which they are on disk: packed, little-endian. store/schema.py and store/decode.py have the same
 * layouts.
 *
 * The first byte of every record is its version. A new version may only add fields at the end. */
#ifndef MSMQ_FAST_RECORD_H
#define MSMQ_FAST_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored records are little-endian and are written as the processor holds them"
#endif

#define POSITION_VERSION 1
#define POSITION_NUMBERED 2 /* a NumberedPosition */
#define STREAM_VERSION 1
#define STREAM_RENAMED 2 /* a RenamedStream */
#define CONTENT_VERSION 1
#define PACK_VERSION 1
#define IN_STREAM_VERSION 1

/* PositionRecord.flags */
#define POSITION_RECOVERABLE 0x01
#define POSITION_TRANSACTIONAL 0x02
#define POSITION_PURGE_PENDING 0x04
#define POSITION_PREPARED 0x08 /* held by a prepared transaction, see prepared_slot */
#define POSITION_ORDERED 0x10  /* in an outgoing queue: its receiver has it, and will report the outcome */

/* PositionRecord.ack_flags: the low four bits are MessagePropertiesHeader.Flags & 0x0F, the requested acknowledgments; 0 without a queue
 * for them */
#define POSITION_ACK_MASK 0x0F
#define POSITION_JOURNAL_POSITIVE 0x10
#define POSITION_JOURNAL_NEGATIVE 0x20
#define POSITION_FINAL 0x40 /* TransactionHeader.Flags.FA: its sender requests the final outcome */

#pragma pack(push, 1)

typedef struct {
    uint8_t version;
    uint8_t flags;
    uint8_t priority;
    uint8_t ack_flags;
    uint16_t message_class;
    uint16_t reason;        /* in a dead-letter queue: the Class of the reason, else 0 */
    uint64_t content_id;    /* 0: the position has no content of its own */
    uint32_t content_bytes; /* size of the UserMessage packet */
    uint32_t sent_s;        /* Unix seconds, the sender's clock */
    uint64_t arrived_us;    /* Unix microseconds, our clock */
    uint32_t time_to_reach_queue;
    uint32_t time_to_be_received;
    uint8_t source[16]; /* message identifier: GUID of the source queue manager, */
    uint32_t ordinal;   /* and its ordinal */
    uint32_t abort_count;
    uint64_t arrival_seq;
    uint32_t move_count;
    uint32_t last_move_s;   /* Unix seconds */
    uint32_t dead_letter_queue; /* ordinal of the queue that its application chose for its failure, else 0 */
    uint32_t prepared_slot; /* which prepared transaction holds it, else 0 */
} PositionRecord;

/* Version 2: a transactional message of an outgoing queue that was sent here, with its position in the sequence to its receiver. */
typedef struct {
    PositionRecord position;
    uint64_t sequence_id; /* TimeStamp << 32 | Ordinal */
    uint32_t sequence_number;
} NumberedPosition;

/* A record of TABLE_SEQUENCE under the key 'O' and the ordinal of an outgoing queue (big-endian): its transactional sequence. */
typedef struct {
    uint8_t version;
    uint8_t resend_index; /* ResendIntervalIndex */
    uint16_t stamp;       /* of the time stamp of the incarnation that its numbers are of, the low bits; 0: as in the identifier */
    uint32_t last_ack;    /* LastAck.SeqNo */
    uint64_t sequence_id;
    uint64_t next_number;
    uint32_t ack_count;  /* LastAckCount */
    uint32_t last_ack_s; /* TimeOfLastAck, Unix seconds; 0: none yet */
} OutgoingStream;

/* Version 2, for a queue whose messages are sent by SRMP. Its receiver may know the sequence by another identifier, and by numbers that
 * begin later. */
typedef struct {
    OutgoingStream stream;
    uint64_t alias;   /* the identifier on the wire; 0: sequence_id */
    uint32_t base;    /* subtracted from a number on the wire */
    uint8_t answered; /* 1: the receiver has confirmed a message of the sequence */
    uint8_t reserved[3];
} RenamedStream;

/* An incoming stream of transactional messages. The address of the peer and the DestinationQueue field follow. */
typedef struct {
    uint8_t version;
    uint8_t dest_type;    /* UserHeader.Flags.DQ */
    uint8_t address_size; /* bytes of the address */
    uint8_t reserved;
    uint32_t queue;      /* ordinal of the queue that took the latest message, 0: none did */
    uint64_t identifier; /* TxSequenceID: TimeStamp << 32 | Ordinal */
    uint32_t number;     /* TxSequenceNumber of the latest message */
    uint32_t rejects;    /* messages out of order since then */
    uint32_t accessed_s; /* Unix seconds, our clock */
} IncomingStream;

/* One event of TABLE_FEED. The last four fields were added later: entries of 56 bytes lack them. */
typedef struct {
    uint8_t kind;
    uint8_t flags; /* how it arrived or left: 0 local, 1 MQQB, 2 MQQP, 3 SRMP */
    uint16_t message_class;
    uint32_t queue;
    uint64_t arrival_seq;
    uint64_t lookup_id;
    uint64_t time_us; /* Unix microseconds */
    uint8_t source[16]; /* message identifier; of a queue that is created or deleted, its GUID */
    uint32_t ordinal;
    uint32_t size;
    /* SENT, ARRIVED, DUPLICATE of a transactional message: TxSequenceID; MOVED: ordinal of the queue it came from; RECEIVED, REMOVED: number
     * of the caller */
    uint64_t sequence_id;
    uint32_t sequence_number; /* TxSequenceNumber; MOVED: number of the caller */
    uint16_t abort_count;
    uint16_t reason; /* the Class that says why a message failed, else 0 */
} FeedEntry;

/* One entry of TABLE_HISTORY: a message identifier that was accepted. */
typedef struct {
    uint8_t source[16];
    uint32_t ordinal;
    uint32_t time_s; /* Unix seconds */
    uint64_t fingerprint; /* of its content, keyed; before it was kept entries ended here */
} HistoryEntry;

/* Head of one packed record of TABLE_FEED or TABLE_HISTORY; `count` entries of `entry_size` bytes follow. */
typedef struct {
    uint8_t version;
    uint8_t reserved;
    uint16_t entry_size;
    uint32_t count;
} PackHead;

#pragma pack(pop)

_Static_assert(sizeof(PositionRecord) == 88, "PositionRecord is stored");
_Static_assert(sizeof(NumberedPosition) == 100, "NumberedPosition is stored");
_Static_assert(sizeof(OutgoingStream) == 32, "OutgoingStream is stored");
_Static_assert(sizeof(RenamedStream) == 48, "RenamedStream is stored");
_Static_assert(sizeof(IncomingStream) == 28, "IncomingStream is stored");
_Static_assert(sizeof(FeedEntry) == 72, "FeedEntry is stored");
_Static_assert(sizeof(HistoryEntry) == 32, "HistoryEntry is stored");
_Static_assert(sizeof(PackHead) == 8, "PackHead is stored");

#define SEQUENCE_MASK (((uint64_t)1 << 56) - 1) /* of a LookupIdentifier: its SequentialID */
#define POSITION_KEY_SIZE 12
#define STREAM_KEY_SIZE 5
#define CONTENT_KEY_SIZE 10

static inline void store_be16(uint8_t *out, uint16_t value) {
    value = __builtin_bswap16(value);
    memcpy(out, &value, 2);
}

static inline void store_be32(uint8_t *out, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(out, &value, 4);
}

static inline void store_be64(uint8_t *out, uint64_t value) {
    value = __builtin_bswap64(value);
    memcpy(out, &value, 8);
}

static inline uint32_t load_be32(const uint8_t *data) {
    uint32_t value;
    memcpy(&value, data, 4);
    return __builtin_bswap32(value);
}

static inline uint64_t load_be64(const uint8_t *data) {
    uint64_t value;
    memcpy(&value, data, 8);
    return __builtin_bswap64(value);
}

/* Key of TABLE_POSITION: queue ordinal, then LookupIdentifier, so that key order is queue order. */
static inline void position_key(uint8_t out[POSITION_KEY_SIZE], uint32_t queue, uint64_t lookup_id) {
    store_be32(out, queue);
    store_be64(out + 4, lookup_id);
}

/* Key of TABLE_SEQUENCE for an outgoing queue. */
static inline void stream_key(uint8_t out[STREAM_KEY_SIZE], uint32_t queue) {
    out[0] = 'O';
    store_be32(out + 1, queue);
}

/* Bytes of a position record, by its version. */
static inline size_t position_size(const PositionRecord *record) {
    return record->version == POSITION_NUMBERED ? sizeof(NumberedPosition) : sizeof(PositionRecord);
}

static inline void content_key(uint8_t out[CONTENT_KEY_SIZE], uint64_t content_id, uint16_t chunk) {
    store_be64(out, content_id);
    store_be16(out + 8, chunk);
}

#endif
