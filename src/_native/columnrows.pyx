# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Collects the messages to encode; see columnrows.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset
from msmq_fast._native.outsequence cimport OutEntry
from msmq_fast._native.positions cimport (
    BANDS,
    FLAG_COUNTED,
    FLAG_RECOVERABLE,
    FLAG_REMOVING,
    FLAG_TRANSACTIONAL,
    STATE_AVAILABLE,
    STATE_LOCKED,
    Band,
    PositionList,
    Slot,
    at,
    lower_bound,
)
from msmq_fast._native.queue cimport QueueCore

cdef enum:
    EXAMINED = 16384            # number of slots that a call may skip
    MOST_MARKS = 4096

cdef uint64_t SEQUENCE_MASK = (<uint64_t>1 << SEQUENCE_BITS) - 1
cdef uint64_t WALK_ENDED = <uint64_t>0xFFFFFFFFFFFFFFFF


cdef inline bint seen_in_bulk(const Slot* slot) noexcept nogil:
    """Whether bulk reads show the message: it is available, or is locked by a reader that may still return it. A message that is being
    stored is shown once it is durable.
    """
    if slot.state == STATE_AVAILABLE:
        return True
    return slot.state == STATE_LOCKED and (slot.flags & FLAG_COUNTED != 0 or not slot.flags & FLAG_REMOVING)


cdef void walk_on(Walk* walk, PositionList positions, int number) noexcept nogil:
    """Advances the cursor of priority band `number` to the next message that bulk reads show. Stops earlier at the limit of slots to
    examine, but always passes at least one slot.
    """
    cdef Band* band = &positions._bands[number]
    cdef Slot* slot
    cdef bint moved = False
    walk.sequence[number] = WALK_ENDED
    while walk.index[number] < band.tail:
        slot = at(band, walk.index[number])
        walk.examined += 1
        if slot.key & SEQUENCE_MASK >= walk.stop:
            return
        if seen_in_bulk(slot) or (moved and walk.examined > walk.limit):
            walk.sequence[number] = slot.key & SEQUENCE_MASK
            return
        walk.index[number] += 1
        moved = True


cdef void walk_from(Walk* walk, PositionList positions, uint64_t start, uint64_t stop, size_t limit) noexcept nogil:
    cdef int number
    walk.examined = 0
    walk.limit = limit
    walk.stop = stop
    if start > SEQUENCE_MASK:
        start = SEQUENCE_MASK
        walk.stop = start
    for number in range(BANDS):
        walk.index[number] = lower_bound(&positions._bands[number], <uint64_t>number << 56 | start)
        walk_on(walk, positions, number)


cdef int walk_first(const Walk* walk) noexcept nogil:
    """Returns the priority band whose cursor has the earliest arrival sequence, or BANDS if no band has a message before `stop`."""
    cdef int number, best = BANDS
    cdef uint64_t earliest = WALK_ENDED
    for number in range(BANDS):
        if walk.sequence[number] < earliest:
            earliest = walk.sequence[number]
            best = number
    return best


cdef class Rows:
    def __cinit__(self):
        self.damaged = []

    def __dealloc__(self):
        cdef size_t i
        for i in range(self._count):
            Py_XDECREF(self._rows[i].body)
        free(self._rows)

    def __len__(self):
        return self._count

    def keys(self):
        """The LookupIdentifiers of the messages."""
        cdef size_t i
        return [self._rows[i].key for i in range(self._count)]

    cdef Row* _add(self) except NULL:
        cdef size_t capacity
        cdef Row* rows
        if self._count == self._capacity:
            capacity = self._capacity * 2 if self._capacity else 256
            rows = <Row*>realloc(self._rows, capacity * sizeof(Row))
            if rows == NULL:
                raise MemoryError("no memory for rows")
            self._rows = rows
            self._capacity = capacity
        self._count += 1
        rows = &self._rows[self._count - 1]
        memset(rows, 0, sizeof(Row))
        return rows


