# cython: boundscheck=False, wraparound=False, cdivision=True
"""Copies of messages whose first copy is not durable yet; see repetition.pxd."""

from libc.errno cimport ENOSPC
from libc.stdint cimport uint64_t
from msmq_fast._native.batch cimport STATUS_OK


cdef class Repetition:
    cdef int committed(self, uint64_t token, int status) except -1:
        if status == STATUS_OK and not self._history.knows(&self._identity):
            status = ENOSPC     # any other failure ends the store
        return self._window.committed(token, status)

    cdef int settled(self) except -1:
        return self._window.settled()
