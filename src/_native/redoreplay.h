/* Opens and closes a store with a redo log: the steps before and after the threads of redostore.h run.
 *
 * redo_replay: applies the log's records beyond log_applied to LMDB, one segment after the other. A crash meanwhile is followed by
 * another replay with the same result. Only then META gets SCHEMA_PLAIN. Nothing in a log is skipped silently: a gap, damage, another
 * log, or a log that continues from a later state of the data file is an error.
 *
 * redo_start: creates the slots, and only then META gets SCHEMA_LOGGED and a new epoch.
 *
 * redo_finish: applies everything, and META gets SCHEMA_PLAIN again. */
#ifndef MSMQ_FAST_REDOREPLAY_H
#define MSMQ_FAST_REDOREPLAY_H

#include "redostore.h"
#include <limits.h>
#include <sys/random.h>

#define MOST_SLOTS 8u /* of a log that another version wrote */

/* A status whose text is in `problem`. */
#define REDO_REFUSED INT_MIN

typedef struct {
    Segment segments[MOST_SLOTS];
    unsigned count;
} LoadedLog;

static void loaded_close(LoadedLog *log) {
    while (log->count)
        segment_close(&log->segments[--log->count]);
}

static int log_path(char out[PATH_MAX], const char *path, const char *more) {
    return snprintf(out, PATH_MAX, "%s/" LOG_DIRECTORY "%s", path, more) < PATH_MAX ? 0 : ENAMETOOLONG;
}

static int explain(char *problem, size_t room, const char *path, const char *what) {
    snprintf(problem, room, "the redo log in %s/" LOG_DIRECTORY " %s", path, what);
    return REDO_REFUSED;
}

/* Reads every slot, and sorts those with records above `applied`. */
static int loaded_open(LoadedLog *log, const char *path, const RedoMeta *meta, char *problem, size_t room) {
    char name[PATH_MAX];
    int status = log_path(name, path, ""), directory;
    memset(log, 0, sizeof *log);
    if (status)
        return status;
    directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return errno == ENOENT ? explain(problem, room, path,
                                         "is missing: the store was not closed, and the log holds what was acknowledged last; put it "
                                         "back, restore a backup, or create an empty directory there to go on without it")
                               : errno;
    for (unsigned i = 0; !status && i < MOST_SLOTS; i++) {
        Segment *seg = &log->segments[log->count];
        status = segment_load(seg, directory, i);
        if (status == ENOENT) {
            status = 0;
            continue;
        }
        if (status)
            break;
        log->count++;
        switch (segment_check(seg, meta->id, meta->applied)) {
        case REDO_FOREIGN:
            status = explain(problem, room, path, "belongs to another store; move it away, and put back the one of this store");
            break;
        case REDO_DAMAGED:
            status = explain(problem, room, path, "is damaged; restore a backup");
            break;
        case REDO_CUT:
            status = explain(problem, room, path, "was truncated; restore a backup");
        }
        if (!status && seg->last >= seg->first && seg->epoch > meta->epoch)
            status = explain(problem, room, path, "continues from a later state of the data file; put that back, or move the log away");
        if (seg->last <= meta->applied || seg->last < seg->first) {
            segment_close(seg);
            log->count--;
        }
    }
    close(directory);
    for (unsigned i = 1; i < log->count; i++)
        for (unsigned j = i; j && log->segments[j - 1].sequence > log->segments[j].sequence; j--) {
            Segment later = log->segments[j - 1];
            log->segments[j - 1] = log->segments[j];
            log->segments[j] = later;
        }
    if (status)
        loaded_close(log);
    return status;
}

