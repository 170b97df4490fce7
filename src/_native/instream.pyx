# cython: boundscheck=False, wraparound=False, cdivision=True
"""InStreams: decides which incoming transactional messages are accepted (MS-MQQB 3.1.5.8.6), and stores which were accepted (DU-12).

A stream advances in the unit that stores its message. There is one record per stream and commit: the first message of a stream in a batch
adds it, later messages change it in place. A batch depends on earlier batches with messages of the same streams. If one of those batches
fails, this batch also fails, so that a stream never has a gap.

Nothing proves that a message is from the queue manager that it names. Therefore there may be several streams of one source and destination,
each with a home. The home of a stream is the group of addresses from which its sequences begin:

1. A new sequence (its first message has no previous one) belongs to the stream whose home contains the address from which it arrives. A
   peer that begins a sequence in the name of another queue manager, even with a great identifier, begins a stream of its own.
2. A sequence can continue from any address: a peer moves, has several addresses, or uses another router. Its message must name the
   identifier, and as the previous number the last one that was accepted, which only its sender knows. OrderAcks are then sent to that
   address, and the home of the stream becomes the home of that address, unless this already has a stream of its own.
3. A first message can arrive a second time, from an address outside the home of its stream. It is a repetition if its content is the same.
   Otherwise it begins another sequence, with a stolen identifier.
4. Identifiers of sequences are times and small numbers, which can be guessed. Therefore wrong guesses about one source and destination have
   a budget. When the budget is used up, or when MAX_HOMES homes have a stream of this source and destination, further homes are rejected
   until there is room. Exceptions are homes that are vouched for: the source is believed to be at that address, or a router is.
5. Each home may have FEW streams even if the total limit is reached, so that any number of unauthenticated peers cannot keep out another
   peer.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from msmq_fast._native.tablenumbers cimport TABLE_SEQUENCE
from msmq_fast._native.framing cimport SOURCE_OFFSET, get_u32
from msmq_fast._native.record cimport IN_STREAM_VERSION, IncomingStream

from hashlib import blake2b
from sys import intern

NEXT = ORDER_NEXT
REPEATED = ORDER_REPEATED
AHEAD = ORDER_AHEAD

cdef enum:
    GUID_SIZE = 16
    NUMBER_OFFSET = 12          # TransactionHeader.TxSequenceNumber
    PREVIOUS_OFFSET = 16        # TransactionHeader.PreviousTxSequenceNumber
    HASH_SIZE = 16
    DIRECT = 7                  # UserHeader.Flags.DQ of a direct name
    MAX_NAMES = 65536           # senders choose the spelling of a destination; the spellings must not fill the memory
    MAX_ADDRESS = 255
    MAX_NAME = 2048             # bytes of a DestinationQueue field: no queue has a longer name
    EVICTED = 1000
    FEW = 16
    GUESS = 10                  # seconds until a wrong guess no longer counts
    GUESSES = 32                # at most at once
    SILENT = 86400              # seconds after which a sender has surely sent again: the resend ladder ends at six hours

KEY_PREFIX = b"I"


def folded(int dest_type, bytes name not None) -> bytes:
    """Returns the DestinationQueue field in the form that identifies a stream: direct names without regard to case."""
    if dest_type != DIRECT or len(name) < 4:
        return name
    cdef Py_ssize_t count = min(name[0] | name[1] << 8, len(name) - 2) & ~1
    text = name[2:2 + count].decode("utf-16-le", "surrogatepass").partition("\0")[0]
    return text.casefold().encode("utf-16-le", "surrogatepass")


cdef bytes _record_key(bytes prefix, bytes source, bytes bunch, int slot):
    return prefix + source + blake2b(bunch, digest_size=HASH_SIZE, salt=bytes((slot,))).digest()


cdef inline uint64_t _identifier(const uint8_t* header) noexcept nogil:
    return <uint64_t>get_u32(header + 8) << 32 | get_u32(header + 4)


cdef class InStream:
    """A stream of transactional messages; created by InStreams. Streams are compared by identity."""

    @property
    def unsettled(self) -> bool:
        """Whether some of the stream's state is not durable yet."""
        return self._unsettled


