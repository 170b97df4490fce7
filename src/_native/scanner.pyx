"""The receive buffer of a session, which splits a stream of bytes into whole packets (MS-MQQB 2.2, MS-MQMQ 2.2.19.1)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcpy, memmove

from msmq_fast._native.framing cimport (
    BASE_INTERNAL,
    BASE_SESSION,
    FAULT_ESTABLISH_SIZE,
    FAULT_PACKET_TYPE,
    FAULT_PARAMETERS_SIZE,
    FAULT_SESSION_ACK_NO_HEADER,
    FAULT_SESSION_ACK_SIZE,
    FAULT_TRUNCATED,
    MAX_PACKET,
    SESSION_HEADER_SIZE,
    check_base,
    get_u16,
    get_u32,
    parse_user_message,
)

cdef enum:
    BUFFER_SIZE = 65536         # of an idle scanner that has seen traffic
    BUSY_SIZE = 131072          # of one whose reads fill the buffer: fewer reads for the same bytes
    FIRST_BUFFER = 4096         # of a new one: a peer that sends nothing costs one page
    MIN_READ = 8192             # room below which the buffer is compacted or grown


cdef class PacketScanner:
    """A growing receive buffer that returns whole packets.

    Write bytes with `buffer` and `commit` (as in asyncio.BufferedProtocol) or `feed`; `take` returns packets. The buffer grows with the
    bytes that actually arrive, up to one packet of `max_packet` bytes and a SessionHeader, and shrinks when it is empty and the last read
    was small. After a malformed packet, the stream has no further packets.
    """

    def __cinit__(self, size_t max_packet=MAX_PACKET):
        if not 572 <= max_packet <= MAX_PACKET:
            raise ValueError(f"max_packet must be in 572..{MAX_PACKET}, not {max_packet}")
        self.max_packet = max_packet

    cdef int _resize(self, size_t capacity) except -1:
        cdef object store = PyByteArray_FromStringAndSize(NULL, capacity)
        cdef uint8_t* data = <uint8_t*>PyByteArray_AS_STRING(store)
        if self._end > self._start:
            memcpy(data, self._data + self._start, self._end - self._start)
        self._end -= self._start
        self._start = 0
        self._store = store
        self._data = data
        self._capacity = capacity
        return 0

    cpdef object buffer(self, Py_ssize_t hint):
        """Returns a writable view of free room, never empty. `hint` is the number of bytes that the caller expects; the view may be smaller
        or larger.

        Raises BufferError if whole packets fill the buffer and must be taken first.
        """
        cdef size_t held = self._end - self._start
        cdef size_t limit = max(<size_t>BUFFER_SIZE, self.max_packet + SESSION_HEADER_SIZE)
        if held == 0:
            if self._capacity == 0:
                self._resize(FIRST_BUFFER)
            elif self._capacity > BUSY_SIZE or (self._capacity > BUFFER_SIZE and self._end <= BUFFER_SIZE):
                self._resize(BUFFER_SIZE)
            elif self._end == self._capacity and self._capacity < BUSY_SIZE:
                self._resize(BUFFER_SIZE if self._capacity < BUFFER_SIZE else BUSY_SIZE)
            self._start = self._end = 0
        elif self._capacity < BUFFER_SIZE and self._end == self._capacity:
            self._resize(BUFFER_SIZE)
        elif self._capacity == BUFFER_SIZE and self._end == self._capacity and held <= self._capacity // 2:
            self._resize(BUSY_SIZE)
        elif self._capacity - self._end < MIN_READ:
            if held > self._capacity // 2 and self._capacity < limit:
                self._resize(min(self._capacity * 4, limit))
            elif self._start:
                memmove(self._data, self._data + self._start, held)
                self._start, self._end = 0, held
            if self._end == self._capacity:
                raise BufferError("the receive buffer is full of packets that were not taken")
        return memoryview(self._store)[self._end:]

    cpdef int commit(self, Py_ssize_t count) except -1:
        """Adds the `count` bytes that were written to the view that `buffer` returned."""
        if count < 0 or <size_t>count > self._capacity - self._end:
            raise ValueError("more bytes committed than the buffer had room for")
        self._end += count
        return 0

    cdef int next_packet(self) except? -2:
        cdef size_t held = self._end - self._start
        cdef const uint8_t* data = self._data + self._start
        cdef size_t size
        cdef int fault, kind, packet_type
        if self.fault:
            return PACKET_BAD
        if held < 16:
            return PACKET_NONE
        fault = check_base(data, self.max_packet)
        if fault:
            self.fault = fault
            return PACKET_BAD
        size = get_u32(data + 8)
        if get_u16(data + 2) & BASE_INTERNAL:
            if held < 20:
                return PACKET_NONE
            packet_type = data[18] & 0x0F
            if packet_type == 1:
                kind = PACKET_SESSION_ACK
                if not get_u16(data + 2) & BASE_SESSION:
                    self.fault = FAULT_SESSION_ACK_NO_HEADER
                elif size != 36:
                    self.fault = FAULT_SESSION_ACK_SIZE
            elif packet_type == 2:
                kind = PACKET_ESTABLISH_CONNECTION
                if size != 572:
                    self.fault = FAULT_ESTABLISH_SIZE
            elif packet_type == 3:
                kind = PACKET_CONNECTION_PARAMETERS
                if size != 32:
                    self.fault = FAULT_PARAMETERS_SIZE
            else:
                self.fault = FAULT_PACKET_TYPE
            if self.fault:
                return PACKET_BAD
            if held < size:
                return PACKET_NONE
        else:
            if held < size:
                return PACKET_NONE
            kind = PACKET_USER_MESSAGE
            fault = parse_user_message(data, held, &self.message)
            if fault == FAULT_TRUNCATED:    # only the SessionHeader after the packet is missing
                return PACKET_NONE
            if fault:
                self.fault = fault
                return PACKET_BAD
            size = self.message.wire_size
        self.packet = data
        self.packet_size = size
        self._start += size
        return kind

    def feed(self, data):
        """Copies `data` (bytes) into the buffer. For callers without a BufferedProtocol. Raises BufferError as `buffer` does."""
        cdef object view
        rest = memoryview(data).cast("B")
        while len(rest):
            view = self.buffer(len(rest))
            count = min(len(view), len(rest))
            view[:count] = rest[:count]
            self.commit(count)
            rest = rest[count:]

    def take(self):
        """Returns the next (kind, packet bytes with any SessionHeader), or None if more input is needed.

        After a malformed packet it always returns (PACKET_BAD, b""); `fault` has the reason.
        """
        cdef int kind = self.next_packet()
        if kind == PACKET_NONE:
            return None
        if kind == PACKET_BAD:
            return kind, b""
        return kind, PyBytes_FromStringAndSize(<const char*>self.packet, self.packet_size)

    @property
    def held(self):
        """The number of bytes received but not taken."""
        return self._end - self._start

    @property
    def capacity(self):
        """The size of the buffer in bytes."""
        return self._capacity
