/* Redis: a stream; XADD, and for the consumer XREADGROUP with NOACK, then XDEL of what it read. */
#ifndef BENCH_PEER_REDIS_H
#define BENCH_PEER_REDIS_H

#include "peer.h"

static Buffer redis_ids;        /* of the reply that is looked at */
static uint64_t redis_id_count;

/* One reply at `at`, or NULL when it is not whole. With `tell`, identifiers are gathered and bodies delivered: entries are arrays at
 * depth 3, of an identifier and of fields at depth 4. */
static const uint8_t *redis_reply(const uint8_t *at, const uint8_t *end, int depth, int index, int tell)
{
    ssize_t line = at < end ? line_length(at, (size_t)(end - at)) : -1;
    if (line < 0) return NULL;
    const uint8_t *next = at + line + 2;
    long value = atol((const char *)at + 1);
    if (*at == '-') die("redis: %.*s", (int)line, (const char *)at);
    if (*at == '*') {
        for (long i = 0; i < value && next; i++) next = redis_reply(next, end, depth + 1, (int)i, tell);
        return next;
    }
    if (*at == ':' || *at == '+') return next;
    if (*at != '$') die("redis: a reply begins with %02x", *at);
    if (value < 0) return next;
    if (end - next < value + 2) return NULL;
    if (tell && depth == 4 && index == 0) {
        put_format(&redis_ids, "$%ld\r\n", value);
        put_bytes(&redis_ids, next, (size_t)value + 2);
        redis_id_count++;
    } else if (tell && depth == 5 && index == 1) {
        peer_delivered(next);
    }
    return next + value + 2;
}

static void redis_wait(Client *c)
{
    peer_write(c);
    const uint8_t *end;
    while (!(end = redis_reply(c->in, c->in + c->in_have, 0, 0, 0))) peer_read_more(c);
    c->in_have = 0;
}

static void redis_create(Client *c)
{
    put_format(&c->out, "XGROUP CREATE %s group $ MKSTREAM\r\n", queue_name);
    redis_wait(c);
}

static void redis_ask(Client *c)
{
    put_format(&c->out, "*12\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$5\r\ngroup\r\n$1\r\nc\r\n$5\r\nCOUNT\r\n$3\r\n256\r\n"
               "$5\r\nBLOCK\r\n$1\r\n0\r\n$5\r\nNOACK\r\n$7\r\nSTREAMS\r\n$%zu\r\n%s\r\n$1\r\n>\r\n", strlen(queue_name), queue_name);
}

static void redis_open(Client *c)
{
    if (c->role == CONSUMER) redis_ask(c);
    peer_write(c);
}

static void redis_send(Client *c, const uint8_t *data)
{
    put_format(&c->out, "*5\r\n$4\r\nXADD\r\n$%zu\r\n%s\r\n$1\r\n*\r\n$1\r\nb\r\n$%zu\r\n", strlen(queue_name), queue_name, body_size);
    put_bytes(&c->out, data, body_size);
    put_bytes(&c->out, "\r\n", 2);
}

static size_t redis_take(Client *c, const uint8_t *at, size_t size)
{
    const uint8_t *begin = at, *end = at + size, *next;
    while ((next = redis_reply(at, end, 0, 0, 0))) {
        if (c->role == PRODUCER) {
            peer_confirmed(c, 1);
        } else if (*at == '*') {
            redis_ids.size = redis_id_count = 0;
            redis_reply(at, end, 0, 0, 1);
            if (redis_id_count) {
                put_format(&c->out, "*%llu\r\n$4\r\nXDEL\r\n$%zu\r\n%s\r\n", (unsigned long long)redis_id_count + 2, strlen(queue_name), queue_name);
                put_bytes(&c->out, redis_ids.data, redis_ids.size);
            }
            redis_ask(c);
        }
        at = next;
    }
    return (size_t)(at - begin);
}

static const Protocol redis = {"redis", redis_create, redis_open, redis_send, NULL, redis_take, NULL};

#endif
