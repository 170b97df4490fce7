# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Converts text of packets to UTF-8; see columntext.pxd."""

from libc.errno cimport ENOMEM
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from msmq_fast._native.columncells cimport Cells, Growing, close_value, make_room, put_null
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage, get_u16, get_u32

cdef enum:
    MANAGER_AT = 32             # UserHeader.QueueManagerAddress in a packet
    NAME_SAME_AS_ADMIN = 1      # types of queue names in a UserHeader
    NAME_ON_SOURCE = 2
    NAME_ON_DESTINATION = 3
    NAME_ON_ADMIN_HOST = 4
    NAME_PUBLIC = 5
    NAME_ON_OTHER = 6
    NAME_DIRECT = 7
    ELEMENT_PUBLIC = 1          # and of elements of a MultiQueueFormatHeader
    ELEMENT_PRIVATE = 2
    ELEMENT_DIRECT = 3

cdef const char* HEXADECIMAL = b"0123456789abcdef"


cdef inline uint8_t* put_hex(uint8_t* out, uint8_t value) noexcept nogil:
    out[0] = HEXADECIMAL[value >> 4]
    out[1] = HEXADECIMAL[value & 15]
    return out + 2


cdef uint8_t* write_guid(uint8_t* out, const uint8_t* guid) noexcept nogil:
    """Writes the 36 characters of a GUID in packet order."""
    cdef int i
    for i in range(4):
        out = put_hex(out, guid[3 - i])
    out[0] = c"-"
    out = put_hex(out + 1, guid[5])
    out = put_hex(out, guid[4])
    out[0] = c"-"
    out = put_hex(out + 1, guid[7])
    out = put_hex(out, guid[6])
    out[0] = c"-"
    out = put_hex(out + 1, guid[8])
    out = put_hex(out, guid[9])
    out[0] = c"-"
    out += 1
    for i in range(10, 16):
        out = put_hex(out, guid[i])
    return out


cdef uint8_t* write_number(uint8_t* out, uint32_t value) noexcept nogil:
    """Writes decimal digits."""
    cdef uint8_t digits[10]
    cdef int count = 0
    while True:
        digits[count] = <uint8_t>(c"0" + value % 10)
        value //= 10
        count += 1
        if value == 0:
            break
    while count:
        count -= 1
        out[0] = digits[count]
        out += 1
    return out


cdef int put_guid(Cells* c, const uint8_t* guid) noexcept nogil:
    if make_room(&c.data, 36):
        return ENOMEM
    write_guid(c.data.data + c.data.used, guid)
    c.data.used += 36
    close_value(c)
    return 0


cdef int put_identifier(Cells* c, const uint8_t* guid, uint32_t ordinal) noexcept nogil:
    r"""Adds the text {guid}\ordinal as a value."""
    cdef uint8_t* out
    if make_room(&c.data, 49):
        return ENOMEM
    out = c.data.data + c.data.used
    out[0] = c"{"
    out = write_guid(out + 1, guid)
    out[0] = c"}"
    out[1] = c"\\"
    out = write_number(out + 2, ordinal)
    c.data.used = out - c.data.data
    close_value(c)
    return 0


cdef int add_text(Growing* g, const uint8_t* text, size_t chars) noexcept nogil:
    """Appends UTF-16LE text, up to a NUL, as UTF-8 to the value under construction, which more text may follow. Invalid units become
    U+FFFD.
    """
    cdef uint8_t* out
    cdef uint64_t four
    cdef uint32_t unit, low
    cdef size_t i = 0
    if make_room(g, chars * 3):
        return ENOMEM
    out = g.data + g.used
    while i < chars:
        while i + 4 <= chars:
            memcpy(&four, text + 2 * i, 8)
            if four & <uint64_t>0xFF80FF80FF80FF80 or (four - <uint64_t>0x0001000100010001) & ~four & <uint64_t>0x8000800080008000:
                break
            out[0] = <uint8_t>four
            out[1] = <uint8_t>(four >> 16)
            out[2] = <uint8_t>(four >> 32)
            out[3] = <uint8_t>(four >> 48)
            out += 4
            i += 4
        if i == chars:
            break
        unit = get_u16(text + 2 * i)
        i += 1
        if unit == 0:
            break
        if unit < 0x80:
            out[0] = <uint8_t>unit
            out += 1
            continue
        if unit < 0x800:
            out[0] = <uint8_t>(0xC0 | unit >> 6)
            out[1] = <uint8_t>(0x80 | (unit & 0x3F))
            out += 2
            continue
        if 0xD800 <= unit < 0xE000:
            low = get_u16(text + 2 * i) if i < chars else 0
            if unit < 0xDC00 and 0xDC00 <= low < 0xE000:
                i += 1
                unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
                out[0] = <uint8_t>(0xF0 | unit >> 18)
                out[1] = <uint8_t>(0x80 | (unit >> 12 & 0x3F))
                out[2] = <uint8_t>(0x80 | (unit >> 6 & 0x3F))
                out[3] = <uint8_t>(0x80 | (unit & 0x3F))
                out += 4
                continue
            unit = 0xFFFD
        out[0] = <uint8_t>(0xE0 | unit >> 12)
        out[1] = <uint8_t>(0x80 | (unit >> 6 & 0x3F))
        out[2] = <uint8_t>(0x80 | (unit & 0x3F))
        out += 3
    g.used = out - g.data
    return 0


