# Ciphers of message bodies, and algorithms that OpenSSL has only in its legacy provider or not at all: RC2, RC4, MD2, MD4.

from libc.stdint cimport uint8_t, uint16_t, uint32_t


cdef class RC2:
    """One expanded key."""
    cdef uint16_t _words[64]


cdef class RC4:
    """One scheduled key."""
    cdef uint32_t _cells[256]
