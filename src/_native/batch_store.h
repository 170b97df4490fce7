/* The LMDB environment of a store, and the state that its native threads share. */
#ifndef MSMQ_FAST_BATCH_STORE_H
#define MSMQ_FAST_BATCH_STORE_H

#include "batch_lmdb.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define STORE_TABLES 16 /* at most; store/decode.py numbers them */
#define NO_TABLE ((MDB_dbi)-1)
#define STORE_META 0
#define STORE_CONTENT 2
#define STORE_FEED 3

typedef struct {
    MDB_env *env;
    MDB_dbi dbi[STORE_TABLES];
    int fd;
    struct RedoStore *redo; /* the log in front of it (redostore.h), or NULL */
} LmdbStore;

/* The disk or the map is full: nothing of the batch was stored, and the next one may succeed. */
static int status_is_space(int status) {
    return status == MDB_MAP_FULL || status == MDB_TXN_FULL || status == ENOSPC || status == EDQUOT || status == EFBIG ||
           status == ENOMEM;
}

/* liblmdb reports a short write as EIO. A disk that has just become full causes a short write, too. */
static int explain_eio(LmdbStore *store, size_t bytes) {
    struct statvfs disk;
    struct stat file;
    struct rlimit limit;
    if (fstatvfs(store->fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < bytes + ((uint64_t)1 << 20))
        return ENOSPC;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && fstat(store->fd, &file) == 0 &&
        (uint64_t)file.st_size + bytes + ((uint64_t)1 << 20) > limit.rlim_cur)
        return EFBIG;
    return EIO;
}

/* Starts a thread with all signals blocked: the loop's thread handles signals. */
static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* Opens the environment in the directory `path` and its named databases, a list that ends with NULL. Opened for reading, a store of an
 * earlier version may lack those behind the first `required`: their handle is NO_TABLE. Returns 0, an errno or an MDB_* code: MDB_DBS_FULL if there are more
 * than STORE_TABLES. */
static int store_open(LmdbStore *store, const char *path, size_t map_size, unsigned int flags, const char *const *names, int required) {
    MDB_txn *txn;
    int status = lmdb.env_create(&store->env);
    if (status)
        return status;
    if ((status = lmdb.env_set_mapsize(store->env, map_size)) || (status = lmdb.env_set_maxdbs(store->env, STORE_TABLES)) ||
        (status = lmdb.env_set_maxreaders(store->env, 32)) ||
        (status = lmdb.env_open(store->env, path, flags | MDB_NOTLS, 0600)) ||
        (status = lmdb.env_get_fd(store->env, &store->fd)) ||
        (status = lmdb.txn_begin(store->env, NULL, flags & MDB_RDONLY, &txn)))
        goto fail;
    for (int i = 0; !status && names[i]; i++) {
        status = lmdb.dbi_open(txn, names[i], flags & MDB_RDONLY ? 0 : MDB_CREATE, &store->dbi[i]);
        if (status == MDB_NOTFOUND && i >= required) {
            store->dbi[i] = NO_TABLE;
            status = 0;
        }
    }
    if (status)
        lmdb.txn_abort(txn);
    else
        status = lmdb.txn_commit(txn);
    if (!status)
        return 0;
fail:
    lmdb.env_close(store->env);
    store->env = NULL;
    return status;
}

/* Returns the number of pages that wait for reuse (the record of each transaction begins with its number of pages). */
static int free_pages(LmdbStore *store, size_t *pages) {
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    *pages = 0;
    int status = lmdb.txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    if (status)
        return status;
    status = lmdb.cursor_open(txn, 0, &cursor);
    if (!status) {
        while (!(status = lmdb.cursor_get(cursor, &key, &value, MDB_NEXT))) {
            size_t count;
            memcpy(&count, value.mv_data, sizeof count);
            *pages += count;
        }
        lmdb.cursor_close(cursor);
    }
    lmdb.txn_abort(txn);
    return status == MDB_NOTFOUND ? 0 : status;
}

#endif
