/* AES in CBC mode with a zero initialisation vector, by the instructions that processors have for it.

   For one message body the calls through which Python reaches OpenSSL take longer than the encryption itself.
   Where the processor has no such instructions, aes_available() says so and security/ciphers.py asks OpenSSL. */

#ifndef MSMQ_FAST_CRYPTO_AES_H
#define MSMQ_FAST_CRYPTO_AES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AES_KEYS 15 /* of the 14 rounds of AES-256, and the first one */

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define AES_CODE static __attribute__((target("aes,sse4.1")))
#define AES_WIDE 8 /* blocks decrypted side by side, which hides how long one takes */

typedef struct {
    __m128i encrypt[AES_KEYS], decrypt[AES_KEYS];
    int rounds;
} aes_key;

static int aes_available(void)
{
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
}

AES_CODE uint32_t aes_sub_word(uint32_t word)
{
    return (uint32_t)_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(_mm_set1_epi32((int)word), 0));
}

/* FIPS 197, 5.2; `size` is 16, 24 or 32. */
AES_CODE void aes_expand(aes_key *key, const uint8_t *bytes, size_t size)
{
    uint32_t words[4 * AES_KEYS], word, constant = 1;
    int count = (int)size / 4, i;
    key->rounds = count + 6;
    memcpy(words, bytes, size);
    for (i = count; i < 4 * (key->rounds + 1); i++) {
        word = words[i - 1];
        if (i % count == 0) {
            word = aes_sub_word(word >> 8 | word << 24) ^ constant;
            constant = constant << 1 ^ (constant & 0x80 ? 0x11B : 0);
        } else if (count == 8 && i % count == 4) {
            word = aes_sub_word(word);
        }
        words[i] = words[i - count] ^ word;
    }
    for (i = 0; i <= key->rounds; i++)
        key->encrypt[i] = _mm_loadu_si128((const __m128i *)(words + 4 * i));
    key->decrypt[0] = key->encrypt[key->rounds];
    for (i = 1; i < key->rounds; i++)
        key->decrypt[i] = _mm_aesimc_si128(key->encrypt[key->rounds - i]);
    key->decrypt[key->rounds] = key->encrypt[0];
    memset(words, 0, sizeof words);
}

/* `out` has room for `size` rounded up to more than it, a multiple of 16: the padding is put there. */
AES_CODE void aes_cbc_encrypt(const aes_key *key, const uint8_t *in, uint8_t *out, size_t size)
{
    __m128i block = _mm_setzero_si128();
    uint8_t last[16];
    size_t at, whole = size & ~(size_t)15;
    int i;
    memset(last, (int)(16 - (size - whole)), 16);
    if (size > whole)
        memcpy(last, in + whole, size - whole);
    for (at = 0; at <= whole; at += 16) {
        block = _mm_xor_si128(block, _mm_loadu_si128((const __m128i *)(at < whole ? in + at : last)));
        block = _mm_xor_si128(block, key->encrypt[0]);
        for (i = 1; i < key->rounds; i++)
            block = _mm_aesenc_si128(block, key->encrypt[i]);
        block = _mm_aesenclast_si128(block, key->encrypt[key->rounds]);
        _mm_storeu_si128((__m128i *)(out + at), block);
    }
}

/* Blocks `from` to `to`; in and out are not the same. */
AES_CODE void aes_cbc_decrypt(const aes_key *key, const uint8_t *in, uint8_t *out, size_t from, size_t to)
{
    const __m128i *source = (const __m128i *)in;
    __m128i *target = (__m128i *)out;
    __m128i x[AES_WIDE], previous;
    size_t at = from;
    int i, j;
    previous = from ? _mm_loadu_si128(source + from - 1) : _mm_setzero_si128();
    for (; to - at >= AES_WIDE; at += AES_WIDE) {
        for (j = 0; j < AES_WIDE; j++)
            x[j] = _mm_xor_si128(_mm_loadu_si128(source + at + j), key->decrypt[0]);
        for (i = 1; i < key->rounds; i++)
            for (j = 0; j < AES_WIDE; j++)
                x[j] = _mm_aesdec_si128(x[j], key->decrypt[i]);
        for (j = 0; j < AES_WIDE; j++) {
            x[j] = _mm_aesdeclast_si128(x[j], key->decrypt[key->rounds]);
            _mm_storeu_si128(target + at - from + j, _mm_xor_si128(x[j], previous));
            previous = _mm_loadu_si128(source + at + j);
        }
    }
    for (; at < to; at++) {
        x[0] = _mm_xor_si128(_mm_loadu_si128(source + at), key->decrypt[0]);
        for (i = 1; i < key->rounds; i++)
            x[0] = _mm_aesdec_si128(x[0], key->decrypt[i]);
        x[0] = _mm_aesdeclast_si128(x[0], key->decrypt[key->rounds]);
        _mm_storeu_si128(target + at - from, _mm_xor_si128(x[0], previous));
        previous = _mm_loadu_si128(source + at);
    }
}

#else

typedef struct {
    int rounds;
} aes_key;

static int aes_available(void)
{
    return 0;
}

static void aes_expand(aes_key *key, const uint8_t *bytes, size_t size)
{
    (void)bytes;
    key->rounds = (int)size / 4 + 6;
}

static void aes_cbc_encrypt(const aes_key *key, const uint8_t *in, uint8_t *out, size_t size)
{
    (void)key, (void)in, (void)out, (void)size;
}

static void aes_cbc_decrypt(const aes_key *key, const uint8_t *in, uint8_t *out, size_t from, size_t to)
{
    (void)key, (void)in, (void)out, (void)from, (void)to;
}

#endif

#endif
