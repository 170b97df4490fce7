# cython: boundscheck=False, wraparound=False, cdivision=True
"""Receiver: the inbound half of a session, with the plain path of the receive pipeline (MS-MQQB 3.1.5.8).

A message is plain if it is addressed to this queue manager, has no TransactionHeader, is not encrypted, is not traced and
asks for no acknowledgment, and if its destination is in the table of routes, for all senders or for its own. All steps for it run here. For any other
message `run` returns MESSAGE and mqqb/receive.py decides; both ways share the primitives `sight`, `expired`, `deliver`, `drop`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.errno cimport ENOSPC
from libc.string cimport memcmp, memcpy
from msmq_fast._native.batch cimport STATUS_OK, CommitListener, Writer
from msmq_fast._native.framing cimport (
    BASE_TRACE,
    PACKET_BAD,
    PACKET_CONNECTION_PARAMETERS,
    PACKET_ESTABLISH_CONNECTION,
    PACKET_NONE,
    PACKET_SESSION_ACK,
    PACKET_USER_MESSAGE,
    SESSION_HEADER_SIZE,
    USER_JOURNAL_NEGATIVE,
    UserMessage,
    get_u16,
    kept_packet,
    patch_session_flag,
    put_u16,
)
from msmq_fast._native.history cimport SIGHTING_DURABLE, SIGHTING_NEW, SIGHTING_PENDING, IDENTIFIER_SIZE, Sighting
from msmq_fast._native.positions cimport BANDS
from msmq_fast._native.queue cimport (
    ENQUEUED,
    ENQUEUED_PENDING,
    EXPIRED as QUEUE_SAYS_EXPIRED,
    MACHINE_QUOTA as QUEUE_SAYS_MACHINE_QUOTA,
    QUEUE_GONE as QUEUE_SAYS_GONE,
    QUEUE_QUOTA as QUEUE_SAYS_QUOTA,
)
from msmq_fast._native.window cimport ACK_REACH as WINDOW_ACK_REACH

from uuid import UUID

from msmq_fast._native.framing import parse

NEED_INPUT = EVENT_NEED_INPUT
MESSAGE = EVENT_MESSAGE
REFUSED = EVENT_REFUSED
ESTABLISH = EVENT_ESTABLISH
PARAMETERS = EVENT_PARAMETERS
OUT_OF_STATE = EVENT_OUT_OF_STATE
MALFORMED = EVENT_MALFORMED
HEADER_FAULT = EVENT_HEADER_FAULT

STORED = DELIVERY_STORED
DUPLICATE = DELIVERY_DUPLICATE
EXPIRED = DELIVERY_EXPIRED
QUEUE_QUOTA = DELIVERY_QUEUE_QUOTA
MACHINE_QUOTA = DELIVERY_MACHINE_QUOTA
QUEUE_GONE = DELIVERY_QUEUE_GONE

NEW = SIGHTING_NEW
ACK_REACH = WINDOW_ACK_REACH

cdef enum:
    SOURCE_OFFSET = 16          # UserHeader.SourceQueueManager
    ADDRESS_OFFSET = 32         # UserHeader.QueueManagerAddress
    SECURITY_ENCRYPTED = 0x20   # SecurityHeader.Flags.EB
    SENDER_TYPE = 0x0F          # SecurityHeader.Flags.ST
    CLASS_OFFSET = 2            # MessagePropertiesHeader.MessageClass
    MAX_SENDERS = 65536         # sender ids are what senders claim: they must not fill the memory
    ASKS_NACK = 4               # MessagePropertiesHeader.Flags.NA
    INFINITE = 0xFFFFFFFF

cdef uint8_t[16] NOBODY       # all zero: what a direct format name gives


cdef inline void _identify(const uint8_t* packet, const UserMessage* m, uint8_t* identifier) noexcept nogil:
    memcpy(identifier, packet + SOURCE_OFFSET, 16)
    memcpy(identifier + 16, packet + 56, 4)


cdef class Routes:
    """Destinations of plain messages, shared by the sessions of a queue manager and filled by the general path."""

    def __cinit__(self):
        self.table = {}
        self.senders = {}

    def __len__(self) -> int:
        return len(self.table)

    def add(self, int dest_type, bytes name not None, QueueCore core not None) -> None:
        """Plain messages for this DestinationQueue (UserHeader.Flags.DQ and wire form) go to `core`."""
        self.table[bytes((dest_type,)) + name] = core

    def admit(
        self, int dest_type, bytes name not None, int sender_type, bytes sender_id not None, QueueCore core not None
    ) -> None:
        """As `add`, for the messages of one sender only: SecurityHeader.Flags.ST and SecurityID, 0 and nothing without."""
        if len(self.senders) >= MAX_SENDERS:
            self.senders.clear()
        self.senders[bytes((dest_type,)) + name + bytes((sender_type,)) + sender_id] = core

    def clear(self) -> None:
        """Queues were created, deleted or changed: every destination is looked up anew."""
        self.table.clear()
        self.senders.clear()
        self.generation += 1


cdef class Repetition(CommitListener):
    """A copy of a message whose first copy is not durable yet: it shares its fate, whichever batch tells of it."""
    cdef DuplicateHistory _history
    cdef ReceiveWindow _window
    cdef uint8_t _identifier[IDENTIFIER_SIZE]

    cdef int committed(self, uint64_t token, int status) except -1:
        if status == STATUS_OK and not self._history.knows(self._identifier):
            status = ENOSPC     # what else fails ends the store
        return self._window.committed(token, status)

    cdef int settled(self) except -1:
        return self._window.settled()


cdef class Receiver:
    """Bytes go in by `buffer` and `commit`; `run` handles what is complete until Python has to decide something.

    `own` is the GUID of this queue manager in wire order; `routes` is shared by all sessions and filled by the general path.
    """

    def __init__(
        self,
        bytes own not None,
        ReceiveWindow window not None,
        SendWindow sent not None,
        DuplicateHistory history not None,
        Ledger ledger not None,
        Routes routes not None,
    ):
        if PyBytes_GET_SIZE(own) != 16:
            raise ValueError("a GUID has 16 bytes")
        memcpy(self._own, PyBytes_AS_STRING(own), 16)
        self._scanner = PacketScanner()
        self._window = window
        self._sent = sent
        self._history = history
        self._ledger = ledger
        self._routes = routes
        self.plain = True

    def buffer(self, Py_ssize_t hint):
        """A writable view of free room, never empty; BufferError if `run` must be called first."""
        return self._scanner.buffer(hint)

    def commit(self, Py_ssize_t count) -> None:
        """`count` bytes were written to the view that `buffer` returned."""
        self._scanner.commit(count)

    @property
    def fault(self) -> int:
        """What was wrong with a malformed packet; packet.errors names the codes."""
        return self._scanner.fault

    @property
    def held(self) -> int:
        """Bytes of a packet that is not complete yet."""
        return self._scanner.held

    def run(self) -> int:
        """Handle complete packets until the input is used up or an event is for Python."""
        cdef int kind, event
        while True:
            kind = self._scanner.next_packet()
            self.packets += kind > 0
            if kind == PACKET_USER_MESSAGE:
                if not self.open:
                    return EVENT_OUT_OF_STATE
                event = self._user_message()
                if event != EVENT_NEED_INPUT:
                    return event
            elif kind == PACKET_NONE:
                return EVENT_NEED_INPUT
            elif kind == PACKET_SESSION_ACK:
                if not self.open:
                    return EVENT_OUT_OF_STATE
                self.headers += 1
                self.header_result = self._sent.apply(self._scanner.packet + 20, self._window)
                if self.header_result:
                    return EVENT_HEADER_FAULT
            elif kind == PACKET_ESTABLISH_CONNECTION:
                return EVENT_ESTABLISH
            elif kind == PACKET_CONNECTION_PARAMETERS:
                return EVENT_PARAMETERS
            else:
                return EVENT_MALFORMED

    cdef int _user_message(self) except -1:
        cdef const UserMessage* m = &self._scanner.message
        cdef QueueCore core
        cdef uint8_t identifier[IDENTIFIER_SIZE]
        self._number = self._window.count(m.delivery != 0)
        if m.session_offset:
            self.headers += 1
            # The message itself is delivered even if the header ends the session (MS-MQMQ 2.2.20.4).
            self.header_result = self._sent.apply(self._scanner.packet + m.session_offset, self._window)
        if not self.plain or not self._is_plain():
            return EVENT_MESSAGE
        core = self._find_route()
        if core is None:
            return EVENT_MESSAGE
        _identify(self._scanner.packet, m, identifier)
        if self._history.sight(identifier, self._ledger.now_s) != SIGHTING_NEW:
            self.result = DELIVERY_DUPLICATE
            return EVENT_REFUSED
        if self._expired():
            self.result = DELIVERY_EXPIRED
            return EVENT_REFUSED
        self.result = self._enqueue(core, 0)
        if self.result == DELIVERY_QUEUE_GONE:
            return EVENT_MESSAGE
        if self.result != DELIVERY_STORED:
            return EVENT_REFUSED
        return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT

    cdef bint _is_plain(self) noexcept:
        cdef const UserMessage* m = &self._scanner.message
        cdef const uint8_t* packet = self._scanner.packet
        if m.transaction_offset or m.signature_length or m.base_flags & BASE_TRACE:
            return False
        if m.ack_flags and m.admin_type:
            return False
        if m.security_offset and get_u16(packet + m.security_offset) & SECURITY_ENCRYPTED:
            return False
        return memcmp(packet + ADDRESS_OFFSET, NOBODY, 16) == 0 or memcmp(packet + ADDRESS_OFFSET, self._own, 16) == 0

    cdef QueueCore _find_route(self):
        cdef const UserMessage* m = &self._scanner.message
        cdef const uint8_t* name = self._scanner.packet + m.dest_offset
        cdef PyObject* found
        cdef bytes key
        if (
            self._route is not None
            and PyBytes_GET_SIZE(self._route_name) == <Py_ssize_t>m.dest_length + 1
            and PyBytes_AS_STRING(self._route_name)[0] == <char>m.dest_type
            and memcmp(PyBytes_AS_STRING(self._route_name) + 1, name, m.dest_length) == 0
            and self._generation == self._routes.generation
        ):
            return self._route
        key = PyBytes_FromStringAndSize(NULL, m.dest_length + 1)
        PyBytes_AS_STRING(key)[0] = <char>m.dest_type
        memcpy(PyBytes_AS_STRING(key) + 1, name, m.dest_length)
        found = PyDict_GetItem(self._routes.table, key)
        if found == NULL:
            return self._find_sender(key)
        self._route = <QueueCore?>(<object>found)
        self._route_name = key
        self._generation = self._routes.generation
        return self._route

    cdef QueueCore _find_sender(self, bytes name):
        # The route of this sender, for a queue that not everybody may send to. Not remembered beyond the message.
        cdef const UserMessage* m = &self._scanner.message
        cdef Py_ssize_t size = PyBytes_GET_SIZE(name)
        cdef uint32_t length = 0
        cdef uint8_t kind = 0
        cdef PyObject* found
        cdef bytes key
        if not self._routes.senders:
            return None
        if m.security_offset:
            kind = self._scanner.packet[m.security_offset] & SENDER_TYPE
            length = m.sender_id_length
        key = PyBytes_FromStringAndSize(NULL, size + 1 + length)
        memcpy(PyBytes_AS_STRING(key), PyBytes_AS_STRING(name), size)
        PyBytes_AS_STRING(key)[size] = <char>kind
        if length:
            memcpy(PyBytes_AS_STRING(key) + size + 1, self._scanner.packet + m.sender_id_offset, length)
        found = PyDict_GetItem(self._routes.senders, key)
        return None if found == NULL else <QueueCore?>(<object>found)

    cdef bint _expired(self) noexcept:
        # A SentTime in the future counts as age 0.
        cdef const UserMessage* m = &self._scanner.message
        cdef uint32_t now = self._ledger.now_s
        return m.time_to_reach_queue != INFINITE and now > m.sent_time and now - m.sent_time > m.time_to_reach_queue

    cdef int _enqueue(self, QueueCore core, uint16_t message_class) except -1:
        cdef const UserMessage* m = &self._scanner.message
        cdef uint8_t identifier[IDENTIFIER_SIZE]
        cdef bytes packet = kept_packet(self._scanner.packet, m)
        cdef Writer writer = None
        cdef int result
        if m.security_offset:
            # AS says how a receiver authenticated the message: nobody may claim that for us.
            (<uint8_t*>PyBytes_AS_STRING(packet))[m.security_offset + 1] &= 0xF0
        if message_class:
            put_u16(<uint8_t*>PyBytes_AS_STRING(packet) + m.properties_offset + CLASS_OFFSET, message_class)
        if self._number:
            writer = self._ledger.writer
            writer.make_room(PyBytes_GET_SIZE(packet))
            writer.begin_unit()
        try:
            result = core.enqueue(packet, m, self._window, self._number, self._number != 0)
            if result == ENQUEUED or result == ENQUEUED_PENDING:
                _identify(self._scanner.packet, m, identifier)
                self._history.remember(identifier, self._ledger.now_s, writer)
        finally:
            if writer is not None:
                writer.end_unit()
        if result == ENQUEUED or result == ENQUEUED_PENDING:
            self.delivered += 1
            return DELIVERY_STORED
        if result == QUEUE_SAYS_QUOTA:
            return DELIVERY_QUEUE_QUOTA
        if result == QUEUE_SAYS_EXPIRED:
            return DELIVERY_EXPIRED
        if result == QUEUE_SAYS_GONE:
            return DELIVERY_QUEUE_GONE
        return DELIVERY_MACHINE_QUOTA

    cdef int _drop(self) except -1:
        cdef uint8_t identifier[IDENTIFIER_SIZE]
        cdef Repetition repetition
        if self._number == 0:
            return 0
        _identify(self._scanner.packet, &self._scanner.message, identifier)
        if self._history.sight(identifier, self._ledger.now_s) != SIGHTING_PENDING:
            return self._window.dispose(self._number)
        # The first copy is not durable yet, perhaps on another session: say nothing of this one before it is.
        self._ledger.writer.begin_unit()
        try:
            repetition = Repetition.__new__(Repetition)
            repetition._history = self._history
            repetition._window = self._window
            memcpy(repetition._identifier, identifier, IDENTIFIER_SIZE)
            self._ledger.writer.notify(repetition, self._number)
        finally:
            self._ledger.writer.end_unit()
        return 0

    def sight(self) -> int:
        """What the duplicate history knows of the current message: history.NEW, DURABLE or PENDING."""
        cdef uint8_t identifier[IDENTIFIER_SIZE]
        _identify(self._scanner.packet, &self._scanner.message, identifier)
        return self._history.sight(identifier, self._ledger.now_s)

    def expired(self) -> bool:
        """Whether TimeToReachQueue of the current message has passed."""
        return self._expired()

    def deliver(self, QueueCore core not None, uint16_t message_class=0) -> int:
        """Put the current message into a queue: STORED, or why not. A `message_class` takes the place of its own."""
        self.result = self._enqueue(core, message_class)
        return self.result

    def drop(self) -> None:
        """The current message is disposed of without being stored; it is acknowledged as the others are."""
        self._drop()

    def reject(self, nack, uint16_t reason) -> None:
        """As `drop`, with what follows from the refusal in the same unit, if the message asks for something.

        `nack(packet, reason)` says whether something followed; then the message is acknowledged when that is durable.
        """
        cdef const UserMessage* m = &self._scanner.message
        cdef Writer writer = self._ledger.writer
        if not (m.ack_flags & ASKS_NACK and m.admin_type) and not m.user_flags & USER_JOURNAL_NEGATIVE:
            self._drop()
            return
        writer.begin_unit()
        try:
            if nack(kept_packet(self._scanner.packet, m), reason) and self._number:
                writer.notify(self._window, self._number)
            else:
                self._drop()
        finally:
            writer.end_unit()

    def message(self):
        """The current UserMessage as a framing.ParsedMessage, without SessionHeader."""
        return parse(kept_packet(self._scanner.packet, &self._scanner.message))

    def packet(self) -> bytes:
        """The bytes of the current packet."""
        return PyBytes_FromStringAndSize(<const char*>self._scanner.packet, self._scanner.packet_size)

    def describe(self) -> str:
        """The identifier of the current message, for logs."""
        cdef const uint8_t* packet = self._scanner.packet
        source = UUID(bytes_le=PyBytes_FromStringAndSize(<const char*>packet + SOURCE_OFFSET, 16))
        return f"{{{source}}}\\{self._scanner.message.message_id}"


def head(QueueCore core not None) -> tuple:
    """(priority, number) of the available messages with the highest priority; (-1, 0) if there is none."""
    cdef int band
    for band in range(BANDS):
        if core.positions._bands[band].available:
            return BANDS - 1 - band, core.positions._bands[band].available
    return -1, 0


def with_session_header(bytes packet not None, bytes header not None) -> bytes:
    """A copy of a stored UserMessage packet that carries a SessionHeader behind it (2.2.20.4)."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packet)
    cdef bytes copy
    if PyBytes_GET_SIZE(header) != SESSION_HEADER_SIZE:
        raise ValueError("a SessionHeader has 16 bytes")
    copy = PyBytes_FromStringAndSize(NULL, size + SESSION_HEADER_SIZE)
    memcpy(PyBytes_AS_STRING(copy), PyBytes_AS_STRING(packet), size)
    memcpy(PyBytes_AS_STRING(copy) + size, PyBytes_AS_STRING(header), SESSION_HEADER_SIZE)
    patch_session_flag(<uint8_t*>PyBytes_AS_STRING(copy), True)
    return copy
