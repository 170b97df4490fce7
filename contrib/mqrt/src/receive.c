/* Receives and peeks, at once or with a callback.
 *
 * 1. The properties are checked, and their buffers become the limits of the request.
 * 2. The server removes a message only if it fits into the limits. Else its ERROR has the sizes of the message, which
 *    become the lengths that the caller reads.
 * 3. Queues of other computers know no limits. There the library peeks, compares the sizes itself, and then receives
 *    the message by its lookup id; if another reader was faster, it begins again.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handles.h"
#include "link.h"
#include "message.h"
#include "transaction.h"

enum { STATUS_PENDING = 0x103 }; /* of OVERLAPPED.Internal */

/* One read, until its caller has the result. */
struct read {
    struct queue *queue;
    struct cursor *cursor; /* NULL: none */
    DWORD timeout, action;
    bool by_lookup, peek;
    unsigned operation; /* of LOOKUP, or the action of CURSOR_READ */
    uint64_t lookup_id;
    enum scope scope;
    uint32_t transaction;
    struct message_props wanted;
    /* with a callback */
    PMQRECEIVECALLBACK callback;
    QUEUEHANDLE source;
    HANDLE cursor_handle;
    MQMSGPROPS *given;
    OVERLAPPED *overlapped;
};

static void read_free(struct read *read) {
    if (read->cursor != NULL) object_release(&read->cursor->object);
    if (read->queue != NULL) object_release(&read->queue->object);
    free(read);
}

static void put_timeout(struct mp_writer *request, DWORD timeout) {
    if (timeout == INFINITE) mp_put_nil(request);
    else mp_put_uint(request, timeout);
}

static void put_transaction(struct mp_writer *request, const struct read *read) {
    if (read->scope == INSIDE) mp_put_uint(request, read->transaction);
    else mp_put_nil(request);
}

static void put_limits(struct mp_writer *request, const struct read *read) {
    uint32_t limits[LIMIT_FIELDS];
    message_limits(&read->wanted, limits);
    mp_put_array(request, LIMIT_FIELDS);
    for (unsigned i = 0; i < LIMIT_FIELDS; i++) mp_put_uint(request, limits[i]);
}

/* The request of a read; returns its frame type. `limited` false: nothing is said about sizes. */
static uint8_t compose(const struct read *read, bool peek, DWORD timeout, bool limited, struct mp_writer *request) {
    link_begin(request);
    if (read->by_lookup) {
        mp_put_array(request, limited ? 6 : 5);
        mp_put_uint(request, read->queue->number);
        mp_put_uint(request, read->lookup_id);
        mp_put_uint(request, read->operation);
        mp_put_bool(request, peek);
    } else if (read->cursor != NULL) {
        mp_put_array(request, limited ? 5 : 4);
        mp_put_uint(request, read->cursor->number);
        put_timeout(request, timeout);
        mp_put_uint(request, peek && !read->peek ? 0 : read->operation); /* a peek before a receive */
    } else {
        mp_put_array(request, limited ? 5 : 4);
        mp_put_uint(request, read->queue->number);
        put_timeout(request, timeout);
        mp_put_bool(request, peek);
    }
    put_transaction(request, read);
    if (limited) put_limits(request, read);
    return read->by_lookup ? F_LOOKUP : read->cursor != NULL ? F_CURSOR_READ : F_RECEIVE;
}

/* Takes the sizes of a message that stays in its queue from [hresult, name, text, sizes]. */
static bool sizes_of(const struct reply *reply, uint32_t sizes[LIMIT_FIELDS]) {
    struct mp_reader reader = mp_over(reply->data, reply->size);
    uint32_t count;
    uint64_t size;
    if (reply->kind != F_ERROR || !mp_array(&reader, &count) || count < 4) return false;
    if (!mp_skip(&reader) || !mp_skip(&reader) || !mp_skip(&reader)) return false;
    if (!mp_array(&reader, &count) || count < LIMIT_FIELDS) return false;
    for (unsigned i = 0; i < LIMIT_FIELDS; i++) {
        if (!mp_number(&reader, INT32_MAX, &size)) return false;
        sizes[i] = (uint32_t)size;
    }
    return true;
}

