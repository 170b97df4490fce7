/* The two native threads over a store: one commits batches, one reads bodies. Neither ever takes the GIL. */
#ifndef MSMQ_FAST_BATCH_THREAD_H
#define MSMQ_FAST_BATCH_THREAD_H

#include "batch_gather.h"
#include "redoreplay.h"
#include <sys/eventfd.h>

#define LOOK_NS 150000u /* how long the writer polls for the next batch */
#define SOON_NS 400000u /* a batch that follows the last one within this time arrived immediately */
#define LONE_UNITS 4u   /* a batch with at most this many units and bytes is a lone one */
#define LONE_BYTES ((size_t)32 << 10)
#define LONE_BATCHES 4u /* after this many consecutive lone batches, the loop has little else to do */
#define SLOW_NS 10000000000u /* after a slow commit, the loop leaves all commits to the thread for this time */

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    LmdbStore *store;
    BatchList waiting, done;
    int busy, stop, event_fd, fatal;
    uint64_t failed_number; /* number and status of the last batch that failed */
    int failed_status;
    int looking; /* the thread polls for work and need not be woken */
    uint64_t next_number[PACKS];
    /* Used by the loop to decide whether it commits a lone batch itself. */
    uint64_t inline_ns; /* a commit that takes longer is slow; 0: never */
    uint64_t not_before_ns, inline_commits;
    unsigned lone; /* consecutive lone batches */
} WriterThread;

typedef struct ReadRequest {
    struct ReadRequest *next;
    uint64_t content_id, token;
    uint32_t size;
    int status;
    char *target;
    PyObject *body, *listener;
} ReadRequest;

typedef struct {
    ReadRequest *head, *tail;
} ReadList;

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    LmdbStore *store;
    ReadList waiting, done;
    int idle, stop, event_fd;
    uint64_t transactions;
} ReaderThread;

static void signal_event(int fd) {
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof one);
    (void)written; /* only a counter at its limit refuses, and then the fd is readable anyway */
}

static void drain_event(int fd) {
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
}

static int apply_op(LmdbStore *store, MDB_txn *txn, Batch *batch, const Op *op) {
    MDB_val key = {op->key_len, batch->arena + op->at};
    MDB_dbi dbi = store->dbi[op->table];
    int status;
    if (op->kind == OP_NOTHING)
        return 0;
    if (op->kind == OP_DELETE) {
        status = lmdb.del(txn, dbi, &key, NULL);
        if (status == MDB_NOTFOUND) {
            batch->missing++;
            status = 0;
        }
        return status;
    }
    MDB_val value = {op->head_len + op->body_len, NULL};
    status = lmdb.put(txn, dbi, &key, &value, MDB_RESERVE | (op->append ? MDB_APPEND : 0));
    if (status == MDB_KEYEXIST && op->append) { /* not the greatest key, against expectation */
        value.mv_size = op->head_len + op->body_len;
        status = lmdb.put(txn, dbi, &key, &value, MDB_RESERVE);
    }
    if (status)
        return status;
    memcpy(value.mv_data, batch->arena + op->at + op->key_len, op->head_len);
    if (op->body_len)
        memcpy((char *)value.mv_data + op->head_len, op->body, op->body_len);
    return 0;
}

static int apply_pack(LmdbStore *store, MDB_txn *txn, Batch *batch, int which, uint64_t number) {
    Pack *pack = &batch->packs[which];
    uint8_t name[8];
    MDB_val key = {8, name}, value = {pack->used, pack->data};
    if (!pack->count)
        return 0;
    pack_close(pack);
    store_be64(name, number);
    return lmdb.put(txn, store->dbi[STORE_FEED + which], &key, &value, MDB_APPEND);
}

/* Commits one batch as one transaction. `number` is log_applied for a store with a log, otherwise 0. */
static int commit_to_lmdb(WriterThread *writer, Batch *batch, uint64_t number) {
    LmdbStore *store = writer->store;
    MDB_txn *txn;
    int status = lmdb.txn_begin(store->env, NULL, 0, &txn);
    if (status)
        return status;
    for (size_t i = 0; !status && i < batch->op_count; i++)
        status = apply_op(store, txn, batch, &batch->ops[i]);
    for (int i = 0; !status && i < PACKS; i++)
        status = apply_pack(store, txn, batch, i, writer->next_number[i]);
    if (!status && number)
        status = meta_put_number(store, txn, "log_applied", number);
    if (!status)
        return lmdb.txn_commit(txn);
    lmdb.txn_abort(txn);
    return status;
}

typedef struct {
    size_t length;
    uint32_t ops;
    int brings; /* whether it adds content, which needs room in LMDB */
} RecordSize;

