/* The redo log in front of LMDB. Neither of its threads ever takes the GIL.
 *
 * 1. The writer thread (batch_thread.h) builds a batch's record in the memory of the active segment, then writes and syncs it
 *    (redo_take, redo_appended). Only then it adds the record to the active generation: from then on the record is durable, and readers
 *    see it.
 * 2. The active segment and its generation are frozen when the segment is full, when its oldest record is APPLY_NS old, or when a thread
 *    waits in redo_settle. The other segment, which is free at that time, becomes the active one.
 * 3. The applier thread writes the frozen generation to LMDB, sorted, in one transaction that also stores the number of its last record
 *    as log_applied in META. LMDB's own sync covers both. Then the segment and the generation are free.
 * 4. A reader looks into the active generation, then into the frozen one, and only then begins its LMDB transaction, which has
 *    everything that was applied meanwhile. A reader with an older transaction begins a new one if it does not find its key.
 * 5. While the log is in use, META has the schema version LOGGED, which an older build rejects; redo_finish restores the old one.
 *    Opening a store that still has LOGGED first replays the records above log_applied (redoreplay.h).
 *
 * `lock` protects everything here except the LMDB calls, the frozen generation, which only the applier changes, and, while `appending`
 * is set, the memory and the file of the active segment. */
#ifndef MSMQ_FAST_REDOSTORE_H
#define MSMQ_FAST_REDOSTORE_H

#include "batch_store.h"
#include "memtable.h"
#include <time.h>

#define APPLY_NS 1000000000u /* a record waits for its application at most this long, unless LMDB is behind */
#define RETRY_NS 1000000000u /* between two attempts to apply if the disk is full */
#define LOG_DIRECTORY "log"

/* Schema versions in META, as store/schema.py has them. */
#define SCHEMA_PLAIN 1
#define SCHEMA_LOGGED 2

_Static_assert(MEM_TABLES == STORE_TABLES, "a table needs room in both");

typedef struct {
    uint64_t records, bytes, applied_batches, applied_operations, waits, missing;
} RedoStats;

typedef struct RedoStore {
    pthread_t applier;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    LmdbStore *store;
    int directory;
    uint8_t id[REDO_ID];
    uint64_t epoch, sequence;
    Segment segments[REDO_SLOTS];
    Generation generations[REDO_SLOTS];
    int active, frozen; /* frozen < 0: none */
    int appending;      /* the writer is using the active segment */
    int freeze;         /* the writer must freeze the active segment before it appends */
    int full;           /* the frozen segment was full, so more records are expected */
    int resident;       /* a free segment may still have its memory */
    int settling;       /* threads in redo_settle */
    int stop, keep, finished, ended, stalled, retry, fatal;
    uint64_t begun, done; /* applications */
    uint64_t last, applied, oldest_ns;
    RedoStats stats;
} RedoStore;

static uint64_t redo_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- records of META: a version byte and one msgpack value */

static int meta_put(LmdbStore *store, MDB_txn *txn, const char *name, const void *data, size_t size) {
    MDB_val key = {strlen(name), (void *)name}, value = {size, (void *)data};
    return lmdb.put(txn, store->dbi[STORE_META], &key, &value, 0);
}

static int meta_put_number(LmdbStore *store, MDB_txn *txn, const char *name, uint64_t number) {
    uint8_t data[10] = {1, 0xCF};
    number = __builtin_bswap64(number);
    memcpy(data + 2, &number, 8);
    return meta_put(store, txn, name, data, sizeof data);
}

static int meta_put_schema(LmdbStore *store, MDB_txn *txn, uint8_t schema) {
    const uint8_t data[2] = {1, schema};
    return meta_put(store, txn, "schema_version", data, sizeof data);
}

typedef struct {
    int schema; /* -1: another value, or none */
    int has_id;
    uint8_t id[REDO_ID];
    uint64_t epoch, applied;
} RedoMeta;

static uint64_t meta_number(const MDB_val *value) {
    uint64_t number;
    const uint8_t *data = value->mv_data;
    if (value->mv_size != 10 || data[0] != 1 || data[1] != 0xCF)
        return 0;
    memcpy(&number, data + 2, 8);
    return __builtin_bswap64(number);
}