/* Applies the records of a segment above meta->applied. */
static int replay_segment(LmdbStore *store, const Segment *seg, const RedoMeta *meta, const char *path, char *problem, size_t room) {
    Generation gen = {.data = seg->data};
    MemView view = {0};
    uint64_t missing = 0;
    size_t at = REDO_PAGE;
    int status = 0;
    for (uint64_t number = seg->first; !status && number <= seg->last; number++) {
        RecordHead head;
        memcpy(&head, seg->data + at, sizeof head);
        if (number > meta->applied && !(status = gen_reserve(&gen, head.op_count)))
            gen_add_record(&gen, at);
        at += head.length;
    }
    if (gen.unknown)
        status = explain(problem, room, path, "has records of a table that this version does not know; start the version that wrote it");
    if (!status)
        status = view_all(&view, &gen);
    if (!status)
        status = apply_view(store, &view, seg->last, NULL, &missing);
    if (status_is_space(status)) {
        make_space(store, &gen, meta->epoch);
        status = apply_view(store, &view, seg->last, NULL, &missing);
    }
    view_free(&view);
    gen_free(&gen);
    return status;
}

static int meta_write(LmdbStore *store, int schema, const RedoMeta *meta) {
    MDB_txn *txn;
    uint8_t id[3 + REDO_ID] = {1, 0xC4, REDO_ID};
    int status = lmdb.txn_begin(store->env, NULL, 0, &txn);
    if (status)
        return status;
    status = meta_put_schema(store, txn, (uint8_t)schema);
    if (meta) {
        memcpy(id + 3, meta->id, REDO_ID);
        if (!status)
            status = meta_put(store, txn, "log_id", id, sizeof id);
        if (!status)
            status = meta_put_number(store, txn, "log_epoch", meta->epoch);
        if (!status)
            status = meta_put_number(store, txn, "log_applied", meta->applied);
    }
    if (!status)
        return lmdb.txn_commit(txn);
    lmdb.txn_abort(txn);
    return status;
}

/* Applies the log of a store that is opened for writing. `settled`: it is a copy that was made when LMDB had everything, and has no log.
 * Returns 0, a status, or REDO_REFUSED with the reason in `problem`. */
static int redo_replay(LmdbStore *store, const char *path, int settled, char *problem, size_t room) {
    RedoMeta meta;
    LoadedLog log;
    int status = meta_load(store, &meta);
    if (status || meta.schema != SCHEMA_LOGGED)
        return status;
    if (settled) {
        if (getrandom(meta.id, sizeof meta.id, 0) != sizeof meta.id)
            return EIO;
        return meta_write(store, SCHEMA_PLAIN, &meta);
    }
    status = loaded_open(&log, path, &meta, problem, room);
    for (unsigned i = 0; !status && i < log.count; i++) {
        if (log.segments[i].first > meta.applied + 1)
            status = explain(problem, room, path, "lacks a segment that the data file does not hold; restore a backup");
        else if (!(status = replay_segment(store, &log.segments[i], &meta, path, problem, room)))
            meta.applied = log.segments[i].last;
    }
    if (!status)
        status = meta_load(store, &meta);
    if (!status && meta.schema == SCHEMA_LOGGED) /* a record may have changed it */
        status = meta_write(store, SCHEMA_PLAIN, NULL);
    loaded_close(&log);
    return status;
}

/* Moves away a log that does not belong to this state of the store. Returns 0 or an errno; *moved is the number in its new name. */
static int set_aside(const char *path, const RedoMeta *meta, int *moved) {
    char name[PATH_MAX], target[PATH_MAX];
    int status = log_path(name, path, ""), foreign = 0;
    int directory = status ? -1 : open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return status ? status : errno == ENOENT ? 0 : errno;
    for (unsigned i = 0; !status && i < MOST_SLOTS; i++) {
        Segment seg;
        if ((status = segment_load(&seg, directory, i)) == ENOENT) {
            status = 0;
            continue;
        }
        if (status)
            break;
        int found = segment_check(&seg, meta->has_id ? meta->id : NULL, UINT64_MAX);
        foreign |= found == REDO_FOREIGN || found == REDO_DAMAGED || (!found && (!meta->has_id || seg.epoch > meta->epoch));
        segment_close(&seg);
    }
    close(directory);
    for (int i = 1; foreign && !status && i < 1000; i++) {
        char more[32];
        struct stat there;
        snprintf(more, sizeof more, ".aside-%d", i);
        if ((status = log_path(target, path, more)) || !lstat(target, &there))
            continue;
        *moved = i;
        return rename(name, target) ? errno : 0;
    }
    return status;
}

