"""Builds packets of MS-MQQB: writes the fields of a UserMessage (MS-MQMQ 2.2.20), with one allocation."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy, memset

from msmq_fast._native.framing cimport (
    BASE_INTERNAL,
    BASE_PRIORITY,
    BASE_SESSION,
    LABEL_LIMIT,
    MAX_PACKET,
    SIGNATURE,
    USER_ADMIN_SHIFT,
    USER_CONNECTOR,
    USER_DELIVERY_SHIFT,
    USER_DEST_SHIFT,
    USER_HOPS,
    USER_HTTP,
    USER_JOURNAL_NEGATIVE,
    USER_JOURNAL_POSITIVE,
    USER_MESSAGE_FIXED,
    USER_MULTI_QUEUE,
    USER_PROPERTIES,
    USER_RESPONSE_SHIFT,
    USER_SECURITY,
    USER_SOAP,
    USER_TRANSACTION,
    VERSION,
    align4,
    put_u16,
    put_u32,
)

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL


class PacketTooLarge(ValueError):
    """Raised if a packet to be built would exceed the largest packet size."""


cdef void clear_fields(MessageFields* f) noexcept nogil:
    memset(f, 0, sizeof(MessageFields))
    f.priority = 3
    f.dest_type = 7
    f.time_to_reach_queue = 0xFFFFFFFF
    f.time_to_be_received = 0xFFFFFFFF


cdef int64_t utf16_label(const uint8_t* text, uint32_t length, uint8_t* out) noexcept nogil:
    """Converts UTF-8 to at most 249 WCHARs and a NUL at `out` (500 bytes). Returns the number of WCHARs with the NUL, LONG_LABEL, or
    BAD_LABEL if it is not UTF-8.

    Encoded surrogates are accepted, so that a received label with a lone surrogate is sent unchanged.
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
                return BAD_LABEL
            if length - i < more:
                return BAD_LABEL
            while more:
                if text[i] & 0xC0 != 0x80:
                    return BAD_LABEL
                code = code << 6 | (text[i] & 0x3F)
                i += 1
                more -= 1
            if code > 0x10FFFF:
                return BAD_LABEL
        if chars + (2 if code > 0xFFFF else 1) > LABEL_LIMIT - 1:
            return LONG_LABEL
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


cdef int64_t packet_size(const MessageFields* f) noexcept nogil:
    cdef uint8_t label[500]
    cdef int64_t chars = 0
    cdef uint64_t size
    if f.label_length:
        chars = utf16_label(f.label, f.label_length, label)
        if chars < 0:
            return chars
    if (f.dest_length | f.admin_length | f.response_length | f.transaction_length | f.security_length
            | f.trailer_length) & 3:
        return UNPADDED
    size = (<uint64_t>USER_MESSAGE_FIXED + f.dest_length + f.admin_length + f.response_length
            + (16 if f.connector is not NULL else 0) + f.transaction_length + f.security_length
            + 2 * <uint64_t>chars + f.extension_length + f.body_length)
    return <int64_t>(align4(size) + f.trailer_length)


cdef void write_packet(const MessageFields* f, uint8_t* p, uint64_t size) noexcept nogil:
    cdef const uint8_t* end = p + size - f.trailer_length
    cdef uint8_t label[500]
    cdef int64_t chars = 0
    cdef uint32_t flags
    if f.label_length:
        chars = utf16_label(f.label, f.label_length, label)
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
    flags = f.user_flags & (USER_HOPS | USER_JOURNAL_NEGATIVE | USER_JOURNAL_POSITIVE | USER_MULTI_QUEUE | USER_HTTP
                            | USER_SOAP)
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
    p = append_or_zero(p, NULL, end - p)
    append(p, f.trailer, f.trailer_length)


cdef bytes build_packet(const MessageFields* f):
    cdef int64_t size = packet_size(f)
    cdef bytes packet
    if size == UNPADDED:
        raise ValueError("the length of every queue name and header must be a multiple of 4 bytes")
    if size < 0:
        raise ValueError("the label is longer than 249 characters" if size == LONG_LABEL else "the label is not UTF-8")
    if size > MAX_PACKET:
        raise PacketTooLarge(f"a packet of {size} bytes is larger than {MAX_PACKET}")
    packet = PyBytes_FromStringAndSize(NULL, size)
    write_packet(f, <uint8_t*>PyBytes_AS_STRING(packet), size)
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
        raise PacketTooLarge(f"a packet cannot be larger than {MAX_PACKET} bytes")
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
    """Builds a UserMessage packet; the parameters are those of the native MessageFields. Raises ValueError for an invalid or too long
    field, PacketTooLarge (a ValueError) for a packet above the largest size.
    """
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