cdef int add_slot(Rows rows, QueueCore core, const Slot* slot) except -1:
    cdef Row* row = rows._add()
    cdef OutEntry* entry
    row.key = slot.key
    row.content_id = slot.content_id
    row.arrived = slot.arrived
    row.size = slot.size
    row.owner = slot.owner
    row.last_move_s = MOVE_UNKNOWN if slot.move_count else 0
    row.abort_count = slot.abort_count
    row.move_count = slot.move_count
    row.reason = slot.reason
    row.state = ROW_LOCKED if slot.state == STATE_LOCKED else ROW_AVAILABLE
    row.recoverable = slot.flags & FLAG_RECOVERABLE != 0
    if slot.body != NULL:
        Py_INCREF(<object>slot.body)
        row.body = slot.body
        row.packet = <const uint8_t*>PyBytes_AS_STRING(<object>slot.body)
    if core.sequence is not None and slot.flags & FLAG_TRANSACTIONAL:
        entry = core.sequence.find(slot.key)
        if entry != NULL:
            row.sequence_id = core.sequence.identifier
            row.sequence_number = entry.number
    rows.bytes += slot.size
    return 0


def scan(QueueCore core not None, uint64_t start, uint64_t stop, size_t max_rows, uint64_t max_bytes) -> Rows:
    """Returns the available or locked messages of a queue with start <= arrival sequence < stop, in the order of arrival.

    Returns at most `max_rows` messages, and at most `max_bytes` bytes of packets unless the first packet is larger. Pass `next` of the
    result as `start` of the next call.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef PositionList positions = core.positions
    cdef Walk walk
    cdef Slot* slot
    cdef int number
    rows.ordinal = core.ordinal
    walk_from(&walk, positions, start, stop, 4 * max_rows + EXAMINED)
    while True:
        number = walk_first(&walk)
        if number == BANDS:
            rows.next = max(start, stop)
            rows.finished = True
            return rows
        slot = at(&positions._bands[number], walk.index[number])
        rows.next = slot.key & SEQUENCE_MASK
        if not seen_in_bulk(slot) or rows._count >= max_rows or (rows._count and rows.bytes + slot.size > max_bytes):
            return rows
        add_slot(rows, core, slot)
        walk.index[number] += 1
        walk_on(&walk, positions, number)


def pick(QueueCore core not None, const uint64_t[::1] keys not None, const uint64_t[::1] numbers not None, size_t begin,
         size_t max_rows, uint64_t max_bytes) -> Rows:
    """Returns the messages with these LookupIdentifiers from index `begin` on, each with its delivery number.

    `max_rows` and `max_bytes` limit the result as in `scan`. In the result, `next` is the index at which the next call begins, and `gone`
    the number of messages that no longer exist.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef Slot* slot
    cdef size_t i = begin
    rows.ordinal = core.ordinal
    if numbers.shape[0] != keys.shape[0]:
        raise ValueError("every message needs a delivery number")
    while i < <size_t>keys.shape[0] and rows._count < max_rows:
        slot = core.positions.find(keys[i])
        if slot != NULL and seen_in_bulk(slot):
            if rows._count and rows.bytes + slot.size > max_bytes:
                break
            add_slot(rows, core, slot)
            rows._rows[rows._count - 1].delivery = numbers[i]
        else:
            rows.gone += 1
        i += 1
    rows.next = i
    rows.finished = i >= <size_t>keys.shape[0]
    return rows


def first_sequence(QueueCore core not None, uint64_t stop) -> int:
    """Returns the arrival sequence of the first message that `scan` would find before `stop`, or `stop`.

    The search is limited: after many slots without such a message, returns a sequence before which there is no such message.
    """
    cdef Walk walk
    cdef int number
    walk_from(&walk, core.positions, 0, stop, EXAMINED)
    number = walk_first(&walk)
    return stop if number == BANDS else walk.sequence[number]


def changed(list cores not None, uint64_t since, uint64_t seen=WALK_ENDED) -> list:
    """Returns the indexes of the cores in which a bulk reader that has read everything before the arrival sequence `since` may find
    something: those that hold a message from `since` on, or to which late messages have come since the server started, and those with an
    ordinal above `seen`, which are new to the reader, that hold any message.

    A core whose last messages are not durable or were just removed may be in the result without need. Takes about 30 ns for a core.
    """
    cdef list found = []
    cdef QueueCore core
    cdef Band* band
    cdef Py_ssize_t i
    cdef uint64_t least
    cdef int number
    for i in range(len(cores)):
        core = cores[i]
        least = since if core.ordinal <= seen else 0
        if core.out_of_order:
            found.append(i)
            continue
        for number in range(BANDS):
            band = &core.positions._bands[number]
            if band.tail != band.head and at(band, band.tail - 1).key & SEQUENCE_MASK >= least:
                found.append(i)
                break
    return found


