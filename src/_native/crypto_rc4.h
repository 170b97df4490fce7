/* The RC4 loop (RFC 6229 has vectors): eight bytes of key stream at a time.
 *
 * The first index of RC4 counts 1, 2, 3 …: within a run of eight, its cells are at fixed offsets from one pointer, so it costs no
 * arithmetic, except in the one run of 32 in which it wraps around. */

#ifndef MSMQ_FAST_CRYPTO_RC4_H
#define MSMQ_FAST_CRYPTO_RC4_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns eight bytes of key stream, the first one lowest. `p` points to the cell before the eight. */
#if defined(__x86_64__) && defined(__GNUC__)

/* Compilers would widen the byte sums, which costs a third of the speed. */
#define RC4_CELL(offset) \
    "movl " offset "(%[p]), %k[tx]\n\t" \
    "addb %b[tx], %b[y]\n\t" \
    "movl (%[s],%q[y],4), %k[ty]\n\t" \
    "rorq $8, %[w]\n\t" \
    "movl %k[tx], (%[s],%q[y],4)\n\t" \
    "movl %k[ty], " offset "(%[p])\n\t" \
    "addb %b[tx], %b[ty]\n\t" \
    "movb (%[s],%q[ty],4), %b[w]\n\t"

static inline uint64_t rc4_run(uint32_t *s, uint32_t *p, uint64_t *index)
{
    uint64_t y = *index, w = 0, tx, ty;
    __asm__(RC4_CELL("4") RC4_CELL("8") RC4_CELL("12") RC4_CELL("16")
            RC4_CELL("20") RC4_CELL("24") RC4_CELL("28") RC4_CELL("32")
            "rorq $8, %[w]"
            : [y] "+&r"(y), [w] "+&r"(w), [tx] "=&r"(tx), [ty] "=&r"(ty)
            : [s] "r"(s), [p] "r"(p)
            : "memory", "cc");
    *index = y;
    return w;
}

#else

static inline uint64_t rc4_run(uint32_t *s, uint32_t *p, uint64_t *index)
{
    uint64_t w = 0;
    uint32_t tx, ty;
    uint8_t y = (uint8_t)*index;
    int i;
    for (i = 1; i <= 8; i++) {
        tx = p[i];
        y = (uint8_t)(y + tx);
        ty = s[y];
        p[i] = ty;
        s[y] = tx;
        w = (w >> 8) | ((uint64_t)s[(uint8_t)(tx + ty)] << 56);
    }
    *index = y;
    return w;
}

#endif

/* Returns one byte of key stream. `x` and `y` are the two indices of RC4, 0 for an unused key. */
static inline uint8_t rc4_byte(uint32_t *s, uint32_t *x, uint64_t *y)
{
    uint32_t tx, ty;
    *x = (*x + 1) & 255;
    tx = s[*x];
    *y = (*y + tx) & 255;
    ty = s[*y];
    s[*x] = ty;
    s[*y] = tx;
    return (uint8_t)s[(tx + ty) & 255];
}

/* out := in ^ key stream, for eight bytes. */
static inline void rc4_eight(uint32_t *s, uint32_t *x, uint64_t *y, const uint8_t *in, uint8_t *out)
{
    uint64_t w, v;
    int i;
    if (*x <= 247) {
        w = rc4_run(s, s + *x, y);
        *x += 8;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        w = __builtin_bswap64(w);
#endif
        memcpy(&v, in, 8);
        v ^= w;
        memcpy(out, &v, 8);
    } else {
        for (i = 0; i < 8; i++)
            out[i] = in[i] ^ rc4_byte(s, x, y);
    }
}

/* out := in ^ key stream; continues where the last call ended. */
static void rc4_continue(uint32_t *s, uint32_t *x, uint64_t *y, const uint8_t *in, uint8_t *out, size_t size)
{
    for (; size >= 8; size -= 8, in += 8, out += 8)
        rc4_eight(s, x, y, in, out);
    for (; size; size--)
        *out++ = *in++ ^ rc4_byte(s, x, y);
}

/* The same from the state of an unused key; the state cannot be used again. */
static void rc4_apply(uint32_t *s, const uint8_t *in, uint8_t *out, size_t size)
{
    uint32_t x = 0;
    uint64_t y = 0;
    rc4_continue(s, &x, &y, in, out, size);
}

static void rc4_schedule(uint32_t *s, const uint8_t *key, size_t size)
{
    uint32_t i, t;
    uint8_t j = 0;
    for (i = 0; i < 256; i++)
        s[i] = i;
    for (i = 0; i < 256; i++) {
        t = s[i];
        j = (uint8_t)(j + t + key[i % size]);
        s[i] = s[j];
        s[j] = t;
    }
}

#endif
