# cython: boundscheck=False, wraparound=False, cdivision=True
"""Messages that this queue manager relays as a router without calling Python; see receivetransit.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.framing cimport BASE_TRACE, SOURCE_OFFSET, USER_HOPS, UserMessage, kept_packet, patch_hops
from msmq_fast._native.history cimport SIGHTING_NEW, Identity
from msmq_fast._native.ledgerbase cimport (
    ENQUEUED,
    ENQUEUED_PENDING,
    EXPIRED as QUEUE_SAYS_EXPIRED,
    QUEUE_GONE as QUEUE_SAYS_GONE,
)
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.receivebase cimport (
    ADDRESS_OFFSET,
    DELIVERY_DUPLICATE,
    DELIVERY_EXPIRED,
    DELIVERY_MACHINE_QUOTA,
    DELIVERY_QUEUE_GONE,
    DELIVERY_STORED,
    EVENT_HEADER_FAULT,
    EVENT_MESSAGE,
    EVENT_NEED_INPUT,
    EVENT_REFUSED,
    ReceiverBase,
    expired,
    identify,
)

cdef enum:
    FLAGS_OFFSET = 60           # UserHeader.Flags, whose lowest bits are RC


cdef bytes transit_key(const uint8_t* packet, const UserMessage* m):
    cdef bytes key = PyBytes_FromStringAndSize(NULL, 17 + m.dest_length)
    cdef char* data = PyBytes_AS_STRING(key)
    memcpy(data, packet + ADDRESS_OFFSET, 16)
    data[16] = <char>m.dest_type
    memcpy(data + 17, packet + m.dest_offset, m.dest_length)
    return key


cdef int relay_message(ReceiverBase self) except -1:
    """Relays the current message if it is a plain one with a known route. Returns the event for `run`; EVENT_MESSAGE if Python must decide.
    """
    cdef const UserMessage* m = &self._scanner.message
    cdef const uint8_t* packet = self._scanner.packet
    cdef PyObject* found
    if memcmp(packet + SOURCE_OFFSET, self._own, 16) == 0:
        return EVENT_MESSAGE    # it has been here before
    if m.base_flags & BASE_TRACE or packet[FLAGS_OFFSET] & USER_HOPS >= self.hop_limit or expired(self):
        return EVENT_MESSAGE
    if self._transit_generation != self._routes.generation:
        self._transit.clear()
        self._transit_generation = self._routes.generation
        return EVENT_MESSAGE
    found = PyDict_GetItem(self._transit, transit_key(packet, m))
    if found == NULL:
        return EVENT_MESSAGE
    if m.transaction_offset == 0:
        if self._history.sight(identify(self), self._ledger.now_s) != SIGHTING_NEW:
            self.result = DELIVERY_DUPLICATE
            return EVENT_REFUSED
    self.result = relay_to(self, <QueueCore?>(<object>found))
    if self.result == DELIVERY_QUEUE_GONE:
        return EVENT_MESSAGE
    if self.result != DELIVERY_STORED:
        return EVENT_REFUSED
    return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT


cdef int relay_to(ReceiverBase self, QueueCore core) except -1:
    """Puts the current message into an outgoing queue with its hop count (RC) increased by one; no other byte changes. Returns a DELIVERY_
    code.

    A transactional message is not added to the duplicate history: its source sends it again until the destination has acknowledged it, and
    a router that dropped a repetition could interrupt the stream permanently (3.1.5.8.1). But a repetition is dropped while the message
    still waits in the outgoing queue. Otherwise each resend of the source would add another copy.
    """
    cdef const UserMessage* m = &self._scanner.message
    cdef bytes packet = kept_packet(self._scanner.packet, m)
    cdef const Identity* identity = identify(self)
    cdef bint remember = m.transaction_offset == 0
    cdef Writer writer = None
    cdef int result
    if m.transaction_offset and core.passes(self._scanner.packet + SOURCE_OFFSET, m.message_id):
        return DELIVERY_DUPLICATE
    patch_hops(<uint8_t*>PyBytes_AS_STRING(packet), (self._scanner.packet[FLAGS_OFFSET] & USER_HOPS) + 1)
    if self._number:
        writer = self._ledger.writer
        writer.make_room(PyBytes_GET_SIZE(packet))
        writer.begin_unit()
    try:
        result = core.enqueue(
            packet, m, self._window, self._number, identity.fingerprint if remember and self._number != 0 else 0
        )
        if remember and (result == ENQUEUED or result == ENQUEUED_PENDING):
            self._history.remember(identity, self._origin, self._ledger.now_s, writer)
    except BaseException:
        if writer is not None:
            writer.roll_back()
        raise
    if writer is not None:
        writer.keep_unit()
    if result == ENQUEUED or result == ENQUEUED_PENDING:
        self.relayed += 1
        return DELIVERY_STORED
    if result == QUEUE_SAYS_GONE:
        return DELIVERY_QUEUE_GONE
    return DELIVERY_EXPIRED if result == QUEUE_SAYS_EXPIRED else DELIVERY_MACHINE_QUOTA
