#include "link.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "transport.h"
#include "workers.h"

enum {
    BUCKETS = 256,
    BUFFER = 65536,
    HELLO_MOST = 4096,
    TOKEN_ROOM = 2048,
    FRAME_MOST = 64 << 20, /* bytes: a server that claims more is not believed */
};

static const char DEFAULT_ENDPOINT[] = "/run/msmq-fast/app.sock";

/* A request without a reply. It belongs to the table of its link, then to the thread that ends it. */
struct call {
    struct job job;
    struct call *chain;
    uint32_t id;
    HRESULT result;
    struct reply reply;
    bool done;
    pthread_cond_t ended; /* a caller waits for it, if finish is NULL */
    link_finish finish;
    void *context;
};

struct link {
    unsigned references; /* the table of links, the reader, each caller that writes; under `lock` */
    bool lost;           /* under `lock` */
    struct transport *transport;
    struct hello hello;
    size_t max_frame;
    pthread_mutex_t writing;
    uint32_t next_id;               /* under `lock` */
    struct call *calls[BUCKETS];    /* under `lock` */
    size_t start, stop;             /* of what is read and not used; the reader's */
    uint8_t buffer[BUFFER];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* short steps only */
static pthread_mutex_t dialing = PTHREAD_MUTEX_INITIALIZER; /* taken before `lock` */
static struct link *current;
static uint64_t generations;

void reply_free(struct reply *reply) {
    free(reply->data);
    *reply = (struct reply){0};
}

void link_begin(struct mp_writer *request) { mp_begin(request, FRAME_HEADER); }

static void release(struct link *link) {
    pthread_mutex_lock(&lock);
    bool last = --link->references == 0;
    pthread_mutex_unlock(&lock);
    if (!last) return;
    transport_free(link->transport);
    pthread_mutex_destroy(&link->writing);
    free(link);
}

/* ---- reading frames */

static bool read_exactly(struct link *link, uint8_t *to, size_t size) {
    while (size > 0) {
        if (link->start == link->stop && size < BUFFER) {
            ssize_t count = transport_read(link->transport, link->buffer, BUFFER);
            if (count <= 0) return false;
            link->start = 0;
            link->stop = (size_t)count;
        }
        size_t have = link->stop - link->start;
        if (have > 0) {
            if (have > size) have = size;
            memcpy(to, link->buffer + link->start, have);
            link->start += have;
        } else {
            ssize_t count = transport_read(link->transport, to, size);
            if (count <= 0) return false;
            have = (size_t)count;
        }
        to += have;
        size -= have;
    }
    return true;
}

static uint32_t number_at(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* False: the connection has ended, or the server breaks the protocol. */
static bool read_frame(struct link *link, struct reply *reply, uint32_t *id) {
    uint8_t header[FRAME_HEADER];
    if (!read_exactly(link, header, sizeof header)) return false;
    size_t length = number_at(header);
    if (length <= FRAME_LEAST || length > link->max_frame) return false;
    reply->kind = header[4];
    *id = number_at(header + 5);
    reply->size = length - FRAME_LEAST;
    reply->data = malloc(reply->size);
    if (reply->data == NULL) return false;
    if (read_exactly(link, reply->data, reply->size) && mp_is_one_value(reply->data, reply->size)) return true;
    reply_free(reply);
    return false;
}

/* The HRESULT of a reply. An ERROR that names no failure is still one. */
static HRESULT result_of(const struct reply *reply) {
    if (reply->kind != F_ERROR) return MQ_OK;
    struct mp_reader reader = mp_over(reply->data, reply->size);
    uint32_t count;
    uint64_t code;
    if (!mp_array(&reader, &count) || count == 0 || !mp_number(&reader, UINT32_MAX, &code)) return MQ_ERROR;
    return FAILED((HRESULT)(uint32_t)code) ? (HRESULT)(uint32_t)code : MQ_ERROR;
}

static void run_finish(struct job *job) {
    struct call *call = (struct call *)job; /* its first member */
    call->finish(call->context, call->result, &call->reply);
    reply_free(&call->reply);
    free(call);
}

/* Gives the call, which is in no table any more, to the thread that waits for it or to a worker. */
static void complete(struct call *call, HRESULT result, struct reply reply) {
    call->result = result;
    call->reply = reply;
    if (call->finish != NULL) {
        call->job.run = run_finish;
        workers_run(&call->job);
        return;
    }
    pthread_mutex_lock(&lock);
    call->done = true;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&lock);
}

static struct call *take(struct link *link, uint32_t id) {
    pthread_mutex_lock(&lock);
    struct call **place = &link->calls[id % BUCKETS];
    while (*place != NULL && (*place)->id != id) place = &(*place)->chain;
    struct call *call = *place;
    if (call != NULL) *place = call->chain;
    pthread_mutex_unlock(&lock);
    return call;
}

static struct call *take_all(struct link *link) {
    struct call *all = NULL;
    pthread_mutex_lock(&lock);
    link->lost = true;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct call *call = link->calls[i], *next; call != NULL; call = next) {
            next = call->chain;
            call->chain = all;
            all = call;
        }
        link->calls[i] = NULL;
    }
    bool held = current == link;
    if (held) {
        current = NULL;
        link->references--;
    }
    pthread_mutex_unlock(&lock);
    return all;
}

