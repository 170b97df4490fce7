# Reads packets and position records from the store on a thread without the GIL, in short read transactions.

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.columncells cimport Growing
from msmq_fast._native.columnrows cimport Row, Rows
from msmq_fast._native.gather cimport monotonic_ns
from msmq_fast._native.lmdbapi cimport Generation, LmdbStore, MDB_cursor, MDB_txn
from msmq_fast._native.tables cimport Tables

cdef extern from "columns_priority.h" nogil:
    int enter_background(int background, int* thread)
    void leave_background(int away, int* thread)

cdef enum:
    READ_BYTES = 16 << 20       # bytes that one read transaction may read
    READ_NS = 250000000


cdef struct Lookup:
    # A read transaction that is renewed before it pins pages for long.
    LmdbStore* store
    MDB_txn* txn
    MDB_cursor* cursor
    uint64_t begun_ns
    size_t bytes                # read in this transaction
    unsigned int calls
    Growing scratch
    Generation* pinned          # the generation of the redo log that has the last packet


@cython.final
cdef class Contents:
    """``Contents(tables, background=False)``: reads packets and position records of a store, for one thread. The store stays open until
    `close`.

    With `background`, the thread yields to all others while it reads and encodes, which it does without the GIL.
    """
    cdef int _away              # id of the thread in the background, 0: none
    cdef readonly Tables tables
    cdef readonly bint background
    cdef LmdbStore* _store      # NULL for a store in memory
    cdef bint _closed
    # Raises StoreError after `close`.
    cdef int check(self) except -1
    # For a store in memory: copies the packets now.
    cdef int fill(self, Rows rows) except -1


# Releases the generation of the redo log that the last packet pinned.
cdef void lookup_unpin(Lookup* lookup) noexcept nogil
# Ends the read transaction, if there is one.
cdef void lookup_end(Lookup* lookup) noexcept nogil
# Sets the address of a message's packet, valid until the next call. Returns 0, MDB_NOTFOUND, MDB_CORRUPTED or another status.
cdef int find_packet(Lookup* lookup, const Row* row, const uint8_t** packet) noexcept nogil
# Sets the time at which a stored message was last moved, 0 if its record does not have it. Returns a status.
cdef int find_move(Lookup* lookup, uint32_t queue, const Row* row, uint32_t* seconds) noexcept nogil


cdef inline void lookup_breathe(Lookup* lookup) noexcept nogil:
    """Call between two messages, when no pointer into the map is in use. Ends a long transaction, so that its pages can be reused."""
    lookup.calls += 1
    lookup_unpin(lookup)
    if lookup.txn != NULL and (
        lookup.bytes > READ_BYTES or (lookup.calls & 15 == 0 and monotonic_ns() - lookup.begun_ns > READ_NS)
    ):
        lookup_end(lookup)