cdef class InStreams(CommitListener):
    """``InStreams(ledger, limit, prefix, group, vouches)``: knows at most `limit` streams at a time.

    If there are more, streams without an accepted message are forgotten first, then streams without a message for a day. `prefix` is the
    first byte of the keys of its records; each protocol that delivers streams has its own. `group(address)` returns the home to which an
    address belongs (see above), by default the address itself. `vouches(source, address)` returns whether the queue manager `source` is
    believed to be at an address; without this function, no queue manager is.
    """

    def __init__(self, Ledger ledger not None, size_t limit=100_000, bytes prefix not None=KEY_PREFIX, group=str, vouches=None):
        if len(prefix) != 1:
            raise ValueError("the prefix of the keys must have one byte")
        self._prefix = prefix
        self._ledger = ledger
        self._writer = ledger.writer
        self._streams = {}
        self._heads = {}
        self._names = {}
        self._shares = {}
        self._group = group
        self._vouches = vouches
        self._limit = limit
        self._ack_due = []
        self._capacity = 64
        self._touches = <Touch*>malloc(self._capacity * sizeof(Touch))
        if self._touches == NULL:
            raise MemoryError("no memory for streams")

    def __dealloc__(self):
        while self._head < self._tail:
            Py_DECREF(<object>self._touches[self._head & (self._capacity - 1)].stream)
            self._head += 1
        free(self._touches)

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self):
        return iter(list(self._streams.values()))

    # ---- which stream

    cdef InStream find(self, const uint8_t* packet, const UserMessage* m):
        cdef bytes key = PyBytes_FromStringAndSize(NULL, GUID_SIZE + 1 + m.dest_length)
        cdef PyObject* found
        memcpy(PyBytes_AS_STRING(key), packet + SOURCE_OFFSET, GUID_SIZE)
        PyBytes_AS_STRING(key)[GUID_SIZE] = <char>m.dest_type
        memcpy(PyBytes_AS_STRING(key) + GUID_SIZE + 1, packet + m.dest_offset, m.dest_length)
        found = PyDict_GetItem(self._names, key)
        return None if found == NULL else <InStream?>(<object>found)

    def home(self, str address not None) -> str:
        """Returns the home of a stream whose sequence begins with a message from this address."""
        return intern(self._group(address))

    def disputed(self, InStream stream not None) -> bool:
        """Whether a stream of another home has the same source, destination and sequence identifier."""
        cdef InStream other = self._heads.get(stream._bunch)
        while other is not None:
            if other is not stream and other.identifier == stream.identifier and other.number:
                return True
            other = other._next
        return False

    def get(self, bytes source not None, int dest_type, bytes name not None, object identifier=None) -> InStream | None:
        """Returns the stream from a queue manager to a DestinationQueue; the case of a direct name does not matter. Returns None if there
        is no such stream.

        If several homes have such a stream, returns the one with the sequence `identifier`, otherwise the first.
        """
        cdef InStream first = self._heads.get(source + bytes((dest_type,)) + folded(dest_type, name))
        cdef InStream stream = first
        while stream is not None:
            if stream.identifier == identifier:
                return stream
            stream = stream._next
        return first

    def stream(self, bytes source not None, int dest_type, bytes name not None, str home not None="") -> InStream | None:
        """Returns the first stream from a queue manager to a DestinationQueue. If there is none, creates one with this `home`. Returns None
        if the limit of streams is reached, or if the name is too long for a queue.
        """
        if len(source) != GUID_SIZE:
            raise ValueError("a GUID has 16 bytes")
        if len(name) > MAX_NAME:
            return None
        cdef bytes key = source + bytes((dest_type,)) + folded(dest_type, name)
        cdef InStream stream = self._heads.get(key)
        if stream is None:
            if <size_t>len(self._streams) >= self._limit and not self._make_room() and not self._has_few(home):
                return None
            stream = InStream.__new__(InStream)
            stream.source, stream.dest_type, stream.name, stream.address = source, dest_type, name, ""
            stream._bunch, stream._key = key, _record_key(self._prefix, source, key, 0)
            stream.accessed = self._ledger.now_s
            self._move(stream, home)
            self._heads[key] = self._streams[key, 0] = stream
        if len(self._names) >= MAX_NAMES:
            self._names.clear()
        self._names[source + bytes((dest_type,)) + name] = stream
        return stream

    cdef InStream _begin(self, InStream first, str home, str address):
        # Adds a stream of a source and destination. Silent streams are removed to make room.
        cdef bint vouched = False
        cdef int begin = 0, end = MAX_HOMES
        cdef InStream stream = first, last = first, oldest = None
        cdef set taken = set()
        while stream is not None:
            taken.add(stream._slot)
            stream = stream._next
        if taken.issuperset(range(MAX_HOMES)):
            vouched = self._vouched(first, address)
            if vouched:
                begin, end = MAX_HOMES, MAX_SLOTS
        free = set(range(begin, end)) - taken
        stream = first
        while stream is not None:
            last = stream
            if begin <= stream._slot < end and not stream._unsettled and not stream.armed and (
                oldest is None or stream.accessed < oldest.accessed
            ):
                oldest = stream
            stream = stream._next
        if not free:
            if oldest is None or (not vouched and oldest.queue and oldest.accessed + SILENT > self._ledger.now_s):
                return None
            self._forget_all([oldest])
            return self._begin(self._heads[oldest._bunch], home, address)
        if <size_t>len(self._streams) >= self._limit and not self._has_few(home):
            return None
        stream = InStream.__new__(InStream)
        stream.source, stream.dest_type, stream.name, stream.address = first.source, first.dest_type, first.name, ""
        stream._bunch, stream._slot = first._bunch, min(free)
        stream._key = _record_key(self._prefix, first.source, first._bunch, stream._slot)
        stream.accessed = self._ledger.now_s
        self._move(stream, home)
        self._streams[stream._bunch, stream._slot] = stream
        last._next = stream
        return stream

    cdef bint _vouched(self, InStream first, str address) except -1:
        return self._vouches is not None and self._vouches(first.source, address)

    def vouched(self, InStream stream not None) -> bool:
        """Whether the source of a stream is believed to be at the stream's address."""
        return self._vouched(stream, stream.address)

    def _has_few(self, str home) -> bool:
        """Whether a home may begin one more stream although the total limit is reached."""
        return self._shares.get(home, 0) < FEW and <size_t>len(self._streams) < self._limit + self._limit // 4

    cdef int _move(self, InStream stream, str home) except -1:
        """Changes the home of a stream. `home` is None if the stream is removed."""
        if stream.home is not None:
            left = self._shares[stream.home] - 1
            if left:
                self._shares[stream.home] = left
            else:
                del self._shares[stream.home]
        if home is not None:
            self._shares[home] = self._shares.get(home, 0) + 1
        stream.home = home
        return 0

    cdef int _remove(self, InStream stream) except -1:
        cdef InStream first = self._heads[stream._bunch], other = first
        del self._streams[stream._bunch, stream._slot]
        self._move(stream, None)
        if first is stream:
            if stream._next is None:
                del self._heads[stream._bunch]
            else:
                self._heads[stream._bunch] = stream._next
                stream._next._guessed_s = stream._guessed_s
        else:
            while other._next is not stream:
                other = other._next
            other._next = stream._next
        stream._next = None
        return 0

    def _make_room(self) -> bool:
        silent = max(0, int(self._ledger.now_s) - SILENT)
        if self._full_s == self._ledger.now_s:
            return False    # unauthenticated peers may ask often, and a search of all streams is slow
        if self._forget(0xFFFFFFFF, EVICTED, True) or self._forget(silent, EVICTED, False):
            return True
        self._full_s = self._ledger.now_s
        return False

    # ---- the gate

    cdef InStream choose(self, InStream first, const uint8_t* header, str home, str address, uint64_t fingerprint):
        cdef uint64_t identifier = _identifier(header)
        cdef uint32_t number = get_u32(header + NUMBER_OFFSET), previous = get_u32(header + PREVIOUS_OFFSET)
        cdef InStream stream = first, own = None, held = None
        cdef bint guessed
        while stream is not None:
            if own is None and (stream.home == home or not stream.home):
                own = stream
            if stream.identifier == identifier and stream.number:
                if held is None or stream.number == previous or (stream.number == number and held.number != previous):
                    held = stream
            stream = stream._next
        if own is not None and own.identifier == identifier:
            return own
        if (own is not first or first._next is not None) and not (begins(header) and held is not None and held._opening == fingerprint):
            if held is None:
                guessed = not begins(header) or (own is not None and identifier < own.identifier)
            else:
                guessed = begins(header) and held._opening == 0
            if first._guessed_s > self._ledger.now_s + GUESS * (GUESSES - 1) and not self._vouched(first, address):
                held = None
            elif guessed:
                first._guessed_s = max(first._guessed_s, self._ledger.now_s) + GUESS
        if held is None or (begins(header) and held._opening != fingerprint and (held._opening or own is not None)):
            return own if own is not None else self._begin(first, home, address)
        return held

    cdef int judge(self, InStream stream, const uint8_t* header, str home, str address) except -1:
        cdef uint64_t identifier = _identifier(header)
        cdef uint32_t number = get_u32(header + NUMBER_OFFSET), previous = get_u32(header + PREVIOUS_OFFSET)
        cdef InStream other
        if stream.home != home:
            if stream.home and (
                identifier != stream.identifier or (number != stream.number and (number < stream.number or previous != stream.number))
            ):
                # The peer does not know the state of the stream. It may be any peer, so it gets no OrderAck.
                self.rejected += 1
                return ORDER_REPEATED if identifier == stream.identifier and number <= stream.number else ORDER_AHEAD
            other = self._heads[stream._bunch]
            while other is not None and other.home != home:
                other = other._next
            if other is None:
                self._move(stream, home)
        if stream.address is not address:
            stream.address = address
        return self.place(stream, identifier, number, previous)

    cdef int accept(self, InStream stream, const uint8_t* header, uint32_t queue, uint64_t opening) except -1:
        self.advance(stream, _identifier(header), get_u32(header + NUMBER_OFFSET), queue)
        if opening:
            stream._opening = opening
        return 0

    def consider(self, InStream stream not None, uint64_t identifier, uint32_t number, uint32_t previous) -> int:
        """Returns the place of a message in its stream: NEXT (accept it), REPEATED (it was accepted before) or AHEAD (an earlier message is
        missing). An OrderAck is due in all three cases.
        """
        return self.place(stream, identifier, number, previous)

    def take(self, InStream stream not None, uint64_t identifier, uint32_t number, uint32_t queue) -> None:
        """Advances a stream to an accepted message, within the unit that stores it. `queue` is the ordinal of the message's queue."""
        self.advance(stream, identifier, number, queue)

    def note_ack_due(self, InStream stream not None) -> None:
        """Makes the next `take_ack_due` return this stream."""
        self._hear(stream)

    cdef int place(self, InStream stream, uint64_t identifier, uint32_t number, uint32_t previous) except -1:
        stream.accessed = self._ledger.now_s
        if identifier == stream.identifier:
            if number > stream.number and previous <= stream.number:
                return ORDER_NEXT
        elif identifier > stream.identifier and previous == 0 and number != 0:
            return ORDER_NEXT
        stream.rejects += 1
        self.rejected += 1
        self._hear(stream)
        if identifier < stream.identifier or (identifier == stream.identifier and number <= stream.number):
            return ORDER_REPEATED
        return ORDER_AHEAD

    cdef int advance(self, InStream stream, uint64_t identifier, uint32_t number, uint32_t queue) except -1:
        self._log(stream, False)
        stream.identifier = identifier
        stream.number = number
        stream.rejects = 0
        stream.queue = queue
        return self._put(stream)

    cdef int _log(self, InStream stream, bint touched) except -1:
        cdef StreamUndo undo
        if self._writer.undo.depth == 0:
            return 0
        undo.identifier, undo.number, undo.rejects, undo.queue = stream.identifier, stream.number, stream.rejects, stream.queue
        undo.opening, undo.stored_rejects, undo.told = stream._opening, stream._stored_rejects, self._told
        undo.batch, undo.touch, undo.unsettled, undo.touched = stream._batch, stream._touch, stream._unsettled, touched
        return self._writer.undo.add(self, 0, &undo, sizeof(undo), stream)

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        cdef const StreamUndo* undo = <const StreamUndo*>data
        cdef InStream stream = <InStream>kept
        cdef Touch* touch
        if undo.touched:
            self._tail -= 1
            Py_DECREF(stream)
        stream.identifier, stream.number, stream.rejects, stream.queue = undo.identifier, undo.number, undo.rejects, undo.queue
        stream._opening, stream._stored_rejects, self._told = undo.opening, undo.stored_rejects, undo.told
        stream._batch, stream._touch, stream._unsettled = undo.batch, undo.touch, undo.unsettled
        if stream._unsettled and stream._batch == self._writer.batch_number():
            touch = &self._touches[stream._touch & (self._capacity - 1)]
            touch.identifier, touch.number = stream.identifier, stream.number
        return 0

    cdef int _put(self, InStream stream) except -1:
        """Stores the current record of a stream, in the current unit."""
        cdef Writer writer = self._writer
        cdef uint64_t batch = writer.batch_number()
        cdef IncomingStream record
        cdef Touch* touch = NULL
        cdef bytes tail, value
        cdef bint patched
        if stream._unsettled and stream._batch == batch:
            touch = &self._touches[stream._touch & (self._capacity - 1)]
        memset(&record, 0, sizeof(record))
        record.version = IN_STREAM_VERSION
        record.dest_type = <uint8_t>stream.dest_type
        record.queue = stream.queue
        record.identifier = stream.identifier
        record.number = stream.number
        record.rejects = stream.rejects
        record.accessed_s = stream.accessed
        patched = touch != NULL and stream._handles == writer.handles()
        address = b"" if patched else stream.address.encode()[:MAX_ADDRESS]
        record.address_size = <uint8_t>len(address)
        if patched:
            record.address_size = (<const IncomingStream*>writer.head_at(stream._place)).address_size
            writer.patch_head(stream._place, &record, sizeof(record))
        else:
            if self._told != batch:
                writer.notify(self, batch)
                self._told = batch
            if stream._unsettled and touch == NULL:
                writer.depends_on(stream._batch)
            tail = address + stream.name
            value = PyBytes_FromStringAndSize(NULL, sizeof(record) + PyBytes_GET_SIZE(tail))
            memcpy(PyBytes_AS_STRING(value), &record, sizeof(record))
            memcpy(PyBytes_AS_STRING(value) + sizeof(record), PyBytes_AS_STRING(tail), PyBytes_GET_SIZE(tail))
            stream._place = writer.put_head(
                TABLE_SEQUENCE, <const uint8_t*>PyBytes_AS_STRING(stream._key), PyBytes_GET_SIZE(stream._key),
                <const uint8_t*>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value),
            )
            stream._handles = writer.handles()
        if touch == NULL:
            touch = self._new_touch()
            Py_INCREF(stream)
            touch.stream = <void*>stream
            touch.batch = batch
            self._log(stream, True)
            stream._touch = self._tail - 1
            stream._batch, stream._unsettled = batch, True
        touch.identifier = stream.identifier
        touch.number = stream.number
        stream._stored_rejects = stream.rejects
        return 0

    cdef Touch* _new_touch(self) except NULL:
        cdef uint64_t capacity, index
        cdef Touch* grown
        if self._tail - self._head == self._capacity:
            capacity = self._capacity * 2
            grown = <Touch*>malloc(capacity * sizeof(Touch))
            if grown == NULL:
                raise MemoryError("no memory for streams")
            for index in range(self._head, self._tail):
                grown[index & (capacity - 1)] = self._touches[index & (self._capacity - 1)]
            free(self._touches)
            self._touches = grown
            self._capacity = capacity
        self._tail += 1
        return &self._touches[(self._tail - 1) & (self._capacity - 1)]

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef Touch* touch = NULL
        cdef InStream stream
        while self._head < self._tail:
            touch = &self._touches[self._head & (self._capacity - 1)]
            if touch.batch != token:
                break
            self._head += 1
            stream = <InStream>touch.stream
            if stream._batch == token:
                stream._unsettled = False
            if status == 0:
                if stream.durable_number != touch.number or stream.durable_identifier != touch.identifier:
                    self._hear(stream)
                stream.durable_identifier = touch.identifier
                stream.durable_number = touch.number
            else:
                # Later batches with messages of this stream depend on this one, and fail as well.
                stream.identifier = stream.durable_identifier
                stream.number = stream.durable_number
            Py_DECREF(stream)
        return 0

    # ---- acknowledgment

    cdef int _hear(self, InStream stream) except -1:
        stream.heard_us = self._ledger.now_us
        if not stream.armed:
            stream.armed = True
            self._ack_due.append(stream)
        return 0

    @property
    def ack_due(self) -> bool:
        """Whether `take_ack_due` would return any stream."""
        return bool(self._ack_due)

    def take_ack_due(self) -> list:
        """Returns the streams that need an OrderAck and that were not returned before. They are now `armed`: the caller starts a timer for
        each, and resets `armed` when the timer has fired.
        """
        if not self._ack_due:
            return []
        due, self._ack_due = self._ack_due, []
        return due

    def note_rejects(self, InStream stream not None) -> None:
        """Stores how many messages of a stream were out of order since the last accepted one."""
        if stream.rejects == stream._stored_rejects or stream.durable_number == 0:
            return
        self._writer.begin_unit()
        try:
            self._log(stream, False)
            self._put(stream)
        except BaseException:
            self._writer.roll_back()
            raise
        self._writer.keep_unit()

    # ---- ageing and recovery

    def forget(self, uint32_t before, size_t limit=1000) -> int:
        """Forgets up to `limit` streams that have got no message since `before` (Unix seconds). Returns how many it forgot."""
        return self._forget(before, limit, False)

    cdef size_t _forget(self, uint32_t before, size_t limit, bint homeless) except? 0:
        """Like `forget`. With `homeless`, forgets only streams without an accepted message, which unauthenticated peers can create in any
        number.
        """
        cdef InStream stream
        old = []
        for stream in self._streams.values():
            if stream.accessed < before and not stream._unsettled and not stream.armed and not (homeless and stream.queue):
                old.append(stream)
                if <size_t>len(old) == limit:
                    break
        if old:
            self._forget_all(old)
        return len(old)

    def _forget_all(self, list old not None) -> None:
        cdef InStream stream
        self._writer.begin_unit()
        try:
            for stream in old:
                if stream.durable_number:
                    self._writer.delete_record(TABLE_SEQUENCE, stream._key)
                self._remove(stream)
        except BaseException:
            self._writer.roll_back()
            raise
        self._writer.keep_unit()
        self._names.clear()
        self.generation += 1

    def drop(self, InStream stream not None) -> bool:
        """Forgets a stream, in the current unit. Returns False, without effect, if some of its state is not durable yet."""
        if stream._unsettled or self._streams.get((stream._bunch, stream._slot)) is not stream:
            return False
        if stream.durable_number:
            self._writer.delete_record(TABLE_SEQUENCE, stream._key)
        self._remove(stream)
        self._names.clear()
        self.generation += 1
        return True

    def load(self, bytes key not None, bytes value not None) -> None:
        """Loads a record of an earlier process (REC-09). Raises ValueError if it cannot be the record of a stream."""
        cdef IncomingStream record
        cdef InStream stream, last
        cdef Py_ssize_t size = PyBytes_GET_SIZE(value), start
        cdef int slot
        if PyBytes_GET_SIZE(key) != 1 + GUID_SIZE + HASH_SIZE or size < <Py_ssize_t>sizeof(record):
            raise ValueError("its size is not that of the record of a stream")
        memcpy(&record, PyBytes_AS_STRING(value), sizeof(record))
        start = <Py_ssize_t>sizeof(record) + record.address_size
        if record.version != IN_STREAM_VERSION or start > size or record.number == 0:
            raise ValueError("it is not the record of a stream in a known version")
        address = value[sizeof(record):start].decode("ascii")
        stream = InStream.__new__(InStream)
        stream.source, stream.dest_type, stream.name = key[1:1 + GUID_SIZE], record.dest_type, value[start:]
        bunch = stream.source + bytes((record.dest_type,)) + folded(record.dest_type, stream.name)
        for slot in range(MAX_SLOTS):
            if _record_key(self._prefix, stream.source, bunch, slot) == key:
                break
        else:
            raise ValueError("the queue name in it does not match its key")
        stream._bunch, stream._slot, stream._key = bunch, slot, key
        stream.address = address
        stream.identifier = stream.durable_identifier = record.identifier
        stream.number = stream.durable_number = record.number
        stream.rejects = stream._stored_rejects = record.rejects
        stream.accessed, stream.queue = record.accessed_s, record.queue
        self._move(stream, self.home(address))
        self._streams[bunch, slot] = stream
        last = self._heads.setdefault(bunch, stream)
        while last is not stream and last._next is not None:
            last = last._next
        if last is not stream:
            last._next = stream