static RecordSize measure_record(const Batch *batch) {
    RecordSize size = {sizeof(RecordHead), 0, 0};
    for (size_t i = 0; i < batch->op_count; i++) {
        const Op *op = &batch->ops[i];
        if (op->kind == OP_NOTHING)
            continue;
        size.length += op_size(op->key_len, op->head_len + op->body_len);
        size.brings |= op->kind == OP_PUT && op->table == STORE_CONTENT;
        size.ops++;
    }
    for (int i = 0; i < PACKS; i++) {
        if (batch->packs[i].count) {
            size.length += op_size(8, batch->packs[i].used);
            size.ops++;
        }
    }
    return size;
}

/* Writes the batch's operations from `at` on. Returns the end of what was written. */
static uint8_t *build_record(uint8_t *at, Batch *batch, const uint64_t next_number[PACKS]) {
    for (size_t i = 0; i < batch->op_count; i++) {
        const Op *op = &batch->ops[i];
        const uint8_t *key = batch->arena + op->at;
        if (op->kind == OP_DELETE)
            at = record_op(at, REDO_DELETE, op->table, key, op->key_len, NULL, 0, NULL, 0);
        else if (op->kind == OP_PUT)
            at = record_op(at, op->is_new ? REDO_NEW : REDO_PUT, op->table, key, op->key_len, key + op->key_len, op->head_len, op->body,
                           op->body_len);
    }
    for (int i = 0; i < PACKS; i++) {
        Pack *pack = &batch->packs[i];
        uint8_t name[8];
        if (!pack->count)
            continue;
        pack_close(pack);
        store_be64(name, next_number[i]);
        at = record_op(at, REDO_NEW, STORE_FEED + i, name, sizeof name, pack->data, pack->used, NULL, 0);
    }
    return at;
}

/* Commits one batch as one record of the log, unless it is too large. */
static int commit_to_log(WriterThread *writer, RedoStore *redo, Batch *batch) {
    RecordSize size = measure_record(batch);
    if (!size.ops)
        return 0;
    if (size.length > redo_limit(redo)) {
        uint64_t number;
        int status = redo_drain(redo, &number);
        if (!status)
            status = commit_to_lmdb(writer, batch, number);
        if (!status)
            redo_passed(redo, number);
        return status;
    }
    int status = redo_take(redo, size.length, size.ops, size.brings);
    if (status)
        return status;
    Segment *seg = &redo->segments[redo->active];
    uint8_t *end = build_record(seg->data + seg->used + sizeof(RecordHead), batch, writer->next_number);
    return redo_appended(redo, record_close(seg, end, redo->last + 1, size.ops));
}

/* Returns 0 if the whole batch is on the disk; otherwise nothing of it is. */
static int commit_batch(WriterThread *writer, Batch *batch) {
    RedoStore *redo = __atomic_load_n(&writer->store->redo, __ATOMIC_ACQUIRE);
    int status;
    if (writer->fatal)
        return writer->fatal;
    if (batch->status)
        return batch->status;
    if (batch->after && batch->after <= writer->failed_number)
        return writer->failed_status; /* a batch that it depends on has failed */
    if (!batch->op_count && !batch->packs[0].count && !batch->packs[1].count)
        return 0; /* it has only notifications, and everything before it is durable */
    batch_cancel(batch);
    status = redo ? commit_to_log(writer, redo, batch) : commit_to_lmdb(writer, batch, 0);
    if (!status) {
        for (int i = 0; i < PACKS; i++)
            writer->next_number[i] += batch->packs[i].count;
        return 0;
    }
    if (status == EIO)
        status = explain_eio(writer->store, batch->bytes);
    if (!status_is_space(status))
        writer->fatal = status;
    return status;
}

