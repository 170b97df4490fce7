/* RabbitMQ by AMQP 0-9-1: a quorum queue of durable messages, or with in_memory a transient classic one; publisher confirms, and a
 * consumer that acknowledges all that one read brought. */
#ifndef BENCH_PEER_AMQP_H
#define BENCH_PEER_AMQP_H

#include "peer.h"

enum {
    AMQP_METHOD = 1, AMQP_HEADER = 2, AMQP_BODY = 3, AMQP_HEARTBEAT = 8, AMQP_END = 0xCE, AMQP_FRAME_HEAD = 7,
    AMQP_PREFETCH = 1024,
};
#define AMQP(class, method) ((uint32_t)(class) << 16 | (method))

static size_t amqp_begin(Buffer *b, int type, int channel)
{
    put_big_endian(b, (uint64_t)type, 1);
    put_big_endian(b, (uint64_t)channel, 2);
    put_big_endian(b, 0, 4);
    return b->size;
}

static void amqp_end(Buffer *b, size_t at)
{
    uint32_t size = __builtin_bswap32((uint32_t)(b->size - at));
    memcpy(b->data + at - 4, &size, 4);
    put_big_endian(b, AMQP_END, 1);
}

static size_t amqp_method(Buffer *b, int channel, uint32_t method)
{
    size_t at = amqp_begin(b, AMQP_METHOD, channel);
    put_big_endian(b, method, 4);
    return at;
}

static void amqp_short(Buffer *b, const char *text)
{
    put_big_endian(b, strlen(text), 1);
    put_bytes(b, text, strlen(text));
}

/* Bytes of the whole frame at `at`, or 0. */
static size_t amqp_frame(const uint8_t *at, size_t size)
{
    if (size < AMQP_FRAME_HEAD) return 0;
    size_t whole = AMQP_FRAME_HEAD + get_big_endian(at + 3, 4) + 1;
    return size < whole ? 0 : whole;
}

static void amqp_expect(Client *c, uint32_t method)
{
    peer_write(c);
    size_t whole;
    while (!(whole = amqp_frame(c->in, c->in_have))) peer_read_more(c);
    uint32_t found = (uint32_t)get_big_endian(c->in + AMQP_FRAME_HEAD, 4);
    if (*c->in != AMQP_METHOD || found != method) die("amqp: method %08x instead of %08x: %.200s", found, method, (char *)c->in + 14);
    memmove(c->in, c->in + whole, c->in_have - whole);
    c->in_have -= whole;
}

static void amqp_connect(Client *c)
{
    Buffer *b = &c->out;
    put_bytes(b, "AMQP\0\0\x09\x01", 8);
    amqp_expect(c, AMQP(10, 10));               /* connection.start */
    size_t at = amqp_method(b, 0, AMQP(10, 11));
    put_big_endian(b, 0, 4);
    amqp_short(b, "PLAIN");
    put_big_endian(b, 12, 4);
    put_bytes(b, "\0guest\0guest", 12);
    amqp_short(b, "en_US");
    amqp_end(b, at);
    amqp_expect(c, AMQP(10, 30));               /* connection.tune */
    at = amqp_method(b, 0, AMQP(10, 31));
    put_big_endian(b, 16, 2);
    put_big_endian(b, 131072, 4);
    put_big_endian(b, 0, 2);
    amqp_end(b, at);
    at = amqp_method(b, 0, AMQP(10, 40));       /* connection.open */
    amqp_short(b, "/");
    put_big_endian(b, 0, 2);
    amqp_end(b, at);
    amqp_expect(c, AMQP(10, 41));
    at = amqp_method(b, 1, AMQP(20, 10));       /* channel.open */
    put_big_endian(b, 0, 1);
    amqp_end(b, at);
    amqp_expect(c, AMQP(20, 11));
}

