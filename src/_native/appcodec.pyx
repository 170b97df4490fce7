# cython: boundscheck=False, wraparound=False, cdivision=True
"""Converts messages of application frames (docs/reference/application-protocol.md 4) to UserMessage packets; see appcodec.pxd.

A frame that breaks the layout raises FrameFault. A message that the queue manager would reject is reported by its HRESULT.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from msmq_fast._native.appread cimport Cursor, OutMessage, long_lived, read_message, read_send, utf16_units
from msmq_fast._native.framing cimport put_u32
from msmq_fast._native.packetbuild cimport MessageFields, build_packet, clear_fields

from msmq_fast._native.appread import FrameFault

cdef enum:
    MAX_LABEL_UNITS = 249
    DIGEST_SIZE = 16
    TRANSACTION_HEADER = 20

cdef uint32_t MAX_PACKET = 0x00400000

# MS-MQMQ 2.4
cdef uint32_t ILLEGAL_PROPERTY_VALUE = 0xC00E0018
cdef uint32_t ILLEGAL_FORMATNAME = 0xC00E001E
cdef uint32_t INSUFFICIENT_RESOURCES = 0xC00E0027
cdef uint32_t INSUFFICIENT_PROPERTIES = 0xC00E003F
cdef uint32_t LABEL_TOO_LONG = 0xC00E005D


cdef class PacketBuilder:
    """Builds UserMessage packets (MS-MQMQ 2.2.20) for one destination.

    `source` is the GUID of this queue manager, `address` the GUID of the destination's queue manager (zeros for a direct name), 16 bytes
    each. `dest_type` and `destination` are the DQ value and the DestinationQueue field of the UserHeader, as packet.names writes them.
    `resolve(text)` returns the same pair for a response or admin queue (type as AQ value, field). For an invalid name it raises an
    exception whose `code` is an HRESULT. `long_lived` is the TimeToReachQueue, in seconds, of messages that have none. `sender` is the
    SecurityHeader, padded to 4 bytes, of messages that carry the SID of their sender without a signature; if it is empty, they are in
    `signatures` with level 0.
    """

    def __init__(self, bytes source not None, bytes address not None, int dest_type, bytes destination not None,
                 resolve, uint32_t long_lived=345600, bytes sender not None=b""):
        if len(source) != 16 or len(address) != 16:
            raise ValueError("a GUID has 16 bytes")
        memcpy(self.source, PyBytes_AS_STRING(source), 16)
        memcpy(self.address, PyBytes_AS_STRING(address), 16)
        self.dest_type = dest_type
        self.destination = destination
        self.resolve = resolve
        self.long_lived = long_lived
        self.sender = sender

    cdef tuple _name(self, const uint8_t* text, uint32_t size):
        try:
            return self.resolve((<const char*>text)[:size].decode())
        except UnicodeDecodeError:
            self.refusal = ILLEGAL_FORMATNAME
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            self.refusal = <uint32_t>(<int64_t>code & 0xFFFFFFFF)
        return None

    cdef bytes build(self, const OutMessage* m, uint32_t ordinal, uint32_t now_s, const uint32_t* transaction):
        cdef uint8_t header[TRANSACTION_HEADER]
        cdef MessageFields f
        cdef int64_t units
        cdef uint64_t size
        cdef tuple admin, response
        self.refusal = 0
        self.dead_letter = None
        self.signature = None
        if m.dead_letter_size:
            try:
                self.dead_letter = (<const char*>m.dead_letter)[:m.dead_letter_size].decode()
            except UnicodeDecodeError:
                self.refusal = ILLEGAL_FORMATNAME
                return None
        if (m.delivery > 1 or m.priority > 7 or m.acknowledge > 15 or m.journal > 3
                or m.message_class & ~<uint64_t>0xE1FF or m.authentication > 2
                or m.privacy_level > 5 or m.privacy_level == 2 or m.privacy_level == 4):
            self.refusal = ILLEGAL_PROPERTY_VALUE
            return None
        if m.authentication or (m.sender and not self.sender):
            certificate = (<const char*>m.certificate)[:DIGEST_SIZE] if m.certificate != NULL else b""
            self.signature = (m.authentication, m.hash_algorithm, certificate)
        if m.acknowledge and not m.admin_size:
            self.refusal = INSUFFICIENT_PROPERTIES
            return None
        units = utf16_units(m.label, m.label_size)
        if not 0 <= units <= MAX_LABEL_UNITS:
            self.refusal = ILLEGAL_PROPERTY_VALUE if units < 0 else LABEL_TOO_LONG
            return None
        clear_fields(&f)
        if m.sender and not m.authentication:
            f.security = <const uint8_t*>PyBytes_AS_STRING(self.sender)
            f.security_length = <uint32_t>PyBytes_GET_SIZE(self.sender)
        size = 16 + 48 + 56 + 2 * (units + 1) + <uint64_t>m.extension_size + m.body_size + 3
        size += PyBytes_GET_SIZE(self.destination) + f.security_length
        if transaction != NULL:
            size += TRANSACTION_HEADER
        # AdminQueue is present only if the sender requests an acknowledgment (MS-MQMQ 2.2.19.2).
        if m.acknowledge:
            admin = self._name(m.admin, m.admin_size)
            if admin is None:
                return None
            f.admin_type = admin[0]
            f.admin = <const uint8_t*>PyBytes_AS_STRING(admin[1])
            f.admin_length = <uint32_t>len(<bytes>admin[1])
            size += f.admin_length
        if m.response_size:
            response = self._name(m.response, m.response_size)
            if response is None:
                return None
            f.response_type = response[0]
            f.response = <const uint8_t*>PyBytes_AS_STRING(response[1])
            f.response_length = <uint32_t>len(<bytes>response[1])
            size += f.response_length
        if size > MAX_PACKET:
            self.refusal = INSUFFICIENT_RESOURCES
            return None
        f.source = self.source
        f.destination_manager = self.address
        f.dest_type = self.dest_type
        f.dest = <const uint8_t*>PyBytes_AS_STRING(self.destination)
        f.dest_length = <uint32_t>PyBytes_GET_SIZE(self.destination)
        f.priority = <uint8_t>m.priority
        f.delivery = <uint8_t>m.delivery
        f.ack_flags = <uint8_t>m.acknowledge
        f.message_class = <uint16_t>m.message_class
        f.time_to_reach_queue = self.long_lived if m.time_to_reach_queue == long_lived() else m.time_to_reach_queue
        f.time_to_be_received = m.time_to_be_received
        f.sent_time = now_s
        f.message_id = ordinal
        f.user_flags = <uint32_t>m.journal << 8
        f.correlation_id = m.correlation
        f.body_type = m.body_type
        f.app_specific = m.app_specific
        f.label = m.label
        f.label_length = m.label_size
        f.extension = m.extension
        f.extension_length = m.extension_size
        f.body = m.body
        f.body_length = m.body_size
        f.privacy_level = m.privacy_level
        f.hash_algorithm = m.hash_algorithm
        f.encryption_algorithm = m.encryption_algorithm
        if transaction != NULL:
            # Transactional messages are recoverable and have priority 0 (MS-MQMQ 2.2.20.5).
            memset(header, 0, TRANSACTION_HEADER)
            put_u32(header, transaction[0])
            f.transaction = header
            f.transaction_length = TRANSACTION_HEADER
            f.delivery = 1
            f.priority = 0
        return build_packet(&f)

    def packets(self, payload not None, uint32_t first_ordinal, uint32_t now_s, transaction=None, uint32_t following=0,
                uint32_t step=0):
        """Builds all messages of a SEND payload. Returns a list of packets as bytes, or HRESULTs for rejected messages.

        Raises FrameFault. Message ordinals begin at `first_ordinal`; a rejected message uses none. `transaction` is the
        TransactionHeader.Flags of the first message that is not rejected, `following` that of the second one; it grows by `step` for each
        later message. None: the messages have no TransactionHeader.
        """
        cdef const uint8_t[::1] view = payload
        cdef Cursor cursor
        cdef OutMessage message
        cdef uint32_t handle, flags, count, i, number, header = 0
        cdef bint transactional = transaction is not None
        cdef bytes packet
        if not view.shape[0]:
            raise FrameFault("the SEND frame is empty")
        cursor.at = &view[0]
        cursor.end = cursor.at + view.shape[0]
        if transactional:
            header = transaction
        if read_send(&cursor, &handle, &flags, &count, &number, &message):
            raise FrameFault("the SEND frame does not have the layout of section 4")
        result = []
        self.dead_letters = {}
        self.signatures = {}
        for i in range(count):
            if i:
                read_message(&cursor, &message)     # cannot fail: read_send has checked it
            packet = self.build(&message, first_ordinal, now_s, &header if transactional else NULL)
            if packet is None:
                result.append(self.refusal)
            else:
                if self.dead_letter is not None:
                    self.dead_letters[i] = self.dead_letter
                if self.signature is not None:
                    self.signatures[i] = self.signature
                result.append(packet)
                first_ordinal += 1
                header = following
                following += step
        return result