static void *read_replies(void *argument) {
    struct link *link = argument;
    struct reply reply = {0};
    uint32_t id;
    while (read_frame(link, &reply, &id)) {
        if (id == 0) break; /* an error of the connection, which the server closes */
        struct call *call = take(link, id);
        if (call != NULL) complete(call, result_of(&reply), reply);
        else reply_free(&reply);
        reply = (struct reply){0};
    }
    reply_free(&reply);
    transport_shutdown(link->transport); /* a caller that writes must not wait for a server that reads no more */
    for (struct call *call = take_all(link), *next; call != NULL; call = next) {
        next = call->chain;
        complete(call, MQ_ERROR_SERVICE_NOT_AVAILABLE, (struct reply){0});
    }
    release(link);
    return NULL;
}

/* ---- connecting */

static bool write_frame(struct link *link, uint8_t frame, uint32_t id, struct mp_writer *request) {
    size_t length = request->size - FRAME_HEADER + FRAME_LEAST;
    for (int i = 0; i < 4; i++) {
        request->data[i] = (uint8_t)(length >> (8 * (3 - i)));
        request->data[5 + i] = (uint8_t)(id >> (8 * (3 - i)));
    }
    request->data[4] = frame;
    return transport_write(link->transport, request->data, request->size);
}

static bool text_at(struct mp_reader map, const char *key, char *to, size_t room) {
    struct mp_reader at;
    struct mp_value value;
    if (!mp_find(map, key, &at) || !mp_next(&at, &value) || value.type != MP_STR || value.size >= room) return false;
    memcpy(to, value.bytes, value.size);
    to[value.size] = 0;
    return true;
}

static bool understood(struct link *link, const struct reply *reply) {
    struct mp_reader map = mp_over(reply->data, reply->size), at;
    struct mp_value guid;
    uint64_t version, max_frame;
    if (!text_at(map, "name", link->hello.name, sizeof link->hello.name)) return false;
    if (!text_at(map, "server", link->hello.server, sizeof link->hello.server)) return false;
    if (!mp_find(map, "version", &at) || !mp_number(&at, 1, &version) || version != 1) return false;
    if (!mp_find(map, "max_frame", &at) || !mp_number(&at, FRAME_MOST, &max_frame)) return false;
    if (!mp_find(map, "guid", &at) || !mp_next(&at, &guid) || guid.type != MP_BIN || guid.size != sizeof(GUID))
        return false;
    memcpy(&link->hello.guid, guid.bytes, sizeof(GUID));
    link->max_frame = max_frame;
    return max_frame >= HELLO_MOST;
}

