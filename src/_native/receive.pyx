# cython: boundscheck=False, wraparound=False, cdivision=True
"""Receiver: the inbound half of a session, with the fast path of the receive pipeline (MS-MQQB 3.1.5.8).

A message is plain if it is addressed to this queue manager, is not encrypted, is not traced and requests no acknowledgment, and if its
destination is in the table of routes, for all senders or for its sender. All steps for it run here. For any other message `run` returns
MESSAGE and mqqb/receive.py decides. Both paths use the functions `sight`, `order`, `expired`, `deliver`, `drop`, `reject`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.framing cimport (
    BASE_TRACE,
    SESSION_HEADER_SIZE,
    SOURCE_OFFSET,
    USER_HOPS,
    USER_JOURNAL_NEGATIVE,
    UserMessage,
    get_u16,
    get_u32,
    kept_packet,
    parse_user_message,
    patch_session_flag,
)
from msmq_fast._native.history cimport ORIGINS, SIGHTING_NEW, SIGHTING_PENDING, DuplicateHistory
from msmq_fast._native.instream cimport InStream, InStreams
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport TRANSPORT_MQQB
from msmq_fast._native.positions cimport BANDS
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport SEQUENCE_OFFSET
from msmq_fast._native.receivebase cimport (
    DELIVERY_DUPLICATE,
    DELIVERY_EXPIRED,
    DELIVERY_MACHINE_QUOTA,
    DELIVERY_OUT_OF_ORDER,
    DELIVERY_QUEUE_GONE,
    DELIVERY_QUEUE_QUOTA,
    DELIVERY_STORED,
    EVENT_ESTABLISH,
    EVENT_HEADER_FAULT,
    EVENT_MALFORMED,
    EVENT_MESSAGE,
    EVENT_NEED_INPUT,
    EVENT_OUT_OF_STATE,
    EVENT_PARAMETERS,
    EVENT_REFUSED,
    decide,
    expired,
    identify,
    is_local,
    strip_authentication_status,
)
from msmq_fast._native.receivestream cimport find_stream, judge_place, take_transactional
from msmq_fast._native.receivetransit cimport MAX_DESTINATIONS, MAX_NAME, relay_message, relay_to, transit_key
from msmq_fast._native.repetition cimport Repetition
from msmq_fast._native.routes cimport Routes
from msmq_fast._native.scanner cimport (
    PACKET_CONNECTION_PARAMETERS,
    PACKET_ESTABLISH_CONNECTION,
    PACKET_NONE,
    PACKET_SESSION_ACK,
    PACKET_USER_MESSAGE,
    PacketScanner,
)
from msmq_fast._native.window cimport (
    ACK_REACH as WINDOW_ACK_REACH,
    HEADER_COUNT_MISMATCH,
    HEADER_OK,
    ReceiveWindow,
    SendWindow,
)

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
OUT_OF_ORDER = DELIVERY_OUT_OF_ORDER

NEW = SIGHTING_NEW
ACK_REACH = WINDOW_ACK_REACH

cdef enum:
    SECURITY_ENCRYPTED = 0x20   # SecurityHeader.Flags.EB
    SENDER_TYPE = 0x0F          # SecurityHeader.Flags.ST
    ASKS_NACK = 4               # MessagePropertiesHeader.Flags.NA

cdef bint _multi_signed(const uint8_t* packet, const UserMessage* m) noexcept nogil:
    # Whether the signature of a MultiQueueFormatHeader follows its three lists.
    cdef uint64_t at = m.mqf_offset
    cdef int i
    if at == 0:
        return False
    for i in range(3):
        at += (<uint64_t>get_u32(packet + at) + 3) & ~<uint64_t>3
    return get_u32(packet + at + 4) != 0


cdef class Receiver:
    """Receives the bytes of a session by `buffer` and `commit`. `run` handles complete packets until Python must decide something.

    `own` is the GUID of this queue manager in wire order. All sessions share `routes`, which the general path fills. `streams` are the
    incoming transactional streams; they record `address`, the address of the peer. `origin` is the share of the duplicate history that this
    session uses, see `DuplicateHistory.origin`.
    """

    def __init__(
        self,
        bytes own not None,
        ReceiveWindow window not None,
        SendWindow sent not None,
        DuplicateHistory history not None,
        Ledger ledger not None,
        Routes routes not None,
        InStreams streams=None,
        str address not None="",
        int origin=0,
    ):
        if PyBytes_GET_SIZE(own) != 16:
            raise ValueError("a GUID has 16 bytes")
        memcpy(self._own, PyBytes_AS_STRING(own), 16)
        self._transit = {}
        self.hop_limit = USER_HOPS - 2  # 0x1D is the largest number of hops
        self._scanner = PacketScanner()
        self._window = window
        self._sent = sent
        self._history = history
        self._origin = origin % ORIGINS
        self._ledger = ledger
        self._routes = routes
        self._streams = streams
        self._address = address
        self._home = address if streams is None else streams.home(address)
        self.plain = True

    def buffer(self, Py_ssize_t hint):
        """Returns a writable view of free room, never empty. Raises BufferError if `run` must be called first."""
        return self._scanner.buffer(hint)

    def commit(self, Py_ssize_t count) -> None:
        """Adds the `count` bytes that were written to the view that `buffer` returned."""
        self._scanner.commit(count)

    @property
    def fault(self) -> int:
        """The fault code of a malformed packet; packet.errors names the codes."""
        return self._scanner.fault

    @property
    def address(self) -> str:
        """The address of the peer."""
        return self._address

    @property
    def held(self) -> int:
        """The number of bytes that were received of an incomplete packet."""
        return self._scanner.held

    def run(self) -> int:
        """Handles complete packets until the input is used up or Python must handle an event."""
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
                self._take_header(self._scanner.packet + 20)
                if self.header_result:
                    return EVENT_HEADER_FAULT
            elif kind == PACKET_ESTABLISH_CONNECTION:
                return EVENT_ESTABLISH
            elif kind == PACKET_CONNECTION_PARAMETERS:
                return EVENT_PARAMETERS
            else:
                return EVENT_MALFORMED

    cdef int _take_header(self, const uint8_t* header) except -1:
        self.headers += 1
        self.header_result = self._sent.apply(header, self._window)
        if self.lingering and self.header_result == HEADER_COUNT_MISMATCH:
            self.header_result = HEADER_OK      # the peer also counts messages that are skipped here
        return 0

    cdef int _skip(self) except -1:
        # Not counted, so that no header of this session ever acknowledges it: its sender will send it again.
        cdef const UserMessage* m = &self._scanner.message
        self._number = 0
        self._taking = None
        if m.session_offset:
            self._take_header(self._scanner.packet + m.session_offset)
        if m.message_class:
            return EVENT_MESSAGE
        return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT

    cdef inline int _user_message(self) except -1:
        cdef const UserMessage* m = &self._scanner.message
        cdef QueueCore core
        if self.lingering:
            return self._skip()
        self._number = self._window.count(m.delivery != 0)
        self._taking = None
        if m.session_offset:
            # The message itself is delivered even if the header ends the session (MS-MQMQ 2.2.20.4).
            self._take_header(self._scanner.packet + m.session_offset)
        if not self.plain or not self._is_plain():
            return relay_message(self) if self._transit and self.plain and not is_local(self) else EVENT_MESSAGE
        if m.transaction_offset:
            return take_transactional(self)
        core = self._find_route()
        if core is None:
            return EVENT_MESSAGE
        if self._history.sight(identify(self), self._ledger.now_s) != SIGHTING_NEW:
            self.result = DELIVERY_DUPLICATE
            return EVENT_REFUSED
        if expired(self):
            self.result = DELIVERY_EXPIRED
            return EVENT_REFUSED
        self.result = self._enqueue(core, 0)
        if self.result == DELIVERY_QUEUE_GONE:
            return EVENT_MESSAGE
        if self.result != DELIVERY_STORED:
            return EVENT_REFUSED
        return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT

    cdef inline bint _is_plain(self) noexcept:
        cdef const UserMessage* m = &self._scanner.message
        cdef const uint8_t* packet = self._scanner.packet
        if m.signature_length or m.base_flags & BASE_TRACE or _multi_signed(packet, m):
            return False
        if m.ack_flags and m.admin_type:
            return False
        if m.security_offset and get_u16(packet + m.security_offset) & SECURITY_ENCRYPTED:
            return False
        return is_local(self)

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
        # Finds the route of this sender to a queue that not every sender may send to. The route is not kept for later messages.
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

    cdef int _drop(self) except -1:
        cdef Repetition repetition
        if self._number == 0:
            return 0
        if self._scanner.message.transaction_offset:
            if self._taking is None:
                return self._window.dispose(self._number)   # the sender waits for the OrderAck, whatever it receives now
            self._ledger.writer.begin_unit()
            try:
                self._ledger.writer.notify(self._window, self._number)
                decide(self, 0)
            except BaseException:
                self._ledger.writer.roll_back()
                raise
            self._ledger.writer.keep_unit()
            return 0
        if self._history.sight(identify(self), self._ledger.now_s) != SIGHTING_PENDING:
            return self._window.dispose(self._number)
        # The first copy is not durable yet, perhaps on another session. Do not acknowledge this one before that.
        self._ledger.writer.begin_unit()
        try:
            repetition = Repetition.__new__(Repetition)
            repetition._history = self._history
            repetition._window = self._window
            repetition._identity = self._identity
            self._ledger.writer.notify(repetition, self._number)
        except BaseException:
            self._ledger.writer.roll_back()
            raise
        self._ledger.writer.keep_unit()
        return 0

    def sight(self, bytes packet=None) -> int:
        """Looks the current message up in the duplicate history. Returns history.NEW, DURABLE or PENDING.

        `packet` is the decrypted form of an encrypted message, which identifies it from then on. Raises ValueError if it is malformed.
        """
        cdef UserMessage m
        if packet is not None:
            parse_kept(packet, &m)
            self._history.identify(<const uint8_t*>PyBytes_AS_STRING(packet), &m, &self._identity)
            self._identified = self.packets
        return self._history.sight(identify(self), self._ledger.now_s)

    def order(self) -> int:
        """Returns the place of the current transactional message in its stream. STORED: it is the next message, and must now be delivered,
        dropped or rejected. DUPLICATE: it was accepted before. OUT_OF_ORDER: an earlier message is missing. MACHINE_QUOTA: it needs a new
        stream, and there are too many.
        """
        cdef const UserMessage* m = &self._scanner.message
        cdef const char* packet = <const char*>self._scanner.packet
        cdef InStream stream = find_stream(self)
        if stream is None:
            stream = self._streams.stream(
                packet[SOURCE_OFFSET:SOURCE_OFFSET + 16], m.dest_type, packet[m.dest_offset:m.dest_offset + m.dest_length],
                self._home
            )
            self._stream = stream
        if stream is None:
            return DELIVERY_MACHINE_QUOTA
        return judge_place(self, stream)

    def expired(self) -> bool:
        """Whether TimeToReachQueue of the current message has passed."""
        return expired(self)

    def deliver(self, QueueCore core not None, uint16_t message_class=0, bytes packet=None) -> int:
        """Puts the current message into a queue. Returns STORED, or the reason for which the queue rejected it. `message_class`, if not 0,
        replaces the class of the message.

        `packet`, if given, is stored in place of the received packet: the decrypted form, or one with another hop count. It must not have a
        SessionHeader. Raises ValueError if it is malformed.
        """
        cdef UserMessage m
        cdef bytes copy
        if packet is None:
            self.result = self._enqueue(core, message_class)
            return self.result
        parse_kept(packet, &m)
        copy = PyBytes_FromStringAndSize(PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet)) if message_class else packet
        self.result = self._store(core, copy, &m, message_class)
        return self.result

    def relay(self, QueueCore core not None, bint learn=True) -> int:
        """Puts the current message into an outgoing queue, with its hop count increased by one. Returns STORED, or the reason for which the
        queue rejected it.

        `learn`: later messages of this session for the same destination take the same route, until routes change.
        """
        self.result = relay_to(self, core)
        if learn and self.result == DELIVERY_STORED and self._scanner.message.dest_length <= MAX_NAME:
            if self._transit_generation != self._routes.generation or len(self._transit) >= MAX_DESTINATIONS:
                self._transit.clear()
                self._transit_generation = self._routes.generation
            self._transit[transit_key(self._scanner.packet, &self._scanner.message)] = core
        return self.result

    def drop(self) -> None:
        """Discards the current message. The session acknowledges it like an accepted message."""
        self._drop()

    def reject(self, nack, uint16_t reason) -> None:
        """Like `drop`, with the side effects of the rejection in the same unit, if the message requests any.

        `nack(packet, reason)` returns whether it had a side effect; the session then acknowledges the message when the side effect is
        durable.
        """
        cdef const UserMessage* m = &self._scanner.message
        cdef Writer writer = self._ledger.writer
        if (
            not (m.ack_flags & ASKS_NACK and m.admin_type) and not m.user_flags & USER_JOURNAL_NEGATIVE
            and not m.transaction_offset
        ):
            self._drop()
            return
        writer.begin_unit()
        try:
            if nack(strip_authentication_status(self._scanner.packet, m), reason) and self._number:
                writer.notify(self._window, self._number)
                decide(self, 0)
            else:
                self._drop()
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()

    def tell(self, int kind, uint16_t reason=0) -> None:
        """Adds a feed event for the current message, which was not accepted. `kind` is a store.schema.EventKind, `reason` the MessageClass
        of the negative acknowledgment, or 0.

        The event is written with the next commit, but does not cause one.
        """
        cdef const UserMessage* m = &self._scanner.message
        cdef const uint8_t* packet = self._scanner.packet
        cdef uint64_t identifier = 0
        cdef uint32_t number = 0
        if not self._ledger.feed:
            return
        if m.transaction_offset:
            memcpy(&identifier, packet + m.transaction_offset + SEQUENCE_OFFSET, sizeof(identifier))
            number = get_u32(packet + m.transaction_offset + SEQUENCE_OFFSET + sizeof(identifier))
        self._ledger.untaken(
            kind, TRANSPORT_MQQB, told_queue(self), packet + SOURCE_OFFSET, m.message_id, m.size,
            reason if reason else m.message_class, reason, identifier, number
        )

    def consume(self, act) -> None:
        """Handles a current message that is for the queue manager itself. `act()` runs inside a unit; the message is acknowledged when the
        unit is durable.
        """
        cdef Writer writer = self._ledger.writer
        writer.begin_unit()
        try:
            act()
            if self._number:
                writer.notify(self._window, self._number)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()

    def message(self):
        """The current UserMessage as a framing.ParsedMessage, without SessionHeader."""
        return parse(kept_packet(self._scanner.packet, &self._scanner.message))

    def packet(self) -> bytes:
        """The bytes of the current packet."""
        return PyBytes_FromStringAndSize(<const char*>self._scanner.packet, self._scanner.packet_size)

    def describe(self) -> str:
        """Returns the identifier of the current message, for logs."""
        cdef const uint8_t* packet = self._scanner.packet
        source = UUID(bytes_le=PyBytes_FromStringAndSize(<const char*>packet + SOURCE_OFFSET, 16))
        return f"{{{source}}}\\{self._scanner.message.message_id}"


cdef int parse_kept(bytes packet, UserMessage* m) except -1:
    cdef int fault = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), m)
    if fault or m.session_offset:
        raise ValueError(f"not a UserMessage packet without SessionHeader (fault {fault})")
    return 0


cdef uint32_t told_queue(Receiver self) except? 0:
    # Returns the ordinal of the queue that the current message is for, 0 if that is unknown without Python.
    cdef InStream stream
    cdef QueueCore core
    if not is_local(self):
        return 0
    if self._scanner.message.transaction_offset:
        stream = find_stream(self)
        return stream.queue if stream is not None else 0
    core = self._find_route()
    return core.ordinal if core is not None else 0


def head(QueueCore core not None) -> tuple:
    """Returns (highest priority of an available message, number of available messages with this priority); (-1, 0) if no message is
    available.
    """
    cdef int band
    for band in range(BANDS):
        if core.positions._bands[band].available:
            return BANDS - 1 - band, core.positions._bands[band].available
    return -1, 0


def with_session_header(bytes packet not None, bytes header not None) -> bytes:
    """Returns a copy of a stored UserMessage packet with a SessionHeader after it (2.2.20.4)."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packet)
    cdef bytes copy
    if PyBytes_GET_SIZE(header) != SESSION_HEADER_SIZE:
        raise ValueError("a SessionHeader has 16 bytes")
    copy = PyBytes_FromStringAndSize(NULL, size + SESSION_HEADER_SIZE)
    memcpy(PyBytes_AS_STRING(copy), PyBytes_AS_STRING(packet), size)
    memcpy(PyBytes_AS_STRING(copy) + size, PyBytes_AS_STRING(header), SESSION_HEADER_SIZE)
    patch_session_flag(<uint8_t*>PyBytes_AS_STRING(copy), True)
    return copy
