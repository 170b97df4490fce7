# cython: boundscheck=False, wraparound=False, cdivision=True
"""Messages of application frames (docs/application-protocol.md 4 and 5.1) to UserMessage packets and back.

Every size in a frame is checked before it is used, in 64 bits. A frame that breaks the layout raises
FrameFault; a message that the queue manager would refuse is reported by its HRESULT.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset, strlen
from msmq_fast._native.framing cimport (
    MessageFields, UserMessage, build_packet, clear_fields, get_u16, get_u32, parse_user_message,
)

cdef enum:
    OUT_FIELDS = 15
    IN_FIELDS = 25
    MAX_LABEL_UNITS = 249
    LARGE_BODY = 32768              # bodies from this size are handed over as views, not copied
    FRAME_DELIVERY = 0x85
    FRAME_MESSAGE = 0x84
    FRAME_SENT = 0x82
    HEADER_SIZE = 9

cdef uint32_t MAX_PACKET = 0x00400000
cdef uint32_t INFINITE = 0xFFFFFFFF
cdef uint32_t LONG_LIVED = 345600       # seconds, the default of TimeToReachQueue (MS-MQDMPR 3.1.1.12)

# MS-MQMQ 2.4
cdef uint32_t ILLEGAL_PROPERTY_VALUE = 0xC00E0018
cdef uint32_t ILLEGAL_FORMATNAME = 0xC00E001E
cdef uint32_t INSUFFICIENT_RESOURCES = 0xC00E0027
cdef uint32_t INSUFFICIENT_PROPERTIES = 0xC00E003F
cdef uint32_t LABEL_TOO_LONG = 0xC00E005D


class FrameFault(ValueError):
    """The payload of a frame does not have the layout that its type prescribes."""


# ---------------------------------------------------------------------------------------------- reading msgpack

cdef inline uint64_t _be(const uint8_t* p, int n) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(n):
        value = (value << 8) | p[i]
    return value


cdef int read_uint(Cursor* c, uint64_t* out) noexcept nogil:
    cdef uint8_t b
    cdef int n
    if c.at >= c.end:
        return -1
    b = c.at[0]
    if b < 0x80:
        out[0] = b
        c.at += 1
        return 0
    if b == 0xC2 or b == 0xC3:              # a bool where a small number stands
        out[0] = b & 1
        c.at += 1
        return 0
    if b < 0xCC or (b > 0xCF and b < 0xD0) or b > 0xD3:
        return -1
    n = 1 << (b & 3)
    if c.end - c.at < 1 + n:
        return -1
    if b >= 0xD0 and c.at[1] & 0x80:        # a signed number below zero
        return -1
    out[0] = _be(c.at + 1, n)
    c.at += 1 + n
    return 0


cdef int read_array(Cursor* c, uint32_t* out) noexcept nogil:
    cdef uint8_t b
    if c.at >= c.end:
        return -1
    b = c.at[0]
    if b & 0xF0 == 0x90:
        out[0] = b & 0x0F
        c.at += 1
        return 0
    if b == 0xDC and c.end - c.at >= 3:
        out[0] = <uint32_t>_be(c.at + 1, 2)
        c.at += 3
        return 0
    if b == 0xDD and c.end - c.at >= 5:
        out[0] = <uint32_t>_be(c.at + 1, 4)
        c.at += 5
        return 0
    return -1


cdef int _read_blob(Cursor* c, bint text, const uint8_t** data, uint32_t* size) noexcept nogil:
    cdef uint8_t b
    cdef int n
    cdef uint64_t length
    if c.at >= c.end:
        return -1
    b = c.at[0]
    if text and b & 0xE0 == 0xA0:
        length = b & 0x1F
        n = 0
    elif text and 0xD9 <= b <= 0xDB:
        n = 1 << (b - 0xD9)
    elif not text and 0xC4 <= b <= 0xC6:
        n = 1 << (b - 0xC4)
    else:
        return -1
    if n:
        if c.end - c.at < 1 + n:
            return -1
        length = _be(c.at + 1, n)
    if <uint64_t>(c.end - c.at) < 1 + n + length:
        return -1
    data[0] = c.at + 1 + n
    size[0] = <uint32_t>length
    c.at += 1 + n + length
    return 0


cdef inline bint _nil(Cursor* c) noexcept nogil:
    if c.at < c.end and c.at[0] == 0xC0:
        c.at += 1
        return True
    return False


cdef int _read_u32(Cursor* c, uint32_t* out) noexcept nogil:
    cdef uint64_t value
    if read_uint(c, &value) or value > 0xFFFFFFFFULL:
        return -1
    out[0] = <uint32_t>value
    return 0


cdef int read_message(Cursor* c, OutMessage* m) noexcept nogil:
    """One message array; -1 when it breaks the layout. Values are range-checked by the builder."""
    cdef uint32_t fields, i, size
    cdef int bad = 0
    memset(m, 0, sizeof(OutMessage))
    m.priority = 3
    m.time_to_reach_queue = LONG_LIVED
    m.time_to_be_received = INFINITE
    if read_array(c, &fields) or fields > OUT_FIELDS:
        return -1
    for i in range(fields):
        if _nil(c):
            continue
        if i == 0:
            bad = _read_blob(c, False, &m.body, &m.body_size)
        elif i == 1:
            bad = _read_blob(c, True, &m.label, &m.label_size)
        elif i == 2:
            bad = read_uint(c, &m.delivery)
        elif i == 3:
            bad = read_uint(c, &m.priority)
        elif i == 4:
            bad = _read_u32(c, &m.body_type)
        elif i == 5:
            bad = _read_u32(c, &m.app_specific)
        elif i == 6:
            bad = _read_blob(c, False, &m.correlation, &size)
            if not bad and size == 0:
                m.correlation = NULL
            elif not bad and size != 20:
                bad = -1
        elif i == 7:
            bad = _read_blob(c, False, &m.extension, &m.extension_size)
        elif i == 8:
            bad = _read_blob(c, True, &m.response, &m.response_size)
        elif i == 9:
            bad = _read_blob(c, True, &m.admin, &m.admin_size)
        elif i == 10:
            bad = read_uint(c, &m.acknowledge)
        elif i == 11:
            bad = read_uint(c, &m.journal)
        elif i == 12:
            bad = _read_u32(c, &m.time_to_reach_queue)
        elif i == 13:
            bad = _read_u32(c, &m.time_to_be_received)
        elif i == 14:
            bad = read_uint(c, &m.message_class)
        if bad:
            return -1
    return 0


# ---------------------------------------------------------------------------------------------- text

cdef int64_t utf16_units(const uint8_t* p, size_t size) noexcept nogil:
    """UTF-16 units that this UTF-8 text takes, -1 when it is malformed or holds a NUL, as labels end with one."""
    cdef size_t i = 0
    cdef int64_t units = 0
    cdef uint32_t cp, k, need
    cdef uint8_t b
    while i < size:
        b = p[i]
        if 0 < b < 0x80:
            cp = b
            need = 0
        elif 0xC2 <= b < 0xE0:
            cp = b & 0x1F
            need = 1
        elif 0xE0 <= b < 0xF0:
            cp = b & 0x0F
            need = 2
        elif 0xF0 <= b < 0xF5:
            cp = b & 0x07
            need = 3
        else:
            return -1
        if size - i <= need:
            return -1
        for k in range(need):
            b = p[i + 1 + k]
            if b & 0xC0 != 0x80:
                return -1
            cp = (cp << 6) | (b & 0x3F)
        if (need == 2 and cp < 0x800) or (need == 3 and (cp < 0x10000 or cp > 0x10FFFF)) or 0xD800 <= cp < 0xE000:
            return -1
        i += 1 + need
        units += 1 if cp < 0x10000 else 2
    return units


cdef size_t utf16_to_utf8(const uint8_t* p, size_t units, uint8_t* out) noexcept nogil:
    """Bytes written (at most 3 a unit). Lone surrogates, which a peer may send, become U+FFFD."""
    cdef size_t i = 0, n = 0
    cdef uint32_t cp, low
    while i < units:
        cp = p[2 * i] | (<uint32_t>p[2 * i + 1] << 8)
        i += 1
        if 0xD800 <= cp < 0xE000:
            low = 0
            if cp < 0xDC00 and i < units:
                low = p[2 * i] | (<uint32_t>p[2 * i + 1] << 8)
            if 0xDC00 <= low < 0xE000:
                cp = 0x10000 + ((cp & 0x3FF) << 10) + (low & 0x3FF)
                i += 1
            else:
                cp = 0xFFFD
        if cp < 0x80:
            out[n] = cp
            n += 1
        elif cp < 0x800:
            out[n] = 0xC0 | (cp >> 6)
            out[n + 1] = 0x80 | (cp & 0x3F)
            n += 2
        elif cp < 0x10000:
            out[n] = 0xE0 | (cp >> 12)
            out[n + 1] = 0x80 | ((cp >> 6) & 0x3F)
            out[n + 2] = 0x80 | (cp & 0x3F)
            n += 3
        else:
            out[n] = 0xF0 | (cp >> 18)
            out[n + 1] = 0x80 | ((cp >> 12) & 0x3F)
            out[n + 2] = 0x80 | ((cp >> 6) & 0x3F)
            out[n + 3] = 0x80 | (cp & 0x3F)
            n += 4
    return n


# ---------------------------------------------------------------------------------------------- building packets

cdef class PacketBuilder:
    """Builds UserMessage packets (MS-MQMQ 2.2.20) for one destination.

    `source` is the GUID of this queue manager and `address` that of the destination's (zeros for a direct name), 16 bytes each; `dest_type` and `destination` are the
    DQ value and the DestinationQueue field of the UserHeader as packet.names writes it. `resolve(text)` gives the same pair for a response or
    admin queue as (type as AQ value, field) and raises an exception with an HRESULT as `code` for a name that is none.
    """

    def __init__(self, bytes source not None, bytes address not None, int dest_type, bytes destination not None,
                 resolve):
        if len(source) != 16 or len(address) != 16:
            raise ValueError("a GUID has 16 bytes")
        memcpy(self.source, PyBytes_AS_STRING(source), 16)
        memcpy(self.address, PyBytes_AS_STRING(address), 16)
        self.dest_type = dest_type
        self.destination = destination
        self.resolve = resolve

    cdef tuple _name(self, const uint8_t* text, uint32_t size):
        try:
            return self.resolve((<const char*>text)[:size].decode())
        except UnicodeDecodeError:
            self.refusal = ILLEGAL_FORMATNAME
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            self.refusal = <uint32_t>(<int64_t>code & 0xFFFFFFFF)
        return None

    cdef bytes build(self, Cursor* cursor, uint32_t ordinal, uint32_t now_s):
        cdef OutMessage m
        cdef MessageFields f
        cdef int64_t units
        cdef uint64_t size
        cdef tuple admin, response
        if read_message(cursor, &m):
            raise FrameFault("a message does not have the layout of section 4")
        self.refusal = 0
        if (m.delivery > 1 or m.priority > 7 or m.acknowledge > 15 or m.journal > 3
                or m.message_class & ~<uint64_t>0xE1FF):
            self.refusal = ILLEGAL_PROPERTY_VALUE
            return None
        if m.acknowledge and not m.admin_size:
            self.refusal = INSUFFICIENT_PROPERTIES
            return None
        units = utf16_units(m.label, m.label_size)
        if not 0 <= units <= MAX_LABEL_UNITS:
            self.refusal = ILLEGAL_PROPERTY_VALUE if units < 0 else LABEL_TOO_LONG
            return None
        clear_fields(&f)
        size = 16 + 48 + 56 + 2 * (units + 1) + <uint64_t>m.extension_size + m.body_size + 3
        size += PyBytes_GET_SIZE(self.destination)
        # AdminQueue is present only when an acknowledgment is asked (MS-MQMQ 2.2.19.2).
        if m.acknowledge:
            admin = self._name(m.admin, m.admin_size)
            if admin is None:
                return None
            f.admin_type = admin[0]
            f.admin = <const uint8_t*>PyBytes_AS_STRING(admin[1])
            f.admin_length = <uint32_t>len(<bytes>admin[1])
            size += f.admin_length
        if m.response_size:
            response = self._name(m.response, m.response_size)
            if response is None:
                return None
            f.response_type = response[0]
            f.response = <const uint8_t*>PyBytes_AS_STRING(response[1])
            f.response_length = <uint32_t>len(<bytes>response[1])
            size += f.response_length
        if size > MAX_PACKET:
            self.refusal = INSUFFICIENT_RESOURCES
            return None
        f.source = self.source
        f.destination_manager = self.address
        f.dest_type = self.dest_type
        f.dest = <const uint8_t*>PyBytes_AS_STRING(self.destination)
        f.dest_length = <uint32_t>PyBytes_GET_SIZE(self.destination)
        f.priority = <uint8_t>m.priority
        f.delivery = <uint8_t>m.delivery
        f.ack_flags = <uint8_t>m.acknowledge
        f.message_class = <uint16_t>m.message_class
        f.time_to_reach_queue = m.time_to_reach_queue
        f.time_to_be_received = m.time_to_be_received
        f.sent_time = now_s
        f.message_id = ordinal
        f.user_flags = <uint32_t>m.journal << 8
        f.correlation_id = m.correlation
        f.body_type = m.body_type
        f.app_specific = m.app_specific
        f.label = m.label
        f.label_length = m.label_size
        f.extension = m.extension
        f.extension_length = m.extension_size
        f.body = m.body
        f.body_length = m.body_size
        return build_packet(&f)

    def packets(self, payload not None, uint32_t first_ordinal, uint32_t now_s):
        """All messages of a SEND payload: a list of packet bytes, or of HRESULTs for those refused.

        Raises FrameFault. Ordinals count on from `first_ordinal`; a refused message uses none.
        """
        cdef const uint8_t[::1] view = payload
        cdef Cursor cursor
        cdef uint32_t handle, flags, count, i
        cdef bytes packet
        if not view.shape[0]:
            raise FrameFault("an empty SEND")
        cursor.at = &view[0]
        cursor.end = cursor.at + view.shape[0]
        if read_send(&cursor, &handle, &flags, &count):
            raise FrameFault("a SEND that does not have the layout of section 4")
        result = []
        for i in range(count):
            packet = self.build(&cursor, first_ordinal, now_s)
            if packet is None:
                result.append(self.refusal)
            else:
                result.append(packet)
                first_ordinal += 1
        return result


cdef int read_send(Cursor* c, uint32_t* handle, uint32_t* flags, uint32_t* count) noexcept nogil:
    """The head of a SEND payload, after checking all of it; the cursor is left at the first message."""
    cdef uint32_t fields, i
    cdef Cursor scan
    cdef OutMessage m
    if read_array(c, &fields) or fields != 3 or _read_u32(c, handle) or _read_u32(c, flags) or read_array(c, count):
        return -1
    scan = c[0]
    for i in range(count[0]):
        if read_message(&scan, &m):
            return -1
    return 0 if scan.at == scan.end else -1


def send_head(payload not None):
    """(handle, flags, count) of a SEND payload, all of which is checked. Raises FrameFault."""
    cdef const uint8_t[::1] view = payload
    cdef Cursor cursor
    cdef uint32_t handle, flags, count
    cdef int bad = 1
    if view.shape[0]:
        cursor.at = &view[0]
        cursor.end = cursor.at + view.shape[0]
        with nogil:
            bad = read_send(&cursor, &handle, &flags, &count)
    if bad:
        raise FrameFault("a SEND that does not have the layout of section 4")
    return handle, flags, count


# ---------------------------------------------------------------------------------------------- delivering

cdef class Buffer:
    def __cinit__(self):
        self.data = NULL
        self.size = 0
        self.capacity = 0

    def __dealloc__(self):
        PyMem_Free(self.data)

    cdef int reserve(self, size_t more) except -1:
        cdef size_t capacity = self.capacity
        cdef uint8_t* grown
        if capacity - self.size >= more:
            return 0
        capacity = max(2 * capacity, self.size + more, <size_t>4096)
        grown = <uint8_t*>PyMem_Realloc(self.data, capacity)
        if grown == NULL:
            raise MemoryError
        self.data = grown
        self.capacity = capacity
        return 0


cdef inline uint8_t* put_be(uint8_t* p, uint64_t value, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        p[i] = (value >> (8 * (n - 1 - i))) & 0xFF
    return p + n


cdef inline uint8_t* put_uint(uint8_t* p, uint64_t value) noexcept nogil:
    if value < 0x80:
        p[0] = <uint8_t>value
        return p + 1
    if value <= 0xFF:
        p[0] = 0xCC
        return put_be(p + 1, value, 1)
    if value <= 0xFFFF:
        p[0] = 0xCD
        return put_be(p + 1, value, 2)
    if value <= 0xFFFFFFFFULL:
        p[0] = 0xCE
        return put_be(p + 1, value, 4)
    p[0] = 0xCF
    return put_be(p + 1, value, 8)


cdef inline uint8_t* put_bin_head(uint8_t* p, uint32_t size) noexcept nogil:
    if size <= 0xFF:
        p[0] = 0xC4
        return put_be(p + 1, size, 1)
    if size <= 0xFFFF:
        p[0] = 0xC5
        return put_be(p + 1, size, 2)
    p[0] = 0xC6
    return put_be(p + 1, size, 4)


cdef inline uint8_t* put_bin(uint8_t* p, const uint8_t* data, uint32_t size) noexcept nogil:
    p = put_bin_head(p, size)
    if size:
        memcpy(p, data, size)
    return p + size


cdef uint8_t* put_text(uint8_t* p, const char* prefix, const uint8_t* utf16, size_t units) noexcept nogil:
    """`prefix` and UTF-16LE text as one msgpack str, whose length is known last and so has a fixed width."""
    cdef size_t n = strlen(prefix)
    cdef int width = 2 if n + 3 * units <= 0xFFFF else 4
    p[0] = 0xDA if width == 2 else 0xDB
    memcpy(p + 1 + width, prefix, n)
    n += utf16_to_utf8(utf16, units, p + 1 + width + n)
    return put_be(p + 1, n, width) + n


cdef uint8_t* put_hex(uint8_t* p, const uint8_t* bytes_, int n, int step) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef int i
    for i in range(n):
        p[0] = digits[bytes_[0] >> 4]
        p[1] = digits[bytes_[0] & 15]
        p += 2
        bytes_ += step
    return p


cdef uint8_t* put_guid(uint8_t* p, const uint8_t* g) noexcept nogil:
    p = put_hex(p, g + 3, 4, -1)
    p[0] = c"-"
    p = put_hex(p + 1, g + 5, 2, -1)
    p[0] = c"-"
    p = put_hex(p + 1, g + 7, 2, -1)
    p[0] = c"-"
    p = put_hex(p + 1, g + 8, 2, 1)
    p[0] = c"-"
    return put_hex(p + 1, g + 10, 6, 1)


cdef uint8_t* put_private(uint8_t* p, const uint8_t* manager, uint32_t number) noexcept nogil:
    """PRIVATE=guid\\number as msgpack str."""
    cdef uint8_t* start = p
    cdef uint8_t le[4]
    cdef int i
    memcpy(p + 2, b"PRIVATE=", 8)
    p = put_guid(p + 10, manager)
    p[0] = c"\\"
    for i in range(4):
        le[i] = (number >> (8 * i)) & 0xFF
    p = put_hex(p + 1, le + 3, 4, -1)
    start[0] = 0xD9
    start[1] = <uint8_t>(p - start - 2)
    return p


cdef uint8_t* put_queue(uint8_t* p, const uint8_t* packet, int kind, uint32_t offset, uint32_t length,
                        const uint8_t* host) noexcept nogil:
    """A queue name of the UserHeader as format name; `host` is the manager that the short private forms mean."""
    cdef uint8_t* start = p
    cdef uint32_t units
    if kind == 7:
        units = get_u16(packet + offset) // 2
        while units and get_u16(packet + offset + 2 * units) == 0:
            units -= 1
        return put_text(p, b"DIRECT=", packet + offset + 2, units)
    if kind == 5:
        memcpy(p + 2, b"PUBLIC=", 7)
        p = put_guid(p + 9, packet + offset)
        start[0] = 0xD9
        start[1] = <uint8_t>(p - start - 2)
        return p
    if kind == 6:
        return put_private(p, packet + offset, get_u32(packet + offset + 16))
    if 2 <= kind <= 4 and host != NULL:
        return put_private(p, host, get_u32(packet + offset))
    p[0] = 0xC0
    return p + 1


cdef class Encoder:
    """Stored packets to MESSAGE and DELIVERY frames, as a list of buffers to be written in order.

    Large bodies are handed over as views of the stored packet, not copied.
    """
    cdef Buffer _buffer
    cdef object _large          # view of the body that belongs behind _split, or None
    cdef size_t _split

    def __init__(self):
        self._buffer = Buffer()

    cdef uint8_t* _begin(self, int kind, uint32_t request_id) except NULL:
        self._buffer.size = 0
        self._large = None
        self._buffer.reserve(64)
        self._buffer.data[4] = kind
        put_be(self._buffer.data + 5, request_id, 4)
        self._buffer.size = HEADER_SIZE
        return self._buffer.data + HEADER_SIZE

    cdef int _message(self, bytes packet, uint64_t lookup_id, uint64_t arrival_seq, uint32_t arrived_s,
                      uint32_t abort_count, uint32_t move_count, bint may_split) except -1:
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(packet)
        cdef UserMessage m
        cdef uint8_t* p
        cdef const uint8_t* head
        cdef const uint8_t* host
        cdef uint32_t label_units
        cdef bint split
        if parse_user_message(data, PyBytes_GET_SIZE(packet), &m):
            raise ValueError("a stored packet is malformed")
        head = data + m.properties_offset
        split = may_split and m.body_length >= LARGE_BODY
        # Text grows to at most 3 bytes a UTF-16 unit; 512 covers the fixed fields and the heads of the others.
        self._buffer.reserve(512 + (0 if split else m.body_length) + <size_t>m.extension_length
                             + 3 * <size_t>m.label_chars + m.sender_id_length
                             + 2 * (<size_t>m.dest_length + m.response_length + m.admin_length) + 3 * 64)
        p = self._buffer.data + self._buffer.size
        p[0] = 0xDC
        p = put_be(p + 1, IN_FIELDS, 2)
        p = put_uint(p, lookup_id)
        if split:
            p = put_bin_head(p, m.body_length)
            self._split = p - self._buffer.data
            self._large = memoryview(packet)[m.body_offset:m.body_offset + m.body_length]
        else:
            p = put_bin(p, data + m.body_offset, m.body_length)
        label_units = m.label_chars
        while label_units and get_u16(data + m.label_offset + 2 * (label_units - 1)) == 0:
            label_units -= 1
        p = put_text(p, b"", data + m.label_offset, label_units)
        p = put_uint(p, m.delivery & 1)
        p = put_uint(p, m.priority)
        p = put_uint(p, m.body_type)
        p = put_uint(p, m.app_specific)
        p = put_bin(p, head + 4, 20)
        p = put_bin(p, data + m.extension_offset, m.extension_length)
        # RQ 1: the admin queue; 2: a private queue of the sender; 3: of the destination; 4: of the admin queue's host.
        if m.response_type == 1:
            p = put_queue(p, data, m.admin_type, m.admin_offset, m.admin_length,
                          data + 16 if m.admin_type == 2 else data + 32)
        else:
            host = data + 32
            if m.response_type == 2:
                host = data + 16
            elif m.response_type == 4:
                host = data + 16 if m.admin_type == 2 else data + 32 if m.admin_type == 3 else NULL
                if m.admin_type == 6:
                    host = data + m.admin_offset
            p = put_queue(p, data, m.response_type, m.response_offset, m.response_length, host)
        p = put_queue(p, data, m.admin_type, m.admin_offset, m.admin_length,
                      data + 16 if m.admin_type == 2 else data + 32)
        p = put_uint(p, m.ack_flags)
        p = put_uint(p, (m.user_flags >> 8) & 3)
        p = put_uint(p, m.message_class)
        p[0] = 0xC4
        p[1] = 20
        memcpy(p + 2, data + 16, 16)
        memcpy(p + 18, data + 56, 4)
        p += 22
        p = put_uint(p, m.sent_time)
        p = put_uint(p, arrived_s)
        p = put_uint(p, arrival_seq)
        p = put_queue(p, data, m.dest_type, m.dest_offset, m.dest_length, data + 32)
        p = put_uint(p, 1 if m.transaction_offset else 0)
        if m.sender_id_length:
            p = put_bin(p, data + m.sender_id_offset, m.sender_id_length)
        else:
            p[0] = 0xC0
            p += 1
        p = put_uint(p, abort_count)
        p = put_uint(p, move_count)
        p = put_uint(p, m.time_to_reach_queue)
        p = put_uint(p, m.time_to_be_received)
        self._buffer.size = p - self._buffer.data
        return 0

    cdef int _finish(self, list out) except -1:
        cdef uint8_t* data = self._buffer.data
        cdef size_t size = self._buffer.size
        cdef size_t total = size
        if self._large is not None:
            total += len(self._large)
        put_be(data, total - 4, 4)
        if self._large is None:
            out.append(PyBytes_FromStringAndSize(<const char*>data, size))
            return 0
        out.append(PyBytes_FromStringAndSize(<const char*>data, self._split))
        out.append(self._large)
        out.append(PyBytes_FromStringAndSize(<const char*>data + self._split, size - self._split))
        self._large = None
        return 0

    cdef int _received(self, received, bint may_split) except -1:
        return self._message(received.packet, received.lookup_id, received.arrival_seq,
                             <uint32_t>received.arrived_time, received.abort_count, received.move_count, may_split)

    def message(self, uint32_t request_id, received) -> list:
        """One MESSAGE frame."""
        out = []
        self._begin(FRAME_MESSAGE, request_id)
        self._received(received, True)
        self._finish(out)
        return out

    def delivery(self, uint32_t subscription, uint64_t first_tag, list messages not None, size_t target) -> list:
        """DELIVERY frames for `messages`, whose tags count from `first_tag`; a frame that passes `target` bytes is closed."""
        cdef Py_ssize_t i = 0, n = len(messages), j
        cdef size_t head
        cdef uint8_t* p
        cdef bint large
        out = []
        while i < n:
            p = self._begin(FRAME_DELIVERY, subscription)
            p[0] = 0x92
            p = put_uint(p + 1, first_tag + i)
            p[0] = 0xDD                       # the number of messages is known last
            head = p + 1 - self._buffer.data
            self._buffer.size = head + 4
            j = i
            while j < n:
                large = len((<bytes>messages[j].packet)) >= LARGE_BODY
                if large and j > i:
                    break
                self._received(messages[j], large)
                j += 1
                if large or self._buffer.size >= target:
                    break
            put_be(self._buffer.data + head, j - i, 4)
            self._finish(out)
            i = j
        return out
