# Messages of application frames (msgpack arrays) to UserMessage packets.
#
# The other parts: appread reads frames, appencode writes those with stored messages, applane is the plain path of SEND frames.

from libc.stdint cimport uint8_t, uint32_t
from msmq_fast._native.appread cimport OutMessage


cdef class PacketBuilder:
    """Builds UserMessage packets for one destination."""
    cdef uint8_t source[16]
    cdef uint8_t address[16]
    cdef uint8_t dest_type
    cdef bytes destination          # the field as it stands in the UserHeader
    cdef object resolve
    cdef uint32_t long_lived        # seconds: TimeToReachQueue of messages without one
    # Builds the packet of one message. None: refused, `refusal` holds the HRESULT.
    cdef readonly uint32_t refusal
    cdef readonly str dead_letter   # the queue that the message built last names for its failure, or None
    cdef readonly dict dead_letters # the same by index, of the messages that `packets` built last
    # How the message built last is to be signed: (level, hash algorithm, MD5 of the certificate), level 0 for the sender's SID only; or None.
    cdef readonly tuple signature
    cdef readonly dict signatures   # the same by index
    cdef tuple _name(self, const uint8_t* text, uint32_t size)
    # `transaction`: TransactionHeader.Flags of a transactional message, or NULL.
    cdef bytes build(self, const OutMessage* m, uint32_t ordinal, uint32_t now_s, const uint32_t* transaction)
