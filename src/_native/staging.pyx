# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Staged messages in the store: contents without positions, and rows of META with the plan for them.

A stage has an identifier of 16 bytes. Its rows have the keys ROW_PREFIX, identifier, number from 1 on; row 0 is its head
(qm/bulk/staging.py). One unit stores the content of a message and the row that names it, so that no content in the store is ever without an
owner. Publishing places the messages of some rows in their queues and deletes the rows. Dropping deletes both.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from msmq_fast._native.batch cimport STATUS_OK, Callback, CommitListener, Writer, in_unit
from msmq_fast._native.tablenumbers cimport TABLE_CONTENT, TABLE_META
from msmq_fast._native.framing cimport UserMessage, parse_user_message, patch_message_id, put_u32
from msmq_fast._native.gather cimport CHUNK_BYTES, OP_PUT, PUT_IS_LAST, PUT_IS_NEW, WHOLE_BYTES, batch_hold, batch_op
from msmq_fast._native.packetblock cimport PacketBlock
from msmq_fast._native.positions cimport FLAG_RECOVERABLE, FLAG_TRANSACTIONAL, Slot
from msmq_fast._native.ledger cimport Ledger
from msmq_fast._native.queue cimport QueueCore
from msmq_fast._native.queuebase cimport describe
from msmq_fast._native.record cimport CONTENT_KEY_SIZE, CONTENT_VERSION, POSITION_TRANSACTIONAL, POSITION_VERSION, PositionRecord, content_key

cdef enum:
    ROW_VERSION = 1
    ROW_MESSAGES = 1            # kind of a row
    ROW_HEAD = 2                # bytes before its entries
    ACK_WEIGHT = 16             # a message whose arrival may have side effects counts as this many
    WRITE_BYTES = 1 << 20       # of packets in one unit
    FLAG_FIRST = 1 << 2         # TransactionHeader.Flags.FM
    FLAG_LAST = 1 << 3          # and LM
    NUMBER_SHIFT = 4
    WEIGHT = 1024               # of a row, see ROW_WEIGHT

ROW_PREFIX = b"stg\x00"
ROW_WEIGHT = WEIGHT
"""Work of one row, in messages without side effects."""


cdef packed struct StagedEntry:
    uint64_t content_id
    uint8_t source[16]
    uint32_t queue              # ordinal
    uint32_t size               # of the packet
    uint32_t ordinal            # of the message identifier
    uint32_t sent_s
    uint32_t time_to_reach_queue
    uint32_t time_to_be_received
    uint16_t message_class
    uint8_t priority            # the effective one
    uint8_t ack_flags
    uint8_t flags               # of the position record
    uint8_t reserved[3]


class Refused(Exception):
    """Raised if a queue has no room for a message: `index` is its index in the list, `result` an EnqueueResult."""

    def __init__(self, index: int, result: int) -> None:
        super().__init__("a queue has no room for a staged message")
        self.index = index
        self.result = result


def row_key(bytes identifier not None, uint32_t row) -> bytes:
    """Returns the key in META of a row of a stage; row 0 is its head."""
    return ROW_PREFIX + identifier + row.to_bytes(4, "big")


cdef inline uint8_t* _packet(PacketBlock packets, size_t index, size_t* size) noexcept:
    size[0] = packets.starts[index + 1] - packets.starts[index]
    return <uint8_t*>PyBytes_AS_STRING(packets.data) + packets.starts[index]