static int meta_load(LmdbStore *store, RedoMeta *meta) {
    static const char *const names[] = {"schema_version", "log_id", "log_epoch", "log_applied"};
    MDB_txn *txn;
    int status = lmdb.txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    memset(meta, 0, sizeof *meta);
    meta->schema = -1;
    if (status)
        return status;
    for (int i = 0; !status && i < 4; i++) {
        MDB_val key = {strlen(names[i]), (void *)names[i]}, value;
        status = lmdb.get(txn, store->dbi[STORE_META], &key, &value);
        const uint8_t *data = value.mv_data;
        if (status == MDB_NOTFOUND) {
            status = 0;
        } else if (!status && i == 0) {
            meta->schema = value.mv_size == 2 && data[0] == 1 && data[1] < 0x80 ? data[1] : -1;
        } else if (!status && i == 1 && value.mv_size == 3 + REDO_ID) {
            memcpy(meta->id, data + 3, REDO_ID);
            meta->has_id = 1;
        } else if (!status && i >= 2) {
            *(i == 2 ? &meta->epoch : &meta->applied) = meta_number(&value);
        }
    }
    lmdb.txn_abort(txn);
    return status;
}

/* ---- applying */

static int apply_item(MDB_cursor *cursor, const MemItem *item, int append, uint64_t *missing) {
    MDB_val key = {item->key_len, (void *)item->key}, value = {item->value_len, (void *)item_value(item)};
    int status;
    if (item_is_value(item))
        return lmdb.cursor_put(cursor, &key, &value, append ? MDB_APPEND : 0);
    status = lmdb.cursor_get(cursor, &key, &value, MDB_SET);
    if (!status)
        return lmdb.cursor_del(cursor, 0);
    if (status != MDB_NOTFOUND)
        return status;
    *missing += item->state == MEM_DELETED;
    return 0;
}

/* Items of one table, in key order, from view->items[*at] on. */
static int apply_table(LmdbStore *store, MDB_txn *txn, const MemView *view, size_t *at, const Generation *above, uint64_t *missing) {
    int table = view->items[*at].table, append = 0;
    uint8_t last[511];
    size_t last_len = 0;
    MDB_cursor *cursor;
    MDB_val key, value;
    int status = lmdb.cursor_open(txn, store->dbi[table], &cursor);
    if (status)
        return status;
    status = lmdb.cursor_get(cursor, &key, &value, MDB_LAST);
    if (!status)
        memcpy(last, key.mv_data, last_len = key.mv_size < sizeof last ? key.mv_size : sizeof last);
    else if (status == MDB_NOTFOUND)
        status = 0;
    for (; !status && *at < view->count && view->items[*at].table == table; ++*at) {
        const MemItem *item = &view->items[*at];
        MemItem shadow;
        if (above && gen_find(above, table, item->key, item->key_len, &shadow) && !item_is_value(&shadow))
            continue;
        if (!append) /* all that follow are greater, too */
            append = compare_keys(item->key, item->key_len, last, last_len) > 0;
        status = apply_item(cursor, item, append, missing);
    }
    lmdb.cursor_close(cursor);
    return status;
}

/* Applies the sorted view, and stores `number` as the last record that LMDB has. `above`: a generation whose tombstones make puts
 * unnecessary. */
static int apply_view(LmdbStore *store, const MemView *view, uint64_t number, const Generation *above, uint64_t *missing) {
    MDB_txn *txn;
    size_t at = 0;
    int status = lmdb.txn_begin(store->env, NULL, 0, &txn);
    if (status)
        return status;
    while (!status && at < view->count)
        status = apply_table(store, txn, view, &at, above, missing);
    if (!status)
        status = meta_put_number(store, txn, "log_applied", number);
    if (!status)
        return lmdb.txn_commit(txn);
    lmdb.txn_abort(txn);
    return status;
}

/* Called when the disk is full: deletes in advance what will be deleted anyway. Replaying the log does the same again. The second commit
 * lets LMDB reuse the pages that the first one freed. */
