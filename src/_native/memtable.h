/* The records that the redo log has and LMDB does not have yet: the records of one segment, by table and key. No Python, no LMDB.
 *
 * A Generation belongs to one segment and points into its memory. Several records about one key leave one entry, the last:
 *     put of a new key, then delete   nothing: the table never had it
 *     put, then delete                a tombstone
 *     put or delete, then put         the last value
 * The caller serializes all calls. A reader that continues without the caller's lock increments `pins`: keys and values of entries then
 * stay at their addresses until the generation is cleared. */
#ifndef MSMQ_FAST_MEMTABLE_H
#define MSMQ_FAST_MEMTABLE_H

#include "redolog.h"

#define MEM_TABLES 16 /* at most, as STORE_TABLES */

#define MEM_GONE 0       /* nothing: the tables below decide */
#define MEM_PUT 1        /* a value; the tables below may have the key */
#define MEM_PUT_NEW 2    /* a value; the tables below do not have the key */
#define MEM_DELETED 3    /* a tombstone */
#define MEM_WITHDRAWN 4  /* a tombstone of a value that was put here: the tables below may not have the key */

typedef struct {
    uint32_t at;   /* of the RecordOp in the segment's memory */
    uint32_t hash;
    uint32_t next; /* entry of the same table, + 1 */
    uint8_t table, state;
} MemEntry;

typedef struct {
    const uint8_t *data;
    MemEntry *entries;
    size_t count, room;
    uint32_t *slots; /* entry + 1 */
    size_t mask;
    uint32_t head[MEM_TABLES]; /* the last entry of each table, + 1 */
    uint32_t pins;
    int unknown; /* one operation has a table that this version does not know */
    uint64_t missing; /* deletes of missing keys, as far as this generation can know */
} Generation;

/* One entry in the form in which it is applied and read. */
typedef struct {
    const uint8_t *key;
    uint64_t prefix; /* of the key, for comparing */
    uint32_t value_len;
    uint16_t key_len;
    uint8_t table, state;
} MemItem;

typedef struct {
    MemItem *items;
    size_t count, room;
} MemView;

static inline const uint8_t *item_value(const MemItem *item) { return item->key + item->key_len; }

static inline int item_is_value(const MemItem *item) { return item->state == MEM_PUT || item->state == MEM_PUT_NEW; }

