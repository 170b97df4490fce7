/* RC2 (RFC 2268): key expansion, and CBC with a zero initialisation vector. */

#ifndef MSMQ_FAST_CRYPTO_RC2_H
#define MSMQ_FAST_CRYPTO_RC2_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const uint8_t RC2_PI[256] = {
    0xD9, 0x78, 0xF9, 0xC4, 0x19, 0xDD, 0xB5, 0xED, 0x28, 0xE9, 0xFD, 0x79, 0x4A, 0xA0, 0xD8, 0x9D,
    0xC6, 0x7E, 0x37, 0x83, 0x2B, 0x76, 0x53, 0x8E, 0x62, 0x4C, 0x64, 0x88, 0x44, 0x8B, 0xFB, 0xA2,
    0x17, 0x9A, 0x59, 0xF5, 0x87, 0xB3, 0x4F, 0x13, 0x61, 0x45, 0x6D, 0x8D, 0x09, 0x81, 0x7D, 0x32,
    0xBD, 0x8F, 0x40, 0xEB, 0x86, 0xB7, 0x7B, 0x0B, 0xF0, 0x95, 0x21, 0x22, 0x5C, 0x6B, 0x4E, 0x82,
    0x54, 0xD6, 0x65, 0x93, 0xCE, 0x60, 0xB2, 0x1C, 0x73, 0x56, 0xC0, 0x14, 0xA7, 0x8C, 0xF1, 0xDC,
    0x12, 0x75, 0xCA, 0x1F, 0x3B, 0xBE, 0xE4, 0xD1, 0x42, 0x3D, 0xD4, 0x30, 0xA3, 0x3C, 0xB6, 0x26,
    0x6F, 0xBF, 0x0E, 0xDA, 0x46, 0x69, 0x07, 0x57, 0x27, 0xF2, 0x1D, 0x9B, 0xBC, 0x94, 0x43, 0x03,
    0xF8, 0x11, 0xC7, 0xF6, 0x90, 0xEF, 0x3E, 0xE7, 0x06, 0xC3, 0xD5, 0x2F, 0xC8, 0x66, 0x1E, 0xD7,
    0x08, 0xE8, 0xEA, 0xDE, 0x80, 0x52, 0xEE, 0xF7, 0x84, 0xAA, 0x72, 0xAC, 0x35, 0x4D, 0x6A, 0x2A,
    0x96, 0x1A, 0xD2, 0x71, 0x5A, 0x15, 0x49, 0x74, 0x4B, 0x9F, 0xD0, 0x5E, 0x04, 0x18, 0xA4, 0xEC,
    0xC2, 0xE0, 0x41, 0x6E, 0x0F, 0x51, 0xCB, 0xCC, 0x24, 0x91, 0xAF, 0x50, 0xA1, 0xF4, 0x70, 0x39,
    0x99, 0x7C, 0x3A, 0x85, 0x23, 0xB8, 0xB4, 0x7A, 0xFC, 0x02, 0x36, 0x5B, 0x25, 0x55, 0x97, 0x31,
    0x2D, 0x5D, 0xFA, 0x98, 0xE3, 0x8A, 0x92, 0xAE, 0x05, 0xDF, 0x29, 0x10, 0x67, 0x6C, 0xBA, 0xC9,
    0xD3, 0x00, 0xE6, 0xCF, 0xE1, 0x9E, 0xA8, 0x2C, 0x63, 0x16, 0x01, 0x3F, 0x58, 0xE2, 0x89, 0xA9,
    0x0D, 0x38, 0x34, 0x1B, 0xAB, 0x33, 0xFF, 0xB0, 0xBB, 0x48, 0x0C, 0x5F, 0xB9, 0xB1, 0xCD, 0x2E,
    0xC5, 0xF3, 0xDB, 0x47, 0xE5, 0xA5, 0x9C, 0x77, 0x0A, 0xA6, 0x20, 0x68, 0xFE, 0x7F, 0xC1, 0xAD
};

/* Expand a key of 1..128 bytes to 64 words; `bits` (1..1024) is T1, the effective length. */
static void rc2_expand(uint16_t *k, const uint8_t *key, size_t size, unsigned bits)
{
    uint8_t l[128];
    unsigned t8 = (bits + 7) / 8;
    uint8_t tm = (uint8_t)(0xFF >> (8 * t8 - bits));
    int i;
    memcpy(l, key, size);
    for (i = (int)size; i < 128; i++)
        l[i] = RC2_PI[(uint8_t)(l[i - 1] + l[i - size])];
    l[128 - t8] = RC2_PI[l[128 - t8] & tm];
    for (i = 127 - (int)t8; i >= 0; i--)
        l[i] = RC2_PI[l[i + 1] ^ l[i + t8]];
    for (i = 0; i < 64; i++)
        k[i] = (uint16_t)(l[2 * i] | l[2 * i + 1] << 8);
    memset(l, 0, sizeof l);
}

