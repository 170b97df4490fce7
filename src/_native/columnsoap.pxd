# The columns soap_header and soap_body: two elements of an SRMP envelope, copied from its text, or the content of a SoapHeader.

from libc.stdint cimport uint8_t
from msmq_fast._native.columncells cimport Cells
from msmq_fast._native.framing cimport UserMessage


# Adds the body, or otherwise the header, as one value; null if there is none. The parser has checked both headers of the packet.
cdef int put_soap(Cells* c, const uint8_t* packet, const UserMessage* m, bint body) noexcept nogil
