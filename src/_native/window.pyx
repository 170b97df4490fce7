# cython: boundscheck=False, wraparound=False, cdivision=True
"""Session acknowledgment in both directions: ReceiveWindow and SendWindow (MS-MQQB 3.1.1.6.1, 3.1.5.5, 3.1.5.8.7)."""

from cpython.array cimport array, clone, resize_smart
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from msmq_fast._native.framing cimport (
    BASE_TRACE, INFINITE, SESSION_HEADER_SIZE, USER_JOURNAL_NEGATIVE, USER_JOURNAL_POSITIVE, USER_MESSAGE_FIXED, USER_TRANSACTION, UserMessage, get_u16,
    get_u32, parse_user_message, put_u16, put_u32,
)
from msmq_fast._native.outsequence cimport OutEntry, OutSequence
from msmq_fast._native.queuebase cimport FINAL_ACK_REQUIRED, Received

cdef array EMPTY = array("Q")
cdef enum:
    PRIVACY_LEVEL = 40          # in a MessagePropertiesHeader

OK = HEADER_OK
ACK_UNSENT = HEADER_ACK_UNSENT
COUNT_MISMATCH = HEADER_COUNT_MISMATCH
IN_FLIGHT_LIMIT = MAX_IN_FLIGHT


cdef inline int _append(array keys, uint64_t key) except -1:
    resize_smart(keys, len(keys) + 1)
    keys.data.as_ulonglongs[len(keys) - 1] = key
    return 0