/* The result of the read from the answer to its request. */
static HRESULT take(struct read *read, HRESULT result, const struct reply *reply) {
    struct message message;
    uint32_t sizes[LIMIT_FIELDS];
    if (result != MQ_OK) {
        if (sizes_of(reply, sizes)) message_sizes(&read->wanted, sizes);
        return result;
    }
    if (reply->kind != F_MESSAGE || !message_parse(reply->data, reply->size, &message)) return MQ_ERROR;
    if (read->scope == INSIDE)
        transaction_received(read->transaction, read->queue->generation, read->queue->number,
                             message.number[IN_LOOKUP_ID]);
    return message_fill(&read->wanted, &message);
}

/* ---- queues of other computers */

static bool is_unlimited(const struct read *read) {
    return __atomic_load_n(&read->queue->whole_reads, __ATOMIC_RELAXED) != 0;
}

static HRESULT ask(struct read *read, uint8_t frame, struct mp_writer *request, uint64_t *lookup_id) {
    struct reply reply;
    struct message message;
    HRESULT result = link_call(read->queue->generation, frame, request, &reply);
    result = take(read, result, &reply);
    if (!FAILED(result) && message_parse(reply.data, reply.size, &message))
        *lookup_id = message.number[IN_LOOKUP_ID];
    reply_free(&reply);
    return result;
}

static DWORD milliseconds_since(const struct timespec *begin) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (DWORD)((now.tv_sec - begin->tv_sec) * 1000 + (now.tv_nsec - begin->tv_nsec) / 1000000);
}

/* A filled length says how long the part is, no longer how large its buffer is: each attempt begins with the sizes of
 * the buffers. */
static void lengths(struct read *read, ULONG kept[MESSAGE_IDS], bool restore) {
    for (PROPID id = 0; id < MESSAGE_IDS; id++) {
        MQPROPVARIANT *value = read->wanted.at[id];
        if (value == NULL || value->vt != VT_UI4) continue;
        if (restore) value->ulVal = kept[id];
        else kept[id] = value->ulVal;
    }
}

static HRESULT read_whole(struct read *read) {
    ULONG rooms[MESSAGE_IDS];
    struct timespec begin;
    if (read->scope == INSIDE) return MQ_ERROR_TRANSACTION_ENLIST; /* transactions do not reach other computers */
    lengths(read, rooms, false);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        struct mp_writer request;
        uint64_t lookup_id = 0;
        DWORD passed = read->timeout == INFINITE ? 0 : milliseconds_since(&begin);
        uint8_t frame = compose(read, true, passed < read->timeout ? read->timeout - passed : 0, false, &request);
        HRESULT result = ask(read, frame, &request, &lookup_id);
        if (FAILED(result) || read->peek) return result;
        lengths(read, rooms, true);
        if (lookup_id == 0 || read->cursor != NULL) { /* an old host sends no lookup ids; a cursor has its place */
            frame = compose(read, false, 0, false, &request);
        } else {
            struct read exact = *read;
            exact.by_lookup = true;
            exact.operation = 0;
            exact.lookup_id = lookup_id;
            frame = compose(&exact, false, 0, false, &request);
        }
        result = ask(read, frame, &request, &lookup_id);
        bool taken = result == MQ_ERROR_MESSAGE_NOT_FOUND || result == MQ_ERROR_MESSAGE_ALREADY_RECEIVED ||
                     result == MQ_ERROR_IO_TIMEOUT;
        if (!taken || read->by_lookup || read->cursor != NULL) return result;
        lengths(read, rooms, true);
    }
}

/* Whether the answer says that the queue has no limits; remembers it. */
static bool refuses_limits(struct read *read, HRESULT result) {
    if (result != MQ_ERROR_UNSUPPORTED_OPERATION) return false;
    __atomic_store_n(&read->queue->whole_reads, 1, __ATOMIC_RELAXED);
    return true;
}

