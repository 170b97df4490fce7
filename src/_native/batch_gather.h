/* A batch while the loop gathers it: operations in an arena, bodies by reference, packed entries, and the listeners to notify. */
#ifndef MSMQ_FAST_BATCH_GATHER_H
#define MSMQ_FAST_BATCH_GATHER_H

#include "record.h"
#include <Python.h>
#include <stdlib.h>
#include <time.h>

#define OP_PUT 0
#define OP_DELETE 1
#define OP_NOTHING 2 /* a PUT and a DELETE that cancelled each other out */
#define PUT_IS_LAST 1 /* the key is greater than every key of the table */
#define PUT_IS_NEW 2  /* the key has never been in the table */
#define PACKS 2 /* TABLE_FEED, TABLE_HISTORY */

/* Content above WHOLE_BYTES is cut into chunks whose overflow pages (16-byte head) are filled to the byte. */
#define CHUNK_BYTES (15 * 4096 - 17)
#define WHOLE_BYTES (16 * 4096 - 17)

typedef struct {
    uint8_t kind, table, append, is_new;
    uint16_t key_len;
    uint32_t head_len;
    uint64_t at; /* key, then head, in the arena */
    const char *body;
    uint64_t body_len;
} Op;

typedef struct {
    PyObject *listener;
    uint64_t token;
} Notice;

typedef struct {
    uint8_t *data; /* PackHead, then the entries */
    size_t used, room;
    uint32_t count;
    uint16_t entry_size;
} Pack;

/* How full a batch was when a unit began. */
typedef struct {
    size_t used, op_count, ref_count, notice_count, bytes, pack_used[PACKS];
    uint32_t pack_count[PACKS];
    int needs_commit;
} Mark;

typedef struct Batch {
    struct Batch *next;
    uint8_t *arena;
    size_t used, room;
    Op *ops;
    size_t op_count, op_room;
    size_t new_count, delete_count; /* at least as many as there are PUTs of new keys and DELETEs */
    PyObject **refs;
    size_t ref_count, ref_room;
    Notice *notices;
    size_t notice_count, notice_room;
    Pack packs[PACKS];
    size_t bytes;
    uint32_t units;
    int needs_commit; /* holds something that may not wait for a later commit */
    uint64_t number; /* batches are numbered in the order in which they go to the disk */
    uint64_t after; /* this batch fails if the batch of this number, or a later one, has failed; 0: no dependency */
    uint64_t first_ns, taken_ns, done_ns;
    uint32_t missing; /* deletions of keys that were not there */
    uint32_t held;    /* number of callers that still gather for it; it is not submitted before they release it */
    int status;       /* nonzero before it is submitted: it must fail with this status */
} Batch;

typedef struct {
    Batch *head, *tail;
} BatchList;

typedef struct {
    uint64_t batches, failed_batches, units, operations, bytes, missing;
    uint64_t commit_ns_total, commit_ns_max, wait_ns_total;
    uint64_t commit_histogram[32]; /* [i]: commits that took between 2^(i-1) and 2^i microseconds */
    uint64_t unit_histogram[16];   /* [i]: commits with between 2^(i-1) and 2^i units */
} GatherStats;

static inline uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void list_push(BatchList *list, Batch *batch) {
    batch->next = NULL;
    if (list->tail)
        list->tail->next = batch;
    else
        list->head = batch;
    list->tail = batch;
}

static inline Batch *list_pop(BatchList *list) {
    Batch *batch = list->head;
    if (batch) {
        list->head = batch->next;
        if (!list->head)
            list->tail = NULL;
    }
    return batch;
}

/* Room for `wanted` elements in *array; 0, or -1 when memory is short. */
static inline int grow(void **array, size_t *room, size_t wanted, size_t element) {
    if (wanted <= *room)
        return 0;
    size_t larger = *room < 64 ? 64 : *room;
    while (larger < wanted)
        larger *= 2;
    void *moved = realloc(*array, larger * element);
    if (!moved)
        return -1;
    *array = moved;
    *room = larger;
    return 0;
}

static inline void batch_touch(Batch *batch) {
    if (!batch->first_ns)
        batch->first_ns = monotonic_ns();
}

