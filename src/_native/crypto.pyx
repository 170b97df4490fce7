# cython: boundscheck=False, wraparound=False, cdivision=True
"""RC2 and RC4 for message bodies (MS-MQMQ 2.2.19.3), with a key that is expanded once for any number of bodies; MD2 and MD4.

security/ciphers.py takes AES from OpenSSL. RC2 and RC4 do not run in constant time: the key determines which table cells are read, as in
every software implementation. RC2, RC4, MD2 and MD4 are broken, and exist for peers that support nothing else.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from "crypto_rc2.h" nogil:
    void rc2_expand(uint16_t* words, const uint8_t* key, size_t size, unsigned bits)
    void rc2_cbc_encrypt(const uint16_t* words, const uint8_t* data, uint8_t* out, size_t size)
    void rc2_cbc_decrypt(const uint16_t* words, const uint8_t* data, uint8_t* out, size_t size)

cdef extern from "crypto_rc4.h" nogil:
    void rc4_schedule(uint32_t* cells, const uint8_t* key, size_t size)
    void rc4_apply(uint32_t* cells, const uint8_t* data, uint8_t* out, size_t size)

cdef extern from "crypto_digest.h" nogil:
    void md2_digest(const uint8_t* data, size_t size, uint8_t* out) noexcept
    void md4_digest(const uint8_t* data, size_t size, uint8_t* out) noexcept

cdef enum:
    BLOCK = 8
    LARGEST = 0x7FFFFFF0


cdef class RC2:
    """RC2 in CBC mode with a zero initialisation vector and PKCS #5 padding (RFC 2268).

    `key` has 1 to 128 bytes. `effective_bits` (1 to 1024) limits the strength, whatever the length of the key. Raises ValueError.
    """

    BLOCK_SIZE = BLOCK

    def __init__(self, bytes key not None, int effective_bits):
        cdef size_t size = len(key)
        if not 1 <= size <= 128:
            raise ValueError("an RC2 key has 1 to 128 bytes")
        if not 1 <= effective_bits <= 1024:
            raise ValueError("an RC2 key has 1 to 1024 effective bits")
        rc2_expand(self._words, <const uint8_t*>PyBytes_AS_STRING(key), size, effective_bits)

    def __dealloc__(self):
        memset(self._words, 0, sizeof(self._words))

    def encrypt(self, data not None) -> bytes:
        """Returns the padded and encrypted body: 1 to 8 bytes longer."""
        cdef const uint8_t[::1] view = data
        cdef uint64_t size = view.shape[0]
        cdef size_t whole = size & ~<uint64_t>(BLOCK - 1)
        cdef uint8_t pad = <uint8_t>(BLOCK - (size - whole))
        cdef bytes out
        cdef uint8_t* target
        if size > LARGEST:
            raise ValueError("the body is too large to encrypt")
        out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(size + pad))
        target = <uint8_t*>PyBytes_AS_STRING(out)
        if size:
            memcpy(target, &view[0], size)
        memset(target + size, pad, pad)
        with nogil:
            rc2_cbc_encrypt(self._words, target, target, whole + BLOCK)
        return out

    def decrypt(self, data not None) -> bytes:
        """Returns the body without its padding. Raises ValueError if the padding is wrong."""
        cdef const uint8_t[::1] view = data
        cdef size_t size = view.shape[0]
        cdef bytes out
        cdef uint8_t* target
        cdef uint8_t wrong = 0, pad, i
        if not size or size & (BLOCK - 1):
            raise ValueError("the size of the encrypted body is not a multiple of 8 bytes")
        out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        target = <uint8_t*>PyBytes_AS_STRING(out)
        with nogil:
            rc2_cbc_decrypt(self._words, &view[0], target, size)
        pad = target[size - 1]
        for i in range(1, BLOCK + 1):
            if i <= pad:
                wrong |= target[size - i] ^ pad
        if wrong or not 1 <= pad <= BLOCK:
            raise ValueError("the padding of the decrypted body is wrong")
        return out[:size - pad]


cdef class RC4:
    """RC4; every body begins at the start of the key stream. `key` has 1 to 256 bytes; raises ValueError."""

    def __init__(self, bytes key not None):
        cdef size_t size = len(key)
        if not 1 <= size <= 256:
            raise ValueError("an RC4 key has 1 to 256 bytes")
        rc4_schedule(self._cells, <const uint8_t*>PyBytes_AS_STRING(key), size)

    def __dealloc__(self):
        memset(self._cells, 0, sizeof(self._cells))

    def apply(self, data not None) -> bytes:
        """Encrypts or decrypts a body. The result has the same length."""
        cdef const uint8_t[::1] view = data
        cdef uint32_t[256] cells
        cdef size_t size = view.shape[0]
        cdef bytes out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
        if size:
            memcpy(cells, self._cells, sizeof(cells))
            with nogil:
                rc4_apply(cells, &view[0], target, size)
            memset(cells, 0, sizeof(cells))
        return out


ctypedef void (*Digest)(const uint8_t* data, size_t size, uint8_t* out) noexcept nogil


cdef bytes _digest(data, Digest digest):
    cdef const uint8_t[::1] view = data
    cdef bytes out = PyBytes_FromStringAndSize(NULL, 16)
    cdef const uint8_t* start = &view[0] if view.shape[0] else NULL
    cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
    cdef size_t size = view.shape[0]
    with nogil:
        digest(start, size, target)
    return out


def md2(data not None) -> bytes:
    """Returns the MD2 digest (RFC 1319): 16 bytes."""
    return _digest(data, md2_digest)


def md4(data not None) -> bytes:
    """Returns the MD4 digest (RFC 1320): 16 bytes."""
    return _digest(data, md4_digest)
