/* MD5 (RFC 1321) and HMAC-MD5 (RFC 2104). A key is processed once and then used for any number of messages. NTLM requires MD5, but
 * libraries that are built for FIPS refuse it. */

#ifndef MSMQ_FAST_CRYPTO_MD5_H
#define MSMQ_FAST_CRYPTO_MD5_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t md5_word(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

#define MD5_F(b, c, d) (d ^ (b & (c ^ d)))
#define MD5_G(b, c, d) ((b & d) + (c & ~d))
#define MD5_H(b, c, d) (b ^ c ^ d)
#define MD5_I(b, c, d) (c ^ (b | ~d))
#define MD5_STEP(mix, a, b, c, d, k, turn, constant) \
    a += mix(b, c, d) + x[k] + constant; \
    a = (a << turn | a >> (32 - turn)) + b;

/* The 64 steps. `between(n)` follows each eighth of them, for interleaved work that does not depend on them. */
#define MD5_STEPS(between) \
    MD5_STEP(MD5_F, a, b, c, d, 0, 7, 0xD76AA478) MD5_STEP(MD5_F, d, a, b, c, 1, 12, 0xE8C7B756) \
    MD5_STEP(MD5_F, c, d, a, b, 2, 17, 0x242070DB) MD5_STEP(MD5_F, b, c, d, a, 3, 22, 0xC1BDCEEE) \
    MD5_STEP(MD5_F, a, b, c, d, 4, 7, 0xF57C0FAF) MD5_STEP(MD5_F, d, a, b, c, 5, 12, 0x4787C62A) \
    MD5_STEP(MD5_F, c, d, a, b, 6, 17, 0xA8304613) MD5_STEP(MD5_F, b, c, d, a, 7, 22, 0xFD469501) \
    between(0) \
    MD5_STEP(MD5_F, a, b, c, d, 8, 7, 0x698098D8) MD5_STEP(MD5_F, d, a, b, c, 9, 12, 0x8B44F7AF) \
    MD5_STEP(MD5_F, c, d, a, b, 10, 17, 0xFFFF5BB1) MD5_STEP(MD5_F, b, c, d, a, 11, 22, 0x895CD7BE) \
    MD5_STEP(MD5_F, a, b, c, d, 12, 7, 0x6B901122) MD5_STEP(MD5_F, d, a, b, c, 13, 12, 0xFD987193) \
    MD5_STEP(MD5_F, c, d, a, b, 14, 17, 0xA679438E) MD5_STEP(MD5_F, b, c, d, a, 15, 22, 0x49B40821) \
    between(1) \
    MD5_STEP(MD5_G, a, b, c, d, 1, 5, 0xF61E2562) MD5_STEP(MD5_G, d, a, b, c, 6, 9, 0xC040B340) \
    MD5_STEP(MD5_G, c, d, a, b, 11, 14, 0x265E5A51) MD5_STEP(MD5_G, b, c, d, a, 0, 20, 0xE9B6C7AA) \
    MD5_STEP(MD5_G, a, b, c, d, 5, 5, 0xD62F105D) MD5_STEP(MD5_G, d, a, b, c, 10, 9, 0x02441453) \
    MD5_STEP(MD5_G, c, d, a, b, 15, 14, 0xD8A1E681) MD5_STEP(MD5_G, b, c, d, a, 4, 20, 0xE7D3FBC8) \
    between(2) \
    MD5_STEP(MD5_G, a, b, c, d, 9, 5, 0x21E1CDE6) MD5_STEP(MD5_G, d, a, b, c, 14, 9, 0xC33707D6) \
    MD5_STEP(MD5_G, c, d, a, b, 3, 14, 0xF4D50D87) MD5_STEP(MD5_G, b, c, d, a, 8, 20, 0x455A14ED) \
    MD5_STEP(MD5_G, a, b, c, d, 13, 5, 0xA9E3E905) MD5_STEP(MD5_G, d, a, b, c, 2, 9, 0xFCEFA3F8) \
    MD5_STEP(MD5_G, c, d, a, b, 7, 14, 0x676F02D9) MD5_STEP(MD5_G, b, c, d, a, 12, 20, 0x8D2A4C8A) \
    between(3) \
    MD5_STEP(MD5_H, a, b, c, d, 5, 4, 0xFFFA3942) MD5_STEP(MD5_H, d, a, b, c, 8, 11, 0x8771F681) \
    MD5_STEP(MD5_H, c, d, a, b, 11, 16, 0x6D9D6122) MD5_STEP(MD5_H, b, c, d, a, 14, 23, 0xFDE5380C) \
    MD5_STEP(MD5_H, a, b, c, d, 1, 4, 0xA4BEEA44) MD5_STEP(MD5_H, d, a, b, c, 4, 11, 0x4BDECFA9) \
    MD5_STEP(MD5_H, c, d, a, b, 7, 16, 0xF6BB4B60) MD5_STEP(MD5_H, b, c, d, a, 10, 23, 0xBEBFBC70) \
    between(4) \
    MD5_STEP(MD5_H, a, b, c, d, 13, 4, 0x289B7EC6) MD5_STEP(MD5_H, d, a, b, c, 0, 11, 0xEAA127FA) \
    MD5_STEP(MD5_H, c, d, a, b, 3, 16, 0xD4EF3085) MD5_STEP(MD5_H, b, c, d, a, 6, 23, 0x04881D05) \
    MD5_STEP(MD5_H, a, b, c, d, 9, 4, 0xD9D4D039) MD5_STEP(MD5_H, d, a, b, c, 12, 11, 0xE6DB99E5) \
    MD5_STEP(MD5_H, c, d, a, b, 15, 16, 0x1FA27CF8) MD5_STEP(MD5_H, b, c, d, a, 2, 23, 0xC4AC5665) \
    between(5) \
    MD5_STEP(MD5_I, a, b, c, d, 0, 6, 0xF4292244) MD5_STEP(MD5_I, d, a, b, c, 7, 10, 0x432AFF97) \
    MD5_STEP(MD5_I, c, d, a, b, 14, 15, 0xAB9423A7) MD5_STEP(MD5_I, b, c, d, a, 5, 21, 0xFC93A039) \
    MD5_STEP(MD5_I, a, b, c, d, 12, 6, 0x655B59C3) MD5_STEP(MD5_I, d, a, b, c, 3, 10, 0x8F0CCC92) \
    MD5_STEP(MD5_I, c, d, a, b, 10, 15, 0xFFEFF47D) MD5_STEP(MD5_I, b, c, d, a, 1, 21, 0x85845DD1) \
    between(6) \
    MD5_STEP(MD5_I, a, b, c, d, 8, 6, 0x6FA87E4F) MD5_STEP(MD5_I, d, a, b, c, 15, 10, 0xFE2CE6E0) \
    MD5_STEP(MD5_I, c, d, a, b, 6, 15, 0xA3014314) MD5_STEP(MD5_I, b, c, d, a, 13, 21, 0x4E0811A1) \
    MD5_STEP(MD5_I, a, b, c, d, 4, 6, 0xF7537E82) MD5_STEP(MD5_I, d, a, b, c, 11, 10, 0xBD3AF235) \
    MD5_STEP(MD5_I, c, d, a, b, 2, 15, 0x2AD7D2BB) MD5_STEP(MD5_I, b, c, d, a, 9, 21, 0xEB86D391) \
    between(7)

