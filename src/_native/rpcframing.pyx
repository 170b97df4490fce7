"""PDUs of DCE/RPC over TCP: splits a stream into PDUs, and stub data into fragments (C706 12.6, MS-RPCE 2.2.2)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy, memmove, memset

cdef enum:
    COMMON_HEADER = 16
    STUB_HEADER = 24            # of requests without an object UUID, and of responses
    SEC_TRAILER = 8
    FIRST_BUFFER = 4096         # a peer that sends nothing costs one page
    BUFFER_SIZE = 16384
    LARGEST = 65535             # frag_length has 16 bits

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3

    FIRST_FRAGMENT = 0x01
    LAST_FRAGMENT = 0x02
    OBJECT_UUID = 0x80

# Why a PDU is malformed: msmq_fast.rpc.pdu.PduFault.
cdef enum:
    BAD_VERSION = 1
    BAD_LENGTH = 2
    BAD_AUTH_LENGTH = 3
    BAD_AUTH_PAD = 4
    TOO_LARGE = 5


cdef inline uint16_t read_u16(const uint8_t* p, bint big) noexcept nogil:
    if big:
        return <uint16_t>((<uint32_t>p[0] << 8) | p[1])
    return <uint16_t>(p[0] | (<uint32_t>p[1] << 8))

cdef inline uint32_t read_u32(const uint8_t* p, bint big) noexcept nogil:
    if big:
        return (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)

cdef inline void write_u16(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = value & 0xFF
    p[1] = (value >> 8) & 0xFF

cdef inline void write_u32(uint8_t* p, uint32_t value) noexcept nogil:
    p[0] = value & 0xFF
    p[1] = (value >> 8) & 0xFF
    p[2] = (value >> 16) & 0xFF
    p[3] = value >> 24

cdef inline bint is_big_endian(const uint8_t* p) noexcept nogil:
    return p[4] >> 4 == 0       # packed_drep: 0 big-endian, 1 little-endian integers


cdef class Pdu:
    """One PDU. The attributes of the common header are always set, the attributes after `fault` only if `fault` is 0."""

    cdef int parse(self, const uint8_t* p) except -1:
        """Finds the parts of a PDU of `length` bytes. The common header has been read."""
        cdef bint big = self.big_endian
        cdef Py_ssize_t body = COMMON_HEADER
        cdef Py_ssize_t room
        self.trailer_offset = self.length
        self.stub_offset = COMMON_HEADER
        if p[0] != 5 or p[1] > 1:
            self.fault = BAD_VERSION
            return 0
        if self.type == REQUEST or self.type == RESPONSE or self.type == FAULT:
            body = STUB_HEADER
            if self.type == REQUEST and self.flags & OBJECT_UUID:
                body += 16
            if <Py_ssize_t>self.length < body:
                self.fault = BAD_LENGTH
                return 0
            self.alloc_hint = read_u32(p + 16, big)
            self.context_id = read_u16(p + 20, big)
            self.opnum = read_u16(p + 22, big) if self.type == REQUEST else p[22]
        self.stub_offset = body
        if self.auth_length:
            room = <Py_ssize_t>self.length - self.auth_length - SEC_TRAILER
            if room < body:
                self.fault = BAD_AUTH_LENGTH
                return 0
            self.trailer_offset = room
            self.auth_type = p[room]
            self.auth_level = p[room + 1]
            self.auth_pad = p[room + 2]
            self.auth_context_id = read_u32(p + room + 4, big)
            # Windows compares the padding of every PDU with the header size of a request.
            if self.auth_pad and self.auth_pad > room - max(body, <Py_ssize_t>STUB_HEADER):
                self.fault = BAD_AUTH_PAD
        return 0

    @property
    def body(self):
        """The bytes between the common header and the sec_trailer: a copy."""
        return self.data[COMMON_HEADER:self.trailer_offset]

    @property
    def header(self):
        """The header of a request or response, up to its stub."""
        return self.data[:self.stub_offset]

    @property
    def stub(self):
        """The stub without its authentication padding."""
        return self.data[self.stub_offset:self.trailer_offset - self.auth_pad]

    @property
    def padded_stub(self):
        """The stub with its authentication padding: the part that is protected."""
        return self.data[self.stub_offset:self.trailer_offset]

    @property
    def trailer(self):
        """The sec_trailer, 8 bytes; empty if the PDU has none."""
        return self.data[self.trailer_offset:self.trailer_offset + SEC_TRAILER]

    @property
    def token(self):
        """The authentication token; empty if the PDU has none."""
        return self.data[self.trailer_offset + SEC_TRAILER:]

    @property
    def object_uuid(self):
        """The object UUID of a request, 16 bytes as on the wire; None if the PDU has none."""
        if self.type == REQUEST and self.flags & OBJECT_UUID:
            return self.data[STUB_HEADER:STUB_HEADER + 16]
        return None


cdef class PduScanner:
    """A receive buffer that returns whole PDUs. It is never much larger than the largest PDU that is allowed.

    Write bytes with `buffer` and `commit` (as in asyncio.BufferedProtocol) or `feed`; `take` returns PDUs. Requests and responses may have
    at most `max_fragment` bytes. Other PDUs may have 65,535 bytes, since their token may need this size before the sizes are negotiated.
    """

    def __cinit__(self, size_t max_fragment):
        if not STUB_HEADER <= max_fragment <= LARGEST:
            raise ValueError(f"max_fragment must be in {STUB_HEADER}..{LARGEST}, not {max_fragment}")
        self.max_fragment = max_fragment

    cdef int _resize(self, size_t capacity) except -1:
        cdef object store = PyByteArray_FromStringAndSize(NULL, capacity)
        cdef uint8_t* data = <uint8_t*>PyByteArray_AS_STRING(store)
        if self._end > self._start:
            memcpy(data, self._data + self._start, self._end - self._start)
        self._end -= self._start
        self._start = 0
        self._store = store
        self._data = data
        self._capacity = capacity
        return 0

    def buffer(self, Py_ssize_t hint):
        """Returns a writable view of free room, never empty if `take` was called until it returned None."""
        cdef size_t held = self._end - self._start
        cdef size_t need
        if held == 0:
            if self._capacity == 0:
                self._resize(FIRST_BUFFER)
            elif self._capacity > BUFFER_SIZE or (self._capacity < BUFFER_SIZE and self._end == self._capacity):
                self._resize(BUFFER_SIZE)
            self._start = self._end = 0
        elif self._end == self._capacity or self._start > self._capacity // 2:
            need = BUFFER_SIZE
            if held >= COMMON_HEADER:
                need = max(need, <size_t>read_u16(self._data + self._start + 8, is_big_endian(self._data + self._start)))
            if need > self._capacity:
                self._resize(need)
            elif self._start:
                memmove(self._data, self._data + self._start, held)
                self._start, self._end = 0, held
        if self._end == self._capacity:
            raise BufferError("the receive buffer is full of PDUs that were not taken")
        return memoryview(self._store)[self._end:]

    def commit(self, Py_ssize_t count):
        """Adds the `count` bytes that were written to the view that `buffer` returned."""
        if count < 0 or <size_t>count > self._capacity - self._end:
            raise ValueError("more bytes committed than the buffer had room for")
        self._end += count

    def feed(self, data):
        """Copies as many bytes of `data` into the buffer as it has room for. Returns how many bytes."""
        rest = memoryview(data).cast("B")
        view = self.buffer(len(rest))
        count = min(len(view), len(rest))
        view[:count] = rest[:count]
        self.commit(count)
        return count

    def take(self):
        """Returns the next Pdu. Returns None if more bytes are needed, or if a malformed PDU has ended the stream.

        A PDU with a `fault` may be the last one: the stream continues only if its frag_length was valid.
        """
        cdef size_t held = self._end - self._start
        cdef const uint8_t* p = self._data + self._start
        cdef Pdu pdu
        cdef bint big
        cdef size_t length
        if self._over or held < COMMON_HEADER:
            return None
        big = is_big_endian(p)
        length = read_u16(p + 8, big)
        pdu = None
        if length < COMMON_HEADER or ((p[2] == REQUEST or p[2] == RESPONSE) and length > self.max_fragment):
            self._over = True
            pdu = Pdu.__new__(Pdu)
            pdu.fault = BAD_LENGTH if length < COMMON_HEADER else TOO_LARGE
            pdu.data = PyBytes_FromStringAndSize(<const char*>p, COMMON_HEADER)
        elif held < length:
            return None
        else:
            pdu = Pdu.__new__(Pdu)
            pdu.data = PyBytes_FromStringAndSize(<const char*>p, length)
        pdu.minor = p[1]
        pdu.type = p[2]
        pdu.flags = p[3]
        pdu.big_endian = big
        pdu.length = length
        pdu.auth_length = read_u16(p + 10, big)
        pdu.call_id = read_u32(p + 12, big)
        if pdu.fault == 0:
            pdu.parse(p)
            self._start += length
        return pdu

    @property
    def held(self):
        """The number of bytes received but not taken."""
        return self._end - self._start

    @property
    def capacity(self):
        """The size of the buffer in bytes."""
        return self._capacity


def fragments(
    int ptype,
    const uint8_t[::1] stub,
    Py_ssize_t offset,
    Py_ssize_t budget,
    int flags,
    uint32_t call_id,
    int context_id,
    int opnum,
    Py_ssize_t max_fragment,
    bytes trailer=None,
    Py_ssize_t overhead=0,
):
    """Builds requests or responses that carry `stub` from `offset` on, in one buffer of about `budget` bytes, in little-endian form.
    Returns (the buffer, the offset in `stub` up to which its bytes are in the buffer, the number of PDUs, at least 1).

    No PDU has more than `max_fragment` bytes. `flags` are added to the flags of the first and last fragment. `trailer` is a sec_trailer (8
    bytes) or None. With a trailer, each PDU has padding, the sec_trailer, and `overhead` (at least 1) zero bytes as the place of the token;
    the buffer is then a bytearray, so that the PDUs can be protected in place. alloc_hint is the remaining size of the stub (MS-RPCE
    2.2.2.6).
    """
    cdef Py_ssize_t size = stub.shape[0]
    cdef Py_ssize_t extra = 0, align = 8, room, count, last, total, i, length, pad, left
    cdef uint8_t* p
    cdef const uint8_t* source = NULL
    cdef const uint8_t* sec = NULL
    cdef object result
    if not 0 <= offset <= size:
        raise ValueError(f"the offset {offset} lies outside the {size} bytes of the stub")
    if trailer is not None:
        if len(trailer) != SEC_TRAILER or not 1 <= overhead <= 0xFFFF:
            raise ValueError("a sec_trailer has 8 bytes, and overhead must be from 1 to 65535")
        sec = <const uint8_t*>PyBytes_AS_STRING(trailer)
        extra = SEC_TRAILER + overhead
        align = 16
    if max_fragment > LARGEST:
        max_fragment = LARGEST
    room = ((max_fragment - STUB_HEADER - extra) // align) * align
    if room <= 0:
        raise ValueError("max_fragment leaves no room for stub data in a PDU")
    left = size - offset
    count = max(<Py_ssize_t>1, (left + room - 1) // room)           # all that is left
    count = min(count, max(<Py_ssize_t>1, budget // (STUB_HEADER + room + extra)))
    last = min(left - (count - 1) * room, room)                     # stub bytes in the last of these
    pad = -last & (align - 1) if sec != NULL else 0
    total = count * (STUB_HEADER + extra) + (count - 1) * room + last + pad
    if sec != NULL:
        result = PyByteArray_FromStringAndSize(NULL, total)
        p = <uint8_t*>PyByteArray_AS_STRING(result)
    else:
        result = PyBytes_FromStringAndSize(NULL, total)
        p = <uint8_t*>PyBytes_AS_STRING(result)
    if size:
        source = &stub[0] + offset
    with nogil:
        for i in range(count):
            length = room if i + 1 < count else last
            pad = -length & (align - 1) if sec != NULL else 0
            p[0] = 5
            p[1] = 0
            p[2] = ptype
            p[3] = flags
            if offset == 0:
                p[3] |= FIRST_FRAGMENT
            if length == left:
                p[3] |= LAST_FRAGMENT
            p[4] = 0x10
            p[5] = p[6] = p[7] = 0
            write_u16(p + 8, STUB_HEADER + length + pad + extra)
            write_u16(p + 10, overhead if sec != NULL else 0)
            write_u32(p + 12, call_id)
            write_u32(p + 16, left)
            write_u16(p + 20, context_id)
            write_u16(p + 22, opnum)
            p += STUB_HEADER
            if length:
                memcpy(p, source, length)
                source += length
                p += length
            if sec != NULL:
                memset(p, 0, pad)
                p += pad
                memcpy(p, sec, SEC_TRAILER)
                p[2] = pad
                memset(p + SEC_TRAILER, 0, overhead)
                p += extra
            offset += length
            left -= length
    return result, offset, count