#define RC2_ROL(x, n) ((uint16_t)((x) << (n) | (x) >> (16 - (n))))
#define RC2_ROR(x, n) ((uint16_t)((x) >> (n) | (x) << (16 - (n))))

#define RC2_MIX(k) \
    a = (uint16_t)(a + (k)[0] + (d & c) + (~d & b)); a = RC2_ROL(a, 1); \
    b = (uint16_t)(b + (k)[1] + (a & d) + (~a & c)); b = RC2_ROL(b, 2); \
    c = (uint16_t)(c + (k)[2] + (b & a) + (~b & d)); c = RC2_ROL(c, 3); \
    d = (uint16_t)(d + (k)[3] + (c & b) + (~c & a)); d = RC2_ROL(d, 5);
#define RC2_MASH(k) \
    a = (uint16_t)(a + (k)[d & 63]); b = (uint16_t)(b + (k)[a & 63]); \
    c = (uint16_t)(c + (k)[b & 63]); d = (uint16_t)(d + (k)[c & 63]);
#define RC2_UNMIX(k) \
    d = RC2_ROR(d, 5); d = (uint16_t)(d - (k)[3] - (c & b) - (~c & a)); \
    c = RC2_ROR(c, 3); c = (uint16_t)(c - (k)[2] - (b & a) - (~b & d)); \
    b = RC2_ROR(b, 2); b = (uint16_t)(b - (k)[1] - (a & d) - (~a & c)); \
    a = RC2_ROR(a, 1); a = (uint16_t)(a - (k)[0] - (d & c) - (~d & b));
#define RC2_UNMASH(k) \
    d = (uint16_t)(d - (k)[c & 63]); c = (uint16_t)(c - (k)[b & 63]); \
    b = (uint16_t)(b - (k)[a & 63]); a = (uint16_t)(a - (k)[d & 63]);

static inline unsigned rc2_load(const uint8_t *p) { return (unsigned)(p[0] | p[1] << 8); }
static inline void rc2_store(uint8_t *p, unsigned v) { p[0] = (uint8_t)v; p[1] = (uint8_t)(v >> 8); }

/* `size` is a multiple of 8; in and out may be the same. */
static void rc2_cbc_encrypt(const uint16_t *k, const uint8_t *in, uint8_t *out, size_t size)
{
    uint16_t a = 0, b = 0, c = 0, d = 0;
    size_t at;
    int i;
    for (at = 0; at < size; at += 8) {
        a ^= rc2_load(in + at);
        b ^= rc2_load(in + at + 2);
        c ^= rc2_load(in + at + 4);
        d ^= rc2_load(in + at + 6);
        for (i = 0; i < 64; i += 4) {
            RC2_MIX(k + i)
            if (i == 16 || i == 40) {
                RC2_MASH(k)
            }
        }
        rc2_store(out + at, a);
        rc2_store(out + at + 2, b);
        rc2_store(out + at + 4, c);
        rc2_store(out + at + 6, d);
    }
}

static void rc2_cbc_decrypt(const uint16_t *k, const uint8_t *in, uint8_t *out, size_t size)
{
    uint16_t a, b, c, d, pa = 0, pb = 0, pc = 0, pd = 0, na, nb, nc, nd;
    size_t at;
    int i;
    for (at = 0; at < size; at += 8) {
        na = a = rc2_load(in + at);
        nb = b = rc2_load(in + at + 2);
        nc = c = rc2_load(in + at + 4);
        nd = d = rc2_load(in + at + 6);
        for (i = 60; i >= 0; i -= 4) {
            RC2_UNMIX(k + i)
            if (i == 44 || i == 20) {
                RC2_UNMASH(k)
            }
        }
        rc2_store(out + at, a ^ pa);
        rc2_store(out + at + 2, b ^ pb);
        rc2_store(out + at + 4, c ^ pc);
        rc2_store(out + at + 6, d ^ pd);
        pa = na;
        pb = nb;
        pc = nc;
        pd = nd;
    }
}

#endif