def span(QueueCore core not None, uint64_t start, uint64_t stop) -> int:
    """Returns about how many messages with start <= arrival sequence < stop a queue holds, without counting them: removed ones count
    until their places are compacted, but the result never exceeds the number of messages of the queue.
    """
    cdef Band* band
    cdef uint64_t total = 0
    cdef uint64_t low, high
    cdef int number
    start = min(start, SEQUENCE_MASK)
    stop = min(stop, SEQUENCE_MASK)
    if stop <= start:
        return 0
    for number in range(BANDS):
        band = &core.positions._bands[number]
        low = lower_bound(band, <uint64_t>number << 56 | start)
        high = lower_bound(band, <uint64_t>number << 56 | stop)
        total += high - low
    return min(total, core.messages)


cdef class Tally:
    """``Tally(core, start, stop, max_rows, max_bytes)``: counts the messages that `scan` would find, and notes where the range can be
    split.
    """

    def __init__(self, QueueCore core not None, uint64_t start, uint64_t stop, uint64_t max_rows, uint64_t max_bytes):
        self._core = core
        self.start = self.next = start
        self._stop = max(start, stop)
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._every = 1
        self._marks = []

    def advance(self, size_t limit=65536) -> bool:
        """Examines about `limit` more messages. Returns True when all are counted; `next` is then the end of the range."""
        cdef PositionList positions = self._core.positions
        cdef Walk walk
        cdef Slot* slot
        cdef int number
        cdef uint64_t begun = self.next
        walk_from(&walk, positions, begun, self._stop, limit)
        while not self.finished:
            number = walk_first(&walk)
            if number == BANDS:
                self.next = self._stop
                self.finished = True
                break
            slot = at(&positions._bands[number], walk.index[number])
            self.next = slot.key & SEQUENCE_MASK
            if walk.examined > walk.limit and (self.next != begun or not seen_in_bulk(slot)):
                break
            if self.rows and (self.rows >= self._max_rows or self.bytes + slot.size > self._max_bytes):
                self.finished = True
                break
            if self._since == 0:
                self._marks.append((self.next, self.rows, self.bytes))
                if len(self._marks) >= MOST_MARKS:
                    self._marks = self._marks[::2]
                    self._every *= 2
                    self._since = self._every // 2  # the mark that was just made has been removed
            self._since += 1
            if self._since == self._every:
                self._since = 0
            self.rows += 1
            self.bytes += slot.size
            walk.index[number] += 1
            walk_on(&walk, positions, number)
        return self.finished

    def ranges(self, size_t parts) -> list:
        """Splits the range into at most `parts` pieces with about the same number of messages each. Returns a list of (first arrival
        sequence, arrival sequence after the last, number of messages, bytes of their packets); it is empty if there are no messages.
        """
        cdef list result = []
        cdef size_t part, at_mark, i
        if self.rows == 0:
            return result
        edges = [(self.start, 0, 0)]
        at_mark = 0
        for part in range(1, max(parts, 1)):
            wanted = self.rows * part // parts
            while at_mark < <size_t>len(self._marks) and self._marks[at_mark][1] < wanted:
                at_mark += 1
            if at_mark < <size_t>len(self._marks) and edges[len(edges) - 1][1] < self._marks[at_mark][1]:
                edges.append(self._marks[at_mark])
        edges.append((self.next, self.rows, self.bytes))
        for i in range(<size_t>len(edges) - 1):
            low, high = edges[i], edges[i + 1]
            result.append((low[0], high[0], high[1] - low[1], high[2] - low[2]))
        return result


def packets(list found not None) -> Rows:
    """Returns packets (bytes) as rows, for columns that depend only on the packet. The column `priority` is also taken from the packet.

    Raises TypeError if an item is not bytes.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef Row* row
    cdef bytes packet
    rows.finished = True
    for packet in found:
        if packet is None:
            raise TypeError("a packet must be bytes")
        row = rows._add()
        Py_INCREF(packet)
        row.body = <PyObject*>packet
        row.packet = <const uint8_t*>PyBytes_AS_STRING(packet)
        row.size = <uint32_t>PyBytes_GET_SIZE(packet)
        row.state = ROW_AVAILABLE
        if row.size > 2:
            row.key = <uint64_t>(7 - (row.packet[2] & 7)) << 56
        rows.bytes += row.size
    return rows
