"""Packet framing: stream to packets, UserMessage to fields, fields to UserMessage (MS-MQMQ 2.2.19, 2.2.20)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memmove, memset

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef enum:
    BUFFER_SIZE = 65536         # of an idle scanner
    MIN_READ = 8192             # room below which the buffer is compacted or grown
    VERSION = 0x10
    SIGNATURE = 0x524F494C      # "LIOR"
    LABEL_LIMIT = 0xFA          # WCHARs with the NUL
    CERTIFICATE_LIMIT = 0xFFFF


# ---------------------------------------------------------------------------------------------- parsing

cdef inline uint64_t align4(uint64_t value) noexcept nogil:
    return (value + 3) & ~<uint64_t>3


cdef int walk_queue_name(const uint8_t* data, uint64_t size, uint64_t* pos, int kind,
                         uint32_t* offset, uint32_t* length) noexcept nogil:
    """One queue name of the UserHeader; `kind` is DQ, AQ or RQ, already checked for its field."""
    cdef uint64_t at = pos[0], count
    if kind == 0 or kind == 1:
        return 0
    if kind == 7:
        if size - at < 2:
            return FAULT_QUEUE_NAME_SIZE
        count = get_u16(data + at)
        if align4(2 + count) > size - at:
            return FAULT_QUEUE_NAME_SIZE
        if count < 2 or count & 1 or get_u16(data + at + count) != 0:
            return FAULT_QUEUE_NAME
        count = align4(2 + count)
    else:
        count = 16 if kind == 5 else 20 if kind == 6 else 4
        if count > size - at:
            return FAULT_QUEUE_NAME_SIZE
    offset[0] = <uint32_t>at
    length[0] = <uint32_t>count
    pos[0] = at + count
    return 0


cdef inline int walk_security_item(uint64_t size, uint64_t* pos, uint64_t length,
                                   uint32_t* item_offset, uint32_t* item_length) noexcept nogil:
    if length == 0:
        return 0
    if align4(length) > size - pos[0]:
        return FAULT_SECURITY_SIZE
    item_offset[0] = <uint32_t>pos[0]
    item_length[0] = <uint32_t>length
    pos[0] += align4(length)
    return 0


cdef int walk_security(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    cdef const uint8_t* h = data + pos[0]
    cdef uint64_t certificate, provider
    cdef int fault
    if size - pos[0] < 16:
        return FAULT_SECURITY_SIZE
    certificate = get_u32(h + 8)
    provider = get_u32(h + 12)
    if get_u16(h) & 0x0F == 0 and get_u16(h + 2) != 0:
        return FAULT_SENDER_ID
    if certificate > CERTIFICATE_LIMIT:
        return FAULT_CERTIFICATE_SIZE
    if 0 < provider < 6:        # a type and at least the NUL of a name
        return FAULT_PROVIDER_SIZE
    m.security_offset = <uint32_t>pos[0]
    pos[0] += 16
    fault = walk_security_item(size, pos, get_u16(h + 2), &m.sender_id_offset, &m.sender_id_length)
    if fault == 0:
        fault = walk_security_item(size, pos, get_u16(h + 4), &m.encryption_key_offset, &m.encryption_key_length)
    if fault == 0:
        fault = walk_security_item(size, pos, get_u16(h + 6), &m.signature_offset, &m.signature_length)
    if fault == 0:
        fault = walk_security_item(size, pos, certificate, &m.certificate_offset, &m.certificate_length)
    if fault == 0:
        fault = walk_security_item(size, pos, provider, &m.provider_offset, &m.provider_length)
    return fault


cdef int walk_properties(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    cdef const uint8_t* h = data + pos[0]
    cdef uint64_t at, label, extension, body
    if size - pos[0] < 56:
        return FAULT_PROPERTIES_SIZE
    m.properties_offset = <uint32_t>pos[0]
    m.ack_flags = h[0] & 0x0F
    m.message_class = get_u16(h + 2)
    m.body_type = get_u32(h + 24)
    m.app_specific = get_u32(h + 28)
    label = h[1]
    body = get_u32(h + 32)
    extension = get_u32(h + 52)
    if label > LABEL_LIMIT:
        return FAULT_LABEL_LENGTH
    at = pos[0] + 56
    if 2 * label > size - at:
        return FAULT_LABEL_LENGTH
    if label:
        m.label_offset = <uint32_t>at
        m.label_chars = <uint32_t>label
    at += 2 * label
    if extension > size - at:
        return FAULT_EXTENSION_SIZE
    if extension:
        m.extension_offset = <uint32_t>at
        m.extension_length = <uint32_t>extension
    at += extension
    if body > size - at or align4(at + body) > size:
        return FAULT_BODY_SIZE
    if body:
        m.body_offset = <uint32_t>at
        m.body_length = <uint32_t>body
    pos[0] = align4(at + body)
    return 0


cdef int walk_soap(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    """SoapHeader (2.2.20.7). The second section may start at the unpadded or at the padded end of the first."""
    cdef uint64_t at = pos[0], chars
    if size - at < 8:
        return FAULT_SOAP_SIZE
    if get_u16(data + at) != 0x0320:
        return FAULT_SOAP_SECTION
    m.soap_offset = <uint32_t>at
    chars = get_u32(data + at + 4)
    at += 8
    if 2 * chars > size - at:
        return FAULT_SOAP_SIZE
    at += 2 * chars
    if size - at < 8:
        return FAULT_SOAP_SIZE
    if get_u16(data + at) != 0x0384:
        at = align4(at)
        if size - at < 8:
            return FAULT_SOAP_SIZE
        if get_u16(data + at) != 0x0384:
            return FAULT_SOAP_SECTION
    chars = get_u32(data + at + 4)
    at += 8
    if 2 * chars > size - at or align4(at + 2 * chars) > size:
        return FAULT_SOAP_SIZE
    pos[0] = align4(at + 2 * chars)
    return 0


cdef int walk_mqf_address(const uint8_t* data, uint64_t size, uint64_t* pos, int section) noexcept nogil:
    """One MQFAddressHeader (2.2.20.2) with all its elements (2.2.18.1.4)."""
    cdef uint64_t start = pos[0], end, at, left, header
    cdef int kind
    if size - start < 12:
        return FAULT_MQF_SIZE
    header = get_u32(data + start)
    if header < 12 or align4(header) > size - start:
        return FAULT_MQF_SIZE
    if get_u16(data + start + 4) != section:
        return FAULT_MQF_SECTION
    end = start + header
    at = start + 12
    left = get_u32(data + start + 8)
    while left:
        left -= 1
        if end - at < 4:        # the shortest element: a type and an empty name
            return FAULT_MQF_ELEMENT
        kind = get_u16(data + at)
        at += 2
        if kind == 3:
            while True:
                if end - at < 2:
                    return FAULT_MQF_ELEMENT
                at += 2
                if get_u16(data + at - 2) == 0:
                    break
        elif kind == 1 or kind == 2 or kind == 6:
            at = align4(at) + (20 if kind == 2 else 16)
            if at > end:
                return FAULT_MQF_ELEMENT
        else:
            return FAULT_MQF_ELEMENT
    pos[0] = start + align4(header)
    return 0


cdef int walk_mqf(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    cdef uint64_t signature
    cdef int fault
    m.mqf_offset = <uint32_t>pos[0]
    fault = walk_mqf_address(data, size, pos, 0x0064)
    if fault == 0:
        fault = walk_mqf_address(data, size, pos, 0x00C8)
    if fault == 0:
        fault = walk_mqf_address(data, size, pos, 0x012C)
    if fault:
        return fault
    if size - pos[0] < 8:
        return FAULT_MQF_SIZE
    if get_u16(data + pos[0]) != 0x015E:
        return FAULT_MQF_SECTION
    signature = get_u32(data + pos[0] + 4)
    if align4(8 + signature) > size - pos[0]:
        return FAULT_MQF_SIZE
    pos[0] += align4(8 + signature)
    return 0


cdef int walk_optional(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    """What may follow the MessagePropertiesHeader: Debug, SRMP envelope, compound message, Soap, MultiQueueFormat."""
    cdef uint64_t length
    cdef const uint8_t* h
    cdef int fault
    if m.base_flags & BASE_DEBUG:
        if size - pos[0] < 4:
            return FAULT_DEBUG_SIZE
        length = get_u16(data + pos[0]) & 3
        if length > 1:
            return FAULT_DEBUG_TYPE
        length = 20 if length else 4
        if length > size - pos[0]:
            return FAULT_DEBUG_SIZE
        m.debug_offset = <uint32_t>pos[0]
        pos[0] += length
    if m.user_flags & USER_HTTP:
        if size - pos[0] < 8:
            return FAULT_ENVELOPE_SIZE
        length = 8 + 2 * <uint64_t>get_u32(data + pos[0] + 4)
        if align4(length) > size - pos[0]:
            return FAULT_ENVELOPE_SIZE
        m.envelope_offset = <uint32_t>pos[0]
        pos[0] += align4(length)
        h = data + pos[0]
        if size - pos[0] < 16:
            return FAULT_COMPOUND_SIZE
        length = get_u32(h + 4)
        if align4(16 + length) > size - pos[0]:
            return FAULT_COMPOUND_SIZE
        if <uint64_t>get_u32(h + 8) + get_u32(h + 12) > length:
            return FAULT_COMPOUND_SIZE
        m.compound_offset = <uint32_t>pos[0]
        pos[0] += align4(16 + length)
    if m.user_flags & USER_SOAP:
        fault = walk_soap(data, size, pos, m)
        if fault:
            return fault
    if m.user_flags & USER_MULTI_QUEUE:
        fault = walk_mqf(data, size, pos, m)
        if fault:
            return fault
    return 0


cdef int walk_user_header(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    cdef uint32_t flags
    cdef int fault
    if size - pos[0] < 48:
        return FAULT_USER_SIZE
    m.time_to_be_received = get_u32(data + 48)
    m.sent_time = get_u32(data + 52)
    m.message_id = get_u32(data + 56)
    flags = get_u32(data + 60)
    m.user_flags = flags
    m.delivery = (flags >> USER_DELIVERY_SHIFT) & 3
    m.dest_type = (flags >> USER_DEST_SHIFT) & 7
    m.admin_type = (flags >> USER_ADMIN_SHIFT) & 7
    m.response_type = (flags >> USER_RESPONSE_SHIFT) & 7
    if m.delivery > 1:
        return FAULT_DELIVERY
    if m.dest_type != 0 and m.dest_type != 3 and m.dest_type != 5 and m.dest_type != 7:
        return FAULT_DESTINATION_TYPE
    if m.admin_type == 1 or m.admin_type == 4:
        return FAULT_ADMIN_TYPE
    if flags & USER_TRANSACTION and m.delivery == 0:
        return FAULT_TRANSACTION_EXPRESS
    if not flags & USER_PROPERTIES:
        return FAULT_NO_PROPERTIES
    pos[0] += 48
    fault = walk_queue_name(data, size, pos, m.dest_type, &m.dest_offset, &m.dest_length)
    if fault == 0:
        fault = walk_queue_name(data, size, pos, m.admin_type, &m.admin_offset, &m.admin_length)
    if fault == 0:
        fault = walk_queue_name(data, size, pos, m.response_type, &m.response_offset, &m.response_length)
    if fault:
        return fault
    if flags & USER_CONNECTOR:
        if size - pos[0] < 16:
            return FAULT_USER_SIZE
        m.connector_offset = <uint32_t>pos[0]
        pos[0] += 16
    return 0


cdef inline int check_base(const uint8_t* data, size_t limit) noexcept nogil:
    """The BaseHeader rules that hold for every packet; at least 16 bytes are there."""
    cdef uint32_t size
    if data[0] != VERSION:
        return FAULT_VERSION
    if get_u32(data + 4) != SIGNATURE:
        return FAULT_SIGNATURE
    size = get_u32(data + 8)
    if size < 20 or size > limit:
        return FAULT_PACKET_SIZE
    return 0


cdef int parse_user_message(const uint8_t* data, size_t length, UserMessage* out) noexcept nogil:
    cdef uint64_t pos = 16, size
    cdef int fault
    memset(out, 0, sizeof(UserMessage))
    out.wire_size = 16
    if length < 16:
        return FAULT_TRUNCATED
    fault = check_base(data, MAX_PACKET)
    if fault:
        return fault
    out.base_flags = get_u16(data + 2)
    if out.base_flags & BASE_INTERNAL:
        return FAULT_INTERNAL
    size = get_u32(data + 8)
    out.wire_size = <uint32_t>size
    if length < size:
        return FAULT_TRUNCATED
    out.size = <uint32_t>size
    out.priority = out.base_flags & BASE_PRIORITY
    out.time_to_reach_queue = get_u32(data + 12)
    fault = walk_user_header(data, size, &pos, out)
    if fault:
        return fault
    if out.user_flags & USER_TRANSACTION:
        if size - pos < 20:
            return FAULT_TRANSACTION_SIZE
        out.transaction_offset = <uint32_t>pos
        pos += 36 if data[pos] & 1 else 20
        if pos > size:
            return FAULT_TRANSACTION_SIZE
    if out.user_flags & USER_SECURITY:
        fault = walk_security(data, size, &pos, out)
        if fault:
            return fault
    fault = walk_properties(data, size, &pos, out)
    if fault:
        return fault
    if out.base_flags & BASE_DEBUG or out.user_flags & (USER_HTTP | USER_SOAP | USER_MULTI_QUEUE):
        fault = walk_optional(data, size, &pos, out)
        if fault:
            return fault
    if not out.base_flags & BASE_SESSION:
        return 0 if pos == size else FAULT_LENGTH_MISMATCH
    if pos == size:             # the SessionHeader follows the packet
        out.session_offset = <uint32_t>size
        out.wire_size = <uint32_t>size + SESSION_HEADER_SIZE
        return 0 if length >= out.wire_size else FAULT_TRUNCATED
    if pos + SESSION_HEADER_SIZE == size:   # PacketSize counts it, as that of a SessionAck does
        out.session_offset = <uint32_t>pos
        out.size = <uint32_t>pos
        return 0
    return FAULT_LENGTH_MISMATCH


cdef bytes kept_packet(const uint8_t* packet, const UserMessage* m):
    cdef bytes kept = PyBytes_FromStringAndSize(<const char*>packet, m.size)
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(kept)
    if m.session_offset:
        patch_session_flag(p, False)
        put_u32(p + 8, m.size)
    return kept


# --------------------------------------------------------------------------------------------- scanning

cdef class PacketScanner:
    """A growing receive buffer that hands out whole packets.

    Bytes go in through `buffer` and `commit` (the shape of asyncio.BufferedProtocol) or `feed`; packets come
    out of `take`. The buffer grows with what really arrives, up to one packet of `max_packet` bytes and a
    SessionHeader, and shrinks back when it is empty. After a malformed packet the stream has no further packets.
    """

    def __cinit__(self, size_t max_packet=MAX_PACKET):
        if not 572 <= max_packet <= MAX_PACKET:
            raise ValueError(f"max_packet must be in 572..{MAX_PACKET}, not {max_packet}")
        self.max_packet = max_packet

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

    cpdef object buffer(self, Py_ssize_t hint):
        """A writable view of free room, never empty; `hint` (bytes wanted) is advice only.

        BufferError: whole packets fill the buffer and must be taken first.
        """
        cdef size_t held = self._end - self._start
        cdef size_t limit = max(<size_t>BUFFER_SIZE, self.max_packet + SESSION_HEADER_SIZE)
        if held == 0 and self._capacity != BUFFER_SIZE:
            self._resize(BUFFER_SIZE)
        elif held == 0:
            self._start = self._end = 0
        elif self._capacity - self._end < MIN_READ:
            if held > self._capacity // 2 and self._capacity < limit:
                self._resize(min(self._capacity * 2, limit))
            elif self._start:
                memmove(self._data, self._data + self._start, held)
                self._start, self._end = 0, held
            if self._end == self._capacity:
                raise BufferError("the receive buffer is full of packets that were not taken")
        return memoryview(self._store)[self._end:]

    cpdef int commit(self, Py_ssize_t count) except -1:
        """`count` bytes were written to the view that `buffer` returned."""
        if count < 0 or <size_t>count > self._capacity - self._end:
            raise ValueError("more bytes committed than the buffer had room for")
        self._end += count
        return 0

    cdef int next_packet(self) except? -2:
        cdef size_t held = self._end - self._start
        cdef const uint8_t* data = self._data + self._start
        cdef size_t size
        cdef int fault, kind, packet_type
        if self.fault:
            return PACKET_BAD
        if held < 16:
            return PACKET_NONE
        fault = check_base(data, self.max_packet)
        if fault:
            self.fault = fault
            return PACKET_BAD
        size = get_u32(data + 8)
        if get_u16(data + 2) & BASE_INTERNAL:
            if held < 20:
                return PACKET_NONE
            packet_type = data[18] & 0x0F
            if packet_type == 1:
                kind = PACKET_SESSION_ACK
                if not get_u16(data + 2) & BASE_SESSION:
                    self.fault = FAULT_SESSION_ACK_NO_HEADER
                elif size != 36:
                    self.fault = FAULT_SESSION_ACK_SIZE
            elif packet_type == 2:
                kind = PACKET_ESTABLISH_CONNECTION
                if size != 572:
                    self.fault = FAULT_ESTABLISH_SIZE
            elif packet_type == 3:
                kind = PACKET_CONNECTION_PARAMETERS
                if size != 32:
                    self.fault = FAULT_PARAMETERS_SIZE
            else:
                self.fault = FAULT_PACKET_TYPE
            if self.fault:
                return PACKET_BAD
            if held < size:
                return PACKET_NONE
        else:
            if held < size:
                return PACKET_NONE
            kind = PACKET_USER_MESSAGE
            fault = parse_user_message(data, held, &self.message)
            if fault == FAULT_TRUNCATED:    # only the SessionHeader behind the packet is missing
                return PACKET_NONE
            if fault:
                self.fault = fault
                return PACKET_BAD
            size = self.message.wire_size
        self.packet = data
        self.packet_size = size
        self._start += size
        return kind

    def feed(self, data):
        """Copy `data` (bytes) in. For callers without a BufferedProtocol; BufferError as `buffer`."""
        cdef object view
        rest = memoryview(data).cast("B")
        while len(rest):
            view = self.buffer(len(rest))
            count = min(len(view), len(rest))
            view[:count] = rest[:count]
            self.commit(count)
            rest = rest[count:]

    def take(self):
        """The next (kind, packet bytes with any SessionHeader), or None: more input is needed.

        (PACKET_BAD, b"") for a malformed packet, then and ever after; `fault` says why.
        """
        cdef int kind = self.next_packet()
        if kind == PACKET_NONE:
            return None
        if kind == PACKET_BAD:
            return kind, b""
        return kind, PyBytes_FromStringAndSize(<const char*>self.packet, self.packet_size)

    @property
    def held(self):
        """Bytes received and not taken."""
        return self._end - self._start

    @property
    def capacity(self):
        """Bytes of memory that the buffer occupies."""
        return self._capacity


cdef class ParsedMessage:
    """A UserMessage packet and where its parts are; made by `parse`."""

    def fields(self):
        """All fields of the native UserMessage struct by name; they are attributes too."""
        if self._fields is None:
            self._fields = self.m
        return self._fields

    def __getattr__(self, name):
        try:
            return self.fields()[name]
        except KeyError:
            raise AttributeError(name) from None

    cdef object _view(self, uint32_t offset, uint32_t length):
        return memoryview(self.packet)[offset:offset + length]

    @property
    def body(self):
        return self._view(self.m.body_offset, self.m.body_length)

    @property
    def extension(self):
        return self._view(self.m.extension_offset, self.m.extension_length)

    @property
    def label(self):
        """Text up to the first NUL; lone surrogates are kept."""
        raw = self.packet[self.m.label_offset:self.m.label_offset + 2 * self.m.label_chars]
        return raw.decode("utf-16-le", "surrogatepass").partition("\0")[0]

    @property
    def correlation_id(self):
        return self.packet[self.m.properties_offset + 4:self.m.properties_offset + 24]

    @property
    def source(self):
        """SourceQueueManager, 16 bytes."""
        return self.packet[16:32]

    @property
    def destination_manager(self):
        """QueueManagerAddress, 16 bytes."""
        return self.packet[32:48]

    @property
    def destination(self):
        """The DestinationQueue field as on the wire; its form is `dest_type`."""
        return self._view(self.m.dest_offset, self.m.dest_length)

    @property
    def admin(self):
        return self._view(self.m.admin_offset, self.m.admin_length)

    @property
    def response(self):
        return self._view(self.m.response_offset, self.m.response_length)

    @property
    def sender_id(self):
        return self._view(self.m.sender_id_offset, self.m.sender_id_length)

    def kept(self):
        """The bytes that are stored: no SessionHeader, SH clear, PacketSize to match."""
        return kept_packet(<const uint8_t*>PyBytes_AS_STRING(self.packet), &self.m)


class BadPacket(ValueError):
    """A UserMessage breaks a rule; `code` is a Fault."""

    def __init__(self, code):
        super().__init__(f"malformed packet, fault {code}")
        self.code = code


def parse(data):
    """The UserMessage that `data` (bytes-like) starts with; BadPacket says what is wrong with it."""
    cdef ParsedMessage parsed = ParsedMessage.__new__(ParsedMessage)
    parsed.packet = data if type(data) is bytes else bytes(data)
    cdef int fault = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(parsed.packet),
                                        PyBytes_GET_SIZE(parsed.packet), &parsed.m)
    if fault:
        raise BadPacket(fault)
    return parsed


# --------------------------------------------------------------------------------------------- building

cdef void clear_fields(MessageFields* f) noexcept nogil:
    memset(f, 0, sizeof(MessageFields))
    f.priority = 3
    f.dest_type = 7
    f.time_to_reach_queue = 0xFFFFFFFF
    f.time_to_be_received = 0xFFFFFFFF


cdef int64_t utf16_label(const uint8_t* text, uint32_t length, uint8_t* out) noexcept nogil:
    """UTF-8 to at most 249 WCHARs and a NUL at `out` (500 bytes); WCHARs with the NUL, -1 too long, -2 not UTF-8.

    Encoded surrogates are accepted: a label that came from the wire with a lone one goes out unchanged.
    """
    cdef uint32_t i = 0, chars = 0, code, more
    while i < length:
        code = text[i]
        i += 1
        more = 0
        if code >= 0x80:
            if 0xC2 <= code < 0xE0:
                more = 1
                code &= 0x1F
            elif 0xE0 <= code < 0xF0:
                more = 2
                code &= 0x0F
            elif 0xF0 <= code < 0xF5:
                more = 3
                code &= 0x07
            else:
                return -2
            if length - i < more:
                return -2
            while more:
                if text[i] & 0xC0 != 0x80:
                    return -2
                code = code << 6 | (text[i] & 0x3F)
                i += 1
                more -= 1
            if code > 0x10FFFF:
                return -2
        if chars + (2 if code > 0xFFFF else 1) > LABEL_LIMIT - 1:
            return -1
        if code > 0xFFFF:
            code -= 0x10000
            put_u16(out + 2 * chars, <uint16_t>(0xD800 | (code >> 10)))
            chars += 1
            code = 0xDC00 | (code & 0x3FF)
        put_u16(out + 2 * chars, <uint16_t>code)
        chars += 1
    put_u16(out + 2 * chars, 0)
    return chars + 1


cdef inline uint8_t* append(uint8_t* to, const uint8_t* data, size_t length) noexcept nogil:
    if length:
        memcpy(to, data, length)
    return to + length


cdef inline uint8_t* append_or_zero(uint8_t* to, const uint8_t* data, size_t length) noexcept nogil:
    if data is NULL:
        memset(to, 0, length)
    else:
        memcpy(to, data, length)
    return to + length


cdef bytes build_packet(const MessageFields* f):
    cdef uint8_t label[500]
    cdef int64_t chars = 0
    cdef uint64_t size, padding
    cdef uint32_t flags
    cdef bytes packet
    cdef uint8_t* p
    if f.label_length:
        chars = utf16_label(f.label, f.label_length, label)
        if chars < 0:
            raise ValueError("label is longer than 249 characters" if chars == -1 else "label is not UTF-8")
    if (f.dest_length | f.admin_length | f.response_length | f.transaction_length | f.security_length
            | f.trailer_length) & 3:
        raise ValueError("queue names and headers must be padded to 4 bytes")
    size = (<uint64_t>USER_MESSAGE_FIXED + f.dest_length + f.admin_length + f.response_length
            + (16 if f.connector is not NULL else 0) + f.transaction_length + f.security_length
            + 2 * <uint64_t>chars + f.extension_length + f.body_length)
    padding = align4(size) - size
    size += padding + f.trailer_length
    if size > MAX_PACKET:
        raise ValueError(f"a packet of {size} bytes is larger than {MAX_PACKET}")
    packet = PyBytes_FromStringAndSize(NULL, size)
    p = <uint8_t*>PyBytes_AS_STRING(packet)
    p[0] = VERSION
    p[1] = 0
    put_u16(p + 2, (f.base_flags & ~(BASE_PRIORITY | BASE_INTERNAL | BASE_SESSION)) | (f.priority & BASE_PRIORITY))
    put_u32(p + 4, SIGNATURE)
    put_u32(p + 8, <uint32_t>size)
    put_u32(p + 12, f.time_to_reach_queue)
    append_or_zero(p + 16, f.source, 16)
    append_or_zero(p + 32, f.destination_manager, 16)
    put_u32(p + 48, f.time_to_be_received)
    put_u32(p + 52, f.sent_time)
    put_u32(p + 56, f.message_id)
    flags = f.user_flags & (USER_HOPS | USER_JOURNAL_NEGATIVE | USER_JOURNAL_POSITIVE | USER_MULTI_QUEUE | USER_SOAP)
    flags |= USER_PROPERTIES | <uint32_t>(f.delivery & 3) << USER_DELIVERY_SHIFT
    flags |= (<uint32_t>(f.dest_type & 7) << USER_DEST_SHIFT | <uint32_t>(f.admin_type & 7) << USER_ADMIN_SHIFT
              | <uint32_t>(f.response_type & 7) << USER_RESPONSE_SHIFT)
    if f.connector is not NULL:
        flags |= USER_CONNECTOR
    if f.transaction_length:
        flags |= USER_TRANSACTION
    if f.security_length:
        flags |= USER_SECURITY
    put_u32(p + 60, flags)
    p = append(p + 64, f.dest, f.dest_length)
    p = append(p, f.admin, f.admin_length)
    p = append(p, f.response, f.response_length)
    p = append(p, f.connector, 16 if f.connector is not NULL else 0)
    p = append(p, f.transaction, f.transaction_length)
    p = append(p, f.security, f.security_length)
    p[0] = f.ack_flags & 0x0F
    p[1] = <uint8_t>chars
    put_u16(p + 2, f.message_class)
    append_or_zero(p + 4, f.correlation_id, 20)
    put_u32(p + 24, f.body_type)
    put_u32(p + 28, f.app_specific)
    put_u32(p + 32, f.body_length)
    put_u32(p + 36, f.body_length)
    put_u32(p + 40, f.privacy_level)
    put_u32(p + 44, f.hash_algorithm)
    put_u32(p + 48, f.encryption_algorithm)
    put_u32(p + 52, f.extension_length)
    p = append(p + 56, label, 2 * <size_t>chars)
    p = append(p, f.extension, f.extension_length)
    p = append(p, f.body, f.body_length)
    p = append_or_zero(p, NULL, padding)
    append(p, f.trailer, f.trailer_length)
    return packet


cdef inline const uint8_t* _fixed(bytes value, Py_ssize_t length, str name) except? NULL:
    if value is None:
        return NULL
    if PyBytes_GET_SIZE(value) != length:
        raise ValueError(f"{name} must have {length} bytes")
    return <const uint8_t*>PyBytes_AS_STRING(value)


cdef inline const uint8_t* _variable(bytes value, uint32_t* length) except? NULL:
    if value is None:
        return NULL
    if PyBytes_GET_SIZE(value) > MAX_PACKET:
        raise ValueError(f"a packet cannot be larger than {MAX_PACKET} bytes")
    length[0] = <uint32_t>PyBytes_GET_SIZE(value)
    return <const uint8_t*>PyBytes_AS_STRING(value)


def build_user_message(
    bytes destination, uint8_t dest_type=7, *, bytes body=None, str label=None, bytes extension=None,
    uint8_t priority=3, uint8_t delivery=0, uint32_t time_to_reach_queue=0xFFFFFFFF,
    uint32_t time_to_be_received=0xFFFFFFFF, uint32_t sent_time=0, uint32_t message_id=0,
    bytes source=None, bytes destination_manager=None, bytes admin=None, uint8_t admin_type=0,
    bytes response=None, uint8_t response_type=0, bytes connector=None, uint16_t base_flags=0, uint32_t user_flags=0,
    uint8_t acknowledge=0, uint16_t message_class=0, bytes correlation_id=None, uint32_t body_type=0,
    uint32_t app_specific=0, uint32_t privacy_level=0, uint32_t hash_algorithm=0, uint32_t encryption_algorithm=0,
    bytes transaction=None, bytes security=None, bytes trailer=None,
):
    """A UserMessage packet; the parameters are those of the native MessageFields. ValueError: a bad or too long field."""
    cdef MessageFields f
    cdef Py_ssize_t size
    cdef bytes encoded
    clear_fields(&f)
    f.dest_type, f.admin_type, f.response_type = dest_type, admin_type, response_type
    f.priority, f.delivery, f.ack_flags, f.message_class = priority, delivery, acknowledge, message_class
    f.base_flags, f.user_flags = base_flags, user_flags
    f.time_to_reach_queue, f.time_to_be_received = time_to_reach_queue, time_to_be_received
    f.sent_time, f.message_id = sent_time, message_id
    f.body_type, f.app_specific = body_type, app_specific
    f.privacy_level, f.hash_algorithm, f.encryption_algorithm = privacy_level, hash_algorithm, encryption_algorithm
    f.source = _fixed(source, 16, "source")
    f.destination_manager = _fixed(destination_manager, 16, "destination_manager")
    f.connector = _fixed(connector, 16, "connector")
    f.correlation_id = _fixed(correlation_id, 20, "correlation_id")
    f.dest = _variable(destination, &f.dest_length)
    f.admin = _variable(admin, &f.admin_length)
    f.response = _variable(response, &f.response_length)
    f.transaction = _variable(transaction, &f.transaction_length)
    f.security = _variable(security, &f.security_length)
    f.trailer = _variable(trailer, &f.trailer_length)
    f.extension = _variable(extension, &f.extension_length)
    f.body = _variable(body, &f.body_length)
    if label:
        if label.isascii():
            f.label = <const uint8_t*>PyUnicode_AsUTF8AndSize(label, &size)
        else:
            encoded = label.encode("utf-8", "surrogatepass")
            f.label, size = <const uint8_t*>PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded)
        f.label_length = <uint32_t>min(size, 4096)
    return build_packet(&f)


def patched(bytes packet, *, time_to_reach_queue=None, sent_time=None, message_id=None, hops=None):
    """A copy of a UserMessage packet with these header fields replaced; ValueError if it is too short."""
    if PyBytes_GET_SIZE(packet) < USER_MESSAGE_FIXED:
        raise ValueError("not a UserMessage packet")
    cdef bytes copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet))
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(copy)
    if time_to_reach_queue is not None:
        patch_time_to_reach_queue(p, time_to_reach_queue)
    if sent_time is not None:
        patch_sent_time(p, sent_time)
    if message_id is not None:
        patch_message_id(p, message_id)
    if hops is not None:
        patch_hops(p, hops)
    return copy


def with_session_header(bytes packet, bytes header):
    """The packet with SH set and the 16 bytes of `header` behind it; PacketSize does not count them."""
    if PyBytes_GET_SIZE(packet) < USER_MESSAGE_FIXED or PyBytes_GET_SIZE(header) != SESSION_HEADER_SIZE:
        raise ValueError("not a UserMessage packet and a SessionHeader")
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packet)
    cdef bytes copy = PyBytes_FromStringAndSize(NULL, size + SESSION_HEADER_SIZE)
    cdef uint8_t* p = <uint8_t*>PyBytes_AS_STRING(copy)
    memcpy(p, PyBytes_AS_STRING(packet), size)
    memcpy(p + size, PyBytes_AS_STRING(header), SESSION_HEADER_SIZE)
    patch_session_flag(p, True)
    return copy
