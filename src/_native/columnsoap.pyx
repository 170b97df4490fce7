# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the header and the body element of an SRMP envelope; see columnsoap.pxd. packet/soapparts.py does the same in Python; keep both
equal.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp
from msmq_fast._native.columncells cimport Cells, put_null
from msmq_fast._native.columntext cimport put_text
from msmq_fast._native.framing cimport UserMessage, get_u16, get_u32

cdef enum:
    DEEPEST = 512               # nesting depth of elements; readers of envelopes reject about 256
    SOAP_BODY_SECTION = 0x0384


cdef struct Xml:
    const uint8_t* text         # UTF-16, without a NUL
    size_t size, at             # code units


cdef inline uint16_t peek(const Xml* x) noexcept nogil:
    """Returns the next code unit; 0 at the end."""
    return get_u16(x.text + 2 * x.at) if x.at < x.size else 0


cdef inline bint is_space(uint16_t unit) noexcept nogil:
    return unit == 0x20 or unit == 0x0A or unit == 0x0D or unit == 0x09


cdef inline bint ends_name(uint16_t unit) noexcept nogil:
    return unit < 0x40 and (
        is_space(unit) or unit == 0 or unit == c"<" or unit == c">" or unit == c"/" or unit == c"=" or unit == c'"' or unit == c"'"
    )


cdef bint pass_word(Xml* x, const char* word) noexcept nogil:
    """Moves behind `word` if the text continues with it. Returns whether it does."""
    cdef size_t i = 0
    while word[i]:
        if x.at + i >= x.size or get_u16(x.text + 2 * (x.at + i)) != <uint8_t>word[i]:
            return False
        i += 1
    x.at += i
    return True


cdef bint pass_until(Xml* x, const char* word) noexcept nogil:
    """Moves behind the next `word`. Returns False if there is none."""
    while x.at < x.size:
        if pass_word(x, word):
            return True
        x.at += 1
    return False


cdef inline void pass_space(Xml* x) noexcept nogil:
    while is_space(peek(x)):
        x.at += 1


cdef inline size_t pass_name(Xml* x) noexcept nogil:
    """Moves behind a name. Returns its length, 0 if there is none."""
    cdef size_t start = x.at
    while not ends_name(peek(x)):
        x.at += 1
    return x.at - start


cdef bint pass_attributes(Xml* x) noexcept nogil:
    """Moves to the end of a start tag, its `>` or `/`. Returns False if the attributes are malformed."""
    cdef size_t start
    cdef uint16_t quote
    while True:
        start = x.at
        pass_space(x)
        if peek(x) == c">" or peek(x) == c"/":
            return True
        if x.at == start or not pass_name(x):
            return False
        pass_space(x)
        if not pass_word(x, b"="):
            return False
        pass_space(x)
        quote = peek(x)
        if quote != c'"' and quote != c"'":
            return False
        x.at += 1
        while peek(x) != quote:
            if peek(x) == 0 or peek(x) == c"<":
                return False
            x.at += 1
        x.at += 1


cdef bint pass_markup(Xml* x, bint inside) noexcept nogil:
    """Moves behind a comment, a processing instruction or, inside an element, a CDATA section. Returns False if there is none, or if it
    does not end.
    """
    if pass_word(x, b"<?"):
        return pass_until(x, b"?>")
    if pass_word(x, b"<!--"):
        return pass_until(x, b"--") and pass_word(x, b">")
    return inside and pass_word(x, b"<![CDATA[") and pass_until(x, b"]]>")


cdef bint is_local(const Xml* x, size_t at, size_t length, const char* name) noexcept nogil:
    """Whether the name at `at` is `name`, with any prefix."""
    cdef Xml local
    cdef size_t i
    local.text, local.size, local.at = x.text, at + length, at
    for i in range(at, at + length):
        if get_u16(x.text + 2 * i) == c":":
            local.at = i + 1
    return pass_word(&local, name) and local.at == local.size


cdef bint find_child(Xml* x, const char* name, size_t* start, size_t* end) noexcept nogil:
    """Finds the first child of the root with this local name. Returns False if there is none, or if tags anywhere in the text do
    not match.
    """
    cdef uint32_t names[DEEPEST]        # the names of the open elements
    cdef size_t depth = 0, begin, at, length
    cdef bint rooted = False, begun = False
    end[0] = 0
    if peek(x) == 0xFEFF:
        x.at += 1
    while x.at < x.size:
        begin = x.at
        if peek(x) != c"<":
            if depth == 0 and not is_space(peek(x)):
                return False
            x.at += 1
            continue
        x.at += 1
        if peek(x) == c"?" or peek(x) == c"!":
            x.at = begin
            if not pass_markup(x, depth > 0):
                return False
        elif peek(x) == c"/":
            x.at += 1
            at = x.at
            length = pass_name(x)
            pass_space(x)
            if depth == 0 or not pass_word(x, b">"):
                return False
            depth -= 1
            if not ends_name(get_u16(x.text + 2 * (names[depth] + length))):
                return False
            if memcmp(x.text + 2 * at, x.text + 2 * <size_t>names[depth], 2 * length) != 0:
                return False
        else:
            at = x.at
            length = pass_name(x)
            if length == 0 or depth == DEEPEST or (depth == 0 and rooted) or not pass_attributes(x):
                return False
            rooted = True
            if depth == 1 and not begun and is_local(x, at, length, name):
                begun = True
                start[0] = begin
            if not pass_word(x, b"/"):
                names[depth] = <uint32_t>at
                depth += 1
            if not pass_word(x, b">"):
                return False
        if begun and depth == 1 and end[0] == 0:
            end[0] = x.at
    return depth == 0 and end[0] != 0


cdef int put_child(Cells* c, const uint8_t* text, size_t chars, const char* name) noexcept nogil:
    """Adds the child `name` of an SRMP envelope as a value; null if there is none."""
    cdef Xml x
    cdef size_t start = 0, end = 0
    x.text, x.at, x.size = text, 0, 0
    while x.size < chars and get_u16(text + 2 * x.size):
        x.size += 1
    if not find_child(&x, name, &start, &end):
        return put_null(c)
    return put_text(c, text + 2 * start, end - start)


cdef int put_soap(Cells* c, const uint8_t* packet, const UserMessage* m, bint body) noexcept nogil:
    """Adds the value of the column soap_body (`body`) or soap_header. The parser has already checked the sizes of both SOAP headers of the
    packet.
    """
    cdef size_t at = m.envelope_offset
    if at:
        return put_child(c, packet + at + 8, get_u32(packet + at + 4), b"Body" if body else b"Header")
    at = m.soap_offset
    if at == 0:
        return put_null(c)
    if body:
        at += 8 + 2 * <size_t>get_u32(packet + at + 4)
        if get_u16(packet + at) != SOAP_BODY_SECTION:
            at = (at + 3) & ~<size_t>3
    return put_text(c, packet + at + 8, get_u32(packet + at + 4))
