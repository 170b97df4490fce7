"""The durable batch writer and the body reader over liblmdb, and their deterministic doubles in memory.

One batch is one LMDB transaction. The loop gathers operations (arena in C, bodies by reference); a native thread that never
takes the GIL commits; an eventfd tells the loop, where `complete` informs the listeners.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_NoMemory
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

cimport cython

import os
import select
from bisect import bisect_left

import lmdb.cpython

from msmq_fast._native.record cimport (
    CONTENT_KEY_SIZE,
    CONTENT_VERSION,
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_VERSION,
    PackHead,
    PositionRecord,
    content_key,
    load_be32,
    load_be64,
    position_key,
    position_size,
)

from msmq_fast._native.undo cimport UndoLog, log_call

include "batch_declarations.pxi"

_DATABASES = (b"meta", b"position", b"content", b"feed", b"history", b"queue", b"queue_index", b"directory", b"sequence")

DEFAULT_BATCH_BYTES = 1 << 20
DEFAULT_BATCH_UNITS = 4096
_CLOSING_ROUNDS = 16


class StoreError(Exception):
    """The store refused or failed; `status` is an errno, or an MDB_* code (negative)."""

    def __init__(self, message, int status=0):
        super().__init__(message)
        self.status = status


def status_text(int status):
    """What a commit status means, in words."""
    if status == 0:
        return "ok"
    return lmdb_api.strerror(status).decode()


def status_is_full(int status):
    """True for a full disk or map: nothing was kept, and a later commit may succeed (flow control)."""
    return bool(status_is_space(status))


cdef object _error(str doing, int status):
    return StoreError(f"{doing}: {status_text(status)}", status)


def _load_liblmdb():
    cdef char problem[512]
    cdef bytes path = os.fsencode(lmdb.cpython.__file__)
    if lmdb_load(path, problem, sizeof(problem)) != NULL:
        raise ImportError(f"liblmdb cannot be used: {problem.decode(errors='replace')}")


_load_liblmdb()


include "batch_tables.pxi"
include "batch_writer.pxi"
include "batch_reader.pxi"
