"""Parses packets of MS-MQQB: finds the fields of a UserMessage (MS-MQMQ 2.2.19, 2.2.20). Every size is checked, in 64 bits, before it is
used.

To read a further part of the packet: add its offset and length to UserMessage (framing.pxd), find it in a `walk_`
function here, which returns a Fault where a size does not fit, and call that in the order of the wire. A new Fault
also goes into PacketFaultCode (msmq_fast/protocol/errors.py).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memset

cdef enum:
    CERTIFICATE_LIMIT = 0xFFFF
    SECURITY_ENCRYPTED = 0x20   # SecurityHeader.Flags.EB


cdef int walk_queue_name(const uint8_t* data, uint64_t size, uint64_t* pos, int kind,
                         uint32_t* offset, uint32_t* length) noexcept nogil:
    """Skips one queue name of the UserHeader. `kind` is DQ, AQ or RQ, already checked for its field."""
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
    cdef uint64_t at, label, extension, body, allocated
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
    if m.security_offset and get_u16(data + m.security_offset) & SECURITY_ENCRYPTED:
        # MessageSize may be that of the body before it was encrypted (AMB-29).
        allocated = get_u32(h + 36)
        if allocated > body and align4(at + allocated) <= size:
            body = allocated
    if body > size - at or align4(at + body) > size:
        return FAULT_BODY_SIZE
    if body:
        m.body_offset = <uint32_t>at
        m.body_length = <uint32_t>body
    pos[0] = align4(at + body)
    return 0


cdef int walk_soap(const uint8_t* data, uint64_t size, uint64_t* pos, UserMessage* m) noexcept nogil:
    """Skips a SoapHeader (2.2.20.7). The second section may start at the unpadded or at the padded end of the first."""
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
    """Skips one MQFAddressHeader (2.2.20.2) with all its elements (2.2.18.1.4)."""
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
    """Skips the optional headers after the MessagePropertiesHeader: Debug, SRMP envelope, compound message, Soap, MultiQueueFormat."""
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
        if not m.body_length and get_u32(h + 8) and not (
                m.security_offset and get_u16(data + m.security_offset) & SECURITY_ENCRYPTED):
            # The body of a message that arrived over HTTP is stored once, inside the received HTTP message (MS-MQRR 2.2.5.1.2.2).
            m.body_offset = <uint32_t>pos[0] + 16 + get_u32(h + 12)
            m.body_length = get_u32(h + 8)
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
    if pos + SESSION_HEADER_SIZE == size:   # PacketSize includes it, as in a SessionAck
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


cdef class ParsedMessage:
    """A UserMessage packet and the offsets of its parts; created by `parse`."""

    def fields(self):
        """All fields of the native UserMessage struct by name. They are also attributes."""
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
        """The label as text, up to the first NUL. Lone surrogates are kept."""
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
        """The DestinationQueue field as on the wire; `dest_type` is its type."""
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
        """Returns the packet in the form that is stored: without SessionHeader, with the flag SH cleared and PacketSize adjusted."""
        return kept_packet(<const uint8_t*>PyBytes_AS_STRING(self.packet), &self.m)


class BadPacket(ValueError):
    """Raised if a UserMessage breaks a rule of its layout; `code` is the Fault."""

    def __init__(self, code):
        super().__init__(f"malformed packet, fault {code}")
        self.code = code


def parse(data):
    """Parses the UserMessage at the start of `data` (bytes-like). Raises BadPacket if it breaks a rule of its layout."""
    cdef ParsedMessage parsed = ParsedMessage.__new__(ParsedMessage)
    parsed.packet = data if type(data) is bytes else bytes(data)
    cdef int fault = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(parsed.packet),
                                        PyBytes_GET_SIZE(parsed.packet), &parsed.m)
    if fault:
        raise BadPacket(fault)
    return parsed