/* Adds one operation; the caller keeps ownership of `body` (see batch_hold). Returns 0, or -1 if out of memory. */
static int batch_op(Batch *batch, int kind, int table, int flags, const uint8_t *key, size_t key_len, const uint8_t *head,
                    size_t head_len, const char *body, size_t body_len) {
    if (grow((void **)&batch->arena, &batch->room, batch->used + key_len + head_len, 1) < 0 ||
        grow((void **)&batch->ops, &batch->op_room, batch->op_count + 1, sizeof(Op)) < 0)
        return -1;
    Op *op = &batch->ops[batch->op_count++];
    op->kind = (uint8_t)kind;
    op->table = (uint8_t)table;
    op->append = (flags & PUT_IS_LAST) != 0;
    op->is_new = (flags & PUT_IS_NEW) != 0;
    batch->new_count += op->is_new;
    batch->delete_count += kind == OP_DELETE;
    op->key_len = (uint16_t)key_len;
    op->head_len = (uint32_t)head_len;
    op->at = batch->used;
    op->body = body;
    op->body_len = body_len;
    memcpy(batch->arena + batch->used, key, key_len);
    if (head_len)
        memcpy(batch->arena + batch->used + key_len, head, head_len);
    batch->used += key_len + head_len;
    batch->bytes += key_len + head_len + body_len;
    batch->needs_commit = 1;
    batch_touch(batch);
    return 0;
}

static inline Op *cancel_slot(Batch *batch, const uint32_t *slots, size_t mask, const Op *op, size_t *at) {
    uint64_t tail; /* keys of one table differ in their last bytes, whose differences a multiplication alone would leave in the high bits */
    const uint8_t *key = batch->arena + op->at;
    memcpy(&tail, key + op->key_len - 8, 8);
    tail = (tail ^ tail >> 32 ^ op->table) * 0x9E3779B97F4A7C15u;
    for (*at = tail >> 32 & mask; slots[*at]; *at = (*at + 1) & mask) {
        Op *other = &batch->ops[slots[*at] - 1];
        if (other->table == op->table && other->key_len == op->key_len && !memcmp(batch->arena + other->at, key, op->key_len))
            return other;
    }
    return NULL;
}

/* Drops records that the batch both adds and deletes, for example a message that a waiting reader receives in the commit that stores it.
 * If memory is short, the batch is applied unchanged. */
static void batch_cancel(Batch *batch) {
    size_t mask = 64, at;
    if (!batch->new_count || !batch->delete_count || batch->op_count >= UINT32_MAX)
        return;
    while (mask < 2 * batch->new_count)
        mask *= 2;
    uint32_t *slots = calloc(mask--, sizeof *slots); /* numbers of PUTs of new keys, counted from 1 */
    if (!slots)
        return;
    for (size_t i = 0; i < batch->op_count; i++) {
        Op *op = &batch->ops[i];
        if (op->key_len < 8)
            continue;
        Op *other = cancel_slot(batch, slots, mask, op, &at);
        if (op->kind == OP_PUT && other) {
            other->is_new = 0; /* a key that is put twice is left unchanged */
        } else if (op->kind == OP_PUT && op->is_new) {
            slots[at] = (uint32_t)i + 1;
        } else if (op->kind == OP_DELETE && other && other->kind == OP_PUT && other->is_new) {
            other->kind = OP_NOTHING;
            op->kind = OP_NOTHING;
        }
    }
    free(slots);
}

static int batch_hold(Batch *batch, PyObject *object) {
    if (grow((void **)&batch->refs, &batch->ref_room, batch->ref_count + 1, sizeof(PyObject *)) < 0)
        return -1;
    Py_INCREF(object);
    batch->refs[batch->ref_count++] = object;
    return 0;
}

static int batch_notice(Batch *batch, PyObject *listener, uint64_t token) {
    if (grow((void **)&batch->notices, &batch->notice_room, batch->notice_count + 1, sizeof(Notice)) < 0)
        return -1;
    Py_INCREF(listener);
    batch->notices[batch->notice_count++] = (Notice){listener, token};
    batch->needs_commit = 1;
    batch_touch(batch);
    return 0;
}

