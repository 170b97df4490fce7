/* Handles of programs: numbers, checked on each use, so that a wrong one is an error and not a crash. */
#ifndef MQRT_HANDLES_H
#define MQRT_HANDLES_H

#include "mq.h"

enum kind { K_QUEUE = 1, K_CURSOR, K_LOCATE, K_SECURITY };

/* The head of everything that has a handle. It lives as long as a handle or a call refers to it. */
struct object {
    enum kind kind;
    unsigned references;
    void (*destroy)(struct object *object);
};

/* Takes over the one reference of the object. NULL: no room; the object is destroyed. */
HANDLE handle_new(struct object *object);

/* The object with one more reference; NULL: there is no such handle of this kind. */
struct object *handle_get(HANDLE handle, enum kind kind);

/* Ends the handle and returns its object with the reference of the handle; NULL as above. */
struct object *handle_take(HANDLE handle, enum kind kind);

/* Ends all handles of a kind for whose object `belongs` is true. */
void handle_drop(enum kind kind, int (*belongs)(const struct object *object, const void *to), const void *to);

void object_release(struct object *object);

struct queue {
    struct object object;
    uint64_t generation;
    uint32_t number; /* of the protocol; meaningless for MQ_ADMIN_ACCESS */
    DWORD access;
    char *name;         /* the format name in UTF-8 */
    int whole_reads;    /* 1: of another computer, whose queues have no limits of size; atomic */
    int refuses_single; /* 1: not transactional, -1: it is, or nothing is known of it, 0: not asked yet; atomic */
};

struct cursor {
    struct object object;
    uint64_t generation;
    uint32_t number;
    const struct queue *queue; /* only compared: the queue may be closed */
};

/* The queue of a handle that was opened with one of the access bits. MQ_ERROR_INVALID_HANDLE, or
 * MQ_ERROR_ACCESS_DENIED for another access. */
HRESULT queue_get(HANDLE handle, DWORD access, struct queue **queue);

#endif
