# The store on disk: an LMDB environment with a redo log in front of it. lmdbthreads.pxd has its writer and its reader.

from msmq_fast._native.lmdbapi cimport LmdbStore, MDB_cursor, MDB_stat, MDB_txn, RedoStore, RedoView
from msmq_fast._native.tables cimport Tables


cdef class LmdbTables(Tables):
    cdef LmdbStore _store
    cdef bytes _path
    cdef int _end(self) except -1
    cdef RedoStore* _view(self, int table, bytes lower, bytes upper, RedoView* over) except? NULL
    cdef bint _lacks(self, int table) except -1
    cdef MDB_txn* _begin(self) except NULL
    cdef MDB_cursor* _cursor(self, MDB_txn* txn, int table) except NULL
    cdef MDB_stat _stat(self, int table) except *
    cdef int _users                 # number of open writers and readers, and of copies in progress


# Returns the StoreError of an action `doing`, with the text of its status.
cdef object store_error(str doing, int status)