static int batch_entry(Batch *batch, int which, const uint8_t *entry, size_t length, int lazy) {
    Pack *pack = &batch->packs[which];
    size_t start = pack->count ? pack->used : sizeof(PackHead);
    if (grow((void **)&pack->data, &pack->room, start + length, 1) < 0)
        return -1;
    memcpy(pack->data + start, entry, length);
    pack->used = start + length;
    pack->entry_size = (uint16_t)length;
    pack->count++;
    batch->bytes += length;
    if (!lazy)
        batch->needs_commit = 1;
    batch_touch(batch);
    return 0;
}

static inline void batch_mark(const Batch *batch, Mark *mark) {
    mark->used = batch->used;
    mark->op_count = batch->op_count;
    mark->ref_count = batch->ref_count;
    mark->notice_count = batch->notice_count;
    mark->bytes = batch->bytes;
    mark->needs_commit = batch->needs_commit;
    for (int i = 0; i < PACKS; i++) {
        mark->pack_used[i] = batch->packs[i].used;
        mark->pack_count[i] = batch->packs[i].count;
    }
}

/* Requires the GIL. Undoes everything that was added after the mark. */
static void batch_rewind(Batch *batch, const Mark *mark) {
    while (batch->ref_count > mark->ref_count)
        Py_DECREF(batch->refs[--batch->ref_count]);
    while (batch->notice_count > mark->notice_count)
        Py_DECREF(batch->notices[--batch->notice_count].listener);
    batch->used = mark->used;
    batch->op_count = mark->op_count;
    batch->bytes = mark->bytes;
    batch->needs_commit = mark->needs_commit;
    for (int i = 0; i < PACKS; i++) {
        batch->packs[i].used = mark->pack_used[i];
        batch->packs[i].count = mark->pack_count[i];
    }
}

static void pack_close(Pack *pack) {
    PackHead head = {PACK_VERSION, 0, pack->entry_size, pack->count};
    memcpy(pack->data, &head, sizeof head);
}

static int batch_empty(const Batch *batch) {
    return !batch->op_count && !batch->notice_count && !batch->packs[0].count && !batch->packs[1].count;
}

/* Requires the GIL. Releases the references and prepares the batch for reuse; frees the memory of a batch that has grown. */
static void batch_clear(Batch *batch) {
    for (size_t i = 0; i < batch->ref_count; i++)
        Py_DECREF(batch->refs[i]);
    for (size_t i = 0; i < batch->notice_count; i++)
        Py_DECREF(batch->notices[i].listener);
    if (batch->room > ((size_t)4 << 20)) {
        free(batch->arena);
        batch->arena = NULL;
        batch->room = 0;
    }
    batch->new_count = batch->delete_count = 0;
    batch->used = batch->op_count = batch->ref_count = batch->notice_count = batch->bytes = 0;
    batch->units = batch->missing = 0;
    batch->needs_commit = batch->status = 0;
    batch->after = 0;
    batch->held = 0;
    batch->first_ns = batch->taken_ns = batch->done_ns = 0;
    for (int i = 0; i < PACKS; i++)
        batch->packs[i].used = batch->packs[i].count = 0;
}

static void batch_free(Batch *batch) {
    if (!batch)
        return;
    batch_clear(batch);
    free(batch->arena);
    free(batch->ops);
    free(batch->refs);
    free(batch->notices);
    for (int i = 0; i < PACKS; i++)
        free(batch->packs[i].data);
    free(batch);
}

static inline int bit_length(uint64_t value) { return value ? 64 - __builtin_clzll(value) : 0; }

static void stats_add(GatherStats *stats, const Batch *batch) {
    uint64_t commit = batch->done_ns - batch->taken_ns;
    int slot = bit_length(commit / 1000);
    stats->batches++;
    stats->failed_batches += batch->status != 0;
    stats->units += batch->units;
    stats->operations += batch->op_count;
    stats->bytes += batch->bytes;
    stats->missing += batch->missing;
    stats->commit_ns_total += commit;
    if (commit > stats->commit_ns_max)
        stats->commit_ns_max = commit;
    stats->wait_ns_total += batch->taken_ns - batch->first_ns;
    stats->commit_histogram[slot < 31 ? slot : 31]++;
    slot = bit_length(batch->units);
    stats->unit_histogram[slot < 15 ? slot : 15]++;
}

#endif