/* The token of MSMQ_FAST_TOKEN, or the first line of the file that MSMQ_FAST_TOKEN_FILE names; false: none. */
static bool read_token(char *token, size_t room) {
    const char *text = getenv("MSMQ_FAST_TOKEN"), *path = getenv("MSMQ_FAST_TOKEN_FILE");
    if (text != NULL && *text != 0) return snprintf(token, room, "%s", text) < (int)room;
    FILE *file = path == NULL || *path == 0 ? NULL : fopen(path, "re");
    if (file == NULL) return false;
    bool found = fgets(token, (int)room, file) != NULL;
    fclose(file);
    if (found) token[strcspn(token, "\r\n")] = 0;
    return found;
}

static HRESULT greet(struct link *link) {
    char token[TOKEN_ROOM];
    bool has_token = read_token(token, sizeof token);
    const char *program = program_invocation_short_name;
    struct mp_writer request;
    link_begin(&request);
    mp_put_map(&request, has_token ? 3 : 2);
    mp_put_text(&request, "version");
    mp_put_uint(&request, 1);
    mp_put_text(&request, "client");
    mp_put_str(&request, program, strnlen(program, 64));
    if (has_token) {
        mp_put_text(&request, "token");
        mp_put_text(&request, token);
    }
    struct reply reply = {0};
    uint32_t id = 0;
    HRESULT result = MQ_ERROR_SERVICE_NOT_AVAILABLE;
    if (!request.failed && write_frame(link, F_HELLO, 1, &request) && read_frame(link, &reply, &id)) {
        if (reply.kind == F_ERROR) result = result_of(&reply);
        else if (reply.kind == F_REPLY && id == 1 && understood(link, &reply)) result = MQ_OK;
    }
    reply_free(&reply);
    mp_free(&request);
    return result;
}

