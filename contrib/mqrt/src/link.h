/* The connection of this process to its queue manager.
 *
 * There is one, made by the first call that needs it, and made anew by the first call after its loss. Each
 * connection has a generation. Handles and transactions belong to the generation that opened them: a call with
 * another one returns MQ_ERROR_STALE_HANDLE. A call that waits for its reply when the connection is lost returns
 * MQ_ERROR_SERVICE_NOT_AVAILABLE: the server may have carried it out.
 *
 * Threads: callers write their own requests. A reader thread takes the replies and hands them to the callers that
 * wait, or to a thread of workers.h.
 */
#ifndef MQRT_LINK_H
#define MQRT_LINK_H

#include "mq.h"
#include "msgpack.h"

struct reply {
    uint8_t kind;  /* F_REPLY, F_ERROR, F_SENT, F_MESSAGE …; 0: there was no reply */
    uint8_t *data; /* exactly one msgpack value; freed by reply_free() */
    size_t size;
};

void reply_free(struct reply *reply);

/* What the hello of the server says. */
struct hello {
    uint64_t generation;
    GUID guid;
    char name[256];   /* UTF-8 */
    char server[256]; /* name and version of the software */
};

/* Connects if there is no connection. MQ_ERROR_SERVICE_NOT_AVAILABLE: there is no server.
 * MQ_ERROR_ACCESS_DENIED: it refuses the token. */
HRESULT link_hello(struct hello *hello);

/* Begins the payload of a request; link_call() and link_start() free it. */
void link_begin(struct mp_writer *request);

/* Makes a request and waits for its reply. `generation` 0: of any connection. Returns the HRESULT of an ERROR
 * frame, with the frame in `reply`. */
HRESULT link_call(uint64_t generation, uint8_t frame, struct mp_writer *request, struct reply *reply);

/* Like link_call() for a reply of one kind: another one is MQ_ERROR. */
HRESULT link_ask(uint64_t generation, uint8_t frame, struct mp_writer *request, uint8_t kind, struct reply *reply);

/* Like link_ask() for a REPLY that the caller does not look at. */
HRESULT link_do(uint64_t generation, uint8_t frame, struct mp_writer *request);

typedef void (*link_finish)(void *context, HRESULT result, struct reply *reply);

/* Makes a request whose end is told to `finish` on a thread of workers.h. If it returns an error, `finish` is not
 * called. */
HRESULT link_start(uint64_t generation, uint8_t frame, struct mp_writer *request, link_finish finish, void *context);

#endif
