# The writer and the reader of the store on disk, over the tables of lmdbstore.pxd.

from msmq_fast._native.batch cimport Writer
from msmq_fast._native.lmdbapi cimport ReaderThread, WriterThread
from msmq_fast._native.lmdbstore cimport LmdbTables
from msmq_fast._native.tables cimport Reader


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