static inline uint32_t mem_hash(int table, const uint8_t *key, size_t key_len) {
    uint64_t hash = (uint64_t)table * 0x9E3779B97F4A7C15u + key_len, word;
    for (; key_len >= 8; key += 8, key_len -= 8) {
        memcpy(&word, key, 8);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    if (key_len) {
        word = 0;
        memcpy(&word, key, key_len);
        hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    hash *= 0x9E3779B97F4A7C15u;
    return (uint32_t)(hash >> 32);
}

static inline void op_at(const Generation *gen, uint32_t at, RecordOp *op, const uint8_t **key) {
    memcpy(op, gen->data + at, sizeof *op);
    *key = gen->data + at + sizeof *op;
}

/* Room for `more` entries, so that gen_add cannot fail. 0, or ENOMEM. */
static int gen_reserve(Generation *gen, size_t more) {
    size_t wanted = gen->count + more, size = gen->slots ? gen->mask + 1 : 1024;
    if (wanted >= UINT32_MAX)
        return ENOMEM;
    if (wanted > gen->room) {
        size_t room = gen->room ? gen->room : 1024;
        while (room < wanted)
            room *= 2;
        void *moved = realloc(gen->entries, room * sizeof(MemEntry));
        if (!moved)
            return ENOMEM;
        gen->entries = moved;
        gen->room = room;
    }
    while (size < 2 * wanted)
        size *= 2;
    if (gen->slots && size == gen->mask + 1)
        return 0;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots)
        return ENOMEM;
    for (size_t i = 0; i < gen->count; i++) {
        size_t slot = gen->entries[i].hash & (size - 1);
        while (slots[slot])
            slot = (slot + 1) & (size - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    free(gen->slots);
    gen->slots = slots;
    gen->mask = size - 1;
    return 0;
}

static MemEntry *gen_seek(const Generation *gen, int table, const uint8_t *key, size_t key_len, uint32_t hash, size_t *slot) {
    for (*slot = hash & gen->mask; gen->slots[*slot]; *slot = (*slot + 1) & gen->mask) {
        MemEntry *entry = &gen->entries[gen->slots[*slot] - 1];
        RecordOp op;
        const uint8_t *other;
        if (entry->hash != hash || entry->table != table)
            continue;
        op_at(gen, entry->at, &op, &other);
        if (op.key_len == key_len && !memcmp(other, key, key_len))
            return entry;
    }
    return NULL;
}

static void gen_add_op(Generation *gen, uint32_t at) {
    RecordOp op;
    const uint8_t *key;
    size_t slot;
    op_at(gen, at, &op, &key);
    if (op.table >= MEM_TABLES) {
        gen->unknown = 1;
        return;
    }
    uint32_t hash = mem_hash(op.table, key, op.key_len);
    MemEntry *entry = gen_seek(gen, op.table, key, op.key_len, hash, &slot);
    int deletes = op.kind & REDO_DELETE, is_new = op.kind & REDO_NEW;
    if (!entry) {
        entry = &gen->entries[gen->count++];
        *entry = (MemEntry){at, hash, gen->head[op.table], op.table, deletes ? MEM_DELETED : is_new ? MEM_PUT_NEW : MEM_PUT};
        gen->head[op.table] = (uint32_t)gen->count;
        gen->slots[slot] = (uint32_t)gen->count;
        return;
    }
    entry->at = at;
    switch (entry->state) {
    case MEM_GONE:
    case MEM_PUT_NEW:
        gen->missing += deletes && entry->state == MEM_GONE;
        entry->state = deletes ? MEM_GONE : MEM_PUT_NEW;
        break;
    case MEM_PUT:
        entry->state = deletes ? MEM_WITHDRAWN : MEM_PUT;
        break;
    default:
        gen->missing += deletes != 0;
        entry->state = deletes ? entry->state : MEM_PUT;
    }
}

/* Adds the record at `at`; gen_reserve made room for its ops. */
static void gen_add_record(Generation *gen, size_t at) {
    RecordHead head;
    memcpy(&head, gen->data + at, sizeof head);
    at += sizeof head;
    for (uint32_t i = 0; i < head.op_count; i++) {
        RecordOp op;
        memcpy(&op, gen->data + at, sizeof op);
        gen_add_op(gen, (uint32_t)at);
        at += op_size(op.key_len, op.value_len);
    }
}

static void fill_item(const Generation *gen, const MemEntry *entry, MemItem *item) {
    RecordOp op;
    uint64_t prefix = 0;
    op_at(gen, entry->at, &op, &item->key);
    memcpy(&prefix, item->key, op.key_len < 8 ? op.key_len : 8);
    item->prefix = __builtin_bswap64(prefix);
    item->key_len = op.key_len;
    item->value_len = op.value_len;
    item->table = entry->table;
    item->state = entry->state;
}

/* Returns 1 if the generation has a value or a tombstone for the key. */
static int gen_find(const Generation *gen, int table, const uint8_t *key, size_t key_len, MemItem *item) {
    size_t slot;
    if (!gen->count)
        return 0;
    MemEntry *entry = gen_seek(gen, table, key, key_len, mem_hash(table, key, key_len), &slot);
    if (!entry || entry->state == MEM_GONE)
        return 0;
    fill_item(gen, entry, item);
    return 1;
}

/* Removes all entries, and frees memory of a size that is rarely needed. */
static void gen_clear(Generation *gen) {
    if (gen->room > (size_t)1 << 17) {
        free(gen->entries);
        free(gen->slots);
        gen->entries = NULL;
        gen->slots = NULL;
        gen->room = gen->mask = 0;
    } else if (gen->slots) {
        memset(gen->slots, 0, (gen->mask + 1) * sizeof *gen->slots);
    }
    gen->count = 0;
    gen->missing = 0;
    memset(gen->head, 0, sizeof gen->head);
}

static void gen_free(Generation *gen) {
    free(gen->entries);
    free(gen->slots);
    memset(gen, 0, sizeof *gen);
}

/* ---- sorted views */

static inline int compare_keys(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len) {
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_items(const void *left, const void *right) {
    const MemItem *a = left, *b = right;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return compare_keys(a->key, a->key_len, b->key, b->key_len);
}

/* Room for `wanted` items. 0, or ENOMEM. */
static int view_reserve(MemView *view, size_t wanted) {
    size_t room = view->room ? view->room : 64;
    if (wanted <= view->room)
        return 0;
    while (room < wanted)
        room *= 2;
    void *moved = realloc(view->items, room * sizeof(MemItem));
    if (!moved)
        return ENOMEM;
    view->items = moved;
    view->room = room;
    return 0;
}

static MemItem *view_next(MemView *view) { return view_reserve(view, view->count + 1) ? NULL : &view->items[view->count]; }

/* Adds the entries of `table` with lower <= key < upper (upper NULL: no end) that `above` does not shadow. 0, or ENOMEM. */
static int view_collect(MemView *view, const Generation *gen, const Generation *above, int table, const uint8_t *lower, size_t lower_len,
                        const uint8_t *upper, size_t upper_len) {
    for (uint32_t i = gen->head[table]; i; i = gen->entries[i - 1].next) {
        MemItem *item, shadow;
        if (gen->entries[i - 1].state == MEM_GONE)
            continue;
        if (!(item = view_next(view)))
            return ENOMEM;
        fill_item(gen, &gen->entries[i - 1], item);
        if (compare_keys(item->key, item->key_len, lower, lower_len) < 0 ||
            (upper && compare_keys(item->key, item->key_len, upper, upper_len) >= 0) ||
            (above && gen_find(above, table, item->key, item->key_len, &shadow)))
            continue;
        view->count++;
    }
    return 0;
}

static void sort_items(MemItem *items, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (compare_items(&items[i - 1], &items[i]) > 0) {
            qsort(items, count, sizeof(MemItem), compare_items);
            return;
        }
    }
}

static void view_sort(MemView *view) { sort_items(view->items, view->count); }

/* Collects every entry, in the order in which LMDB stores them fastest. Returns 0, or ENOMEM.
 * The entries are dealt out to their tables first: most tables got their keys in ascending order, and need no sorting. */
static int view_all(MemView *view, const Generation *gen) {
    size_t end[MEM_TABLES] = {0}, total = 0;
    for (size_t i = 0; i < gen->count; i++)
        end[gen->entries[i].table] += gen->entries[i].state != MEM_GONE;
    for (int table = 0; table < MEM_TABLES; table++) {
        size_t count = end[table];
        end[table] = total;
        total += count;
    }
    if (view_reserve(view, total))
        return ENOMEM;
    for (size_t i = 0; i < gen->count; i++) {
        const MemEntry *entry = &gen->entries[i];
        if (entry->state != MEM_GONE)
            fill_item(gen, entry, &view->items[end[entry->table]++]);
    }
    view->count = total;
    for (size_t table = 0, start = 0; table < MEM_TABLES; start = end[table++])
        sort_items(view->items + start, end[table] - start);
    return 0;
}

static void view_free(MemView *view) {
    free(view->items);
    memset(view, 0, sizeof *view);
}

#endif
