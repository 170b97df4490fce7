# cython: boundscheck=False, wraparound=False, cdivision=True
"""Reads msgpack (docs/reference/application-protocol.md 4); see appread.pxd."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset
from msmq_fast._native.framing cimport INFINITE, get_u32

cdef enum:
    OUT_FIELDS = 22
    DIGEST_SIZE = 16


class FrameFault(ValueError):
    """Raised if the payload of a frame does not have the layout that its type prescribes."""


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
    if b == 0xC2 or b == 0xC3:              # a bool instead of a small number
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
    out[0] = get_be(c.at + 1, n)
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
        out[0] = <uint32_t>get_be(c.at + 1, 2)
        c.at += 3
        return 0
    if b == 0xDD and c.end - c.at >= 5:
        out[0] = <uint32_t>get_be(c.at + 1, 4)
        c.at += 5
        return 0
    return -1


cdef int read_blob(Cursor* c, bint text, const uint8_t** data, uint32_t* size) noexcept nogil:
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
        length = get_be(c.at + 1, n)
    if <uint64_t>(c.end - c.at) < 1 + n + length:
        return -1
    data[0] = c.at + 1 + n
    size[0] = <uint32_t>length
    c.at += 1 + n + length
    return 0


cdef inline bint pass_nil(Cursor* c) noexcept nogil:
    if c.at < c.end and c.at[0] == 0xC0:
        c.at += 1
        return True
    return False


cdef int read_u32(Cursor* c, uint32_t* out) noexcept nogil:
    cdef uint64_t value
    if read_uint(c, &value) or value > 0xFFFFFFFFULL:
        return -1
    out[0] = <uint32_t>value
    return 0


cdef int read_message(Cursor* c, OutMessage* m) noexcept nogil:
    """Reads one message array. Returns -1 if it does not have the right layout. The ranges of values are checked later, by the
    PacketBuilder.
    """
    cdef uint32_t fields, i, size
    cdef int bad = 0
    memset(m, 0, sizeof(OutMessage))
    m.priority = 3
    m.time_to_reach_queue = long_lived()
    m.time_to_be_received = INFINITE
    if read_array(c, &fields) or fields > OUT_FIELDS:
        return -1
    for i in range(fields):
        if pass_nil(c):
            continue
        if i == 0:
            bad = read_blob(c, False, &m.body, &m.body_size)
        elif i == 1:
            bad = read_blob(c, True, &m.label, &m.label_size)
        elif i == 2:
            bad = read_uint(c, &m.delivery)
        elif i == 3:
            bad = read_uint(c, &m.priority)
        elif i == 4:
            bad = read_u32(c, &m.body_type)
        elif i == 5:
            bad = read_u32(c, &m.app_specific)
        elif i == 6:
            bad = read_blob(c, False, &m.correlation, &size)
            if not bad and size == 0:
                m.correlation = NULL
            elif not bad and size != 20:
                bad = -1
        elif i == 7:
            bad = read_blob(c, False, &m.extension, &m.extension_size)
        elif i == 8:
            bad = read_blob(c, True, &m.response, &m.response_size)
        elif i == 9:
            bad = read_blob(c, True, &m.admin, &m.admin_size)
        elif i == 10:
            bad = read_uint(c, &m.acknowledge)
        elif i == 11:
            bad = read_uint(c, &m.journal)
        elif i == 12:
            bad = read_u32(c, &m.time_to_reach_queue)
        elif i == 13:
            bad = read_u32(c, &m.time_to_be_received)
        elif i == 14:
            bad = read_uint(c, &m.message_class)
        elif i == 15:
            bad = read_blob(c, True, &m.dead_letter, &m.dead_letter_size)
        elif i == 16:
            bad = read_uint(c, &m.authentication)
        elif i == 17:
            bad = read_u32(c, &m.privacy_level)
        elif i == 18:
            bad = read_u32(c, &m.hash_algorithm)
        elif i == 19:
            bad = read_u32(c, &m.encryption_algorithm)
        elif i == 20:
            bad = read_blob(c, False, &m.certificate, &size)
            if not bad and size == 0:
                m.certificate = NULL
            elif not bad and size != DIGEST_SIZE:
                bad = -1
        elif i == 21:
            bad = read_uint(c, &m.sender)
        if bad:
            return -1
    return 0


# ---------------------------------------------------------------------------------------------- text

cdef int64_t utf16_units(const uint8_t* p, size_t size) noexcept nogil:
    """Returns the number of UTF-16 units of this UTF-8 text. Returns -1 if it is malformed or contains a NUL, since a NUL ends a label."""
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
    """Converts `units` units of UTF-16LE to UTF-8 at `out`. Returns the number of bytes written, at most 3 per unit. Lone surrogates, which
    a peer may send, become U+FFFD.
    """
    cdef size_t i = 0, n = 0
    cdef uint32_t cp, low, two, next_two
    # Most labels and names are ASCII: converts four units at once.
    while units - i >= 4:
        two, next_two = get_u32(p + 2 * i), get_u32(p + 2 * i + 4)
        if (two | next_two) & 0xFF80FF80U:
            break
        out[n] = <uint8_t>two
        out[n + 1] = <uint8_t>(two >> 16)
        out[n + 2] = <uint8_t>next_two
        out[n + 3] = <uint8_t>(next_two >> 16)
        i += 4
        n += 4
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


# ---------------------------------------------------------------------------------------------- frames

cdef int read_send(Cursor* c, uint32_t* handle, uint32_t* flags, uint32_t* count, uint32_t* transaction,
                   OutMessage* first) noexcept nogil:
    """Reads the header of a SEND payload and its first message, after checking the whole payload; leaves the cursor behind that message.

    `transaction` is the number of a transaction, or NO_TRANSACTION.
    """
    cdef uint32_t fields, i
    cdef Cursor scan
    cdef OutMessage m
    transaction[0] = NO_TRANSACTION
    if read_array(c, &fields) or not 3 <= fields <= 4 or read_u32(c, handle) or read_u32(c, flags) or read_array(c, count):
        return -1
    scan = c[0]
    for i in range(count[0]):
        if read_message(&scan, &m if i else first):
            return -1
        if i == 0:
            c[0] = scan
    if fields == 4 and not pass_nil(&scan) and (read_u32(&scan, transaction) or transaction[0] == NO_TRANSACTION):
        return -1
    return 0 if scan.at == scan.end else -1


def send_head(payload not None):
    """Checks a whole SEND payload. Returns (handle, flags, number of messages, transaction); transaction 0 means none. Raises
    FrameFault.
    """
    cdef const uint8_t[::1] view = payload
    cdef Cursor cursor
    cdef OutMessage first
    cdef uint32_t handle, flags, count, transaction
    cdef int bad = 1
    if view.shape[0]:
        cursor.at = &view[0]
        cursor.end = cursor.at + view.shape[0]
        with nogil:
            bad = read_send(&cursor, &handle, &flags, &count, &transaction, &first)
    if bad:
        raise FrameFault("the SEND frame does not have the layout of section 4")
    return handle, flags, count, transaction
