# Transactional messages: where a message stands in its stream, and the plain path for those that are next (MS-MQQB 3.1.5.8.6).

cdef int take_transactional(Receiver self) except -1:
    # MS-MQQB 3.1.5.8.6; a stream that is not known yet is for the general path.
    cdef InStream stream = find_stream(self)
    cdef QueueCore core = None if stream is None else stream_route(self, stream)
    if core is None:
        return EVENT_MESSAGE
    self.result = judge_place(self, stream)
    if self.result == DELIVERY_STORED and self._expired():
        self.result = DELIVERY_EXPIRED
    if self.result == DELIVERY_STORED:
        self.result = self._enqueue(core, 0)
    if self.result == DELIVERY_QUEUE_GONE:
        return EVENT_MESSAGE
    if self.result != DELIVERY_STORED:
        return EVENT_REFUSED
    return EVENT_HEADER_FAULT if self.header_result else EVENT_NEED_INPUT


cdef int judge_place(Receiver self, InStream stream) except -1:
    # STORED: it is the next one, to be stored or rejected. A message that waited is judged again: another session may have brought it.
    cdef const uint8_t* header = transaction_header(self)
    cdef int order
    self._taking = None
    self._opening = 0
    if begins(header):
        self._opening = self._identify().fingerprint
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


cdef InStream find_stream(Receiver self):
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


cdef QueueCore stream_route(Receiver self, InStream stream):
    cdef PyObject* found
    if stream._core is not None and stream._generation == self._routes.generation:
        return stream._core
    found = PyDict_GetItem(self._routes.streams, self._stream_name[16:])
    stream._core = None if found == NULL else <QueueCore?>(<object>found)
    stream._generation = self._routes.generation
    return stream._core


cdef const uint8_t* transaction_header(Receiver self) noexcept:
    return self._scanner.packet + self._scanner.message.transaction_offset


cdef int decide(Receiver self, uint32_t queue) except -1:
    # The message is stored or rejected, in the unit that ends now: its stream goes on behind it.
    cdef InStream stream = self._taking
    if stream is not None:
        self._taking = None
        self._streams.accept(stream, transaction_header(self), queue if queue else stream.queue, self._opening)
    return 0
