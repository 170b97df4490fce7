/* Queues and cursors: open, close, purge, move, reject. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "handles.h"
#include "link.h"
#include "names.h"
#include "transaction.h"

static void destroy_queue(struct object *object) {
    struct queue *queue = (struct queue *)object;
    free(queue->name);
    free(queue);
}

static void destroy_cursor(struct object *object) { free(object); }

/* A number that is the first value of a reply's array. */
static HRESULT number_of(const struct reply *reply, uint32_t *number) {
    struct mp_reader reader = mp_over(reply->data, reply->size);
    uint32_t count;
    uint64_t value;
    if (!mp_array(&reader, &count) || count == 0 || !mp_number(&reader, UINT32_MAX, &value)) return MQ_ERROR;
    *number = (uint32_t)value;
    return MQ_OK;
}

/* A request whose payload is an array of numbers. */
static void numbers(struct mp_writer *request, uint32_t count, const uint64_t *values) {
    link_begin(request);
    mp_put_array(request, count);
    for (uint32_t i = 0; i < count; i++) mp_put_uint(request, values[i]);
}

static HRESULT do_number(uint64_t generation, uint8_t frame, uint64_t number) {
    struct mp_writer request;
    numbers(&request, 1, &number);
    return link_do(generation, frame, &request);
}

static HRESULT allowed(DWORD access, DWORD share) {
    DWORD plain = access & ~(DWORD)MQ_ADMIN_ACCESS;
    bool reads = plain == MQ_RECEIVE_ACCESS || plain == MQ_PEEK_ACCESS;
    if (share > MQ_DENY_RECEIVE_SHARE) return MQ_ERROR_INVALID_PARAMETER;
    if (!reads && access != MQ_SEND_ACCESS && access != MQ_MOVE_ACCESS) return MQ_ERROR_UNSUPPORTED_ACCESS_MODE;
    return share == MQ_DENY_NONE || reads ? MQ_OK : MQ_ERROR_INVALID_PARAMETER;
}

/* An outgoing queue has no handle at the server: the library checks that it exists, and names it in each request. */
static HRESULT open_at_server(struct queue *queue, DWORD share) {
    bool admin = queue->access & MQ_ADMIN_ACCESS;
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, admin ? 1 : 3);
    mp_put_text(&request, queue->name);
    if (!admin) {
        mp_put_uint(&request, queue->access);
        mp_put_uint(&request, share);
    }
    HRESULT result = link_ask(queue->generation, admin ? F_SHOW_OUTGOING : F_OPEN, &request, F_REPLY, &reply);
    if (result == MQ_OK && !admin) result = number_of(&reply, &queue->number);
    reply_free(&reply);
    return result == MQ_ERROR_STALE_HANDLE ? MQ_ERROR_SERVICE_NOT_AVAILABLE : result;
}

MQAPI HRESULT APIENTRY MQOpenQueue(LPCWSTR lpwcsFormatName, DWORD dwAccess, DWORD dwShareMode, QUEUEHANDLE *phQueue) {
    HRESULT result;
    if (phQueue == NULL) return MQ_ERROR_INVALID_PARAMETER;
    *phQueue = NULL;
    if ((result = allowed(dwAccess, dwShareMode)) != MQ_OK) return result;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    struct hello hello;
    struct queue *queue = NULL;
    if ((result = link_hello(&hello)) == MQ_OK && (queue = calloc(1, sizeof *queue)) == NULL)
        result = MQ_ERROR_INSUFFICIENT_RESOURCES;
    if (result != MQ_OK) {
        free(name);
        return result;
    }
    queue->object = (struct object){.kind = K_QUEUE, .references = 1, .destroy = destroy_queue};
    queue->generation = hello.generation;
    queue->access = dwAccess;
    queue->name = name;
    result = open_at_server(queue, dwShareMode);
    if (result != MQ_OK) {
        object_release(&queue->object);
        return result;
    }
    *phQueue = handle_new(&queue->object);
    return *phQueue == NULL ? MQ_ERROR_INSUFFICIENT_RESOURCES : MQ_OK;
}

static int is_of(const struct object *object, const void *queue) {
    return ((const struct cursor *)object)->queue == queue;
}

MQAPI HRESULT APIENTRY MQCloseQueue(QUEUEHANDLE hQueue) {
    struct queue *queue = (struct queue *)handle_take(hQueue, K_QUEUE);
    if (queue == NULL) return MQ_ERROR_INVALID_HANDLE;
    handle_drop(K_CURSOR, is_of, queue);
    /* A handle of a lost connection is closed already; closing it is no error. */
    if (!(queue->access & MQ_ADMIN_ACCESS)) (void)do_number(queue->generation, F_CLOSE, queue->number);
    object_release(&queue->object);
    return MQ_OK;
}