cdef int _put_held(Writer writer, uint64_t content_id, const char* data, size_t left) except -1:
    """Like Writer.put_content, for a packet that is a part of a larger object; the batch must already reference the object. Call inside a
    unit, and roll the unit back on an error.
    """
    cdef uint8_t key[CONTENT_KEY_SIZE]
    cdef uint8_t version = CONTENT_VERSION
    cdef size_t part = left if left <= WHOLE_BYTES else CHUNK_BYTES
    cdef uint16_t chunk = 0
    cdef int flags = PUT_IS_LAST | PUT_IS_NEW if content_id > writer._last_content else 0
    assert in_unit(writer), "call inside a unit"
    writer._room()
    writer._last_content = max(writer._last_content, content_id)
    while left:
        part = min(part, left)
        content_key(key, content_id, chunk)
        if batch_op(writer._current, OP_PUT, TABLE_CONTENT, flags, key, sizeof(key), &version, 1, data, part) < 0:
            raise MemoryError("no memory for staged messages")
        data += part
        left -= part
        chunk += 1
    return 0


cdef class Intake(CommitListener):
    """``Intake(ledger, identifier, on_written, whole=0)``: writes the messages of one stage.

    `put` reserves the quota of the messages at once. If `whole` is not 0, all messages form one transaction with this number. If it is 0,
    each transactional message is a transaction of its own. `on_written()` is called, until `close`, when units have ended; `status` is not
    0 if a unit failed. After an exception, the caller must drop the stage with the rows that were written.
    """

    cdef readonly Ledger ledger
    cdef readonly bytes identifier
    cdef readonly uint64_t messages, bytes
    cdef readonly uint32_t rows             # written, or on their way
    cdef readonly uint32_t flying           # units on their way
    cdef readonly int status
    cdef readonly dict reserved             # QueueCore -> bytes
    cdef object _on_written
    cdef uint32_t _whole
    cdef dict _tails                        # QueueCore -> (block, number) of its latest packet, of a stage that is one transaction
    cdef size_t _count                      # of packets that are not written yet:
    cdef const char* _packets[WEIGHT]       # where each is,
    cdef StagedEntry _entries[WEIGHT]       # what becomes of it,
    cdef list _holders                      # and whose memory that is
    cdef QueueCore _latest                  # the queue of the latest message,
    cdef uint64_t _taken                    # of whose quota so much is not in `reserved` yet
    cdef uint64_t _size
    cdef uint32_t _weight

    def __init__(self, Ledger ledger not None, bytes identifier not None, object on_written not None, uint32_t whole=0):
        if len(identifier) != 16 or whole >> 20:
            raise ValueError("the identifier of a stage must have 16 bytes, a transaction number at most 20 bits")
        self.ledger = ledger
        self.identifier = identifier
        self._on_written = on_written
        self.reserved = {}
        self._whole = whole
        self._tails = {}
        self._holders = []

    def put(self, PacketBlock packets not None, const uint32_t[::1] targets not None, list cores not None, uint32_t ordinal, uint32_t number) -> None:
        """Adds messages: packet i is for the queue `cores[targets[i]]`. The packets are changed in place, so nothing else may use the
        block.

        Packets without an ordinal get consecutive ordinals from `ordinal` on, packets with a TransactionHeader transaction numbers from
        `number` on. Raises Refused, ValueError for an invalid packet or queue, OverflowError and StoreError.
        """
        cdef QueueCore core
        cdef UserMessage m
        cdef uint8_t* data
        cdef size_t index, size
        cdef int refused
        if <size_t>targets.shape[0] != packets.count:
            raise ValueError("targets must have one queue for each packet")
        try:
            for index in range(packets.count):
                if targets[index] >= <size_t>len(cores):
                    raise ValueError("a target is not an index in the list of queues")
                core = <QueueCore?>cores[targets[index]]
                data = _packet(packets, index, &size)
                if parse_user_message(data, size, &m) or m.wire_size != size:
                    raise ValueError("not a UserMessage packet")
                if not m.message_id:
                    m.message_id = ordinal + <uint32_t>index
                    patch_message_id(data, m.message_id)
                refused = core.reserve(&m, size)
                if refused:
                    raise Refused(index, refused)
                self._hold(core, size)
                if not m.transaction_offset:
                    self._add(core, packets, index, &m)
                elif not self._whole:
                    put_u32(data + m.transaction_offset, FLAG_FIRST | FLAG_LAST | (number + <uint32_t>index) << NUMBER_SHIFT)
                    self._add(core, packets, index, &m)
                else:
                    self._follow(core, packets, index, &m)
        finally:
            self._hold(None, 0)

    cdef int _hold(self, QueueCore core, uint64_t size) except -1:
        """Notes `size` bytes of reserved quota of a queue. The bytes of consecutive messages to one queue are added to `reserved` when the
        queue changes, or when `core` is None.
        """
        if core is not self._latest:
            if self._latest is not None:
                self.reserved[self._latest] = self.reserved.get(self._latest, 0) + self._taken
            self._latest = core
            self._taken = 0
        if core is not None:
            self._taken += size
            self.messages += 1
            self.bytes += size
        return 0

    cdef int _follow(self, QueueCore core, PacketBlock packets, size_t index, UserMessage* m) except -1:
        """Adds one message of a transaction. It is held until the next message to the same queue arrives, since the last message to a queue
        must be marked as such (M-55).
        """
        cdef size_t size
        before = self._tails.get(core)
        put_u32(
            _packet(packets, index, &size) + m.transaction_offset,
            (0 if before is not None else FLAG_FIRST) | self._whole << NUMBER_SHIFT,
        )
        self._tails[core] = packets, index
        if before is not None:
            packets, index = before
            parse_user_message(_packet(packets, index, &size), size, m)
            self._add(core, packets, index, m)
        return 0

    cdef int _add(self, QueueCore core, PacketBlock packets, size_t index, const UserMessage* m) except -1:
        cdef size_t size
        cdef const char* packet = <const char*>_packet(packets, index, &size)
        cdef StagedEntry* entry = &self._entries[self._count]
        cdef PositionRecord record
        cdef Slot slot
        memset(&slot, 0, sizeof(slot))
        slot.flags = FLAG_RECOVERABLE | (FLAG_TRANSACTIONAL if m.transaction_offset else 0)
        slot.key = <uint64_t>(7 if m.transaction_offset else 7 - (m.priority & 7)) << 56
        slot.size = <uint32_t>size
        describe(&record, &slot, m, packet)
        memset(entry, 0, sizeof(entry[0]))
        memcpy(entry.source, record.source, 16)
        entry.queue = core.ordinal
        entry.size = record.content_bytes
        entry.ordinal = record.ordinal
        entry.sent_s = record.sent_s
        entry.time_to_reach_queue = record.time_to_reach_queue
        entry.time_to_be_received = record.time_to_be_received
        entry.message_class = record.message_class
        entry.priority = record.priority
        entry.ack_flags = record.ack_flags
        entry.flags = record.flags
        if not self._holders or self._holders[len(self._holders) - 1] is not packets.data:
            self._holders.append(packets.data)
        self._packets[self._count] = packet
        self._count += 1
        self._size += entry.size
        self._weight += ACK_WEIGHT if entry.ack_flags else 1
        if self._size >= WRITE_BYTES or self._weight >= WEIGHT:
            self._write(None)
        return 0

    def end(self, head not None) -> bool:
        """Writes the remaining messages. If no earlier unit is still in progress, also writes the head that `head(number of rows)` returns,
        and returns True. Otherwise returns False: call again when the units in progress have ended.
        """
        cdef QueueCore core
        cdef UserMessage m
        cdef PacketBlock packets
        cdef uint8_t* data
        cdef size_t index, size
        tails, self._tails = self._tails, {}
        for core, (packets, index) in tails.items():
            data = _packet(packets, index, &size)
            parse_user_message(data, size, &m)
            data[m.transaction_offset] |= FLAG_LAST
            self._add(core, packets, index, &m)
        if not self.flying:
            self._write(head(self.rows + (1 if self._count else 0)))
            return True
        if self._count:
            self._write(None)
        return False

    cdef int _write(self, bytes head) except -1:
        """Writes the gathered messages, and the head if it is not None, in one unit."""
        cdef Writer writer = self.ledger.writer
        cdef size_t index, count = self._count
        writer.make_room(self._size)
        writer.begin_unit()
        try:
            for holder in self._holders:
                if batch_hold(writer._current, holder) < 0:
                    raise MemoryError("no memory for staged messages")
            for index in range(count):
                self._entries[index].content_id = self.ledger.next_sequence()
                _put_held(writer, self._entries[index].content_id, self._packets[index], self._entries[index].size)
            if count:
                row = bytes((ROW_VERSION, ROW_MESSAGES)) + (<char*>&self._entries[0])[:count * sizeof(StagedEntry)]
                writer.put_record(TABLE_META, row_key(self.identifier, self.rows + 1), row)
            if head is not None:
                writer.put_record(TABLE_META, row_key(self.identifier, 0), head)
            writer.notify(self, 0)
        except BaseException:
            writer.roll_back()
            raise
        writer.keep_unit()
        self.rows += count != 0
        self.flying += 1
        self._holders = []
        self._count = 0
        self._size = 0
        self._weight = 0
        return 0

    def forget(self) -> None:
        """Discards the messages that have not been written, and releases all reserved quota."""
        self._holders = []
        self._count = 0
        self._tails = {}
        release_reserved(self.reserved)

    def close(self) -> None:
        """Stops calls of `on_written`."""
        self._on_written = None

    cdef int committed(self, uint64_t token, int status) except -1:
        self.flying -= 1
        if status != STATUS_OK:
            self.status = status
        return 0

    cdef int settled(self) except -1:
        if self._on_written is not None:
            self._on_written()
        return 0