cdef bytes numbered(bytes packet, uint64_t identifier, uint32_t number, uint32_t previous):
    """Returns a copy of a transactional packet with these sequence values in its TransactionHeader (3.1.7.1.3)."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packet)
    cdef bytes copy = PyBytes_FromStringAndSize(NULL, size)
    cdef uint8_t* data = <uint8_t*>PyBytes_AS_STRING(copy)
    cdef UserMessage m
    memcpy(data, PyBytes_AS_STRING(packet), size)
    if parse_user_message(data, size, &m) or not m.transaction_offset:
        raise ValueError("not the packet of a transactional message")
    data += m.transaction_offset
    if m.user_flags & (USER_JOURNAL_NEGATIVE | USER_JOURNAL_POSITIVE):
        data[0] |= FINAL_ACK_REQUIRED
    put_u32(data + 4, <uint32_t>identifier)
    put_u32(data + 8, identifier >> 32)
    put_u32(data + 12, number)
    put_u32(data + 16, previous)
    return copy


cdef bint is_private(const uint8_t* data, size_t size) noexcept nogil:
    """Whether a message has a privacy level (MessagePropertiesHeader.PrivacyLevel): it is already encrypted, or must be before it is
    transmitted.
    """
    cdef UserMessage m
    return parse_user_message(data, size, &m) == 0 and get_u32(data + m.properties_offset + PRIVACY_LEVEL) != 0


cdef class ReceiveWindow(CommitListener):
    """The messages that arrived on one session, and how many of them may be acknowledged.

    `size` is the WindowSize that sent SessionHeaders advertise. `on_settled` is called without arguments once for each batch in which a
    message of this session became durable or failed, until `close`.
    """

    def __cinit__(self, uint16_t size=64, object on_settled=None):
        self.size = size
        self._on_settled = on_settled
        self._early = set()

    cdef uint64_t count(self, bint recoverable) noexcept:
        self._received += 1
        self._unacked += 1
        if not recoverable:
            return 0
        self._recoverable += 1
        return self._recoverable

    cdef int dispose(self, uint64_t number) except -1:
        if number != self._durable + 1:
            self._early.add(number)
            return 0
        self._durable = number
        while self._early and (self._durable + 1) in self._early:
            self._early.discard(self._durable + 1)
            self._durable += 1
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        if status == 0:
            return self.dispose(token)
        if self.failure == 0:
            self.failure = status
        return 0

    cdef int settled(self) except -1:
        if self._on_settled is not None:
            self._on_settled()
        return 0

    def close(self) -> None:
        """Ends the calls of `on_settled`, also for batches in progress, because the session ends."""
        self._on_settled = None

    def count_message(self, bint recoverable) -> int:
        """Counts one received message. Returns its number among the recoverable messages of the session, 0 for an express message."""
        return self.count(recoverable)

    def disposed(self, uint64_t number) -> None:
        """Allows the acknowledgment of recoverable message `number`: its outcome is durable, or need not be stored."""
        if number == 0 or number > self._recoverable or number <= self._durable:
            raise ValueError(f"recoverable message {number} does not exist, or its outcome is already durable")
        self.dispose(number)

    @property
    def received(self) -> int:
        """MessageReceivedCount, before it is truncated to 16 bits for the header."""
        return self._received

    @property
    def recoverable(self) -> int:
        """RecoverableMessageReceivedCount, before it is truncated to 16 bits for the header."""
        return self._recoverable

    @property
    def unacknowledged(self) -> int:
        """UnackedReceivedMsgCount: the number of messages received since the last SessionHeader was sent."""
        return self._unacked

    @property
    def acknowledgeable(self) -> int:
        """The number of recoverable messages that are durable but not yet acknowledged."""
        return self._durable - self._acked

    @property
    def pending(self) -> int:
        """The number of recoverable messages whose outcome is not durable yet."""
        return self._recoverable - self._durable


cdef class SendWindow:
    """The messages that were sent on one session and that the peer has not finally acknowledged; `size` is the WindowSize of this side.

    An express message is acknowledged by AckSequenceNumber, a recoverable one by RecoverableMsgAckSeqNumber and RecoverableMsgAckFlags. An
    acknowledged message leaves the window.
    """

    def __cinit__(self, uint16_t size=64):
        self.size = size
        self._peer_size = 1
        self._capacity = 128
        self._ring = <InFlight*>malloc(self._capacity * sizeof(InFlight))
        if self._ring == NULL:
            raise MemoryError
        self._removed = []
        self._group = None

    def __dealloc__(self):
        cdef size_t index
        if self._ring != NULL:
            for index in range(self._count):
                Py_XDECREF(self._ring[(self._head + index) & (self._capacity - 1)].queue)
            free(self._ring)

    @property
    def peer_size(self) -> int:
        """The WindowSize that the peer advertised last; 0 on the wire counts as 1."""
        return self._peer_size

    @peer_size.setter
    def peer_size(self, uint16_t value):
        self._peer_size = value if value else 1

    @property
    def sent(self) -> int:
        """MessageSentCount, before it is truncated to 16 bits for the header."""
        return self._sent

    @property
    def recoverable(self) -> int:
        """RecoverableMessageSentCount, before it is truncated to 16 bits for the header."""
        return self._recoverable

    @property
    def unacknowledged(self) -> int:
        """The number of sent messages that the last AckSequenceNumber does not cover."""
        return self._sent - self._acked

    @property
    def held(self) -> int:
        """The number of messages in the window. A recoverable message stays until it is durable at the peer."""
        cdef size_t index, held = 0
        for index in range(self._count):
            if self._ring[(self._head + index) & (self._capacity - 1)].queue != NULL:
                held += 1
        return held

    @property
    def room(self) -> int:
        """The number of messages that may be sent now: the smaller WindowSize of both sides, minus the unacknowledged messages."""
        cdef uint64_t limit = min(self.size, self._peer_size)
        cdef uint64_t unacked = self._sent - self._acked
        if unacked >= limit or self._count >= MAX_IN_FLIGHT:
            return 0
        return min(limit - unacked, <uint64_t>(MAX_IN_FLIGHT - self._count))

    def sending(self, object queue, uint64_t lookup_id, bint recoverable) -> None:
        """Counts a message that is written to the session now. `take_removed` or `abandon` later returns its `queue` and `lookup_id`."""
        self.number(queue, lookup_id, recoverable)

    def transmit(self, object queue, list messages not None, uint32_t now_s, list packets not None, OutSequence sequence=None,
                 object protect=None) -> array:
        """Counts the messages (list of Received), which are transmitted now, and appends their packets to `packets`.

        Leaves out messages whose TimeToReachQueue has passed at `now_s` (Unix seconds), and returns the lookup ids of these messages. The
        packet of a message in `sequence` gets its number and that of the previous message that is still in the sequence (AMB-40).
        `protect(lookup id, packet)`, if given, is called for messages with a privacy level: the packet that it returns is transmitted; None
        means that it has removed the message.
        """
        cdef Received message
        cdef OutEntry* entry
        cdef bytes packet
        cdef const uint8_t* data
        cdef uint32_t reach, sent, flags, previous = 0
        cdef array expired = None
        for message in messages:
            if PyBytes_GET_SIZE(message.packet) < USER_MESSAGE_FIXED:
                raise ValueError("not a UserMessage packet")
            data = <const uint8_t*>PyBytes_AS_STRING(message.packet)
            reach = get_u32(data + 12)
            sent = get_u32(data + 52)
            if reach != INFINITE and now_s > sent and now_s - sent > reach:
                if expired is None:
                    expired = clone(EMPTY, 0, False)
                _append(expired, message.lookup_id)
                if sequence is not None:
                    sequence.remove(message.lookup_id)      # the next message does not wait for it
                continue
            flags = get_u32(data + 60)
            packet = message.packet
            if protect is not None and is_private(data, PyBytes_GET_SIZE(message.packet)):
                packet = protect(message.lookup_id, packet)
                if packet is None:
                    continue
            if flags & USER_TRANSACTION and sequence is not None:
                entry = sequence.depart(message.lookup_id, &previous)
                if entry != NULL:
                    packet = numbered(packet, sequence.identifier, entry.number, previous)
            self.number(queue, message.lookup_id, (flags >> 5) & 3 != 0)
            packets.append(packet)
            if self.traced is not None and get_u16(data + 2) & BASE_TRACE:
                self.traced.append(packet)
        return EMPTY if expired is None else expired

    cdef int number(self, object queue, uint64_t lookup_id, bint recoverable) except -1:
        cdef InFlight* grown
        cdef InFlight* entry
        cdef size_t index, doubled
        if self._count >= MAX_IN_FLIGHT:
            raise OverflowError("too many messages are sent but not acknowledged")
        if self._count == self._capacity:
            doubled = self._capacity * 2
            grown = <InFlight*>malloc(doubled * sizeof(InFlight))
            if grown == NULL:
                raise MemoryError
            for index in range(self._count):
                grown[index] = self._ring[(self._head + index) & (self._capacity - 1)]
            free(self._ring)
            self._ring = grown
            self._capacity = doubled
            self._head = 0
        self._sent += 1
        if recoverable:
            self._recoverable += 1
        entry = &self._ring[(self._head + self._count) & (self._capacity - 1)]
        Py_INCREF(queue)
        entry.queue = <PyObject*>queue
        entry.lookup_id = lookup_id
        entry.sequence = self._sent
        entry.recoverable = self._recoverable if recoverable else 0
        self._count += 1

    cdef int _drop(self, InFlight* entry) except -1:
        # Consecutive removals from one queue share one list.
        if self._group is None or self._group_queue != entry.queue:
            self._group = clone(EMPTY, 0, False)
            self._group_queue = entry.queue
            self._removed.append((<object>entry.queue, self._group))
        _append(self._group, entry.lookup_id)
        Py_DECREF(<object>entry.queue)
        entry.queue = NULL
        return 0

    cdef int apply(self, const uint8_t* header, ReceiveWindow received) except -1:
        cdef uint64_t acked = self._acked + <uint16_t>(get_u16(header) - <uint16_t>self._acked)
        cdef uint16_t base16 = get_u16(header + 2)
        cdef uint32_t flags = get_u32(header + 4)
        cdef uint64_t base = 0, behind, bit
        cdef size_t index
        cdef InFlight* entry
        if acked > self._sent:
            return HEADER_ACK_UNSENT
        if base16 != 0:
            behind = <uint16_t>(<uint16_t>self._recoverable - base16)
            if behind >= self._recoverable:
                return HEADER_ACK_UNSENT
            base = self._recoverable - behind
            if behind < ACK_REACH - 1 and flags >> (behind + 1) != 0:
                return HEADER_ACK_UNSENT
        self.peer_size = get_u16(header + 12)
        if acked != self._acked:
            while self._covered < self._count:
                entry = &self._ring[(self._head + self._covered) & (self._capacity - 1)]
                if entry.sequence > acked:
                    break
                if entry.queue != NULL and entry.recoverable == 0:
                    self._drop(entry)
                self._covered += 1
            self._acked = acked
        if base != 0:
            for index in range(self._count):
                entry = &self._ring[(self._head + index) & (self._capacity - 1)]
                if entry.queue == NULL or entry.recoverable == 0:
                    continue
                if entry.recoverable > base:
                    bit = entry.recoverable - base
                    if bit >= ACK_REACH:
                        break
                    if not (flags >> bit) & 1:
                        continue
                self._drop(entry)
        while self._count and self._ring[self._head].queue == NULL:
            self._head = (self._head + 1) & (self._capacity - 1)
            self._count -= 1
            if self._covered:
                self._covered -= 1
        if get_u16(header + 8) != <uint16_t>received._received or get_u16(header + 10) != <uint16_t>received._recoverable:
            return HEADER_COUNT_MISMATCH
        return HEADER_OK

    def process(self, bytes header, ReceiveWindow received) -> int:
        """Processes a received SessionHeader (16 bytes). Returns OK; ACK_UNSENT, without effect, if it acknowledges messages that were not
        sent; or COUNT_MISMATCH if its counts of sent messages differ from those received.
        """
        if PyBytes_GET_SIZE(header) != SESSION_HEADER_SIZE:
            raise ValueError("a SessionHeader has 16 bytes")
        return self.apply(<const uint8_t*>PyBytes_AS_STRING(header), received)

    def take_removed(self) -> list:
        """Returns a list of (queue, array of lookup ids) of the messages that were acknowledged since the last call, in the order of
        sending.
        """
        removed = self._removed
        self._removed = []
        self._group = None
        self._group_queue = NULL
        return removed

    def abandon(self) -> list:
        """Forgets the messages that are not acknowledged when the session ends. Returns a list of (queue, array of lookup ids), which the
        caller must release.
        """
        cdef size_t index
        cdef InFlight* entry
        acknowledged = self.take_removed()
        for index in range(self._count):
            entry = &self._ring[(self._head + index) & (self._capacity - 1)]
            if entry.queue != NULL:
                self._drop(entry)
        self._count = self._covered = 0
        released = self.take_removed()
        self._removed = acknowledged
        return released


cdef int fill_header(ReceiveWindow received, SendWindow sent, uint8_t* header) except -1:
    cdef uint64_t reach = min(received._durable - received._acked, <uint64_t>ACK_REACH)
    cdef uint64_t base = received._acked + 1
    cdef uint64_t flags = (<uint64_t>1 << reach) - 1
    if reach and base & 0xFFFF == 0:
        # 0 would say that nothing is acknowledged: repeat the message before it, which leaves room for 31 more.
        reach = min(reach, <uint64_t>(ACK_REACH - 1))
        base -= 1
        flags = (<uint64_t>1 << (reach + 1)) - 1
    memset(header, 0, SESSION_HEADER_SIZE)
    put_u16(header, received._received)
    put_u16(header + 2, base if reach else 0)
    put_u32(header + 4, <uint32_t>flags)
    put_u16(header + 8, sent._sent)
    put_u16(header + 10, sent._recoverable)
    put_u16(header + 12, received.size)
    received._acked += reach
    received._unacked = 0
    return 0


def session_header(ReceiveWindow received not None, SendWindow sent not None) -> bytes:
    """Returns the SessionHeader with the current state of the two windows, and notes that it was sent.

    A header acknowledges at most 32 recoverable messages: while `received.acknowledgeable` is not 0 afterwards, send another header.
    """
    cdef uint8_t header[SESSION_HEADER_SIZE]
    fill_header(received, sent, header)
    return PyBytes_FromStringAndSize(<char*>header, SESSION_HEADER_SIZE)