MQAPI HRESULT APIENTRY MQPurgeQueue(QUEUEHANDLE hQueue) {
    struct queue *queue;
    HRESULT result = queue_get(hQueue, MQ_RECEIVE_ACCESS, &queue);
    if (result != MQ_OK) return result;
    if (queue->access & MQ_ADMIN_ACCESS) {
        struct mp_writer request;
        link_begin(&request);
        mp_put_array(&request, 1);
        mp_put_text(&request, queue->name);
        result = link_do(queue->generation, F_PURGE_OUTGOING, &request);
    } else {
        result = do_number(queue->generation, F_PURGE, queue->number);
    }
    object_release(&queue->object);
    return result;
}

MQAPI HRESULT APIENTRY MQCreateCursor(QUEUEHANDLE hQueue, HANDLE *phCursor) {
    struct queue *queue;
    if (phCursor == NULL) return MQ_ERROR_INVALID_PARAMETER;
    *phCursor = NULL;
    HRESULT result = queue_get(hQueue, MQ_RECEIVE_ACCESS | MQ_PEEK_ACCESS, &queue);
    if (result != MQ_OK) return result;
    struct cursor *cursor = calloc(1, sizeof *cursor);
    if (queue->access & MQ_ADMIN_ACCESS) result = MQ_ERROR_UNSUPPORTED_OPERATION;
    else if (cursor == NULL) result = MQ_ERROR_INSUFFICIENT_RESOURCES;
    if (result == MQ_OK) {
        struct mp_writer request;
        struct reply reply;
        numbers(&request, 1, &(uint64_t){queue->number});
        result = link_ask(queue->generation, F_CURSOR_OPEN, &request, F_REPLY, &reply);
        if (result == MQ_OK) result = number_of(&reply, &cursor->number);
        reply_free(&reply);
    }
    if (result == MQ_OK) {
        cursor->object = (struct object){.kind = K_CURSOR, .references = 1, .destroy = destroy_cursor};
        cursor->generation = queue->generation;
        cursor->queue = queue;
        *phCursor = handle_new(&cursor->object);
        if (*phCursor == NULL) result = MQ_ERROR_INSUFFICIENT_RESOURCES;
    } else {
        free(cursor);
    }
    object_release(&queue->object);
    return result;
}

MQAPI HRESULT APIENTRY MQCloseCursor(HANDLE hCursor) {
    struct cursor *cursor = (struct cursor *)handle_take(hCursor, K_CURSOR);
    if (cursor == NULL) return MQ_ERROR_INVALID_HANDLE;
    (void)do_number(cursor->generation, F_CURSOR_CLOSE, cursor->number); /* as for queues */
    object_release(&cursor->object);
    return MQ_OK;
}

static HRESULT move(const struct queue *source, const struct queue *target, uint64_t lookup_id,
                    ITransaction *transaction) {
    enum scope scope;
    uint32_t number;
    if ((source->access | target->access) & MQ_ADMIN_ACCESS) return MQ_ERROR_UNSUPPORTED_OPERATION;
    if (source->generation != target->generation) return MQ_ERROR_STALE_HANDLE;
    HRESULT result = transaction_scope(transaction, source->generation, &scope, &number);
    if (result != MQ_OK) return result;
    struct mp_writer request; /* a single move is a transaction anyway */
    numbers(&request, scope == INSIDE ? 4 : 3,
            (const uint64_t[]){source->number, target->number, lookup_id, number});
    return link_do(source->generation, F_MOVE, &request);
}

MQAPI HRESULT APIENTRY MQMoveMessage(QUEUEHANDLE hSourceQueue, QUEUEHANDLE hDestinationQueue, ULONGLONG ullLookupId,
                                     ITransaction *pTransaction) {
    struct queue *source, *target;
    HRESULT result = queue_get(hSourceQueue, MQ_RECEIVE_ACCESS, &source);
    if (result != MQ_OK) return result;
    result = queue_get(hDestinationQueue, MQ_MOVE_ACCESS, &target);
    if (result == MQ_OK) {
        result = move(source, target, ullLookupId, pTransaction);
        object_release(&target->object);
    }
    object_release(&source->object);
    return result;
}

MQAPI HRESULT APIENTRY MQMarkMessageRejected(QUEUEHANDLE hQueue, ULONGLONG ullLookupId) {
    struct queue *queue;
    uint32_t number;
    HRESULT result = queue_get(hQueue, MQ_RECEIVE_ACCESS, &queue);
    if (result != MQ_OK) return result;
    if (transaction_of(queue->generation, queue->number, ullLookupId, &number)) {
        struct mp_writer request;
        numbers(&request, 3, (const uint64_t[]){queue->number, ullLookupId, number});
        result = link_do(queue->generation, F_REJECT, &request);
    } else {
        result = MQ_ERROR_MESSAGE_NOT_FOUND;
    }
    object_release(&queue->object);
    return result;
}