def release_reserved(dict reserved not None) -> None:
    """Releases reserved quota; `reserved` (QueueCore to bytes) is empty afterwards."""
    cdef QueueCore core
    for core, size in reserved.items():
        core.unreserve(<uint64_t>size)
    reserved.clear()


def reserve_again(dict reserved not None) -> None:
    """After a start: reserves again the quota that `reserved` (QueueCore to bytes) lists, without checking the limits."""
    cdef QueueCore core
    for core, size in reserved.items():
        core.reserve_again(<uint64_t>size)


# ---- rows

cdef inline size_t _count(bytes row) except? 0xFFFFFFFF:
    cdef size_t size = PyBytes_GET_SIZE(row)
    if size < ROW_HEAD or PyBytes_AS_STRING(row)[0] != ROW_VERSION or PyBytes_AS_STRING(row)[1] != ROW_MESSAGES \
            or (size - ROW_HEAD) % sizeof(StagedEntry):
        raise ValueError("the row of a stage is damaged")
    return (size - ROW_HEAD) // sizeof(StagedEntry)


cdef inline void _entry(bytes row, size_t index, StagedEntry* out) noexcept:
    memcpy(out, PyBytes_AS_STRING(row) + ROW_HEAD + index * sizeof(StagedEntry), sizeof(StagedEntry))


