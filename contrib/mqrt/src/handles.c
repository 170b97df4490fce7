#include "handles.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

/* A handle is (use << 20 | slot + 1) << 2. The use number of a slot grows with each object in it, so that an old
 * handle is not taken for the new object. The two low bits are 0, as those of Windows handles. */
enum { SLOT_BITS = 20, MOST = (1 << SLOT_BITS) - 2 };

struct slot {
    struct object *object; /* NULL: free */
    uintptr_t use;
    size_t next_free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static size_t used, room, free_slots = SIZE_MAX;

static HANDLE handle_of(size_t slot) {
    uintptr_t number = slots[slot].use << SLOT_BITS | (slot + 1);
    return (HANDLE)(number << 2);
}

static struct slot *find(HANDLE handle, enum kind kind) {
    uintptr_t number = (uintptr_t)handle >> 2;
    size_t slot = (size_t)(number & ((1u << SLOT_BITS) - 1)) - 1; /* 0 becomes the largest number */
    if (slot >= used || slots[slot].object == NULL || handle_of(slot) != handle) return NULL;
    return slots[slot].object->kind == kind ? &slots[slot] : NULL;
}

static size_t unused_slot(void) {
    if (free_slots != SIZE_MAX) {
        size_t slot = free_slots;
        free_slots = slots[slot].next_free;
        return slot;
    }
    if (used == room) {
        size_t more = room == 0 ? 64 : room * 2;
        struct slot *grown = used >= MOST ? NULL : realloc(slots, more * sizeof *slots);
        if (grown == NULL) return SIZE_MAX;
        slots = grown;
        room = more;
    }
    slots[used] = (struct slot){.use = 1};
    return used++;
}

HANDLE handle_new(struct object *object) {
    HANDLE handle = NULL;
    pthread_mutex_lock(&lock);
    size_t slot = unused_slot();
    if (slot != SIZE_MAX) {
        slots[slot].object = object;
        handle = handle_of(slot);
    }
    pthread_mutex_unlock(&lock);
    if (handle == NULL) object_release(object);
    return handle;
}

struct object *handle_get(HANDLE handle, enum kind kind) {
    pthread_mutex_lock(&lock);
    struct slot *slot = find(handle, kind);
    struct object *object = slot == NULL ? NULL : slot->object;
    if (object != NULL) object->references++;
    pthread_mutex_unlock(&lock);
    return object;
}

/* Call with `lock` held. */
static struct object *empty(struct slot *slot) {
    struct object *object = slot->object;
    slot->object = NULL;
    slot->use++;
    slot->next_free = free_slots;
    free_slots = (size_t)(slot - slots);
    return object;
}

struct object *handle_take(HANDLE handle, enum kind kind) {
    pthread_mutex_lock(&lock);
    struct slot *slot = find(handle, kind);
    struct object *object = slot == NULL ? NULL : empty(slot);
    pthread_mutex_unlock(&lock);
    return object;
}

void handle_drop(enum kind kind, int (*belongs)(const struct object *object, const void *to), const void *to) {
    for (size_t i = 0;; i++) {
        struct object *object = NULL;
        pthread_mutex_lock(&lock);
        bool end = i >= used;
        if (!end && slots[i].object != NULL && slots[i].object->kind == kind && belongs(slots[i].object, to))
            object = empty(&slots[i]);
        pthread_mutex_unlock(&lock);
        if (end) return;
        if (object != NULL) object_release(object);
    }
}

void object_release(struct object *object) {
    pthread_mutex_lock(&lock);
    bool last = --object->references == 0;
    pthread_mutex_unlock(&lock);
    if (last) object->destroy(object);
}

HRESULT queue_get(HANDLE handle, DWORD access, struct queue **queue) {
    *queue = (struct queue *)handle_get(handle, K_QUEUE);
    if (*queue == NULL) return MQ_ERROR_INVALID_HANDLE;
    if ((*queue)->access & access) return MQ_OK;
    object_release(&(*queue)->object);
    *queue = NULL;
    return MQ_ERROR_ACCESS_DENIED;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void prepare(void) { pthread_atfork(before_fork, after_fork, after_fork); }
