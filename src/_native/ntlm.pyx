# cython: boundscheck=False, wraparound=False, cdivision=True
"""Session security of NTLM with extended session security (MS-NLMP 3.4), for PDUs of MS-RPCE; MD5 and HMAC-MD5.

Only the comparison of signatures runs in constant time: the key of RC4 determines which table cells are read, as in every software
implementation.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

cdef extern from "ntlm_message.h" nogil:
    ctypedef struct md5_stream:
        pass
    void md5_init(md5_stream* md) noexcept
    void md5_update(md5_stream* md, const uint8_t* data, size_t size) noexcept
    void md5_final(md5_stream* md, uint8_t* out) noexcept
    void hmac_md5_take_key(hmac_md5_key* hmac, const uint8_t* key, size_t size) noexcept
    void hmac_md5_begin(const hmac_md5_key* hmac, md5_stream* md) noexcept
    void hmac_md5_end(const hmac_md5_key* hmac, md5_stream* md, uint8_t* out) noexcept
    void rc4_schedule(uint32_t* cells, const uint8_t* key, size_t size) noexcept
    void rc4_continue(uint32_t* s, uint32_t* x, uint64_t* y, const uint8_t* src, uint8_t* out, size_t size) noexcept
    void ntlm_message(ntlm_direction* s, uint32_t sequence, const uint8_t* head, size_t head_size, const uint8_t* src,
                      uint8_t* out, size_t size, const uint8_t* tail, size_t tail_size, int mode, uint8_t* mac) noexcept
    int NTLM_SIGN
    int NTLM_SEAL
    int NTLM_UNSEAL

cdef enum:
    TOKEN = 16          # NTLMSSP_MESSAGE_SIGNATURE
    TRAILER = 8         # sec_trailer
    COMMON = 16         # the header that all PDUs share
    DREP = 4            # its fields
    FRAG_LENGTH = 8
    AUTH_LENGTH = 10
    LITTLE_ENDIAN = 0x10
    KEY = 16


cdef inline const uint8_t* _start(const uint8_t[::1] view) noexcept:
    return &view[0] if view.shape[0] else NULL


cdef inline uint32_t _number(const uint8_t* p, bint little) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 if little else p[1] | <uint32_t>p[0] << 8


cdef size_t _pdu(const uint8_t* pdu, size_t left, size_t header_size) noexcept nogil:
    """Returns the frag_length of a PDU whose lengths are consistent and leave room for a token, otherwise 0."""
    cdef size_t length
    cdef bint little
    if left < COMMON:
        return 0
    little = pdu[DREP] & LITTLE_ENDIAN != 0
    length = _number(pdu + FRAG_LENGTH, little)
    if length > left or length < header_size + TRAILER + TOKEN or _number(pdu + AUTH_LENGTH, little) != TOKEN:
        return 0
    return length


cdef class MessageSecurity:
    """One direction of a session: its keys, of 16 bytes each, its key stream and its sequence number.

    `key_exchange` is whether NTLMSSP_NEGOTIATE_KEY_EXCH was negotiated. Messages are protected, or unprotected, in the order of their
    sequence numbers. After a wrong signature, `unprotect` also rejects every later message. Raises ValueError if a key does not have 16
    bytes.
    """

    def __init__(self, bytes sealing_key not None, bytes signing_key not None, bint key_exchange):
        if len(signing_key) != KEY:
            raise ValueError("the keys of a session have 16 bytes")
        self.restart(sealing_key)
        hmac_md5_take_key(&self._state.signing, <const uint8_t*>PyBytes_AS_STRING(signing_key), KEY)
        self._sequence = 0
        self._encrypt = key_exchange
        self._failed = False

    def __dealloc__(self):
        memset(&self._state, 0, sizeof(self._state))

    cdef void _finish(self, uint8_t* mac, uint8_t* token) noexcept nogil:
        """Writes the signature of the message whose checksum is `mac`."""
        cdef int i
        memset(token, 0, TOKEN)
        token[0] = 1
        if self._encrypt:
            rc4_continue(self._state.cells, &self._state.x, &self._state.y, mac, mac, 8)
        for i in range(8):
            token[4 + i] = mac[i]
        for i in range(4):
            token[12 + i] = <uint8_t>(self._sequence >> (8 * i))
        self._sequence += 1

    cdef bint _matches(self, uint8_t* mac, const uint8_t* token) noexcept nogil:
        cdef uint8_t[TOKEN] expected
        cdef uint8_t differs = 0
        cdef int i
        self._finish(mac, expected)
        for i in range(TOKEN):
            differs |= expected[i] ^ token[i]
        self._failed = differs != 0
        return differs == 0

    def protect(self, header not None, stub not None, trailer not None, bint privacy) -> tuple[bytes, bytes]:
        """Protects one PDU. Returns (the stub as it must be sent, the signature of 16 bytes). The signature covers header, stub and
        trailer; with `privacy` the stub is encrypted.
        """
        cdef const uint8_t[::1] head = header, body = stub, tail = trailer
        cdef bytes out = PyBytes_FromStringAndSize(NULL, body.shape[0]) if privacy else bytes(stub)
        cdef bytes token = PyBytes_FromStringAndSize(NULL, TOKEN)
        cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
        cdef uint8_t[16] mac
        ntlm_message(&self._state, self._sequence, _start(head), head.shape[0], _start(body), target, body.shape[0],
                     _start(tail), tail.shape[0], NTLM_SEAL if privacy else NTLM_SIGN, mac)
        self._finish(mac, <uint8_t*>PyBytes_AS_STRING(token))
        return out, token

    def restart(self, bytes sealing_key not None) -> None:
        """Restarts the key stream, as SPNEGO does after its mechListMIC. The sequence number continues."""
        if len(sealing_key) != KEY:
            raise ValueError("the keys of a session have 16 bytes")
        rc4_schedule(self._state.cells, <const uint8_t*>PyBytes_AS_STRING(sealing_key), KEY)
        self._state.x = 0
        self._state.y = 0

    def unprotect(self, header not None, stub not None, trailer not None, signature not None, bint privacy) -> bytes:
        """Returns the decrypted stub. Raises ValueError if the signature is not that of the next message."""
        cdef const uint8_t[::1] head = header, body = stub, tail = trailer, token = signature
        cdef bytes out = PyBytes_FromStringAndSize(NULL, body.shape[0]) if privacy else bytes(stub)
        cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(out)
        cdef uint8_t[16] mac
        if self._failed or token.shape[0] != TOKEN:
            self._failed = True
            raise ValueError("the signature of a PDU does not have 16 bytes, or an earlier one was wrong")
        ntlm_message(&self._state, self._sequence, _start(head), head.shape[0], _start(body), target, body.shape[0],
                     _start(tail), tail.shape[0], NTLM_UNSEAL if privacy else NTLM_SIGN, mac)
        if not self._matches(mac, &token[0]):
            raise ValueError("the signature of a PDU is wrong")
        return out

    def protect_pdus(self, buffer not None, size_t header_size, bint privacy) -> None:
        """Signs consecutive whole PDUs and, with `privacy`, encrypts them in place. Raises ValueError for inconsistent lengths."""
        cdef uint8_t[::1] view = buffer
        cdef size_t size = view.shape[0], at = 0, length = 1
        cdef uint8_t* pdu
        cdef uint8_t[16] mac
        with nogil:
            while at < size:
                pdu = &view[at]
                length = _pdu(pdu, size - at, header_size)
                if length == 0:
                    break
                ntlm_message(&self._state, self._sequence, pdu, header_size, pdu + header_size, pdu + header_size,
                             length - header_size - TRAILER - TOKEN, pdu + length - TRAILER - TOKEN, TRAILER,
                             NTLM_SEAL if privacy else NTLM_SIGN, mac)
                self._finish(mac, pdu + length - TOKEN)
                at += length
        if length == 0:
            raise ValueError("the lengths in a PDU do not match")

    def unprotect_pdus(self, buffer not None, size_t header_size, bint privacy) -> None:
        """Verifies consecutive whole PDUs and, with `privacy`, decrypts them in place. Raises ValueError for inconsistent lengths or a
        wrong signature.
        """
        cdef uint8_t[::1] view = buffer
        cdef size_t size = view.shape[0], at = 0, length
        cdef uint8_t* pdu
        cdef uint8_t[16] mac
        with nogil:
            while at < size and not self._failed:
                pdu = &view[at]
                length = _pdu(pdu, size - at, header_size)
                if length == 0:
                    self._failed = True
                    break
                ntlm_message(&self._state, self._sequence, pdu, header_size, pdu + header_size, pdu + header_size,
                             length - header_size - TRAILER - TOKEN, pdu + length - TRAILER - TOKEN, TRAILER,
                             NTLM_UNSEAL if privacy else NTLM_SIGN, mac)
                self._matches(mac, pdu + length - TOKEN)
                at += length
        if self._failed:
            raise ValueError("the lengths of a PDU do not fit, or its signature is wrong")


def md5(data not None) -> bytes:
    """The MD5 digest (RFC 1321): 16 bytes."""
    cdef const uint8_t[::1] view = data
    cdef bytes out = PyBytes_FromStringAndSize(NULL, 16)
    cdef md5_stream md
    md5_init(&md)
    md5_update(&md, _start(view), view.shape[0])
    md5_final(&md, <uint8_t*>PyBytes_AS_STRING(out))
    return out


def hmac_md5(key not None, *parts) -> bytes:
    """Returns the HMAC-MD5 (RFC 2104) of the concatenated parts: 16 bytes."""
    cdef const uint8_t[::1] secret = key, view
    cdef bytes out = PyBytes_FromStringAndSize(NULL, 16)
    cdef hmac_md5_key state
    cdef md5_stream md
    hmac_md5_take_key(&state, _start(secret), secret.shape[0])
    hmac_md5_begin(&state, &md)
    for part in parts:
        view = part
        md5_update(&md, _start(view), view.shape[0])
    hmac_md5_end(&state, &md, <uint8_t*>PyBytes_AS_STRING(out))
    memset(&state, 0, sizeof(state))
    memset(&md, 0, sizeof(md))
    return out
