# Reads msgpack: SEND frames and their messages. Converts text between UTF-8 and UTF-16.

# Every size in a frame is checked, in 64 bits, before it is used. Functions that return int return -1 if the layout is broken.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    NO_TRANSACTION = 0


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct OutMessage:
    # One message of a SEND frame. The pointers point into the frame.
    const uint8_t* body
    const uint8_t* label            # UTF-8
    const uint8_t* extension
    const uint8_t* correlation      # 20 bytes or NULL
    const uint8_t* response         # UTF-8
    const uint8_t* admin            # UTF-8
    const uint8_t* dead_letter      # UTF-8
    const uint8_t* certificate      # MD5 of the certificate to sign with, or NULL
    uint32_t body_size, label_size, extension_size, response_size, admin_size, dead_letter_size
    uint32_t body_type, app_specific, time_to_reach_queue, time_to_be_received
    uint32_t privacy_level, hash_algorithm, encryption_algorithm
    uint64_t delivery, priority, acknowledge, journal, message_class, authentication, sender


# Reads one message array. The builder checks the ranges of values.
cdef int read_message(Cursor* c, OutMessage* m) noexcept nogil
# Reads the header of a SEND payload and its first message, after checking the whole payload. Leaves the cursor behind that message.
# `transaction` is the number of a transaction, or NO_TRANSACTION.
cdef int read_send(Cursor* c, uint32_t* handle, uint32_t* flags, uint32_t* count, uint32_t* transaction,
                   OutMessage* first) noexcept nogil
# Returns the number of UTF-16 units of this UTF-8 text. Returns -1 if it is malformed or contains a NUL, since a NUL ends a label.
cdef int64_t utf16_units(const uint8_t* p, size_t size) noexcept nogil
# Converts UTF-16LE to UTF-8. Returns the number of bytes, at most 3 per unit. Lone surrogates, which a peer may send, become U+FFFD.
cdef size_t utf16_to_utf8(const uint8_t* p, size_t units, uint8_t* out) noexcept nogil


cdef inline uint64_t get_be(const uint8_t* p, int n) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(n):
        value = (value << 8) | p[i]
    return value


cdef inline uint32_t long_lived() noexcept nogil:
    """Returns the TimeToReachQueue that the queue manager gives to messages without one (X-77)."""
    return 0xFFFFFFFE
