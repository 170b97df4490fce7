#include "md5.h"

#include <string.h>

static const uint8_t SHIFTS[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/* floor(2^32 * |sin(i + 1)|) */
static const uint32_t SINES[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

static uint32_t rotated(uint32_t value, unsigned by) { return value << by | value >> (32 - by); }

static void block(uint32_t state[4], const uint8_t *data) {
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned i = 0; i < 16; i++) {
        const uint8_t *at = data + 4 * i;
        words[i] = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    }
    for (unsigned i = 0; i < 64; i++) {
        unsigned round = i / 16;
        uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                         : round == 1 ? (d & b) | (~d & c)
                         : round == 2 ? b ^ c ^ d
                                      : c ^ (b | ~d);
        static const uint8_t step[4] = {1, 5, 3, 7}, offset[4] = {0, 1, 5, 0};
        uint32_t sum = a + mixed + SINES[i] + words[(i * step[round] + offset[round]) % 16];
        a = d;
        d = c;
        c = b;
        b += rotated(sum, SHIFTS[round][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void md5(const uint8_t *data, size_t size, uint8_t digest[MD5_SIZE]) {
    uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    size_t whole = size / 64 * 64, rest = size - whole;
    for (size_t at = 0; at < whole; at += 64) block(state, data + at);
    uint8_t tail[128] = {0};
    if (rest > 0) memcpy(tail, data + whole, rest);
    tail[rest] = 0x80;
    size_t length = rest < 56 ? 64 : 128;
    for (unsigned i = 0; i < 8; i++) tail[length - 8 + i] = (uint8_t)((uint64_t)size * 8 >> (8 * i));
    for (size_t at = 0; at < length; at += 64) block(state, tail + at);
    for (unsigned i = 0; i < MD5_SIZE; i++) digest[i] = (uint8_t)(state[i / 4] >> (8 * (i % 4)));
}