static int sync_path(const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = directory < 0 || fsync(directory) ? errno : 0;
    if (directory >= 0)
        close(directory);
    return status;
}

static void redo_free(RedoStore *redo) {
    for (unsigned i = 0; i < REDO_SLOTS; i++) {
        segment_close(&redo->segments[i]);
        gen_free(&redo->generations[i]);
    }
    if (redo->directory >= 0)
        close(redo->directory);
    pthread_mutex_destroy(&redo->lock);
    pthread_cond_destroy(&redo->changed);
    free(redo);
}

static int make_slots(RedoStore *redo, const char *path, size_t log_size) {
    char name[PATH_MAX];
    size_t size = log_size / REDO_SLOTS & ~(size_t)(REDO_PAGE - 1);
    int status = log_path(name, path, "");
    size = size < REDO_LEAST ? REDO_LEAST : size > REDO_MOST ? REDO_MOST : size;
    if (status)
        return status;
    if (mkdir(name, 0700) && errno != EEXIST)
        return errno;
    redo->directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (redo->directory < 0)
        return errno;
    for (unsigned i = 0; !status && i < REDO_SLOTS; i++) {
        status = segment_create(&redo->segments[i], redo->directory, i, size);
        redo->generations[i].data = redo->segments[i].data;
    }
    for (unsigned i = REDO_SLOTS; !status && i < MOST_SLOTS; i++) {
        slot_name(name, i);
        if (unlinkat(redo->directory, name, 0) && errno != ENOENT)
            status = errno;
    }
    if (!status && fsync(redo->directory))
        status = errno;
    return status ? status : sync_path(path);
}

/* Puts a log of `log_size` bytes in front of an open store that has none. Returns 0, a status, or REDO_REFUSED. */
static int redo_start(LmdbStore *store, const char *path, size_t log_size, int *moved) {
    RedoMeta meta;
    pthread_condattr_t clock;
    int status = meta_load(store, &meta);
    *moved = 0;
    if (!status && meta.schema != SCHEMA_PLAIN)
        status = REDO_REFUSED;
    if (!status)
        status = set_aside(path, &meta, moved);
    if (!status && !meta.has_id && getrandom(meta.id, sizeof meta.id, 0) != sizeof meta.id)
        status = EIO;
    RedoStore *redo = status ? NULL : calloc(1, sizeof *redo);
    if (!redo)
        return status ? status : ENOMEM;
    redo->store = store;
    redo->directory = -1;
    redo->frozen = -1;
    for (unsigned i = 0; i < REDO_SLOTS; i++)
        redo->segments[i].fd = -1;
    pthread_mutex_init(&redo->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&redo->changed, &clock);
    pthread_condattr_destroy(&clock);
    memcpy(redo->id, meta.id, REDO_ID);
    redo->last = redo->applied = meta.applied;
    redo->epoch = ++meta.epoch;
    redo->sequence = meta.epoch << 24; /* sequences of an epoch are above those of the previous one */
    status = make_slots(redo, path, log_size);
    if (!status)
        status = meta_write(store, SCHEMA_LOGGED, &meta);
    if (!status)
        status = start_thread(&redo->applier, applier_main, redo);
    if (status)
        redo_free(redo);
    else
        __atomic_store_n(&store->redo, redo, __ATOMIC_RELEASE);
    return status;
}

/* Ends the applier. `keep`: as a crash would, with the records left in the log. Otherwise everything is applied first, if possible, and
 * META gets the schema back. The memory stays for readers until redo_free. */
static void redo_finish(RedoStore *redo, int keep) {
    RedoMeta meta;
    pthread_mutex_lock(&redo->lock);
    if (redo->finished) {
        pthread_mutex_unlock(&redo->lock);
        return;
    }
    redo->finished = 1;
    redo->stop = 1;
    redo->keep = keep;
    pthread_cond_broadcast(&redo->changed);
    pthread_mutex_unlock(&redo->lock);
    pthread_join(redo->applier, NULL);
    if (!keep && !redo->fatal && redo->applied == redo->last && !meta_load(redo->store, &meta) && meta.schema == SCHEMA_LOGGED)
        meta_write(redo->store, SCHEMA_PLAIN, NULL);
}

#endif
