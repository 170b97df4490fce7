# Converts text of packets to UTF-8: labels, identifiers, format names. Each function adds one whole value and returns 0 or ENOMEM.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from msmq_fast._native.columncells cimport Cells
from msmq_fast._native.framing cimport UserMessage


cdef int put_guid(Cells* c, const uint8_t* guid) noexcept nogil
# Adds the text {guid}\ordinal.
cdef int put_identifier(Cells* c, const uint8_t* guid, uint32_t ordinal) noexcept nogil
# Converts UTF-16LE up to a NUL to UTF-8. Invalid units become U+FFFD.
cdef int put_text(Cells* c, const uint8_t* text, size_t chars) noexcept nogil
# Adds the format name of a field of the UserHeader (packet/fields.py), or null.
cdef int put_name(Cells* c, const uint8_t* packet, int kind, uint32_t offset, const UserMessage* m) noexcept nogil
# Adds one of the lists of a MultiQueueFormatHeader, which follows `skip` other lists, as names separated by commas; null if it is empty.
cdef int put_names(Cells* c, const uint8_t* packet, uint32_t at, int skip) noexcept nogil