static void make_space(LmdbStore *store, const Generation *gen, uint64_t epoch) {
    MDB_txn *txn;
    MemView view = {0};
    uint64_t ignored = 0;
    if (!view_all(&view, gen) && !lmdb.txn_begin(store->env, NULL, 0, &txn)) {
        int status = 0;
        size_t kept = 0, at = 0;
        for (size_t i = 0; i < view.count; i++)
            if (!item_is_value(&view.items[i]))
                view.items[kept++] = view.items[i];
        view.count = kept;
        while (!status && at < view.count)
            status = apply_table(store, txn, &view, &at, NULL, &ignored);
        if (status)
            lmdb.txn_abort(txn);
        else if (!lmdb.txn_commit(txn) && !lmdb.txn_begin(store->env, NULL, 0, &txn)) {
            if (meta_put_number(store, txn, "log_epoch", epoch))
                lmdb.txn_abort(txn);
            else
                lmdb.txn_commit(txn);
        }
    }
    view_free(&view);
}

/* ---- freezing and applying; with the lock */

static inline int has_records(const RedoStore *redo) { return redo->oldest_ns != 0; }

static void redo_freeze(RedoStore *redo, int full) {
    redo->frozen = redo->active;
    redo->active = !redo->active;
    redo->freeze = 0;
    redo->full = full;
    redo->oldest_ns = 0;
    pthread_cond_broadcast(&redo->changed);
}

/* Returns the memory of the frozen segment, which is not needed any more, to the system; releases the lock meanwhile. */
static void discard_frozen(RedoStore *redo) {
    pthread_mutex_unlock(&redo->lock);
    segment_discard(&redo->segments[redo->frozen]);
    pthread_mutex_lock(&redo->lock);
}

/* Called when the log is empty and idle: releases the memory of the active segment, which an earlier load may have filled. */
static void redo_rest(RedoStore *redo) {
    redo->resident = 0;
    segment_discard(&redo->segments[redo->active]);
}

static void redo_apply(RedoStore *redo) {
    Generation *gen = &redo->generations[redo->frozen], *active = &redo->generations[redo->active];
    Segment *seg = &redo->segments[redo->frozen];
    MemView view = {0};
    uint64_t missing = 0, number = seg->last;
    int again = redo->stalled;
    redo->begun++;
    redo->retry = 0;
    if (again)
        make_space(redo->store, active, redo->epoch); /* the active generation must not change, so keep the lock */
    const Generation *above = again ? active : NULL;
    if (!above)
        pthread_mutex_unlock(&redo->lock);
    int status = view_all(&view, gen);
    if (!status && above)
        make_space(redo->store, gen, redo->epoch);
    if (!status)
        status = apply_view(redo->store, &view, number, above, &missing);
    if (status == EIO)
        status = explain_eio(redo->store, seg->used);
    if (!above)
        pthread_mutex_lock(&redo->lock);
    redo->done = redo->begun;
    if (!status) {
        while (gen->pins)
            pthread_cond_wait(&redo->changed, &redo->lock);
        redo->stats.applied_batches++;
        redo->stats.applied_operations += view.count;
        redo->stats.missing += missing + gen->missing;
        gen_clear(gen);
        seg->used = 0;
        if (!redo->full)
            discard_frozen(redo);
        redo->resident = 1;
        redo->frozen = -1;
        redo->applied = number;
    } else if (!status_is_space(status)) {
        redo->fatal = status;
    }
    redo->stalled = status;
    view_free(&view);
    pthread_cond_broadcast(&redo->changed);
}

static void wait_until(RedoStore *redo, uint64_t until_ns) {
    struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
    pthread_cond_timedwait(&redo->changed, &redo->lock, &until);
}

