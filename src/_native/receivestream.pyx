# cython: boundscheck=False, wraparound=False, cdivision=True
"""Transactional messages on the fast path; see receivestream.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy
from msmq_fast._native.framing cimport SOURCE_OFFSET, UserMessage
from msmq_fast._native.instream cimport ORDER_NEXT, ORDER_REPEATED, InStream, begins
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.receivebase cimport (
    DELIVERY_DUPLICATE,
    DELIVERY_EXPIRED,
    DELIVERY_OUT_OF_ORDER,
    DELIVERY_QUEUE_GONE,
    DELIVERY_STORED,
    EVENT_HEADER_FAULT,
    EVENT_MESSAGE,
    EVENT_NEED_INPUT,
    EVENT_REFUSED,
    ReceiverBase,
    expired,
    identify,
    transaction_header,
)


cdef int take_transactional(ReceiverBase self) except -1:
    cdef InStream stream = find_stream(self)
    cdef QueueCore core = None if stream is None else stream_route(self, stream)
    if core is None:
        return EVENT_MESSAGE
    self.result = judge_place(self, stream)
    if self.result == DELIVERY_STORED and expired(self):
        self.result = DELIVERY_EXPIRED
    if self.result == DELIVERY_STORED:
        self.result = self._enqueue(core, 0)
    if self.result == DELIVERY_QUEUE_GONE:
        return EVENT_MESSAGE
    if self.result != DELIVERY_STORED:
        return EVENT_REFUSED
    return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT


cdef int judge_place(ReceiverBase self, InStream stream) except -1:
    cdef const uint8_t* header = transaction_header(self)
    cdef int order
    self._taking = None
    self._opening = 0
    if begins(header):
        self._opening = identify(self).fingerprint
    if stream._next is not None or stream.home is not self._home:
        stream = self._streams.choose(stream, header, self._home, self._address, self._opening)
        if stream is None:
            return DELIVERY_OUT_OF_ORDER
    order = self._streams.judge(stream, header, self._home, self._address)
    if stream.address is self._address and stream.peer is not self.peer:
        stream.peer = self.peer     # acknowledgments go back there
    if order == ORDER_NEXT:
        self._taking = stream
        return DELIVERY_STORED
    return DELIVERY_DUPLICATE if order == ORDER_REPEATED else DELIVERY_OUT_OF_ORDER


cdef InStream find_stream(ReceiverBase self):
    cdef const UserMessage* m = &self._scanner.message
    cdef const uint8_t* packet = self._scanner.packet
    cdef const char* name
    if self._streams is None:
        return None
    if self._stream is not None and self._stream_generation == self._streams.generation:
        name = PyBytes_AS_STRING(self._stream_name)
        if (
            PyBytes_GET_SIZE(self._stream_name) == <Py_ssize_t>m.dest_length + 17
            and memcmp(name, packet + SOURCE_OFFSET, 16) == 0
            and name[16] == <char>m.dest_type
            and memcmp(name + 17, packet + m.dest_offset, m.dest_length) == 0
        ):
            return self._stream
    self._stream = self._streams.find(packet, m)
    self._stream_generation = self._streams.generation
    self._stream_name = PyBytes_FromStringAndSize(NULL, m.dest_length + 17)
    memcpy(PyBytes_AS_STRING(self._stream_name), packet + SOURCE_OFFSET, 16)
    PyBytes_AS_STRING(self._stream_name)[16] = <char>m.dest_type
    memcpy(PyBytes_AS_STRING(self._stream_name) + 17, packet + m.dest_offset, m.dest_length)
    return self._stream


cdef QueueCore stream_route(ReceiverBase self, InStream stream):
    cdef PyObject* found
    if stream._core is not None and stream._generation == self._routes.generation:
        return stream._core
    found = PyDict_GetItem(self._routes.streams, self._stream_name[16:])
    stream._core = None if found == NULL else <QueueCore?>(<object>found)
    stream._generation = self._routes.generation
    return stream._core
