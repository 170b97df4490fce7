# Converts the messages of application frames (msgpack arrays) to UserMessage packets.

# Related modules: appread reads frames, appencode writes the frames that carry stored messages, applane is the fast path of SEND frames.

from libc.stdint cimport uint8_t, uint32_t
from msmq_fast._native.appread cimport OutMessage


cdef class PacketBuilder:
    """Builds UserMessage packets for one destination."""
    cdef uint8_t source[16]
    cdef uint8_t address[16]
    cdef uint8_t dest_type
    cdef bytes destination          # the DestinationQueue field of the UserHeader
    cdef object resolve
    cdef bytes sender               # the SecurityHeader of messages that carry the SID of their sender; empty: unknown
    cdef uint32_t long_lived        # seconds: TimeToReachQueue of a message that has none
    # Builds the packet of one message. Returns None for a rejected message, and sets `refusal` to the HRESULT.
    cdef readonly uint32_t refusal
    cdef readonly str dead_letter   # the dead-letter queue that the last message names, or None
    cdef readonly dict dead_letters # the same by index, of the messages that `packets` built last
    # How the last message is to be signed: (level, hash algorithm, MD5 of the certificate), or None. Level 0, the sender's SID without a
    # signature, is left to the caller only if `sender` is empty.
    cdef readonly tuple signature
    cdef readonly dict signatures   # the same for each message by its index
    cdef tuple _name(self, const uint8_t* text, uint32_t size)
    # `transaction`: TransactionHeader.Flags of a transactional message, or NULL.
    cdef bytes build(self, const OutMessage* m, uint32_t ordinal, uint32_t now_s, const uint32_t* transaction)
