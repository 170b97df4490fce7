/* Frames of the application protocol (docs/reference/application-protocol.md 1.1 and 2). */
#ifndef BENCH_APP_H
#define BENCH_APP_H

#include "msgpack.h"

#include <sys/socket.h>

enum {
    HELLO = 0x01, OPEN = 0x20, SEND = 0x22, RECEIVE = 0x23, SUBSCRIBE = 0x26, CREDIT = 0x27, ACKNOWLEDGE = 0x28,
    REPLY = 0x80, ERROR_FRAME = 0x81, SENT = 0x82, MESSAGE = 0x84, DELIVERY = 0x85, ENDED = 0x86,
    FRAME_HEAD = 9,             /* length u32, type u8, request id u32, big-endian */
};

static inline void put_big_endian32(uint8_t *p, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(p, &value, 4);
}

static inline uint32_t get_big_endian32(const uint8_t *p) { return __builtin_bswap32(get32(p)); }

/* Returns where the frame begins; frame_end wants to know. */
static inline size_t frame_begin(Buffer *b, int type, uint32_t id)
{
    uint8_t *p = buffer_extend(b, FRAME_HEAD);
    p[4] = (uint8_t)type;
    put_big_endian32(p + 5, id);
    return b->size - FRAME_HEAD;
}

static inline void frame_end(Buffer *b, size_t at) { put_big_endian32(b->data + at, (uint32_t)(b->size - at - 4)); }

static inline void write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0) die("send: %s", strerror(errno));
        data += n;
        size -= (size_t)n;
    }
}

static inline void read_all(int fd, uint8_t *data, size_t size)
{
    while (size) {
        ssize_t n = recv(fd, data, size, 0);
        if (n <= 0) die("the server closed the connection");
        data += n;
        size -= (size_t)n;
    }
}

/* Sends the frame that the buffer holds, with blocking calls; the type of the answer, its payload in the buffer. */
static inline int frame_ask(int fd, Buffer *b)
{
    uint8_t head[FRAME_HEAD];
    frame_end(b, 0);
    write_all(fd, b->data, b->size);
    read_all(fd, head, FRAME_HEAD);
    uint32_t size = get_big_endian32(head) - 5;
    b->size = 0;
    read_all(fd, buffer_extend(b, size), size);
    return head[4];
}

#endif
