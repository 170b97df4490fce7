/* The part of MS-MQQB that a load generator and a null sink need; layouts of MS-MQMQ 2.2.19 and MS-MQQB 2.2. */
#ifndef BENCH_MQQB_H
#define BENCH_MQQB_H

#include "common.h"

enum {
    BASE_SIZE = 16,
    EC_SIZE = 572,
    CP_SIZE = 32,
    ACK_SIZE = 36,
    MAX_PACKET = 0x400000,
    BASE_FLAG_INTERNAL = 8,
    BASE_FLAG_SESSION = 16,
    PACKET_TYPE_ACK = 1,
    PACKET_TYPE_EC = 2,
    PACKET_TYPE_CP = 3,
    REFUSED = 16,               /* InternalHeader.Flags.CS */
    USER_SOURCE_QM = 16,        /* offsets from the first byte of the packet */
    USER_SENT_TIME = 52,
    USER_MESSAGE_ID = 56,
    USER_FLAGS = 60,
    USER_FIXED_END = 64,
    USER_TRANSACTION = 1 << 20, /* UserHeader.Flags.TH */
    TX_SIZE = 20,               /* a TransactionHeader: flags, TxSequenceID (ordinal, time stamp), number, previous number */
    CLASS_ORDER_ACK = 0xFF,
    ORDER_ACK_BODY = 36,
};

static inline int packet_recoverable(const uint8_t *packet) { return (get32(packet + USER_FLAGS) >> 5 & 3) == 1; }

static inline int packet_transactional(const uint8_t *packet) { return (get32(packet + USER_FLAGS) & USER_TRANSACTION) != 0; }

/* Where the headers behind the destination begin: a direct name or a number, and the only queue name of the packet. 0: it is not. */
static inline uint32_t behind_destination(const uint8_t *packet, uint32_t size)
{
    uint32_t names = get32(packet + USER_FLAGS) >> 10 & 0x1FF, at = USER_FIXED_END + 4;
    if (size < USER_FIXED_END + 4 || (names != 3 && names != 7)) return 0;
    if (names == 7) at = USER_FIXED_END + ((2u + get16(packet + USER_FIXED_END) + 3) & ~3u);
    return at < size ? at : 0;
}

static inline void put_internal(uint8_t *p, uint32_t size, int type, int session)
{
    memset(p, 0, size);
    p[0] = 0x10;
    put16(p + 2, (uint16_t)(3 | BASE_FLAG_INTERNAL | (session ? BASE_FLAG_SESSION : 0)));
    memcpy(p + 4, "LIOR", 4);
    put32(p + 8, size);
    put32(p + 12, 0xFFFFFFFFu);
    put16(p + 18, (uint16_t)type);
}

static inline void put_ec(uint8_t *p, const uint8_t *client, const uint8_t *server, uint32_t time_stamp)
{
    put_internal(p, EC_SIZE, PACKET_TYPE_EC, 0);
    memcpy(p + 20, client, 16);
    memcpy(p + 36, server, 16);
    put32(p + 52, time_stamp);
    put16(p + 56, 0x0310);      /* 0x10, no ping was sent, server class */
    memset(p + 60, 0x5A, 512);
}

static inline void put_cp(uint8_t *p, uint32_t recoverable_ack_ms, uint32_t ack_ms, uint16_t window)
{
    put_internal(p, CP_SIZE, PACKET_TYPE_CP, 0);
    put32(p + 20, recoverable_ack_ms);
    put32(p + 24, ack_ms);
    put16(p + 30, window);
}

static inline void put_ack(uint8_t *p, uint16_t ack, uint16_t base, uint32_t bits, uint16_t window)
{
    put_internal(p, ACK_SIZE, PACKET_TYPE_ACK, 1);
    put16(p + 20, ack);
    put16(p + 22, base);
    put32(p + 24, bits);
    put16(p + 32, window);
}

/* Bytes of the whole packet at `p` (at least BASE_SIZE are there), or 0 if it is malformed. */
static inline uint32_t packet_size(const uint8_t *p)
{
    uint32_t size = get32(p + 8);
    if (p[0] != 0x10 || memcmp(p + 4, "LIOR", 4) || size < 20 || size > MAX_PACKET) return 0;
    return size;
}

#endif
