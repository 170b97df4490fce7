/* liblmdb's functions, taken from the shared object of the PyPI wheel `lmdb`, which exports them (on-disk format 1, 0.9.x). */
#ifndef MSMQ_FAST_BATCH_LMDB_H
#define MSMQ_FAST_BATCH_LMDB_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct MDB_env MDB_env;
typedef struct MDB_txn MDB_txn;
typedef struct MDB_cursor MDB_cursor;
typedef unsigned int MDB_dbi;

typedef struct {
    size_t mv_size;
    void *mv_data;
} MDB_val;

typedef struct {
    unsigned int ms_psize, ms_depth;
    size_t ms_branch_pages, ms_leaf_pages, ms_overflow_pages, ms_entries;
} MDB_stat;

typedef struct {
    void *me_mapaddr;
    size_t me_mapsize, me_last_pgno, me_last_txnid;
    unsigned int me_maxreaders, me_numreaders;
} MDB_envinfo;

#define MDB_RDONLY 0x20000
#define MDB_NOTLS 0x200000
#define MDB_NORDAHEAD 0x800000
#define MDB_CREATE 0x40000
#define MDB_RESERVE 0x10000
#define MDB_APPEND 0x20000
#define MDB_CP_COMPACT 0x01

#define MDB_FIRST 0
#define MDB_NEXT 8
#define MDB_PREV 12
#define MDB_SET 15
#define MDB_LAST 6
#define MDB_SET_RANGE 17

#define MDB_KEYEXIST (-30799)
#define MDB_NOTFOUND (-30798)
#define MDB_CORRUPTED (-30796)
#define MDB_PANIC (-30795)
#define MDB_MAP_FULL (-30792)
#define MDB_TXN_FULL (-30788)

/* name, return type, arguments */
#define LMDB_FUNCTIONS(F)                                                                                   \
    F(version, char *, (int *, int *, int *))                                                               \
    F(strerror, char *, (int))                                                                              \
    F(env_create, int, (MDB_env **))                                                                        \
    F(env_open, int, (MDB_env *, const char *, unsigned int, unsigned int))                                 \
    F(env_close, void, (MDB_env *))                                                                         \
    F(env_set_mapsize, int, (MDB_env *, size_t))                                                            \
    F(env_set_maxdbs, int, (MDB_env *, MDB_dbi))                                                            \
    F(env_set_maxreaders, int, (MDB_env *, unsigned int))                                                   \
    F(env_stat, int, (MDB_env *, MDB_stat *))                                                               \
    F(env_info, int, (MDB_env *, MDB_envinfo *))                                                            \
    F(env_get_fd, int, (MDB_env *, int *))                                                                  \
    F(env_copyfd2, int, (MDB_env *, int, unsigned int))                                                     \
    F(reader_check, int, (MDB_env *, int *))                                                                \
    F(txn_begin, int, (MDB_env *, MDB_txn *, unsigned int, MDB_txn **))                                     \
    F(txn_commit, int, (MDB_txn *))                                                                         \
    F(txn_abort, void, (MDB_txn *))                                                                         \
    F(txn_reset, void, (MDB_txn *))                                                                         \
    F(txn_renew, int, (MDB_txn *))                                                                          \
    F(dbi_open, int, (MDB_txn *, const char *, unsigned int, MDB_dbi *))                                    \
    F(stat, int, (MDB_txn *, MDB_dbi, MDB_stat *))                                                          \
    F(get, int, (MDB_txn *, MDB_dbi, MDB_val *, MDB_val *))                                                 \
    F(put, int, (MDB_txn *, MDB_dbi, MDB_val *, MDB_val *, unsigned int))                                   \
    F(del, int, (MDB_txn *, MDB_dbi, MDB_val *, MDB_val *))                                                 \
    F(cursor_open, int, (MDB_txn *, MDB_dbi, MDB_cursor **))                                                \
    F(cursor_close, void, (MDB_cursor *))                                                                   \
    F(cursor_get, int, (MDB_cursor *, MDB_val *, MDB_val *, int))                                           \
    F(cursor_put, int, (MDB_cursor *, MDB_val *, MDB_val *, unsigned int))                                  \
    F(cursor_del, int, (MDB_cursor *, unsigned int))

#define LMDB_MEMBER(name, type, arguments) type(*name) arguments;
typedef struct {
    LMDB_FUNCTIONS(LMDB_MEMBER)
} LmdbApi;

static LmdbApi lmdb;

/* Fills `lmdb` from the shared object at `path`. Returns NULL, or an error text, written to `problem`. */
static const char *lmdb_load(const char *path, char *problem, size_t room) {
    const char *const prefixes[] = {"mdb09_", "mdb_"};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    char name[64];
    if (!library) {
        snprintf(problem, room, "%s", dlerror());
        return problem;
    }
#define LMDB_RESOLVE(function, type, arguments)                                                             \
    lmdb.function = NULL;                                                                                   \
    for (size_t i = 0; i < 2 && !lmdb.function; i++) {                                                      \
        snprintf(name, sizeof name, "%s" #function, prefixes[i]);                                           \
        lmdb.function = (type(*) arguments)dlsym(library, name);                                            \
    }                                                                                                       \
    if (!lmdb.function) {                                                                                   \
        snprintf(problem, room, "%s does not export mdb09_%s or mdb_%s", path, #function, #function);       \
        return problem;                                                                                     \
    }
    LMDB_FUNCTIONS(LMDB_RESOLVE)
    int major = 0, minor = 0, patch = 0;
    lmdb.version(&major, &minor, &patch);
    if (major != 0 || minor != 9) {
        snprintf(problem, room, "%s holds liblmdb %d.%d, not 0.9", path, major, minor);
        return problem;
    }
    return NULL;
}

#endif
