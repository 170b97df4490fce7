# cython: boundscheck=False, wraparound=False, cdivision=True
"""The answer to a read of RemoteRead (MS-MQRR 3.1.4.7), which has a whole message in one section.

The stub is that of the declaration in rpc/idl/remoteread.py, whose codec is the model that the tests compare it with:

1. pdwArriveTime, pSequenceId, pdwNumberOfSections (1), ppPacketSections as a unique pointer;
2. the array: its maximum count (1), and its only SectionBuffer, of the type ST_FULL_PACKET;
3. the bytes of the section: their maximum count, the packet with the time at which it expires as TimeToReachQueue, and
   the headers behind it that only queue managers see (2.2.5);
4. the result, 0.

In NDR64, pointers and counts have 8 bytes, an enumeration 4, and structures are aligned at their end.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef enum:
    TTRQ = 12               # BaseHeader.TimeToReachQueue
    SENT_TIME = 52          # UserHeader.SentTime
    LEAST = 56
    FIRST_REFERENT = 0x00020004
    SECOND_REFERENT = 0x00020008
    NDR_HEAD = 48           # up to the bytes of the section
    NDR64_HEAD = 72


cdef inline void put32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = value & 0xFF
    p[1] = (value >> 8) & 0xFF
    p[2] = (value >> 16) & 0xFF
    p[3] = value >> 24

cdef inline void put64(uint8_t* p, uint64_t value) noexcept nogil:
    put32(p, <uint32_t>value)
    put32(p + 4, <uint32_t>(value >> 32))

cdef inline uint32_t get32(const uint8_t* p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


def whole_answer(bytes packet not None, bytes tail not None, uint32_t arrived, uint64_t sequence, bint ndr64) -> bytes:
    """Returns the stub of the answer. `packet` is the stored packet, `tail` the headers after it, `arrived` and `sequence` are
    pdwArriveTime and pSequenceId. Raises ValueError for an invalid packet.
    """
    cdef size_t body = PyBytes_GET_SIZE(packet)
    cdef size_t extra = PyBytes_GET_SIZE(tail)
    cdef size_t size = body + extra
    cdef size_t head = NDR64_HEAD if ndr64 else NDR_HEAD
    cdef size_t pad = -size & 3
    cdef const uint8_t* source = <const uint8_t*>PyBytes_AS_STRING(packet)
    cdef uint64_t until
    if body < LEAST or size > UINT32_MAX:
        raise ValueError("not a UserMessage packet")
    until = <uint64_t>get32(source + SENT_TIME) + get32(source + TTRQ)
    stub = PyBytes_FromStringAndSize(NULL, head + size + pad + 4)
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(stub)
    memset(p, 0, head)
    put32(p, arrived)
    put64(p + 8, sequence)
    put32(p + 16, 1)
    if ndr64:
        put64(p + 24, FIRST_REFERENT)
        put64(p + 32, 1)
        put32(p + 44, <uint32_t>size)
        put32(p + 48, <uint32_t>size)
        put64(p + 56, SECOND_REFERENT)
        put64(p + 64, size)
    else:
        put32(p + 20, FIRST_REFERENT)
        put32(p + 24, 1)
        put32(p + 32, <uint32_t>size)
        put32(p + 36, <uint32_t>size)
        put32(p + 40, SECOND_REFERENT)
        put32(p + 44, <uint32_t>size)
    p += head
    memcpy(p, source, body)
    put32(p + TTRQ, <uint32_t>until if until < UINT32_MAX else UINT32_MAX)
    memcpy(p + body, PyBytes_AS_STRING(tail), extra)
    memset(p + size, 0, pad + 4)
    return stub
