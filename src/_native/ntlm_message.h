/* Signs and seals one message (MS-NLMP 3.4.3, 3.4.4.2): HMAC-MD5 over all of it, RC4 over its body.
 *
 * Each algorithm mostly waits for its own last step. Interleaved block by block, both together take hardly longer than one: twice as
 * fast as one after the other. */

#ifndef MSMQ_FAST_NTLM_MESSAGE_H
#define MSMQ_FAST_NTLM_MESSAGE_H

#include "crypto_md5.h"
#include "crypto_rc4.h"

/* The state of one direction of a session. */
typedef struct {
    uint32_t cells[256], x;
    uint64_t y;
    hmac_md5_key signing;
} ntlm_direction;

enum { NTLM_SIGN, NTLM_SEAL, NTLM_UNSEAL };

#define NTLM_RUN(n) rc4_eight(s->cells, &s->x, &s->y, in + 8 * n, out + 8 * n);

/* MD5 takes in `block` while RC4 turns 64 bytes of `in` into `out`; `block` may be `in` or stand before it. */
static void ntlm_block(uint32_t *state, const uint8_t *block, ntlm_direction *s, const uint8_t *in, uint8_t *out)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], x[16];
    int i;
    for (i = 0; i < 16; i++)
        x[i] = md5_word(block + 4 * i);
    MD5_STEPS(NTLM_RUN)
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

/* As many bytes as make the digest's block full, or those that are left behind the last full one. */
static void ntlm_part(md5_stream *md, ntlm_direction *s, const uint8_t *in, uint8_t *out, size_t size, int mode)
{
    if (mode == NTLM_SEAL)
        md5_update(md, in, size);
    rc4_continue(s->cells, &s->x, &s->y, in, out, size);
    if (mode == NTLM_UNSEAL)
        md5_update(md, out, size);
}

/* `in` and `out` are the same or do not overlap. */
static void ntlm_body(md5_stream *md, ntlm_direction *s, const uint8_t *in, uint8_t *out, size_t size, int mode)
{
    size_t part = (64 - md->size % 64) % 64, blocks;
    if (part > size)
        part = size;
    ntlm_part(md, s, in, out, part, mode);
    in += part;
    out += part;
    size -= part;
    blocks = size / 64;
    md->size += 64 * blocks;
    if (blocks && mode == NTLM_UNSEAL) {
        rc4_continue(s->cells, &s->x, &s->y, in, out, 64);
        for (; blocks > 1; blocks--, in += 64, out += 64)
            ntlm_block(md->state, out, s, in + 64, out + 64);
        md5_block(md->state, out);
        in += 64;
        out += 64;
    } else {
        for (; blocks; blocks--, in += 64, out += 64)
            ntlm_block(md->state, in, s, in, out);
    }
    ntlm_part(md, s, in, out, size % 64, mode);
}

/* The first 8 of the 16 bytes of `mac` are the checksum, not encrypted yet. */
static void ntlm_message(
    ntlm_direction *s, uint32_t sequence,
    const uint8_t *head, size_t head_size,
    const uint8_t *in, uint8_t *out, size_t size,
    const uint8_t *tail, size_t tail_size,
    int mode, uint8_t *mac)
{
    uint8_t number[4] = {sequence, sequence >> 8, sequence >> 16, sequence >> 24};
    md5_stream md;
    hmac_md5_begin(&s->signing, &md);
    md5_update(&md, number, 4);
    md5_update(&md, head, head_size);
    if (mode == NTLM_SIGN)
        md5_update(&md, in, size);
    else
        ntlm_body(&md, s, in, out, size, mode);
    md5_update(&md, tail, tail_size);
    hmac_md5_end(&s->signing, &md, mac);
}

#endif
