/* The few msgpack forms that the application protocol uses; readers stop the program on anything else. */
#ifndef BENCH_MSGPACK_H
#define BENCH_MSGPACK_H

#include "common.h"

typedef struct {
    const uint8_t *at, *end;
} Reader;

static inline void mp_want(const Reader *r, uint64_t size)
{
    if ((uint64_t)(r->end - r->at) < size) die("a frame of the server ends inside a value");
}

static inline uint64_t mp_big_endian(Reader *r, unsigned size)
{
    uint64_t value = 0;
    mp_want(r, size);
    while (size--) value = value << 8 | *r->at++;
    return value;
}

static inline uint8_t mp_tag(Reader *r)
{
    mp_want(r, 1);
    return *r->at++;
}

static inline uint64_t mp_uint(Reader *r)
{
    uint8_t tag = mp_tag(r);
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return mp_big_endian(r, 1u << (tag - 0xcc));
    die("unsigned integer expected, tag %02x found", tag);
}

static inline uint64_t mp_array(Reader *r)
{
    uint8_t tag = mp_tag(r);
    if ((tag & 0xf0) == 0x90) return tag & 15;
    if (tag == 0xdc) return mp_big_endian(r, 2);
    if (tag == 0xdd) return mp_big_endian(r, 4);
    die("array expected, tag %02x found", tag);
}

static inline const uint8_t *mp_bytes(Reader *r, uint64_t *size)
{
    uint8_t tag = mp_tag(r);
    if ((tag & 0xe0) == 0xa0) *size = tag & 31;
    else if (tag >= 0xc4 && tag <= 0xc6) *size = mp_big_endian(r, 1u << (tag - 0xc4));
    else if (tag >= 0xd9 && tag <= 0xdb) *size = mp_big_endian(r, 1u << (tag - 0xd9));
    else die("text or binary expected, tag %02x found", tag);
    mp_want(r, *size);
    const uint8_t *bytes = r->at;
    r->at += *size;
    return bytes;
}

static inline void mp_skip(Reader *r)
{
    mp_want(r, 1);
    uint8_t tag = *r->at;
    uint64_t size, items;
    if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) {
        r->at++;
    } else if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd) {
        for (items = mp_array(r); items; items--) mp_skip(r);
    } else if ((tag & 0xf0) == 0x80 || tag == 0xde || tag == 0xdf) {
        r->at++;
        items = (tag & 0xf0) == 0x80 ? tag & 15u : mp_big_endian(r, tag == 0xde ? 2 : 4);
        for (items *= 2; items; items--) mp_skip(r);
    } else if (tag >= 0xcc && tag <= 0xcf) {
        mp_uint(r);
    } else if (tag >= 0xd0 && tag <= 0xd3) {
        r->at++;
        mp_big_endian(r, 1u << (tag - 0xd0));
    } else {
        mp_bytes(r, &size);
    }
}

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} Buffer;

static inline uint8_t *buffer_extend(Buffer *b, size_t size)
{
    while (b->capacity - b->size < size) {
        b->capacity = b->capacity ? b->capacity * 2 : 256;
        b->data = need(realloc(b->data, b->capacity));
    }
    b->size += size;
    return b->data + b->size - size;
}

static inline void mp_put_big_endian(Buffer *b, int tag, uint64_t value, unsigned size)
{
    uint8_t *p = buffer_extend(b, size + 1);
    *p++ = (uint8_t)tag;
    while (size--) *p++ = (uint8_t)(value >> (8 * size));
}

static inline void mp_put_uint(Buffer *b, uint64_t value)
{
    if (value < 0x80) *buffer_extend(b, 1) = (uint8_t)value;
    else if (value <= 0xffffffffu) mp_put_big_endian(b, 0xce, value, 4);
    else mp_put_big_endian(b, 0xcf, value, 8);
}

static inline void mp_put_array(Buffer *b, uint32_t items)
{
    if (items < 16) *buffer_extend(b, 1) = (uint8_t)(0x90 | items);
    else mp_put_big_endian(b, 0xdd, items, 4);
}

static inline void mp_put_text(Buffer *b, const char *text)
{
    size_t size = strlen(text);
    mp_put_big_endian(b, 0xdb, size, 4);
    memcpy(buffer_extend(b, size), text, size);
}

/* Room for `size` body bytes; returns their offset in the buffer. */
static inline size_t mp_put_bin(Buffer *b, size_t size)
{
    mp_put_big_endian(b, 0xc6, size, 4);
    buffer_extend(b, size);
    return b->size - size;
}

#endif
