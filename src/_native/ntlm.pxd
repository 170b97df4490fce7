# Session security of NTLM: signing and sealing.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "ntlm_message.h":
    ctypedef struct hmac_md5_key:
        pass
    ctypedef struct ntlm_direction:
        uint32_t cells[256]
        uint32_t x
        uint64_t y
        hmac_md5_key signing


cdef class MessageSecurity:
    """One direction of a session."""
    cdef ntlm_direction _state
    cdef uint32_t _sequence
    cdef bint _encrypt          # the checksum, too: a key was exchanged
    cdef bint _failed

    cdef void _finish(self, uint8_t* mac, uint8_t* token) noexcept nogil
    cdef bint _matches(self, uint8_t* mac, const uint8_t* token) noexcept nogil