/* Called by the thread, or by the loop while the thread is idle. */
static void commit_and_note(WriterThread *writer, Batch *batch) {
    batch->taken_ns = monotonic_ns();
    batch->status = commit_batch(writer, batch);
    if (batch->status) {
        writer->failed_number = batch->number;
        writer->failed_status = batch->status;
    }
    batch->done_ns = monotonic_ns();
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Call with the lock held. Waking a thread takes as long as a short sync. If the last batch arrived immediately, the thread therefore
 * polls for the next one before it sleeps. */
static void writer_wait(WriterThread *writer, int look) {
    if (look && !writer->waiting.head && !writer->stop) {
        uint64_t until = monotonic_ns() + LOOK_NS;
        writer->looking = 1;
        pthread_mutex_unlock(&writer->lock);
        while (!__atomic_load_n(&writer->waiting.head, __ATOMIC_ACQUIRE) && monotonic_ns() < until)
            for (int i = 0; i < 16; i++)
                relax();
        pthread_mutex_lock(&writer->lock);
        writer->looking = 0;
    }
    while (!writer->waiting.head && !writer->stop)
        pthread_cond_wait(&writer->wake, &writer->lock);
}

static void *writer_main(void *argument) {
    WriterThread *writer = argument;
    uint64_t idle_since = 0;
    int look = 0;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        writer_wait(writer, look);
        look = monotonic_ns() - idle_since < SOON_NS;
        Batch *batch = list_pop(&writer->waiting);
        if (!batch)
            break;
        pthread_mutex_unlock(&writer->lock);
        commit_and_note(writer, batch);
        pthread_mutex_lock(&writer->lock);
        list_push(&writer->done, batch);
        writer->busy--;
        /* Unlock first: the thread that is woken needs the lock. */
        pthread_mutex_unlock(&writer->lock);
        signal_event(writer->event_fd);
        idle_since = monotonic_ns();
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

static WriterThread *writer_start(LmdbStore *store, const uint64_t next_number[PACKS]) {
    WriterThread *writer = calloc(1, sizeof *writer);
    if (!writer)
        return NULL;
    writer->store = store;
    memcpy(writer->next_number, next_number, sizeof writer->next_number);
    writer->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->wake, NULL);
    if (writer->event_fd < 0 || start_thread(&writer->thread, writer_main, writer)) {
        if (writer->event_fd >= 0)
            close(writer->event_fd);
        free(writer);
        return NULL;
    }
    return writer;
}

static void writer_give(WriterThread *writer, Batch *batch) {
    pthread_mutex_lock(&writer->lock);
    list_push(&writer->waiting, batch);
    writer->busy++;
    int looking = writer->looking;
    pthread_mutex_unlock(&writer->lock);
    if (!looking)
        pthread_cond_signal(&writer->wake);
}

static inline int batch_is_lone(const Batch *batch) { return batch->units <= LONE_UNITS && batch->bytes <= LONE_BYTES; }

static Batch *writer_take(WriterThread *writer) {
    pthread_mutex_lock(&writer->lock);
    Batch *batch = list_pop(&writer->done);
    pthread_mutex_unlock(&writer->lock);
    if (!batch)
        return NULL;
    if (!batch_is_lone(batch)) {
        writer->lone = 0;
    } else {
        writer->lone += writer->lone < LONE_BATCHES;
        if (batch->done_ns - batch->taken_ns > writer->inline_ns)
            writer->not_before_ns = batch->done_ns + SLOW_NS;
    }
    return batch;
}

/* Commits a lone batch on the loop's thread, since waking a thread and the loop takes as long as a quick sync. Returns 0 if the batch
 * must be passed to the writer's thread: there is other work, the disk is slow, or the log must wait for its applier. */
static int writer_commit_here(WriterThread *writer, Batch *batch) {
    RedoStore *redo = writer->store->redo;
    if (!redo || writer->lone < LONE_BATCHES || !batch_is_lone(batch) || batch->first_ns < writer->not_before_ns ||
        !redo_has_room(redo, 4 * LONE_BYTES))
        return 0;
    commit_and_note(writer, batch);
    writer->inline_commits++;
    pthread_mutex_lock(&writer->lock);
    list_push(&writer->done, batch);
    pthread_mutex_unlock(&writer->lock);
    return 1;
}

static int writer_busy(WriterThread *writer) {
    pthread_mutex_lock(&writer->lock);
    int busy = writer->busy;
    pthread_mutex_unlock(&writer->lock);
    return busy;
}

/* Commits the submitted batches, then ends the thread. Ended batches can still be taken. */
static void writer_stop(WriterThread *writer) {
    pthread_mutex_lock(&writer->lock);
    writer->stop = 1;
    pthread_cond_signal(&writer->wake);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
}

static void writer_free(WriterThread *writer) {
    close(writer->event_fd);
    pthread_mutex_destroy(&writer->lock);
    pthread_cond_destroy(&writer->wake);
    free(writer);
}

/* Reads one chunk: from the log if it has it, otherwise from the transaction. */
static int read_chunk(LmdbStore *store, MDB_txn *txn, MDB_val *key, uint32_t want, char *target) {
    RedoStore *redo = __atomic_load_n(&store->redo, __ATOMIC_ACQUIRE);
    Generation *gen = NULL;
    MemItem item;
    MDB_val value;
    int status = 0;
    if (redo && redo_find(redo, STORE_CONTENT, key->mv_data, key->mv_size, &item, &gen)) {
        value = (MDB_val){item.value_len, (void *)item_value(&item)};
        status = item_is_value(&item) ? 0 : MDB_NOTFOUND;
    } else {
        status = lmdb.get(txn, store->dbi[STORE_CONTENT], key, &value);
    }
    if (!status && (value.mv_size != (size_t)want + 1 || *(uint8_t *)value.mv_data != CONTENT_VERSION))
        status = MDB_CORRUPTED;
    if (!status)
        memcpy(target, (char *)value.mv_data + 1, want);
    if (gen)
        redo_unpin(redo, gen);
    return status;
}

/* Copies a packet of `size` bytes out of its chunks. MDB_NOTFOUND, or MDB_CORRUPTED when the stored sizes do not fit. */
static int read_content(LmdbStore *store, MDB_txn *txn, uint64_t content_id, uint32_t size, char *target) {
    uint8_t name[CONTENT_KEY_SIZE];
    uint32_t step = size <= WHOLE_BYTES ? WHOLE_BYTES : CHUNK_BYTES, at = 0;
    uint16_t chunk = 0;
    do {
        uint32_t want = size - at < step ? size - at : step;
        MDB_val key = {CONTENT_KEY_SIZE, name};
        content_key(name, content_id, chunk++);
        int status = read_chunk(store, txn, &key, want, target + at);
        if (status)
            return status;
        at += want;
    } while (at < size);
    return 0;
}

/* Like read_content, in a transaction that may be older than what the log has meanwhile moved to LMDB. In that case retries in a new
 * one. */
static int read_content_anew(LmdbStore *store, MDB_txn *txn, uint64_t content_id, uint32_t size, char *target) {
    int status = read_content(store, txn, content_id, size, target);
    if (status != MDB_NOTFOUND || !__atomic_load_n(&store->redo, __ATOMIC_ACQUIRE))
        return status;
    lmdb.txn_reset(txn);
    status = lmdb.txn_renew(txn);
    return status ? status : read_content(store, txn, content_id, size, target);
}

static void *reader_main(void *argument) {
    ReaderThread *reader = argument;
    MDB_txn *txn = NULL;
    pthread_mutex_lock(&reader->lock);
    for (;;) {
        while (!reader->waiting.head && !reader->stop) {
            reader->idle = 1;
            pthread_cond_wait(&reader->wake, &reader->lock);
        }
        reader->idle = 0;
        ReadList group = reader->waiting;
        reader->waiting.head = reader->waiting.tail = NULL;
        if (!group.head)
            break;
        pthread_mutex_unlock(&reader->lock);
        int status = txn ? lmdb.txn_renew(txn) : lmdb.txn_begin(reader->store->env, NULL, MDB_RDONLY, &txn);
        for (ReadRequest *request = group.head; request; request = request->next)
            request->status =
                status ? status : read_content_anew(reader->store, txn, request->content_id, request->size, request->target);
        if (txn && !status)
            lmdb.txn_reset(txn);
        reader->transactions++;
        pthread_mutex_lock(&reader->lock);
        if (reader->done.tail)
            reader->done.tail->next = group.head;
        else
            reader->done.head = group.head;
        reader->done.tail = group.tail;
        signal_event(reader->event_fd);
    }
    pthread_mutex_unlock(&reader->lock);
    if (txn)
        lmdb.txn_abort(txn);
    return NULL;
}

static ReaderThread *reader_start(LmdbStore *store) {
    ReaderThread *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->store = store;
    reader->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->wake, NULL);
    if (reader->event_fd < 0 || start_thread(&reader->thread, reader_main, reader)) {
        if (reader->event_fd >= 0)
            close(reader->event_fd);
        free(reader);
        return NULL;
    }
    return reader;
}

static void reader_give(ReaderThread *reader, ReadRequest *request) {
    request->next = NULL;
    pthread_mutex_lock(&reader->lock);
    if (reader->waiting.tail)
        reader->waiting.tail->next = request;
    else
        reader->waiting.head = request;
    reader->waiting.tail = request;
    if (reader->idle)
        pthread_cond_signal(&reader->wake);
    pthread_mutex_unlock(&reader->lock);
}

/* Returns everything that has been read so far, as a linked list. */
static ReadRequest *reader_take(ReaderThread *reader) {
    pthread_mutex_lock(&reader->lock);
    ReadRequest *chain = reader->done.head;
    reader->done.head = reader->done.tail = NULL;
    pthread_mutex_unlock(&reader->lock);
    return chain;
}

static void reader_stop(ReaderThread *reader) {
    pthread_mutex_lock(&reader->lock);
    reader->stop = 1;
    pthread_cond_signal(&reader->wake);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
}

static void reader_free(ReaderThread *reader) {
    close(reader->event_fd);
    pthread_mutex_destroy(&reader->lock);
    pthread_cond_destroy(&reader->wake);
    free(reader);
}

#endif
