# The inbound half of a session: scan, parse, count, duplicate check, enqueue, in one native loop (MS-MQQB 3.1.5.8).

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.framing cimport PacketScanner, UserMessage
from msmq_fast._native.history cimport DuplicateHistory, Identity
from msmq_fast._native.instream cimport InStream, InStreams
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.window cimport ReceiveWindow, SendWindow


cdef enum Event:
    EVENT_NEED_INPUT = 0        # everything complete was handled
    EVENT_MESSAGE = 1           # a counted message with special demands
    EVENT_REFUSED = 2           # a counted plain message that was not taken; `result` says why
    EVENT_ESTABLISH = 3
    EVENT_PARAMETERS = 4
    EVENT_OUT_OF_STATE = 5      # a UserMessage or SessionAck outside OPEN
    EVENT_MALFORMED = 6
    EVENT_HEADER_FAULT = 7      # `header_result` says what is wrong with a SessionHeader


cdef enum Delivery:
    DELIVERY_STORED = 0
    DELIVERY_DUPLICATE = 1
    DELIVERY_EXPIRED = 2
    DELIVERY_QUEUE_QUOTA = 3
    DELIVERY_MACHINE_QUOTA = 4
    DELIVERY_QUEUE_GONE = 5
    DELIVERY_OUT_OF_ORDER = 6


@cython.final
cdef class Routes:
    cdef dict table             # type byte and wire name of a destination -> QueueCore without special demands
    cdef dict streams           # as table, for transactional messages
    cdef dict senders           # the same, sender type byte, sender id -> QueueCore that this sender may send to
    cdef uint64_t generation


@cython.final
cdef class Receiver:
    cdef PacketScanner _scanner
    cdef ReceiveWindow _window
    cdef SendWindow _sent
    cdef DuplicateHistory _history
    cdef Identity _identity     # of the packet with this number
    cdef uint64_t _identified
    cdef uint32_t _origin       # the share of the history that this session uses
    cdef Ledger _ledger
    cdef Routes _routes
    cdef InStreams _streams     # None: every transactional message is for Python
    cdef str _address           # of the peer
    cdef str _home              # of the streams that begin here
    cdef uint64_t _opening      # fingerprint of the current message if it begins a sequence, else 0
    cdef InStream _stream       # the last one used
    cdef bytes _stream_name
    cdef uint64_t _stream_generation
    cdef InStream _taking       # of the current message, if that is the next one of its stream and is not decided yet
    cdef bytes _route_name      # the last one used
    cdef uint64_t _generation
    cdef QueueCore _route
    cdef uint8_t _own[16]
    cdef dict _transit          # address, type byte and wire name of a destination elsewhere -> QueueCore on the way to it
    cdef uint64_t _transit_generation
    cdef public int hop_limit   # a message with so many hops is passed on no more
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
    cdef int _take_header(self, const uint8_t* header) except -1
    cdef int _skip(self) except -1
    cdef inline int _user_message(self) except -1
    cdef inline bint _is_plain(self) noexcept
    cdef inline bint _is_local(self) noexcept
    cdef QueueCore _find_route(self)
    cdef QueueCore _find_sender(self, bytes name)
    cdef inline bint _expired(self) noexcept
    cdef inline int _enqueue(self, QueueCore core, uint16_t message_class) except -1
    cdef int _store(self, QueueCore core, bytes packet, const UserMessage* m, uint16_t message_class) except -1
    cdef int _store_silent(self, QueueCore core, bytes packet, const UserMessage* m) except -1
    cdef int _put(self, QueueCore core, bytes packet, const UserMessage* m) except -1
    cdef int _put_in_unit(self, QueueCore core, bytes packet, const UserMessage* m) except -1
    cdef int _drop(self) except -1
    # The identity of the current message, calculated once.
    cdef inline Identity* _identify(self) noexcept