/* Call with `dialing` held. */
static HRESULT dial(struct link **made) {
    const char *endpoint = getenv("MSMQ_FAST_ENDPOINT");
    struct transport *transport = transport_open(endpoint != NULL && *endpoint ? endpoint : DEFAULT_ENDPOINT);
    if (transport == NULL) return MQ_ERROR_SERVICE_NOT_AVAILABLE;
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        transport_free(transport);
        return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    link->transport = transport;
    link->max_frame = HELLO_MOST;
    link->references = 1;
    pthread_mutex_init(&link->writing, NULL);
    HRESULT result = greet(link);
    if (result != MQ_OK) {
        release(link);
        return result;
    }
    transport_established(transport);
    pthread_mutex_lock(&lock);
    link->hello.generation = ++generations;
    link->next_id = 1;
    link->references = 3; /* `current`, the reader, the caller */
    current = link;
    pthread_mutex_unlock(&lock);
    if (!thread_start(read_replies, link)) {
        transport_shutdown(transport);
        read_replies(link); /* finds the end, and removes the link: no thread would read its replies */
        release(link);
        return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    *made = link;
    return MQ_OK;
}

static struct link *in_use(void) {
    pthread_mutex_lock(&lock);
    struct link *link = current;
    if (link != NULL) link->references++;
    pthread_mutex_unlock(&lock);
    return link;
}

static HRESULT acquire(uint64_t generation, struct link **found) {
    *found = in_use();
    if (*found == NULL && generation == 0) {
        HRESULT result = MQ_OK;
        pthread_mutex_lock(&dialing);
        *found = in_use(); /* another thread may have connected meanwhile */
        if (*found == NULL) result = dial(found);
        pthread_mutex_unlock(&dialing);
        return result;
    }
    if (*found != NULL && (generation == 0 || (*found)->hello.generation == generation)) return MQ_OK;
    if (*found != NULL) release(*found);
    return MQ_ERROR_STALE_HANDLE;
}

HRESULT link_hello(struct hello *hello) {
    struct link *link;
    HRESULT result = acquire(0, &link);
    if (result != MQ_OK) return result;
    *hello = link->hello;
    release(link);
    return MQ_OK;
}

/* ---- requests */

/* Puts the call into the table under a number that no other one has, and returns the number; 0: the link is lost.
 * From here on the reader may end the call at any time. */
static uint32_t enter(struct link *link, struct call *call) {
    pthread_mutex_lock(&lock);
    bool lost = link->lost;
    call->id = 0;
    while (!lost) {
        call->id = ++link->next_id;
        struct call *other = link->calls[call->id % BUCKETS];
        while (other != NULL && other->id != call->id) other = other->chain;
        if (call->id != 0 && other == NULL) break;
    }
    if (!lost) {
        call->chain = link->calls[call->id % BUCKETS];
        link->calls[call->id % BUCKETS] = call;
    }
    uint32_t id = call->id;
    pthread_mutex_unlock(&lock);
    return id;
}

/* Writes the request. MQ_OK: the call will be completed, by the reader, whatever happens. */
static HRESULT launch(uint64_t generation, uint8_t frame, struct mp_writer *request, struct call *call) {
    struct link *link;
    HRESULT result = request->failed ? MQ_ERROR_INSUFFICIENT_RESOURCES : acquire(generation, &link);
    if (result == MQ_OK) {
        if (request->size - FRAME_HEADER + FRAME_LEAST > link->max_frame) {
            result = MQ_ERROR_INSUFFICIENT_RESOURCES;
        } else {
            pthread_mutex_lock(&link->writing);
            uint32_t id = enter(link, call);
            if (id != 0 && !write_frame(link, frame, id, request)) transport_shutdown(link->transport);
            pthread_mutex_unlock(&link->writing);
            if (id == 0) result = generation != 0 ? MQ_ERROR_STALE_HANDLE : MQ_ERROR_SERVICE_NOT_AVAILABLE;
        }
        release(link);
    }
    mp_free(request);
    return result;
}

HRESULT link_call(uint64_t generation, uint8_t frame, struct mp_writer *request, struct reply *reply) {
    struct call call = {.ended = PTHREAD_COND_INITIALIZER};
    *reply = (struct reply){0};
    HRESULT result = launch(generation, frame, request, &call);
    if (result != MQ_OK) return result;
    pthread_mutex_lock(&lock);
    while (!call.done) pthread_cond_wait(&call.ended, &lock);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&call.ended);
    *reply = call.reply;
    return call.result;
}

HRESULT link_ask(uint64_t generation, uint8_t frame, struct mp_writer *request, uint8_t kind, struct reply *reply) {
    HRESULT result = link_call(generation, frame, request, reply);
    return result == MQ_OK && reply->kind != kind ? MQ_ERROR : result;
}

HRESULT link_do(uint64_t generation, uint8_t frame, struct mp_writer *request) {
    struct reply reply;
    HRESULT result = link_ask(generation, frame, request, F_REPLY, &reply);
    reply_free(&reply);
    return result;
}

HRESULT link_start(uint64_t generation, uint8_t frame, struct mp_writer *request, link_finish finish,
                   void *context) {
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        mp_free(request);
        return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    call->finish = finish;
    call->context = context;
    HRESULT result = launch(generation, frame, request, call);
    if (result != MQ_OK) free(call);
    return result;
}

/* ---- a child of fork() has none of our threads: it begins without a connection */

static void before_fork(void) {
    pthread_mutex_lock(&dialing);
    pthread_mutex_lock(&lock);
}

static void after_fork(void) {
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&dialing);
}

static void in_child(void) {
    if (current != NULL) transport_forget(current->transport);
    current = NULL;
    after_fork();
}

__attribute__((constructor)) static void prepare(void) { pthread_atfork(before_fork, after_fork, in_child); }
