# cython: boundscheck=False, wraparound=False, cdivision=True
"""Encodes stored packets as MESSAGE and DELIVERY frames (docs/reference/application-protocol.md 5.1); see appencode.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, strlen
from msmq_fast._native.appread cimport utf16_to_utf8
from msmq_fast._native.framing cimport UserMessage, get_u16, get_u32, parse_user_message
from msmq_fast._native.queuebase cimport Received

cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize" (const char* data, Py_ssize_t size) except NULL
    int resize_bytes "_PyBytes_Resize" (PyObject** data, Py_ssize_t size) except -1

cdef enum:
    IN_FIELDS = 27
    SMALLEST_BUFFER = 4096
    AUTHENTICATION = 0x0F           # SecurityHeader.Flags.AS, in its second byte
    LARGE_BODY = 32768              # bodies of at least this size are returned as views, not copied
    FRAME_DELIVERY = 0x85
    FRAME_MESSAGE = 0x84


cdef class Buffer:
    def __dealloc__(self):
        Py_XDECREF(self._bytes)

    cdef int reserve(self, size_t more) except -1:
        cdef size_t capacity = self.capacity
        if capacity - self.size >= more:
            return 0
        capacity = max(2 * capacity, self.size + more, self._expected, <size_t>SMALLEST_BUFFER)
        self.capacity = 0       # resize frees the bytes if it raises
        if self._bytes == NULL:
            self._bytes = new_bytes(NULL, capacity)
        else:
            resize_bytes(&self._bytes, capacity)
        self.data = <uint8_t*>PyBytes_AS_STRING(<bytes>self._bytes)
        self.capacity = capacity
        return 0

    cdef bytes take(self):
        cdef bytes taken
        cdef size_t size = self.size
        self.capacity = self.size = 0
        self.data = NULL
        if self._bytes == NULL:
            return b""
        resize_bytes(&self._bytes, size)
        taken = <bytes>self._bytes
        Py_XDECREF(self._bytes)
        self._bytes = NULL
        self._expected = size + size // 8
        return taken


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
    """Writes `prefix` and UTF-16LE text as one msgpack str. Its length is known only at the end, so the length field has a fixed width."""
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
    """Writes PRIVATE=guid\\number as a msgpack str."""
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
    """Writes a queue name of the UserHeader as a format name. `host` is the GUID of the queue manager that a private name without a
    computer refers to.
    """
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


cdef inline bytes packet_of(object message):
    if isinstance(message, Received):
        return (<Received>message).packet
    return message.packet


cdef class Encoder:
    """Encodes stored packets as MESSAGE and DELIVERY frames: a list of buffers to be written in order.

    Large bodies are returned as views of the stored packet, not copied.
    """
    cdef Buffer _buffer
    cdef object _large          # view of the body that follows _split, or None
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
                      uint32_t abort_count, uint32_t move_count, uint32_t reason, bint may_split) except -1:
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
        # Text grows to at most 3 bytes per UTF-16 unit. 512 covers the fixed fields and the headers of the other values. The admin queue
        # counts twice, since it may also be the response queue.
        self._buffer.reserve(512 + (0 if split else m.body_length) + <size_t>m.extension_length
                             + 3 * <size_t>m.label_chars + m.sender_id_length
                             + 2 * (<size_t>m.dest_length + m.response_length + 2 * <size_t>m.admin_length) + 3 * 64)
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
        # RQ is 1: the admin queue; 2: a private queue of the sender; 3: of the destination; 4: of the admin queue's host.
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
        p = put_uint(p, reason if reason else m.message_class)  # X-66
        p[0] = 0xC4
        p[1] = 20
        memcpy(p + 2, data + 16, 16)
        memcpy(p + 18, data + 56, 4)
        p += 22
        p = put_uint(p, m.sent_time)
        p = put_uint(p, arrived_s)
        p = put_uint(p, arrival_seq)
        p = put_queue(p, data, m.dest_type, m.dest_offset, m.dest_length, data + 32)
        p = put_uint(p, (1 if m.transaction_offset else 0)
                     | (0 if not m.security_offset
                        else 2 if data[m.security_offset + 1] & AUTHENTICATION
                        else 4 if m.certificate_length or m.signature_length else 0))
        if m.sender_id_length:
            p = put_bin(p, data + m.sender_id_offset, m.sender_id_length)
        else:
            p[0] = 0xC0
            p += 1
        p = put_uint(p, abort_count)
        p = put_uint(p, move_count)
        p = put_uint(p, m.time_to_reach_queue)
        p = put_uint(p, m.time_to_be_received)
        p = put_uint(p, reason)
        # FM, LM and TxIndex of the TransactionHeader, which are 22 bits.
        p = put_uint(p, get_u32(data + m.transaction_offset) >> 2 & 0x3FFFFF if m.transaction_offset else 0)
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
            out.append(self._buffer.take())
            return 0
        out.append(PyBytes_FromStringAndSize(<const char*>data, self._split))
        out.append(self._large)
        out.append(PyBytes_FromStringAndSize(<const char*>data + self._split, size - self._split))
        self._large = None
        return 0

    cdef int _received(self, object message, bint may_split) except -1:
        cdef Received local
        if isinstance(message, Received):
            local = <Received>message
            return self._message(local.packet, local.lookup_id, local.arrival_seq, <uint32_t>(local.arrived_us // 1000000),
                                 local.abort_count, local.move_count, local.reason, may_split)
        # A message of another computer is a Python object.
        return self._message(message.packet, message.lookup_id, message.arrival_seq, <uint32_t>message.arrived_time,
                             message.abort_count, message.move_count, message.reason, may_split)

    def message(self, uint32_t request_id, received) -> list:
        """Encodes one MESSAGE frame."""
        out = []
        self._begin(FRAME_MESSAGE, request_id)
        self._received(received, True)
        self._finish(out)
        return out

    def delivery(self, uint32_t subscription, uint64_t first_tag, list messages not None, size_t target) -> list:
        """Encodes `messages` as DELIVERY frames, with tags from `first_tag`. A frame ends when it exceeds `target` bytes."""
        cdef Py_ssize_t i = 0, n = len(messages), j
        cdef size_t head
        cdef uint8_t* p
        cdef bint large
        out = []
        while i < n:
            p = self._begin(FRAME_DELIVERY, subscription)
            p[0] = 0x92
            p = put_uint(p + 1, first_tag + i)
            p[0] = 0xDD                       # the number of messages is known only at the end
            head = p + 1 - self._buffer.data
            self._buffer.size = head + 4
            j = i
            while j < n:
                large = PyBytes_GET_SIZE(packet_of(messages[j])) >= LARGE_BODY
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