static void *applier_main(void *argument) {
    RedoStore *redo = argument;
    uint64_t retry_ns = 0;
    pthread_mutex_lock(&redo->lock);
    while (!redo->fatal && !(redo->stop && redo->keep)) {
        uint64_t now = redo_now(), until = now + APPLY_NS;
        if (redo->frozen < 0 && has_records(redo)) {
            if (redo->settling || redo->stop || now - redo->oldest_ns >= APPLY_NS) {
                if (redo->appending)
                    redo->freeze = 1;
                else
                    redo_freeze(redo, 0);
            } else {
                until = redo->oldest_ns + APPLY_NS;
            }
        }
        if (redo->frozen >= 0 && (!redo->stalled || redo->retry || now >= retry_ns)) {
            redo_apply(redo);
            retry_ns = redo_now() + RETRY_NS;
        } else if (redo->stop && (redo->stalled || (redo->frozen < 0 && !has_records(redo)))) {
            break;
        } else if (redo->resident && redo->frozen < 0 && !has_records(redo) && !redo->appending) {
            redo_rest(redo);
        } else {
            wait_until(redo, redo->frozen >= 0 && redo->stalled ? retry_ns : until);
        }
    }
    redo->ended = 1;
    pthread_cond_broadcast(&redo->changed);
    pthread_mutex_unlock(&redo->lock);
    return NULL;
}

/* Waits for an application that begins after the call. Returns 0 if there is room again. */
static int redo_retry(RedoStore *redo) {
    uint64_t target = redo->begun + 1;
    redo->retry = 1;
    pthread_cond_broadcast(&redo->changed);
    while (redo->stalled && redo->done < target && !redo->fatal && !redo->ended)
        pthread_cond_wait(&redo->changed, &redo->lock);
    return redo->fatal ? redo->fatal : redo->stalled;
}

/* The same for a caller with the lock: waits until LMDB has everything up to `target`. */
static int redo_wait_applied(RedoStore *redo, uint64_t target) {
    int status = redo->stalled ? redo_retry(redo) : 0;
    redo->settling++;
    pthread_cond_broadcast(&redo->changed);
    while (!status && redo->applied < target) {
        status = redo->fatal ? redo->fatal : redo->stalled ? redo->stalled : redo->ended ? EBADF : 0;
        if (!status)
            pthread_cond_wait(&redo->changed, &redo->lock);
    }
    redo->settling--;
    return redo->applied >= target ? 0 : status;
}

/* Waits until LMDB has everything that is durable now. Returns 0, or why it cannot. */
static int redo_settle(RedoStore *redo) {
    pthread_mutex_lock(&redo->lock);
    int status = redo_wait_applied(redo, redo->last);
    pthread_mutex_unlock(&redo->lock);
    return status;
}

/* ---- appending; for the writer thread */

/* Whether a record of `length` bytes can be appended without waiting, and while no application is using the disk. */
static int redo_has_room(RedoStore *redo, size_t length) {
    pthread_mutex_lock(&redo->lock);
    int room = redo->frozen < 0 && !redo->freeze && !redo->stalled && segment_has_room(&redo->segments[redo->active], length);
    pthread_mutex_unlock(&redo->lock);
    return room;
}

/* Reserves room in the active segment for a record of `length` bytes and `ops` operations. `brings`: it needs room in LMDB. If it
 * returns 0, redo_appended must follow. Waits for the applier if both segments are full. */
static int redo_take(RedoStore *redo, size_t length, size_t ops, int brings) {
    int status = 0, waited = 0;
    pthread_mutex_lock(&redo->lock);
    for (;;) {
        int room = segment_has_room(&redo->segments[redo->active], length);
        if ((status = redo->fatal))
            break;
        if (redo->frozen < 0 && has_records(redo) && (!room || redo->freeze)) {
            redo_freeze(redo, !room);
        } else if (redo->stalled && (brings || !room)) {
            if ((status = redo_retry(redo)))
                break;
        } else if (room) {
            status = gen_reserve(&redo->generations[redo->active], ops);
            break;
        } else {
            redo->stats.waits += !waited++;
            pthread_cond_wait(&redo->changed, &redo->lock);
        }
    }
    redo->appending = !status;
    pthread_mutex_unlock(&redo->lock);
    if (!status && !redo->segments[redo->active].used)
        segment_begin(&redo->segments[redo->active], redo->id, redo->epoch, ++redo->sequence, redo->last + 1);
    return status;
}