/* ---- the two ways of waiting */

static HRESULT read_now(struct read *read) {
    struct mp_writer request;
    struct reply reply;
    if (is_unlimited(read)) return read_whole(read);
    uint8_t frame = compose(read, read->peek, read->timeout, true, &request);
    HRESULT result = link_call(read->queue->generation, frame, &request, &reply);
    bool refused = refuses_limits(read, result);
    if (!refused) result = take(read, result, &reply);
    reply_free(&reply);
    return refused ? read_whole(read) : result;
}

static void finish(void *context, HRESULT result, struct reply *reply) {
    struct read *read = context;
    result = refuses_limits(read, result) ? read_whole(read) : take(read, result, reply);
    PMQRECEIVECALLBACK callback = read->callback;
    struct read copy = *read;
    read_free(read); /* first: the callback may close the queue, or end the thread */
    if (copy.overlapped != NULL)
        __atomic_store_n(&copy.overlapped->Internal, (ULONG_PTR)(uint32_t)result, __ATOMIC_RELEASE);
    callback(result, copy.source, copy.timeout, copy.action, copy.given, copy.overlapped, copy.cursor_handle);
}

static HRESULT read_later(struct read *read) {
    struct mp_writer request;
    if (read->overlapped != NULL)
        __atomic_store_n(&read->overlapped->Internal, (ULONG_PTR)STATUS_PENDING, __ATOMIC_RELEASE);
    uint64_t generation = read->queue->generation;
    uint8_t frame = compose(read, read->peek, read->timeout, true, &request);
    HRESULT result = link_start(generation, frame, &request, finish, read);
    return result == MQ_OK ? MQ_INFORMATION_OPERATION_PENDING : result;
}

/* A receive is durable before its answer, so MQ_SINGLE_MESSAGE needs no transaction at the server: only the queue must
 * be transactional. Asks for that once per handle. */
static bool refuses_single(struct queue *queue) {
    int known = __atomic_load_n(&queue->refuses_single, __ATOMIC_RELAXED);
    if (known != 0) return known > 0;
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, queue->name);
    known = -1;
    if (link_ask(queue->generation, F_GET_QUEUE, &request, F_REPLY, &reply) == MQ_OK)
        known = map_number(mp_over(reply.data, reply.size), "transactional", 1) != 0 ? -1 : 1;
    reply_free(&reply);
    __atomic_store_n(&queue->refuses_single, known, __ATOMIC_RELAXED);
    return known > 0;
}

/* What both functions check; MQ_OK: the read may begin. */
static HRESULT prepare(struct read *read, ITransaction *transaction) {
    struct queue *queue;
    HRESULT result = queue_get(read->source, read->peek ? MQ_RECEIVE_ACCESS | MQ_PEEK_ACCESS : MQ_RECEIVE_ACCESS,
                               &queue);
    if (result != MQ_OK) return result;
    read->queue = queue;
    if (queue->access & MQ_ADMIN_ACCESS) return MQ_ERROR_UNSUPPORTED_OPERATION;
    if (read->cursor_handle != NULL) {
        read->cursor = (struct cursor *)handle_get(read->cursor_handle, K_CURSOR);
        if (read->cursor == NULL || read->cursor->queue != queue) return MQ_ERROR_INVALID_HANDLE;
    } else if (!read->by_lookup && read->action == MQ_ACTION_PEEK_NEXT) {
        return MQ_ERROR_ILLEGAL_CURSOR_ACTION;
    }
    result = transaction_scope(transaction, queue->generation, &read->scope, &read->transaction);
    if (result != MQ_OK) return result;
    if (read->scope != OUTSIDE && read->peek) return MQ_ERROR_TRANSACTION_USAGE;
    if (read->scope == SINGLE && refuses_single(queue)) return MQ_ERROR_TRANSACTION_USAGE;
    if (read->scope == INSIDE && read->callback != NULL) return MQ_ERROR_INVALID_PARAMETER;
    /* A program that waits for the event or the completion port of an OVERLAPPED would wait for ever. */
    if (read->overlapped != NULL && read->callback == NULL) return MQ_ERROR_OPERATION_CANCELLED;
    return message_props(read->given, TO_RECEIVE, &read->wanted);
}