#define MD5_NOTHING(n)

static void md5_block(uint32_t *state, const uint8_t *block)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], x[16];
    int i;
    for (i = 0; i < 16; i++)
        x[i] = md5_word(block + 4 * i);
    MD5_STEPS(MD5_NOTHING)
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

typedef struct {
    uint32_t state[4];
    uint64_t size;       /* number of bytes processed so far */
    uint8_t rest[64];    /* the last size % 64 of them */
} md5_stream;

static void md5_init(md5_stream *md)
{
    static const uint32_t start[4] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476};
    memcpy(md->state, start, sizeof start);
    md->size = 0;
}

static void md5_update(md5_stream *md, const uint8_t *data, size_t size)
{
    size_t used = md->size % 64, room = 64 - used;
    md->size += size;
    if (used && size >= room) {
        memcpy(md->rest + used, data, room);
        md5_block(md->state, md->rest);
        data += room;
        size -= room;
        used = 0;
    }
    if (!used)
        for (; size >= 64; size -= 64, data += 64)
            md5_block(md->state, data);
    if (size)
        memcpy(md->rest + used, data, size);
}

static void md5_final(md5_stream *md, uint8_t *out)
{
    uint64_t bits = md->size * 8;
    uint8_t tail[72] = {0x80};
    size_t used = md->size % 64, pad = (used < 56 ? 56 : 120) - used;
    int i;
    for (i = 0; i < 8; i++)
        tail[pad + i] = (uint8_t)(bits >> (8 * i));
    md5_update(md, tail, pad + 8);
    for (i = 0; i < 16; i++)
        out[i] = (uint8_t)(md->state[i / 4] >> (8 * (i % 4)));
}

typedef struct {
    uint32_t inner[4], outer[4];   /* the states after the padded key */
} hmac_md5_key;

static void hmac_md5_take_key(hmac_md5_key *hmac, const uint8_t *key, size_t size)
{
    uint8_t block[64] = {0};
    md5_stream md;
    int i;
    if (size > 64) {
        md5_init(&md);
        md5_update(&md, key, size);
        md5_final(&md, block);
    } else if (size) {
        memcpy(block, key, size);
    }
    for (i = 0; i < 64; i++)
        block[i] ^= 0x36;
    md5_init(&md);
    memcpy(hmac->inner, md.state, sizeof md.state);
    memcpy(hmac->outer, md.state, sizeof md.state);
    md5_block(hmac->inner, block);
    for (i = 0; i < 64; i++)
        block[i] ^= 0x36 ^ 0x5C;
    md5_block(hmac->outer, block);
    memset(block, 0, sizeof block);
}

static void hmac_md5_begin(const hmac_md5_key *hmac, md5_stream *md)
{
    memcpy(md->state, hmac->inner, sizeof md->state);
    md->size = 64;
}

static void hmac_md5_end(const hmac_md5_key *hmac, md5_stream *md, uint8_t *out)
{
    uint8_t digest[16];
    md5_final(md, digest);
    memcpy(md->state, hmac->outer, sizeof md->state);
    md->size = 64;
    md5_update(md, digest, 16);
    md5_final(md, out);
}

#endif
