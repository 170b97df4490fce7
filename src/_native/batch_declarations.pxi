# What the C headers of this module offer.

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
    enum:
        MDB_RDONLY
        MDB_NORDAHEAD
        MDB_CP_COMPACT
        MDB_NEXT
        MDB_LAST
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

cdef extern from "batch_gather.h" nogil:
    enum:
        OP_PUT
        OP_DELETE
        PUT_IS_LAST
        PUT_IS_NEW
        CHUNK_BYTES
        WHOLE_BYTES
    ctypedef struct Op:
        uint8_t kind
        uint8_t table
        uint16_t key_len
        uint32_t head_len
        uint64_t at
        const char* body
        uint64_t body_len
    ctypedef struct Notice:
        PyObject* listener
        uint64_t token
    ctypedef struct Pack:
        uint8_t* data
        size_t used
        uint32_t count
        uint16_t entry_size
    # A second view of the struct that batch.pxd leaves opaque.
    ctypedef struct BatchFields "Batch":
        uint8_t* arena
        size_t used
        Op* ops
        size_t op_count
        Notice* notices
        size_t notice_count
        Pack packs[2]
        size_t bytes
        uint32_t units
        bint pressing
        uint64_t number
        uint64_t behind
        uint32_t held
        uint64_t first_ns
        uint64_t taken_ns
        uint64_t done_ns
        int status
    ctypedef struct StatsFields "GatherStats":
        uint64_t batches
        uint64_t failed_batches
        uint64_t units
        uint64_t operations
        uint64_t bytes
        uint64_t missing
        uint64_t commit_ns_total
        uint64_t commit_ns_max
        uint64_t wait_ns_total
        uint64_t commit_histogram[32]
        uint64_t unit_histogram[16]
    uint64_t monotonic_ns()
    void list_push(BatchList* list, Batch* batch)
    Batch* list_pop(BatchList* list)
    int batch_op(Batch* batch, int kind, int table, int flags, const uint8_t* key, size_t key_len, const uint8_t* head,
                 size_t head_len, const char* body, size_t body_len)
    int batch_entry(Batch* batch, int which, const uint8_t* entry, size_t length, int ride)
    int batch_empty(const Batch* batch)
    void pack_close(Pack* pack)
    void batch_mark(const Batch* batch, Mark* mark)
    void stats_add(GatherStats* stats, const Batch* batch)

cdef extern from "batch_gather.h":
    int batch_hold(Batch* batch, object body)
    int batch_notice(Batch* batch, object listener, uint64_t token)
    void batch_rewind(Batch* batch, const Mark* mark)
    void batch_clear(Batch* batch)
    void batch_free(Batch* batch)

cdef extern from "batch_thread.h" nogil:
    ctypedef struct StoreFields "LmdbStore":
        MDB_env* env
        MDB_dbi dbi[9]
    ctypedef struct WriterFields "WriterThread":
        int event_fd
    ctypedef struct ReadRequest:
        ReadRequest* next
        uint64_t content_id
        uint64_t token
        uint32_t size
        int status
        char* target
        PyObject* body
        PyObject* listener
    ctypedef struct ReaderFields "ReaderThread":
        int event_fd
        uint64_t transactions
    int status_is_space(int status)
    void drain_event(int fd)
    int store_open(LmdbStore* store, const char* path, size_t map_size, unsigned int flags, const char** names)
    int free_pages(LmdbStore* store, size_t* pages)
    int read_content(LmdbStore* store, MDB_txn* txn, uint64_t content_id, uint32_t size, char* target)
    WriterThread* writer_start(LmdbStore* store, const uint64_t* next_number)
    void writer_give(WriterThread* writer, Batch* batch)
    Batch* writer_take(WriterThread* writer)
    int writer_busy(WriterThread* writer)
    void writer_stop(WriterThread* writer)
    void writer_free(WriterThread* writer)
    ReaderThread* reader_start(LmdbStore* store)
    void reader_give(ReaderThread* reader, ReadRequest* request)
    ReadRequest* reader_take(ReaderThread* reader)
    void reader_stop(ReaderThread* reader)
    void reader_free(ReaderThread* reader)
