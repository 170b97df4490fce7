# Splits a stream into connection-oriented PDUs, and stub data into fragments (C706 12.6, MS-RPCE 2.2.2).

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t


@cython.final
cdef class Pdu:
    """One PDU: the common header, and for requests and responses the fields after it."""
    cdef readonly bytes data                # the whole PDU; only the common header if the PDU is too large
    cdef readonly int fault                 # why it is malformed, 0 if it is not
    cdef readonly int type, flags, minor
    cdef readonly bint big_endian
    cdef readonly uint32_t length           # frag_length
    cdef readonly uint32_t auth_length
    cdef readonly uint32_t call_id
    # Requests and responses; `opnum` of a response is its cancel_count.
    cdef readonly uint32_t alloc_hint
    cdef readonly int context_id, opnum
    cdef readonly Py_ssize_t stub_offset
    # The sec_trailer; its offset is `length` where there is none.
    cdef readonly Py_ssize_t trailer_offset
    cdef readonly int auth_type, auth_level, auth_pad
    cdef readonly uint32_t auth_context_id
    cdef int parse(self, const uint8_t* p) except -1


@cython.final
cdef class PduScanner:
    """A receive buffer that returns whole PDUs."""
    cdef object _store                      # bytearray, replaced and never resized; a memoryview handed out keeps it alive
    cdef uint8_t* _data
    cdef size_t _capacity, _start, _end
    cdef readonly size_t max_fragment
    cdef bint _over
    cdef int _resize(self, size_t capacity) except -1
