# The store on disk: an LMDB environment, its writer and its reader.

from libc.stdint cimport uint32_t, uint64_t
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.lmdbapi cimport LmdbStore, MDB_cursor, MDB_stat, MDB_txn, ReaderThread, RedoStore, RedoView, WriterThread
from msmq_fast._native.tables cimport Reader, Tables


cdef class LmdbTables(Tables):
    cdef LmdbStore _store
    cdef bytes _path
    cdef int _end(self) except -1
    cdef RedoStore* _view(self, int table, bytes lower, bytes upper, RedoView* over) except? NULL
    cdef MDB_txn* _begin(self) except NULL
    cdef MDB_cursor* _cursor(self, MDB_txn* txn, int table) except NULL
    cdef MDB_stat _stat(self, int table) except *
    cdef int _users                 # writers and readers that have not been closed, copies under way


cdef class LmdbWriter(Writer):
    """A native thread that never takes the GIL commits the batches."""
    cdef LmdbTables _tables
    cdef WriterThread* _thread
    cdef bint _may_commit           # a lone batch that is sealed may be committed on the spot
    cdef bint _committed            # one was, and is to be told
    cdef int _end_thread(self, bint keep) except -1


cdef class LmdbReader(Reader):
    cdef LmdbTables _tables
    cdef ReaderThread* _thread
    cdef bint _closed


# A StoreError of `doing`, with the words for its status.
cdef object store_error(str doing, int status)
