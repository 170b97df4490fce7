# The base of all parts of a Receiver: its fields, the identity of the current message, and how it is stored.

# The parts, from the lowest: receivebase; receivestream (transactional messages) and receivetransit (messages for other queue managers);
# receive, with the loop over packets and the methods that Python calls. Functions here that take a ReceiverBase are inline, because the
# fast path calls them for each message.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp
from msmq_fast._native.framing cimport INFINITE, UserMessage, get_u32
from msmq_fast._native.history cimport DuplicateHistory, Identity
from msmq_fast._native.instream cimport InStream, InStreams
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.routes cimport Routes
from msmq_fast._native.scanner cimport PacketScanner
from msmq_fast._native.window cimport ReceiveWindow, SendWindow

cdef enum:
    ADDRESS_OFFSET = 32         # UserHeader.QueueManagerAddress


cdef enum Event:
    EVENT_NEED_INPUT = 0        # everything complete was handled
    EVENT_MESSAGE = 1           # a counted message that needs special handling
    EVENT_REFUSED = 2           # a counted plain message that was not accepted; `result` has the reason
    EVENT_ESTABLISH = 3
    EVENT_PARAMETERS = 4
    EVENT_OUT_OF_STATE = 5      # a UserMessage or SessionAck outside OPEN
    EVENT_MALFORMED = 6
    EVENT_HEADER_FAULT = 7      # `header_result` has the fault of a SessionHeader


cdef enum Delivery:
    DELIVERY_STORED = 0
    DELIVERY_DUPLICATE = 1
    DELIVERY_EXPIRED = 2
    DELIVERY_QUEUE_QUOTA = 3
    DELIVERY_MACHINE_QUOTA = 4
    DELIVERY_QUEUE_GONE = 5
    DELIVERY_OUT_OF_ORDER = 6


cdef class ReceiverBase:
    cdef PacketScanner _scanner
    cdef ReceiveWindow _window
    cdef SendWindow _sent
    cdef DuplicateHistory _history
    cdef Identity _identity     # of the packet with this number
    cdef uint64_t _identified
    cdef uint32_t _origin       # the share of the history that this session uses
    cdef Ledger _ledger
    cdef Routes _routes
    cdef InStreams _streams     # None: Python handles every transactional message
    cdef str _address           # of the peer
    cdef str _home              # of the streams that begin here
    cdef uint64_t _opening      # fingerprint of the current message if it begins a sequence, else 0
    cdef InStream _stream       # the last one used
    cdef bytes _stream_name
    cdef uint64_t _stream_generation
    cdef InStream _taking       # the stream of the current message, if the message is the next one and is not decided yet
    cdef bytes _route_name      # the last one used
    cdef uint64_t _generation
    cdef QueueCore _route
    cdef uint8_t _own[16]
    cdef dict _transit          # address, type byte and wire name of a remote destination -> the QueueCore through which it is reached
    cdef uint64_t _transit_generation
    cdef public int hop_limit   # a message with this many hops is not relayed
    cdef public bint lingering  # messages are skipped; only those for the queue manager itself become events
    cdef public bytes peer      # GUID of the queue manager at the other end in wire order, None before it is known
    cdef uint64_t _number       # recoverable number of the current message, 0 for an express one
    cdef public bint open       # the session is in state OPEN
    cdef public bint plain      # False: every message takes the general path
    cdef readonly int result    # a Delivery
    cdef readonly int header_result
    cdef readonly uint64_t packets      # complete ones, of all kinds
    cdef readonly uint64_t headers      # SessionHeaders applied
    cdef readonly uint64_t delivered    # messages that were put into local queues
    cdef readonly uint64_t relayed      # messages that were put into outgoing queues
    # Puts the current message into a queue, with the part of its packet that is stored. Returns a Delivery.
    cdef int _enqueue(self, QueueCore core, uint16_t message_class) except -1
    # The same with `packet`, which has no other reference yet; `m` describes it.
    cdef int _store(self, QueueCore core, bytes packet, const UserMessage* m, uint16_t message_class) except -1
    cdef int _store_silent(self, QueueCore core, bytes packet, const UserMessage* m) except -1
    cdef int _put(self, QueueCore core, bytes packet, const UserMessage* m) except -1
    cdef int _put_in_unit(self, QueueCore core, bytes packet, const UserMessage* m) except -1


# Called when the message is stored or rejected, in the unit that ends now: advances its stream.
cdef int decide(ReceiverBase self, uint32_t queue) except -1
# Returns the part of a packet that is stored. AS states how a receiver authenticated the message: only this receiver may set it.
cdef bytes strip_authentication_status(const uint8_t* packet, const UserMessage* m)


cdef inline bint is_local(ReceiverBase self) noexcept:
    """Whether the current message is addressed to this queue manager."""
    cdef const uint8_t* address = self._scanner.packet + ADDRESS_OFFSET
    if (get_u32(address) | get_u32(address + 4) | get_u32(address + 8) | get_u32(address + 12)) == 0:
        return True     # of a direct format name
    return memcmp(address, self._own, 16) == 0


cdef inline bint expired(ReceiverBase self) noexcept:
    """Whether TimeToReachQueue of the current message has passed. A SentTime in the future counts as age 0."""
    cdef const UserMessage* m = &self._scanner.message
    cdef uint32_t now = self._ledger.now_s
    return m.time_to_reach_queue != INFINITE and now > m.sent_time and now - m.sent_time > m.time_to_reach_queue


cdef inline Identity* identify(ReceiverBase self) noexcept:
    """The identity of the current message, calculated once."""
    if self._identified != self.packets:
        self._identified = self.packets
        self._history.identify(self._scanner.packet, &self._scanner.message, &self._identity)
        if self._scanner.message.time_to_reach_queue < self._identity.lifetime and not is_local(self):
            self._identity.lifetime = self._scanner.message.time_to_reach_queue
    return &self._identity


cdef inline const uint8_t* transaction_header(ReceiverBase self) noexcept:
    return self._scanner.packet + self._scanner.message.transaction_offset