cdef int put_text(Cells* c, const uint8_t* text, size_t chars) noexcept nogil:
    if add_text(&c.data, text, chars):
        return ENOMEM
    close_value(c)
    return 0


cdef inline int add_ascii(Growing* g, const char* text, size_t size) noexcept nogil:
    if make_room(g, size):
        return ENOMEM
    memcpy(g.data + g.used, text, size)
    g.used += size
    return 0


cdef int add_guid_name(Growing* g, const char* prefix, size_t size, const uint8_t* guid) noexcept nogil:
    if add_ascii(g, prefix, size) or make_room(g, 36):
        return ENOMEM
    write_guid(g.data + g.used, guid)
    g.used += 36
    return 0


cdef int add_private_name(Growing* g, const uint8_t* guid, uint32_t number) noexcept nogil:
    cdef int shift
    if add_guid_name(g, b"PRIVATE=", 8, guid) or make_room(g, 9):
        return ENOMEM
    g.data[g.used] = c"\\"
    for shift in range(4):
        put_hex(g.data + g.used + 1 + 2 * shift, <uint8_t>(number >> (24 - 8 * shift)))
    g.used += 9
    return 0


cdef int put_name(Cells* c, const uint8_t* packet, int kind, uint32_t offset, const UserMessage* m) noexcept nogil:
    """Adds the format name of a field of the UserHeader (packet/fields.py), or null."""
    cdef Growing* g = &c.data
    cdef const uint8_t* field = packet + offset
    cdef int fault = 0
    if kind == NAME_SAME_AS_ADMIN:
        return put_name(c, packet, m.admin_type, m.admin_offset, m) if m.admin_type != NAME_SAME_AS_ADMIN else put_null(c)
    if kind == NAME_ON_SOURCE:
        fault = add_private_name(g, packet + SOURCE_OFFSET, get_u32(field))
    elif kind == NAME_ON_DESTINATION:
        fault = add_private_name(g, packet + MANAGER_AT, get_u32(field))
    elif kind == NAME_PUBLIC:
        fault = add_guid_name(g, b"PUBLIC=", 7, field)
    elif kind == NAME_ON_OTHER:
        fault = add_private_name(g, field, get_u32(field + 16))
    elif kind == NAME_DIRECT:
        fault = add_ascii(g, b"DIRECT=", 7) or add_text(g, field + 2, get_u16(field) // 2)
    elif kind == NAME_ON_ADMIN_HOST and m.admin_type == NAME_ON_SOURCE:
        fault = add_private_name(g, packet + SOURCE_OFFSET, get_u32(field))
    elif kind == NAME_ON_ADMIN_HOST and m.admin_type == NAME_ON_DESTINATION:
        fault = add_private_name(g, packet + MANAGER_AT, get_u32(field))
    elif kind == NAME_ON_ADMIN_HOST and m.admin_type == NAME_ON_OTHER:
        fault = add_private_name(g, packet + m.admin_offset, get_u32(field))
    else:
        return put_null(c)
    if not fault:
        close_value(c)
    return fault


cdef int put_names(Cells* c, const uint8_t* packet, uint32_t at, int skip) noexcept nogil:
    """Adds one of the lists of a MultiQueueFormatHeader, which follows `skip` other lists, as names separated by commas; null if it is
    empty. The parser has already checked the header.
    """
    cdef Growing* g = &c.data
    cdef uint32_t count, end
    cdef int kind, fault = 0
    while skip:
        at += (get_u32(packet + at) + 3) & ~<uint32_t>3
        skip -= 1
    count = get_u32(packet + at + 8)
    if count == 0:
        return put_null(c)
    at += 12
    while count and not fault:
        count -= 1
        kind = get_u16(packet + at)
        at += 2
        if kind == ELEMENT_DIRECT:
            end = at
            while get_u16(packet + end):
                end += 2
            fault = add_ascii(g, b"DIRECT=", 7) or add_text(g, packet + at, (end - at) // 2)
            at = end + 2
        else:
            at = (at + 3) & ~<uint32_t>3
            if kind == ELEMENT_PRIVATE:
                fault = add_private_name(g, packet + at, get_u32(packet + at + 16))
                at += 20
            else:
                fault = add_guid_name(g, b"PUBLIC=", 7, packet + at) if kind == ELEMENT_PUBLIC else add_guid_name(g, b"DL=", 3, packet + at)
                at += 16
        if count and not fault:
            fault = add_ascii(g, b",", 1)
    if not fault:
        close_value(c)
    return fault