static HRESULT perform(struct read *read, ITransaction *transaction) {
    HRESULT result = prepare(read, transaction);
    if (result == MQ_OK && read->callback != NULL) {
        result = read_later(read);
        if (result == MQ_INFORMATION_OPERATION_PENDING) return result; /* finish() owns it */
    } else if (result == MQ_OK) {
        result = read_now(read);
    }
    read_free(read);
    return result;
}

MQAPI HRESULT APIENTRY MQReceiveMessage(QUEUEHANDLE hSource, DWORD dwTimeout, DWORD dwAction,
                                        MQMSGPROPS *pMessageProps, LPOVERLAPPED lpOverlapped,
                                        PMQRECEIVECALLBACK fnReceiveCallback, HANDLE hCursor,
                                        ITransaction *pTransaction) {
    enum { PEEK_CURRENT = 0, PEEK_NEXT = 1, RECEIVE = 2 }; /* of CURSOR_READ */
    bool receive = dwAction == MQ_ACTION_RECEIVE, next = dwAction == MQ_ACTION_PEEK_NEXT;
    if (!receive && !next && dwAction != MQ_ACTION_PEEK_CURRENT) return MQ_ERROR_INVALID_PARAMETER;
    struct read *read = calloc(1, sizeof *read);
    if (read == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    read->timeout = dwTimeout;
    read->action = dwAction;
    read->peek = !receive;
    read->operation = receive ? RECEIVE : next ? PEEK_NEXT : PEEK_CURRENT;
    read->callback = fnReceiveCallback;
    read->source = hSource;
    read->cursor_handle = hCursor;
    read->given = pMessageProps;
    read->overlapped = lpOverlapped;
    return perform(read, pTransaction);
}

MQAPI HRESULT APIENTRY MQReceiveMessageByLookupId(QUEUEHANDLE hSource, ULONGLONG ullLookupId, DWORD dwLookupAction,
                                                  MQMSGPROPS *pMessageProps, LPOVERLAPPED lpOverlapped,
                                                  PMQRECEIVECALLBACK fnReceiveCallback, ITransaction *pTransaction) {
    enum { KIND = 0x40000130, WHICH = 0x0F };
    bool allow_peek = dwLookupAction == MQ_LOOKUP_RECEIVE_ALLOW_PEEK;
    DWORD kind = dwLookupAction & (DWORD)KIND, which = dwLookupAction & WHICH;
    bool peek = kind == MQ_LOOKUP_PEEK_CURRENT, receive = kind == MQ_LOOKUP_RECEIVE_CURRENT || allow_peek;
    if (dwLookupAction & ~(DWORD)(KIND | WHICH) || (!peek && !receive)) return MQ_ERROR_INVALID_PARAMETER;
    if (which > 2 && which != 4 && which != 8) return MQ_ERROR_INVALID_PARAMETER;
    struct read *read = calloc(1, sizeof *read);
    if (read == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    read->by_lookup = true;
    read->action = dwLookupAction;
    read->lookup_id = ullLookupId;
    read->operation = which;
    read->peek = peek;
    read->callback = fnReceiveCallback;
    read->source = hSource;
    read->given = pMessageProps;
    read->overlapped = lpOverlapped;
    return perform(read, pTransaction);
}

MQAPI HRESULT APIENTRY MQGetOverlappedResult(LPOVERLAPPED lpOverlapped) {
    if (lpOverlapped == NULL) return MQ_ERROR_INVALID_PARAMETER;
    ULONG_PTR state = __atomic_load_n(&lpOverlapped->Internal, __ATOMIC_ACQUIRE);
    return state == STATUS_PENDING ? MQ_INFORMATION_OPERATION_PENDING : (HRESULT)(uint32_t)state;
}