def sizes_by_queue(bytes row not None) -> dict:
    """Returns the bytes of packets by the ordinal of their queue. Raises ValueError if the row is damaged."""
    cdef StagedEntry entry
    cdef size_t index
    cdef dict sums = {}
    for index in range(_count(row)):
        _entry(row, index, &entry)
        sums[entry.queue] = sums.get(entry.queue, 0) + entry.size
    return sums


def weigh(bytes row not None) -> int:
    """Returns the work of placing the messages of a row: 1 for a message, more if it requests acknowledgments. Raises ValueError if the row
    is damaged.
    """
    cdef StagedEntry entry
    cdef size_t index, weight = 0
    for index in range(_count(row)):
        _entry(row, index, &entry)
        weight += ACK_WEIGHT if entry.ack_flags else 1
    return weight


cdef class Placement(CommitListener):
    """The rows whose messages one unit places in their queues."""
    cdef dict _reserved         # of their stage
    cdef dict _taken            # QueueCore -> bytes, by this unit
    cdef object _sink

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef QueueCore core
        for core, size in self._taken.items():
            if status == STATUS_OK or core.gone:
                self._reserved[core] -= size
            else:
                core.reserve_again(<uint64_t>size)
        self._sink(status)
        return 0

    cdef int settled(self) except -1:
        return 0


