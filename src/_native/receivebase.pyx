# cython: boundscheck=False, wraparound=False, cdivision=True
"""The base of all parts of a Receiver; see receivebase.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp
from msmq_fast._native.batch cimport Writer
from msmq_fast._native.framing cimport SOURCE_OFFSET, kept_packet, put_u16
from msmq_fast._native.ledgerbase cimport (
    ENQUEUED,
    ENQUEUED_PENDING,
    EXPIRED as QUEUE_SAYS_EXPIRED,
    QUEUE_GONE as QUEUE_SAYS_GONE,
    QUEUE_QUOTA as QUEUE_SAYS_QUOTA,
)

cdef enum:
    CLASS_OFFSET = 2            # MessagePropertiesHeader.MessageClass


cdef bytes strip_authentication_status(const uint8_t* packet, const UserMessage* m):
    cdef bytes copy = kept_packet(packet, m)
    if m.security_offset:
        (<uint8_t*>PyBytes_AS_STRING(copy))[m.security_offset + 1] &= 0xF0
    return copy


cdef int decide(ReceiverBase self, uint32_t queue) except -1:
    cdef InStream stream = self._taking
    if stream is not None:
        self._taking = None
        self._streams.accept(stream, transaction_header(self), queue if queue else stream.queue, self._opening)
    return 0


cdef class ReceiverBase:
    cdef int _enqueue(self, QueueCore core, uint16_t message_class) except -1:
        cdef const UserMessage* m = &self._scanner.message
        return self._store(core, strip_authentication_status(self._scanner.packet, m), m, message_class)

    cdef int _store(self, QueueCore core, bytes packet, const UserMessage* m, uint16_t message_class) except -1:
        # `packet` is the stored part of the current message, without other references; `m` describes it.
        if message_class:
            put_u16(<uint8_t*>PyBytes_AS_STRING(packet) + m.properties_offset + CLASS_OFFSET, message_class)
        if m.ack_flags and m.admin_type and memcmp(self._scanner.packet + SOURCE_OFFSET, self._own, 16) == 0:
            return self._store_silent(core, packet, m)
        return self._put(core, packet, m)

    cdef int _store_silent(self, QueueCore core, bytes packet, const UserMessage* m) except -1:
        # Acknowledgments for messages of this queue manager have no budget and no time limit, and may be sent anywhere. Therefore a message
        # that a peer sends in the name of this queue manager requests none.
        cdef UserMessage silent = m[0]
        silent.ack_flags = 0
        (<uint8_t*>PyBytes_AS_STRING(packet))[m.properties_offset] &= 0xF0
        return self._put(core, packet, &silent)

    cdef int _put(self, QueueCore core, bytes packet, const UserMessage* m) except -1:
        cdef int result
        if self._number or m.transaction_offset:
            result = self._put_in_unit(core, packet, m)
        else:
            # An express message has no unit: its identity is remembered after everything that can raise.
            result = core.enqueue_with(packet, m, self._window, 0, 0, 0)
            if result == ENQUEUED or result == ENQUEUED_PENDING:
                self._history.remember(identify(self), self._origin, self._ledger.now_s, None)
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

    cdef int _put_in_unit(self, QueueCore core, bytes packet, const UserMessage* m) except -1:
        # Returns an EnqueueResult. The message, its identity or its position in its stream, and its acknowledgment: all or nothing.
        cdef Writer writer = self._ledger.writer
        cdef Identity* identity
        cdef int result
        writer.make_room(PyBytes_GET_SIZE(packet))
        writer.begin_unit()
        try:
            if m.transaction_offset:
                result = core.enqueue_within(packet, m, self._window, self._number, 0)
                if result == ENQUEUED or result == ENQUEUED_PENDING:
                    decide(self, core.ordinal)
            else:
                identity = identify(self)
                result = core.enqueue_within(packet, m, self._window, self._number, identity.fingerprint)
                if result == ENQUEUED or result == ENQUEUED_PENDING:
                    self._history.remember(identity, self._origin, self._ledger.now_s, writer)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
        return result
