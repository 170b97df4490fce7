# A batch: the operations of one LMDB transaction. The event loop fills it (batch.pxd), the writer thread commits it (batch_thread.h).

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

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
    ctypedef struct Batch:
        uint8_t* arena
        size_t used
        Op* ops
        size_t op_count
        Notice* notices
        size_t notice_count
        Pack packs[2]
        size_t bytes
        uint32_t units
        bint needs_commit
        uint64_t number
        uint64_t after
        uint32_t held
        uint64_t first_ns
        uint64_t taken_ns
        uint64_t done_ns
        int status
    ctypedef struct GatherStats:
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
    ctypedef struct BatchList:
        Batch* head
        Batch* tail
    ctypedef struct Mark:
        pass
    uint64_t monotonic_ns()
    void list_push(BatchList* list, Batch* batch)
    Batch* list_pop(BatchList* list)
    int batch_op(Batch* batch, int kind, int table, int flags, const uint8_t* key, size_t key_len, const uint8_t* head,
                 size_t head_len, const char* body, size_t body_len)
    int batch_entry(Batch* batch, int which, const uint8_t* entry, size_t length, int lazy)
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