static void amqp_create(Client *c)
{
    Buffer *b = &c->out;
    amqp_connect(c);
    size_t at = amqp_method(b, 1, AMQP(50, 10));        /* queue.declare */
    put_big_endian(b, 0, 2);
    amqp_short(b, queue_name);
    put_big_endian(b, in_memory ? 0 : 2, 1);
    if (in_memory) {
        put_big_endian(b, 0, 4);
    } else {
        put_big_endian(b, 1 + 12 + 1 + 4 + 6, 4);
        amqp_short(b, "x-queue-type");
        put_bytes(b, "S\0\0\0\6quorum", 11);
    }
    amqp_end(b, at);
    amqp_expect(c, AMQP(50, 11));
}

static void amqp_open(Client *c)
{
    Buffer *b = &c->out;
    amqp_connect(c);
    if (c->role == PRODUCER) {
        size_t at = amqp_method(b, 1, AMQP(85, 10));    /* confirm.select */
        put_big_endian(b, 0, 1);
        amqp_end(b, at);
        amqp_expect(c, AMQP(85, 11));
        return;
    }
    size_t at = amqp_method(b, 1, AMQP(60, 10));        /* basic.qos */
    put_big_endian(b, 0, 4);
    put_big_endian(b, AMQP_PREFETCH, 2);
    put_big_endian(b, 0, 1);
    amqp_end(b, at);
    amqp_expect(c, AMQP(60, 11));
    at = amqp_method(b, 1, AMQP(60, 20));               /* basic.consume */
    put_big_endian(b, 0, 2);
    amqp_short(b, queue_name);
    amqp_short(b, "");
    put_big_endian(b, 0, 1);
    put_big_endian(b, 0, 4);
    amqp_end(b, at);
    amqp_expect(c, AMQP(60, 21));
}

static void amqp_send(Client *c, const uint8_t *data)
{
    Buffer *b = &c->out;
    size_t at = amqp_method(b, 1, AMQP(60, 40));        /* basic.publish */
    put_big_endian(b, 0, 2);
    amqp_short(b, "");
    amqp_short(b, queue_name);
    put_big_endian(b, 0, 1);
    amqp_end(b, at);
    at = amqp_begin(b, AMQP_HEADER, 1);
    put_big_endian(b, 60 << 16, 4);
    put_big_endian(b, body_size, 8);
    put_big_endian(b, 0x1000, 2);                       /* delivery-mode */
    put_big_endian(b, in_memory ? 1 : 2, 1);
    amqp_end(b, at);
    at = amqp_begin(b, AMQP_BODY, 1);
    put_bytes(b, data, body_size);
    amqp_end(b, at);
}

static size_t amqp_take(Client *c, const uint8_t *at, size_t size)
{
    size_t done = 0, whole;
    uint64_t last = 0;
    for (; (whole = amqp_frame(at + done, size - done)); done += whole) {
        const uint8_t *frame = at + done, *payload = frame + AMQP_FRAME_HEAD;
        if (*frame == AMQP_BODY) peer_delivered(payload);
        if (*frame != AMQP_METHOD) continue;
        uint32_t method = (uint32_t)get_big_endian(payload, 4);
        uint64_t tag = get_big_endian(payload + 4, 8);
        if (method == AMQP(60, 80)) {                   /* basic.ack; tags count from 1 */
            if (!payload[12]) peer_confirmed_one(c, tag);
            else while (c->confirmed < tag) peer_confirmed(c, 1);
        } else if (method == AMQP(60, 60)) {            /* basic.deliver; behind the consumer's tag */
            last = get_big_endian(payload + 5 + payload[4], 8);
        } else {
            die("amqp: method %08x", method);
        }
    }
    if (last) {
        size_t ack = amqp_method(&c->out, 1, AMQP(60, 80));
        put_big_endian(&c->out, last, 8);
        put_big_endian(&c->out, 1, 1);
        amqp_end(&c->out, ack);
    }
    return done;
}

static const Protocol amqp = {"amqp", amqp_create, amqp_open, amqp_send, NULL, amqp_take, NULL};

#endif
