# liblmdb, as it is loaded at run time, and the two native threads over it. Each module that calls it loads it: `lmdb_load`.

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.gather cimport Batch

cdef extern from "batch_lmdb.h" nogil:
    ctypedef struct MDB_env
    ctypedef unsigned int MDB_dbi
    ctypedef struct MDB_val:
        size_t mv_size
        void* mv_data
    ctypedef struct MDB_envinfo:
        size_t me_mapsize
        size_t me_last_pgno
        size_t me_last_txnid
    ctypedef struct MDB_txn:
        pass
    ctypedef struct MDB_cursor:
        pass
    ctypedef struct MDB_stat:
        unsigned int ms_psize
        size_t ms_branch_pages, ms_leaf_pages, ms_overflow_pages, ms_entries
    enum:
        MDB_RDONLY
        MDB_NORDAHEAD
        MDB_CP_COMPACT
        MDB_FIRST
        MDB_LAST
        MDB_NEXT
        MDB_PREV
        MDB_SET
        MDB_SET_RANGE
        MDB_NOTFOUND
        MDB_CORRUPTED
    ctypedef struct LmdbApi:
        char* (*strerror)(int) noexcept nogil
        int (*env_info)(MDB_env*, MDB_envinfo*) noexcept nogil
        int (*env_copyfd2)(MDB_env*, int, unsigned int) noexcept nogil
        void (*env_close)(MDB_env*) noexcept nogil
        int (*txn_begin)(MDB_env*, MDB_txn*, unsigned int, MDB_txn**) noexcept nogil
        void (*txn_abort)(MDB_txn*) noexcept nogil
        int (*stat)(MDB_txn*, MDB_dbi, MDB_stat*) noexcept nogil
        int (*get)(MDB_txn*, MDB_dbi, MDB_val*, MDB_val*) noexcept nogil
        int (*cursor_open)(MDB_txn*, MDB_dbi, MDB_cursor**) noexcept nogil
        void (*cursor_close)(MDB_cursor*) noexcept nogil
        int (*cursor_get)(MDB_cursor*, MDB_val*, MDB_val*, int) noexcept nogil
    LmdbApi lmdb_api "lmdb"
    const char* lmdb_load(const char* path, char* problem, size_t room)

cdef extern from "batch_thread.h" nogil:
    ctypedef struct MemItem:
        const uint8_t* key
        uint16_t key_len
        uint32_t value_len
    ctypedef struct MemView:
        MemItem* items
        size_t count
    ctypedef struct Generation:
        pass
    ctypedef struct RedoStats:
        uint64_t records, bytes, applied_batches, applied_operations, waits, missing
    ctypedef struct RedoStore:
        uint64_t last, applied
        int stalled
        RedoStats stats
    ctypedef struct RedoView:
        MemView view
    ctypedef struct LmdbStore:
        MDB_env* env
        MDB_dbi* dbi        # STORE_TABLES of them
        int fd
        RedoStore* redo
    enum:
        REDO_REFUSED
        NO_TABLE
    const uint8_t* item_value(const MemItem* item)
    int item_is_value(const MemItem* item)
    int compare_keys(const uint8_t* a, size_t a_len, const uint8_t* b, size_t b_len)
    int redo_find(RedoStore* redo, int table, const void* key, size_t key_len, MemItem* item, Generation** pinned)
    void redo_unpin(RedoStore* redo, Generation* gen)
    int redo_view(RedoStore* redo, int table, const void* lower, size_t lower_len, const void* upper, size_t upper_len, RedoView* out)
    void redo_view_end(RedoStore* redo, RedoView* view)
    int redo_settle(RedoStore* redo)
    uint64_t redo_unapplied(RedoStore* redo)
    int redo_replay(LmdbStore* store, const char* path, int settled, char* problem, size_t room)
    int redo_start(LmdbStore* store, const char* path, size_t log_size, int* moved)
    void redo_finish(RedoStore* redo, int keep)
    void redo_free(RedoStore* redo)
    ctypedef struct WriterThread:
        int event_fd
        uint64_t inline_ns
        uint64_t inline_commits
    ctypedef struct ReadRequest:
        ReadRequest* next
        uint64_t content_id
        uint64_t token
        uint32_t size
        int status
        char* target
        PyObject* body
        PyObject* listener
    ctypedef struct ReaderThread:
        int event_fd
        uint64_t transactions
    int status_is_space(int status)
    void drain_event(int fd)
    int store_open(LmdbStore* store, const char* path, size_t map_size, unsigned int flags, const char** names, int required)
    int free_pages(LmdbStore* store, size_t* pages)
    int read_content_anew(LmdbStore* store, MDB_txn* txn, uint64_t content_id, uint32_t size, char* target)
    int read_content(LmdbStore* store, MDB_txn* txn, uint64_t content_id, uint32_t size, char* target)
    WriterThread* writer_start(LmdbStore* store, const uint64_t* next_number)
    void writer_give(WriterThread* writer, Batch* batch)
    int writer_commit_here(WriterThread* writer, Batch* batch)
    Batch* writer_take(WriterThread* writer)
    int writer_busy(WriterThread* writer)
    void writer_stop(WriterThread* writer)
    void writer_free(WriterThread* writer)
    ReaderThread* reader_start(LmdbStore* store)
    void reader_give(ReaderThread* reader, ReadRequest* request)
    ReadRequest* reader_take(ReaderThread* reader)
    void reader_stop(ReaderThread* reader)
    void reader_free(ReaderThread* reader)


cdef inline int load_liblmdb() except -1:
    """Loads liblmdb for the module that calls this: each has pointers of its own."""
    cdef char problem[512]
    import os

    import lmdb.cpython
    cdef bytes path = os.fsencode(lmdb.cpython.__file__)
    if lmdb_load(path, problem, sizeof(problem)) != NULL:
        raise ImportError(f"liblmdb cannot be used: {problem.decode(errors='replace')}")
    return 0