/* Makes the record of `length` bytes durable and visible. */
static int redo_appended(RedoStore *redo, size_t length) {
    Segment *seg = &redo->segments[redo->active];
    size_t at = seg->used;
    int lost, status = segment_append(seg, length, redo->last + 1, &lost);
    pthread_mutex_lock(&redo->lock);
    redo->appending = 0;
    if (!status) {
        if (!redo->oldest_ns)
            redo->oldest_ns = redo_now();
        gen_add_record(&redo->generations[redo->active], at);
        redo->last++;
        redo->stats.records++;
        redo->stats.bytes += length;
    } else if (lost || !status_is_space(status)) {
        redo->fatal = status;
    }
    if (seg->last < seg->first)
        seg->used = 0; /* its head was not written either */
    if (status || redo->freeze)
        pthread_cond_broadcast(&redo->changed);
    pthread_mutex_unlock(&redo->lock);
    return status;
}

/* For a batch that the log cannot hold, which the caller commits directly with `*number` as log_applied: waits until LMDB has everything
 * before it. */
static int redo_drain(RedoStore *redo, uint64_t *number) {
    pthread_mutex_lock(&redo->lock);
    int status = redo->fatal ? redo->fatal : redo_wait_applied(redo, redo->last);
    *number = redo->last + 1;
    pthread_mutex_unlock(&redo->lock);
    return status;
}

static void redo_passed(RedoStore *redo, uint64_t number) {
    pthread_mutex_lock(&redo->lock);
    redo->last = redo->applied = number;
    pthread_mutex_unlock(&redo->lock);
}

/* Returns the size of the largest record that the log accepts. */
static inline size_t redo_limit(const RedoStore *redo) { return (redo->segments[0].size - REDO_PAGE) / 4; }

/* ---- reading */

static void redo_unpin(RedoStore *redo, Generation *gen) {
    pthread_mutex_lock(&redo->lock);
    if (!--gen->pins)
        pthread_cond_broadcast(&redo->changed);
    pthread_mutex_unlock(&redo->lock);
}

/* Returns 1 if the log has the key; the generation then stays until redo_unpin. Returns 0 if LMDB decides, in a transaction that begins
 * after the call. */
static int redo_find(RedoStore *redo, int table, const void *key, size_t key_len, MemItem *item, Generation **pinned) {
    int found = 0;
    pthread_mutex_lock(&redo->lock);
    for (int i = redo->active, round = 0; !found && i >= 0 && round < 2; i = redo->frozen, round++) {
        found = gen_find(&redo->generations[i], table, key, key_len, item);
        if (found) {
            *pinned = &redo->generations[i];
            (*pinned)->pins++;
        }
    }
    pthread_mutex_unlock(&redo->lock);
    return found;
}

typedef struct {
    MemView view;
    Generation *pinned[REDO_SLOTS];
} RedoView;

/* Collects the log's records with lower <= key < upper of a table, sorted. Returns 0, or ENOMEM; redo_view_end must follow. */
static int redo_view(RedoStore *redo, int table, const void *lower, size_t lower_len, const void *upper, size_t upper_len, RedoView *out) {
    const Generation *above = NULL;
    int status = 0;
    memset(out, 0, sizeof *out);
    if (!redo)
        return 0;
    pthread_mutex_lock(&redo->lock);
    for (int i = redo->active, round = 0; !status && i >= 0 && round < 2; i = redo->frozen, round++) {
        Generation *gen = &redo->generations[i];
        status = view_collect(&out->view, gen, above, table, lower, lower_len, upper, upper_len);
        above = gen;
        out->pinned[round] = gen;
        gen->pins++;
    }
    pthread_mutex_unlock(&redo->lock);
    view_sort(&out->view);
    return status;
}

static void redo_view_end(RedoStore *redo, RedoView *view) {
    for (int i = 0; i < (int)REDO_SLOTS; i++)
        if (view->pinned[i])
            redo_unpin(redo, view->pinned[i]);
    view_free(&view->view);
}

/* Returns the bytes of records that LMDB does not have yet. */
static uint64_t redo_unapplied(RedoStore *redo) {
    uint64_t bytes = 0;
    pthread_mutex_lock(&redo->lock);
    for (int i = 0; i < (int)REDO_SLOTS; i++)
        bytes += redo->segments[i].used;
    pthread_mutex_unlock(&redo->lock);
    return bytes;
}

#endif
