# cython: boundscheck=False, wraparound=False, cdivision=True
"""The fast path of SEND frames; see applane.pxd."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Size
from cpython.list cimport PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from msmq_fast._native.appcodec cimport PacketBuilder
from msmq_fast._native.appencode cimport HEADER_SIZE, Buffer, put_be, put_uint
from msmq_fast._native.appread cimport NO_TRANSACTION, Cursor, OutMessage, get_be, read_message, read_send
from msmq_fast._native.batch cimport STATUS_OK, Writer
from msmq_fast._native.counter cimport Counter
from msmq_fast._native.framing cimport UserMessage, parse_user_message, put_u32
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.ledgerbase cimport ENQUEUED_PENDING
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.requestids cimport RequestIds

cdef enum:
    FRAME_SENT = 0x82
    FRAME_SEND = 0x22
    FLAG_IDS = 1
    FLAG_SINGLE = 4                 # each message is a transaction of its own
    TRANSACTION_WHOLE = 1 << 2 | 1 << 3     # TransactionHeader.Flags: FM and LM
    IDENTIFIER_OFFSET = 56          # UserHeader.MessageID in a packet
    NO_PLACE = 0xFFFFFFFF


cdef class LaneTarget:
    """A queue that a connection has open for sending.

    With `plain`, it accepts messages outside transactions. With `take_numbers`, it accepts messages that are each a transaction of their
    own: `take_numbers(count)` returns the first of `count` consecutive TransactionIdentifiers.
    """

    def __init__(self, PacketBuilder builder not None, QueueCore core not None, Counter ordinals not None, take_numbers=None,
                 bint plain=True):
        self._builder = builder
        self._core = core
        self._ordinals = ordinals
        self._take_numbers = take_numbers
        self._plain = plain


cdef class SendLane:
    """Processes the plain SEND frames of one connection completely: from the bytes of the frame to the SENT frame that answers it.

    A frame is plain if it requests no SENT_ONE frames and names no transaction, its handle is in `targets`, and every message in it can be
    built and has room. The first frame that is not plain ends a run and is left to Python. A run also ends while frames of `max_bytes` or
    more wait for the disk. The session uses the same objects `pending` (ids of requests without a reply), `reads` and `deliveries` (dicts
    whose keys are request ids). When a batch is durable, `answered(frames, messages)` gets its SENT frames and the number of its messages.
    `failed(request_id, flags, messages, status)` reports a frame that could not be stored.
    """

    def __init__(
        self, Ledger ledger not None, RequestIds pending not None, dict reads not None, dict deliveries not None,
        answered, failed, *, uint32_t max_frame, uint32_t max_batch, uint32_t max_pending, uint64_t max_bytes,
    ):
        self._ledger = ledger
        self._pending = pending
        self._reads = reads
        self._deliveries = deliveries
        self._answered = answered
        self._failed = failed
        self._max_frame = max_frame
        self._max_batch = max_batch
        self._max_pending = max_pending
        self._max_bytes = max_bytes
        self._targets = {}
        self._failures = []
        self._answers = Buffer()
        self._free = NO_PLACE

    def __dealloc__(self):
        PyMem_Free(self._sends)

    def open(self, uint32_t handle, LaneTarget target not None) -> None:
        """Sends the messages of SEND frames for `handle` to this target."""
        self._targets[handle] = target
        self._last_target = None

    def close(self, uint32_t handle) -> None:
        """Removes the target of `handle`: further SEND frames for it are left to Python. Frames already processed are still answered."""
        self._targets.pop(handle, None)
        self._last_target = None

    @property
    def frames(self) -> int:
        """The number of frames processed so far."""
        return self._frames

    @property
    def full(self) -> bool:
        """True if as many bytes wait for the disk, or as many requests wait for a reply, as are allowed. Requests in `reads` do not count.
        """
        return self._full()

    cdef bint _full(self):
        return self._bytes >= self._max_bytes or self._pending.count - PyDict_Size(self._reads) >= self._max_pending

    def run(self, bytearray buffer not None, Py_ssize_t start, Py_ssize_t end) -> int:
        """Processes plain frames between `start` and `end`. Returns the position of the first frame that was not processed."""
        cdef const uint8_t* data = <const uint8_t*>PyByteArray_AS_STRING(buffer)
        cdef uint64_t length
        cdef uint32_t request_id
        if end > PyByteArray_GET_SIZE(buffer):
            raise ValueError("the end of the frames lies behind the end of the buffer")
        while end - start >= HEADER_SIZE and data[start + 4] == FRAME_SEND:
            length = get_be(data + start, 4)
            if not 5 < length <= self._max_frame or length + 4 > <uint64_t>(end - start):
                break
            if self._full():
                break
            request_id = <uint32_t>get_be(data + start + 5, 4)
            if not self._send(request_id, data + start + HEADER_SIZE, <size_t>length - 5):
                break
            start += <Py_ssize_t>length + 4
            self._frames += 1
        if self._answers.size:
            self._flush()
        return start

    cdef bint _send(self, uint32_t request_id, const uint8_t* payload, size_t size) except -1:
        """Processes one frame. Returns False, without any effect, if the frame is not plain."""
        cdef Cursor cursor
        cdef OutMessage message
        cdef uint32_t handle, flags, count, i, transaction
        cdef uint32_t header = TRANSACTION_WHOLE
        cdef bint single
        cdef uint64_t total = 0
        cdef LaneTarget target
        cdef bytes packet
        cdef list packets = None        # more than one packet; a single one needs no list
        cursor.at = payload
        cursor.end = payload + size
        if read_send(&cursor, &handle, &flags, &count, &transaction, &message) or flags & ~(FLAG_IDS | FLAG_SINGLE):
            return False
        if transaction != NO_TRANSACTION or not 0 < count <= self._max_batch:
            return False
        if request_id == 0 or self._pending.has(request_id) or (self._deliveries and request_id in self._deliveries):
            return False
        target = self._last_target
        if target is None or handle != self._last_handle:
            target = self._targets.get(handle)
            if target is None:
                return False
            self._last_handle, self._last_target = handle, target
        single = flags & FLAG_SINGLE != 0
        if (target._take_numbers is None) if single else not target._plain:
            return False
        if count > 1:
            packets = []
        for i in range(count):
            if i:
                read_message(&cursor, &message)     # cannot fail: read_send has checked it
            packet = target._builder.build(&message, 0, self._ledger.now_s, &header if single else NULL)
            if packet is None or target._builder.dead_letter is not None or target._builder.signature is not None:
                return False
            total += PyBytes_GET_SIZE(packet)
            if packets is not None:
                packets.append(packet)
        if self._ledger.writer.failed or not target._core.has_room(count, total):
            return False
        self._ledger.writer.make_room(total)
        self._enqueue(target, request_id, count, packet, packets, total, flags)
        return True

    cdef int _enqueue(self, LaneTarget target, uint32_t request_id, uint32_t count, bytes packet, list packets, uint64_t size,
                      uint32_t flags) except -1:
        """Enqueues the messages of a frame in one unit: `packet`, or `packets` if that is not None."""
        cdef UserMessage m
        cdef Send* send
        cdef uint32_t i, first = <uint32_t>target._ordinals.next(count), ordinal = first
        cdef uint32_t transaction = target._take_numbers(count) if flags & FLAG_SINGLE else 0
        cdef Writer writer = self._ledger.writer
        cdef bint stored = False
        cdef uint32_t place
        writer.begin_unit()
        try:
            for i in range(count):
                if packets is not None:
                    packet = packets[i]
                # Safe to modify, because no other object has a reference to the packet yet.
                put_u32(<uint8_t*>PyBytes_AS_STRING(packet) + IDENTIFIER_OFFSET, ordinal)
                ordinal += 1
                if parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m):
                    raise ValueError("an invalid packet was built")
                if m.transaction_offset:
                    put_u32(<uint8_t*>PyBytes_AS_STRING(packet) + m.transaction_offset, TRANSACTION_WHOLE | transaction << 4)
                    transaction += 1
                if target._core.enqueue(packet, &m, None, 0, 0) == ENQUEUED_PENDING:
                    stored = True
            if stored:
                place = self._place()
                send = &self._sends[place]
                send.request_id = request_id
                send.count = count
                send.size = size
                send.first = first
                send.ids = flags & FLAG_IDS
                writer.undo.add(self, place, NULL, 0, None)
                writer.notify(self, place)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
        if stored:
            self._pending.put(request_id)
            self._bytes += size
        else:
            self._answer(request_id, count, first, flags & FLAG_IDS)
        return 0

    cdef uint32_t _place(self) except? 0xFFFFFFFF:
        """Returns a free entry in the table of frames that wait for the disk."""
        cdef uint32_t i, place, capacity = self._capacity
        cdef Send* grown
        if self._free == NO_PLACE:
            self._capacity = capacity * 2 if capacity else 64
            grown = <Send*>PyMem_Realloc(self._sends, self._capacity * sizeof(Send))
            if grown == NULL:
                self._capacity = capacity
                raise MemoryError
            self._sends = grown
            for i in range(capacity, self._capacity):
                grown[i].next_free = i + 1 if i + 1 < self._capacity else NO_PLACE
            self._free = capacity
        place = self._free
        self._free = self._sends[place].next_free
        return place

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        self._sends[token].next_free = self._free
        self._free = <uint32_t>token
        return 0

    cdef int _answer(self, uint32_t request_id, uint32_t count, uint32_t first, bint ids) except -1:
        """Appends one SENT frame."""
        cdef Buffer out = self._answers
        cdef uint8_t* start
        cdef uint8_t* p
        cdef uint32_t i
        out.reserve(HEADER_SIZE + 16 + (5 * <size_t>count if ids else 0))
        start = out.data + out.size
        start[4] = FRAME_SENT
        p = put_be(start + 5, request_id, 4)
        p[0] = 0x93 if ids else 0x92
        p = put_uint(p + 1, count)
        p[0] = 0x90
        p += 1
        if ids:
            if count < 16:
                p[0] = 0x90 | count
                p += 1
            else:
                p[0] = 0xDC
                p = put_be(p + 1, count, 2)
            for i in range(count):
                p = put_uint(p, <uint32_t>(first + i))
        put_be(start, p - start - 4, 4)
        out.size += p - start
        self._messages += count
        return 0

    cdef int _flush(self) except -1:
        cdef bytes frames = self._answers.take()
        cdef uint64_t messages = self._messages
        self._messages = 0
        self._answered(frames, messages)
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef Send send = self._sends[token]
        self._sends[token].next_free = self._free
        self._free = <uint32_t>token
        self._pending.drop(send.request_id)
        self._bytes -= send.size
        if status == STATUS_OK:
            self._answer(send.request_id, send.count, send.first, send.ids)
        else:
            self._failures.append((send.request_id, FLAG_IDS if send.ids else 0, send.count, status))
        return 0

    cdef int settled(self) except -1:
        if self._failures:
            failures, self._failures = self._failures, []
            for request_id, flags, count, status in failures:
                self._failed(request_id, flags, count, status)
        if self._answers.size:
            self._flush()
        return 0
