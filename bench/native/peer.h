/* What the clients of other brokers in peer_load.c share. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "msgpack.h"

#include <sys/socket.h>

enum { PRODUCER, CONSUMER, RING = 1 << 16, IN_SIZE = 1 << 20 };

typedef struct {
    int fd, role, number;
    uint8_t *in;
    size_t in_have, in_done;
    Buffer out;
    size_t out_done;
    uint64_t sent, confirmed;   /* messages of a producer */
    uint64_t sent_at[RING];     /* by message modulo RING; 0: confirmed out of turn */
    uint64_t pending;           /* of a protocol: messages since its last marker */
    int polling;                /* a consumer to be asked again in a moment */
} Client;

/* A protocol. `data` of a message is body_size bytes, of which the first eight are the time of sending. */
typedef struct {
    const char *name;
    /* Makes the queue, on a producer of its own, before the others open. Blocks. */
    void (*create)(Client *c);
    /* After the connection; a consumer begins to consume. Blocks. */
    void (*open)(Client *c);
    /* Appends a message to `out`. */
    void (*send)(Client *c, const uint8_t *data);
    /* Appends what must follow the messages of one write, if anything. */
    void (*flush)(Client *c);
    /* Looks at what came; returns how many bytes of it are done. Calls peer_confirmed and peer_delivered. */
    size_t (*take)(Client *c, const uint8_t *at, size_t size);
    /* Asks again for a consumer whose `polling` is set, or NULL. */
    void (*poll)(Client *c);
} Protocol;

extern const char *queue_name;
extern size_t body_size;
extern int in_memory, lockstep;

void peer_confirmed(Client *c, uint64_t count);
void peer_confirmed_one(Client *c, uint64_t message);   /* out of turn; messages count from 1 */
void peer_delivered(const uint8_t *body);
/* For `create` and `open`: writes what is in `out`, and reads more. */
void peer_write(Client *c);
void peer_read_more(Client *c);

static inline void put_bytes(Buffer *b, const void *data, size_t size) { memcpy(buffer_extend(b, size), data, size); }

__attribute__((format(printf, 2, 3))) static inline void put_format(Buffer *b, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0 || size >= (int)sizeof text) die("a request is too long");
    put_bytes(b, text, (size_t)size);
}

static inline void put_big_endian(Buffer *b, uint64_t value, unsigned size)
{
    uint8_t *p = buffer_extend(b, size);
    while (size--) *p++ = (uint8_t)(value >> 8 * size);
}

static inline uint64_t get_big_endian(const uint8_t *p, unsigned size)
{
    uint64_t value = 0;
    while (size--) value = value << 8 | *p++;
    return value;
}

/* The line at `at` without CR LF: its length, or -1 when its end has not come. */
static inline ssize_t line_length(const uint8_t *at, size_t size)
{
    const uint8_t *end = memchr(at, '\n', size);
    return end ? end - at - 1 : -1;
}

#endif