def place(Ledger ledger not None, list rows not None, list keys not None, dict reserved not None, sink not None) -> tuple:
    """Puts the messages of `rows` into their queues, in one unit that also deletes the rows and the META records `keys`. Each row is a pair
    (key, value).

    `sink(status)` is called when the unit has ended; if the unit failed, nothing has changed. `reserved` (QueueCore to bytes) is the quota
    that the stage has reserved. Returns (number of messages, number of those whose queue no longer exists). If it raises, nothing was
    changed: ValueError for a damaged row, OverflowError, StoreError, MemoryError.
    """
    cdef Writer writer = ledger.writer
    cdef Placement placement = Placement.__new__(Placement)
    cdef StagedEntry entry
    cdef PositionRecord record
    cdef QueueCore core = None
    cdef bytes row
    cdef size_t index, count
    cdef uint64_t messages = 0, gone = 0
    cdef dict taken = {}
    for _, row in rows:
        messages += _count(row)
    if ledger.sequence + messages > ledger.sequence_limit:
        ledger.next_sequence()      # asks for more, unless that was done
        raise OverflowError("no SequentialIDs are reserved: the store does not keep up")
    placement._reserved = reserved
    placement._taken = taken
    placement._sink = sink
    writer.begin_unit()
    try:
        for key, row in rows:
            count = _count(row)
            for index in range(count):
                _entry(row, index, &entry)
                if core is None or core.ordinal != entry.queue:
                    core = ledger._cores.get(entry.queue)
                if core is None or core.gone:
                    gone += 1
                    writer.delete_content(entry.content_id, entry.size)
                    continue
                _record(&record, &entry)
                core.commit_enqueue(entry.content_id, None, &record, 0)
                taken[core] = taken.get(core, 0) + entry.size
            writer.delete_record(TABLE_META, <bytes>key)
        for key in keys:
            writer.delete_record(TABLE_META, <bytes>key)
        writer.notify(placement, 0)
    except BaseException:
        writer.roll_back()
        raise
    writer.keep_unit()
    return messages, gone


cdef void _record(PositionRecord* record, const StagedEntry* entry) noexcept:
    memset(record, 0, sizeof(record[0]))
    record.version = POSITION_VERSION
    record.flags = entry.flags
    record.priority = entry.priority
    record.ack_flags = entry.ack_flags
    record.message_class = entry.message_class
    record.content_id = entry.content_id
    record.content_bytes = entry.size
    record.sent_s = entry.sent_s
    record.time_to_reach_queue = entry.time_to_reach_queue
    record.time_to_be_received = entry.time_to_be_received
    memcpy(record.source, entry.source, 16)
    record.ordinal = entry.ordinal


def drop(Ledger ledger not None, list rows not None, sink not None) -> int:
    """Deletes `rows`, pairs (key, value), and the contents that they name, in one unit. `sink(status)` is called as by `place`. Returns the
    number of deleted messages.

    For a row without messages, only the row is deleted.
    """
    cdef Writer writer = ledger.writer
    cdef StagedEntry entry
    cdef bytes row
    cdef size_t index, count
    cdef uint64_t messages = 0
    writer.begin_unit()
    try:
        for key, row in rows:
            try:
                count = _count(row)
            except ValueError:
                count = 0
            for index in range(count):
                _entry(row, index, &entry)
                writer.delete_content(entry.content_id, entry.size)
            messages += count
            writer.delete_record(TABLE_META, <bytes>key)
        writer.notify(Callback(sink), 0)
    except BaseException:
        writer.roll_back()
        raise
    writer.keep_unit()
    return messages
