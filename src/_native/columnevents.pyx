# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The event feed as Arrow columns: `EventEncoder` reads packed records, one for each commit.

To add a column: 1. name it in protocol/columns.py; 2. number it in `Field` and in `_FIELDS` below; 3. put its value in `put_event`.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset
from msmq_fast._native.columncells cimport Cells, Encoded, put_bytes, put_null, put_number
from msmq_fast._native.columnencoder cimport FIELD_CONSTANT, Encoder, Word, Words, check, put_word
from msmq_fast._native.columnstore cimport READ_BYTES, READ_NS, enter_background, leave_background
from msmq_fast._native.columntext cimport put_guid, put_identifier
from msmq_fast._native.feedkinds cimport EVENT_MOVED, about_queue, not_taken
from msmq_fast._native.gather cimport monotonic_ns
from msmq_fast._native.lmdbapi cimport (
    MDB_CORRUPTED,
    MDB_FIRST,
    MDB_LAST,
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_PREV,
    MDB_RDONLY,
    MDB_SET_RANGE,
    LmdbStore,
    MDB_cursor,
    MDB_txn,
    MDB_val,
    MemItem,
    RedoView,
    compare_keys,
    item_is_value,
    item_value,
    lmdb_api,
    load_liblmdb,
    redo_view,
    redo_view_end,
)
from msmq_fast._native.record cimport PACK_VERSION, FeedEntry, PackHead, load_be64, store_be64
from msmq_fast._native.tablenumbers cimport TABLE_FEED

cdef enum:
    FIRST_ENTRY_SIZE = 56       # of events in stores from before events had a position in a sequence
    ASK_QUEUE = -2

cdef enum Field:
    EVENT_FEED_SEQ = 1
    EVENT_EVENT
    EVENT_TIME
    EVENT_QUEUE
    EVENT_QUEUE_GUID
    EVENT_QUEUE_KIND
    EVENT_ORIGIN
    EVENT_MESSAGE_ID
    EVENT_LOOKUP_ID
    EVENT_ARRIVAL_SEQ
    EVENT_CLASS
    EVENT_PRIORITY
    EVENT_PACKET_SIZE
    EVENT_SOURCE_GUID
    EVENT_TRANSPORT
    EVENT_SEQ_ID
    EVENT_SEQ_NO
    EVENT_PREV_SEQ_NO
    EVENT_ABORT_COUNT
    EVENT_REASON

_FIELDS = {
    "feed_seq": EVENT_FEED_SEQ,
    "event": EVENT_EVENT,
    "event_time": EVENT_TIME,
    "queue": EVENT_QUEUE,
    "queue_guid": EVENT_QUEUE_GUID,
    "queue_kind": EVENT_QUEUE_KIND,
    "origin_queue": EVENT_ORIGIN,
    "message_id": EVENT_MESSAGE_ID,
    "lookup_id": EVENT_LOOKUP_ID,
    "arrival_seq": EVENT_ARRIVAL_SEQ,
    "class": EVENT_CLASS,
    "priority": EVENT_PRIORITY,
    "packet_size": EVENT_PACKET_SIZE,
    "source_machine": EVENT_SOURCE_GUID,
    "transport": EVENT_TRANSPORT,
    "seq_id": EVENT_SEQ_ID,
    "seq_no": EVENT_SEQ_NO,
    "prev_seq_no": EVENT_PREV_SEQ_NO,
    "abort_count": EVENT_ABORT_COUNT,
    "reason": EVENT_REASON,
}

load_liblmdb()


cdef struct Place:
    # What is known about a queue: texts that the encoder keeps, NULL if there is none.
    uint32_t ordinal
    const char* name
    const char* guid
    const char* kind
    size_t name_size, guid_size, kind_size


cdef struct Stretch:
    # One batch of events while it is encoded.
    LmdbStore* store
    Cells* cells
    size_t cell_count, room
    const Word* classes
    size_t class_count
    const Word* kinds
    size_t kind_count
    const Word* transports
    size_t transport_count
    Place* places               # sorted by ordinal
    size_t place_count
    const Place* latest
    uint32_t unknown            # ordinal of the queue that `resolve` must be called for
    uint64_t start, stop
    uint64_t next, first
    size_t rows, damaged
    bint finished


cdef const Place* place_of(Stretch* s, uint32_t ordinal) noexcept nogil:
    cdef size_t low = 0, high = s.place_count, middle
    if s.latest != NULL and s.latest.ordinal == ordinal:
        return s.latest
    while low < high:
        middle = low + (high - low) // 2
        if s.places[middle].ordinal < ordinal:
            low = middle + 1
        else:
            high = middle
    if low == s.place_count or s.places[low].ordinal != ordinal:
        return NULL
    s.latest = &s.places[low]
    return s.latest


cdef inline int put_known(Cells* c, const char* text, size_t size) noexcept nogil:
    return put_null(c) if text == NULL else put_bytes(c, text, size)


cdef int put_event(Cells* c, Stretch* s, uint64_t number, const FeedEntry* e, const Place* place, const Place* origin) noexcept nogil:
    cdef int what = c.what
    cdef bint in_queue = e.lookup_id != 0
    cdef bint of_message = in_queue or not_taken(e.kind)  # otherwise the message never entered a queue
    if what == FIELD_CONSTANT:
        return 0
    elif what == EVENT_FEED_SEQ:
        return put_number(c, <int64_t>number)
    elif what == EVENT_EVENT:
        return put_word(c, s.kinds, s.kind_count, e.kind)
    elif what == EVENT_TIME:
        return put_number(c, <int64_t>e.time_us)
    elif what == EVENT_QUEUE:
        return put_known(c, place.name, place.name_size)
    elif what == EVENT_QUEUE_GUID:
        if about_queue(e.kind) and place.guid == NULL:
            return put_guid(c, e.source)
        return put_known(c, place.guid, place.guid_size)
    elif what == EVENT_QUEUE_KIND:
        return put_known(c, place.kind, place.kind_size)
    elif what == EVENT_ORIGIN:
        return put_known(c, origin.name, origin.name_size)
    elif what == EVENT_TRANSPORT:
        return put_word(c, s.transports, s.transport_count, e.flags) if of_message else put_null(c)
    elif what == EVENT_REASON:
        return put_word(c, s.classes, s.class_count, e.reason) if e.reason else put_null(c)
    elif not of_message:
        return put_null(c)
    elif what == EVENT_MESSAGE_ID:
        return put_identifier(c, e.source, e.ordinal)
    elif what == EVENT_LOOKUP_ID:
        return put_number(c, <int64_t>e.lookup_id) if in_queue else put_null(c)
    elif what == EVENT_ARRIVAL_SEQ:
        return put_number(c, <int64_t>e.arrival_seq) if in_queue else put_null(c)
    elif what == EVENT_CLASS:
        return put_number(c, e.message_class)
    elif what == EVENT_PRIORITY:
        if not in_queue:
            return put_null(c)
        return put_number(c, 7 - <int64_t>(e.lookup_id >> 56))
    elif what == EVENT_PACKET_SIZE:
        return put_number(c, e.size)
    elif what == EVENT_SOURCE_GUID:
        return put_guid(c, e.source)
    elif what == EVENT_ABORT_COUNT:
        return put_number(c, e.abort_count)
    elif e.kind == EVENT_MOVED or not e.sequence_number:
        return put_null(c)
    elif what == EVENT_SEQ_ID:
        return put_number(c, <int64_t>e.sequence_id)
    elif what == EVENT_SEQ_NO:
        return put_number(c, e.sequence_number)
    return put_number(c, <int64_t>e.sequence_number - 1)


cdef int encode_record(Stretch* s, uint64_t number, const uint8_t* data, size_t size) noexcept nogil:
    """Encodes the events of one commit from `s.next` on. Returns 0, ENOMEM, MDB_CORRUPTED, or ASK_QUEUE for an unknown queue."""
    cdef const PackHead* head = <const PackHead*>data
    cdef FeedEntry entry
    cdef const Place* place
    cdef const Place* origin
    cdef uint32_t index = 0
    cdef size_t i, known
    cdef int fault
    if size < sizeof(PackHead) or head.version != PACK_VERSION or head.entry_size < FIRST_ENTRY_SIZE:
        return MDB_CORRUPTED
    if size != sizeof(PackHead) + <size_t>head.entry_size * head.count:
        return MDB_CORRUPTED
    known = min(<size_t>head.entry_size, sizeof(FeedEntry))
    if s.next > number:
        index = <uint32_t>min(s.next - number, <uint64_t>head.count)
    while index < head.count and number + index < s.stop and s.rows < s.room:
        memset(&entry, 0, sizeof(entry))
        memcpy(&entry, data + sizeof(PackHead) + <size_t>head.entry_size * index, known)
        place = place_of(s, entry.queue)
        if place == NULL:
            s.unknown = entry.queue
            return ASK_QUEUE
        origin = place_of(s, <uint32_t>entry.sequence_id if entry.kind == EVENT_MOVED else 0)
        if origin == NULL:
            s.unknown = <uint32_t>entry.sequence_id if entry.kind == EVENT_MOVED else 0
            return ASK_QUEUE
        if s.first == 0:
            s.first = number + index
        for i in range(s.cell_count):
            fault = put_event(&s.cells[i], s, number + index, &entry, place, origin)
            if fault:
                return fault
        s.rows += 1
        index += 1
        s.next = number + index
    return 0


cdef void pass_over(Stretch* s, uint64_t number) noexcept nogil:
    """Skips the damaged record `number` and counts it, unless it lies before the requested range."""
    if number >= s.next:
        s.damaged += 1
        s.next = number + 1


cdef int encode_here(Stretch* s, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size) noexcept nogil:
    """Encodes one record of the feed; skips a damaged one."""
    cdef uint64_t number = load_be64(key) if key_size == 8 else 0
    cdef int status
    if number >= s.stop:
        s.next = s.stop
        return 0
    status = MDB_CORRUPTED if number == 0 else encode_record(s, number, value, size)
    if status == MDB_CORRUPTED:
        pass_over(s, number)
        return 0
    return status


cdef bint is_trimmed(const RedoView* over, const MDB_val* key) noexcept nogil:
    """Whether the redo log `over` deletes the record with the key `key`. In `over`, deleted records precede added ones."""
    cdef size_t i
    for i in range(over.view.count):
        if item_is_value(&over.view.items[i]):
            break
        if compare_keys(
            over.view.items[i].key, over.view.items[i].key_len, <const uint8_t*>key.mv_data, key.mv_size
        ) == 0:
            return True
    return False


cdef int encode_feed(Stretch* s) noexcept nogil:
    """Encodes events from number `s.next` on: first the events in LMDB, in one read transaction, then those that only the redo log has.

    Returns what encode_record returns, or another status.
    """
    cdef RedoView over
    cdef MemItem* item
    cdef uint8_t stop[8]
    cdef size_t i
    cdef int status
    store_be64(stop, s.stop)
    status = redo_view(s.store.redo, <int>TABLE_FEED, stop, 0, stop, 8, &over)
    if status == 0:
        status = encode_applied(s, &over)
    if status == 0 and s.finished:
        for i in range(over.view.count):
            item = &over.view.items[i]
            if s.rows == s.room or s.next >= s.stop:
                break
            if item_is_value(item):
                status = encode_here(s, item.key, item.key_len, item_value(item), item.value_len)
            if status:
                break
        s.finished = status == 0 and s.rows < s.room
    redo_view_end(s.store.redo, &over)
    if s.next >= s.stop:
        s.finished = True
    return status


cdef int encode_applied(Stretch* s, const RedoView* over) noexcept nogil:
    """Encodes the events in LMDB from `s.next` on. Sets `finished` if there are no more."""
    cdef MDB_txn* txn
    cdef MDB_cursor* cursor
    cdef MDB_val key, value
    cdef uint8_t name[8]
    cdef uint64_t begun = monotonic_ns()
    cdef size_t bytes = 0
    cdef int status = lmdb_api.txn_begin(s.store.env, NULL, MDB_RDONLY, &txn)
    if status:
        return status
    status = lmdb_api.cursor_open(txn, s.store.dbi[<int>TABLE_FEED], &cursor)
    if status:
        lmdb_api.txn_abort(txn)
        return status
    # The record with this event begins at the event's number or before it.
    store_be64(name, s.next)
    key.mv_size = 8
    key.mv_data = &name[0]
    status = lmdb_api.cursor_get(cursor, &key, &value, MDB_SET_RANGE)
    if status == MDB_NOTFOUND:
        status = lmdb_api.cursor_get(cursor, &key, &value, MDB_LAST)
    elif status == 0 and (key.mv_size != 8 or load_be64(<const uint8_t*>key.mv_data) != s.next):
        status = lmdb_api.cursor_get(cursor, &key, &value, MDB_PREV)
        if status == MDB_NOTFOUND:
            status = lmdb_api.cursor_get(cursor, &key, &value, MDB_FIRST)
    while status == 0 and s.rows < s.room and s.next < s.stop:
        if not is_trimmed(over, &key):
            status = encode_here(s, <const uint8_t*>key.mv_data, key.mv_size, <const uint8_t*>value.mv_data, value.mv_size)
        if status or s.rows == s.room or s.next >= s.stop:
            break
        bytes += value.mv_size
        if bytes > READ_BYTES or monotonic_ns() - begun > READ_NS:
            break
        status = lmdb_api.cursor_get(cursor, &key, &value, MDB_NEXT)
    if status == MDB_NOTFOUND:
        s.finished = True
        status = 0
    lmdb_api.cursor_close(cursor)
    lmdb_api.txn_abort(txn)
    return status


@cython.final
cdef class EventEncoder(Encoder):
    """``EventEncoder(contents, columns, constants, classes, kinds, transports, resolve)``: encodes the feed as columns.

    `kinds` and `transports` map numbers to names. `resolve(ordinal)` returns (name, GUID, kind) of a queue, or None. It is called once for
    each queue, on the encoding thread.
    """
    cdef Words kinds, transports
    cdef object resolve
    cdef dict queues
    cdef Place* places
    cdef size_t place_count

    def __init__(self, contents, columns, constants, classes, kinds, transports, resolve):
        self.kinds = Words(kinds)
        self.transports = Words(transports)
        self.resolve = resolve
        self.queues = {}

    def __dealloc__(self):
        free(self.places)

    def _known(self):
        return _FIELDS

    cdef int learn(self, uint32_t ordinal) except -1:
        """Looks up the name, GUID and kind of queue `ordinal`, for the rows that follow."""
        cdef Place* places
        cdef bytes text
        cdef size_t i
        found = self.resolve(ordinal) if ordinal else None
        texts = [None if item is None else item.encode() for item in found or (None, None, None)]
        self.queues[ordinal] = texts
        places = <Place*>realloc(self.places, len(self.queues) * sizeof(Place))
        if places == NULL:
            raise MemoryError("no memory for columns")
        self.places = places
        i = self.place_count
        while i and places[i - 1].ordinal > ordinal:
            places[i] = places[i - 1]
            i -= 1
        memset(&places[i], 0, sizeof(Place))
        places[i].ordinal = ordinal
        if texts[0] is not None:
            text = texts[0]
            places[i].name, places[i].name_size = PyBytes_AS_STRING(text), len(text)
        if texts[1] is not None:
            text = texts[1]
            places[i].guid, places[i].guid_size = PyBytes_AS_STRING(text), len(text)
        if texts[2] is not None:
            text = texts[2]
            places[i].kind, places[i].kind_size = PyBytes_AS_STRING(text), len(text)
        self.place_count += 1
        return 0

    def encode(self, uint64_t start, uint64_t stop, size_t max_rows) -> Encoded:
        """Encodes durable events with start <= number < stop, at most `max_rows`. Pass `next` of the result as `start` of the next call.

        In the result, `first` is the number of the first event found, which is greater than `start` if events are missing. `finished` is
        True if the feed, or the requested range, ends at `next`. Damaged records are skipped and counted. Raises StoreError if the store
        failed.
        """
        cdef Stretch s
        cdef Encoded encoded = Encoded.__new__(Encoded)
        cdef int away, status = 0
        cdef bint background = self.contents.background
        self.contents.check()
        memset(&s, 0, sizeof(s))
        s.store = self.contents._store
        s.classes, s.class_count = self.classes.words, self.classes.count
        s.kinds, s.kind_count = self.kinds.words, self.kinds.count
        s.transports, s.transport_count = self.transports.words, self.transports.count
        s.start = s.next = start
        s.stop = stop
        s.room = max_rows
        s.cell_count = len(self.fields)
        s.cells = self.begin(max_rows, 0)
        try:
            while True:
                s.places, s.place_count, s.latest = self.places, self.place_count, NULL
                if s.store == NULL:
                    status = self._from_memory(&s)
                else:
                    with nogil:
                        away = enter_background(background, &self.contents._away)
                        status = encode_feed(&s)
                        leave_background(away, &self.contents._away)
                if status != ASK_QUEUE:
                    break
                self.learn(s.unknown)
            check(status)
            encoded.rows, encoded.damaged = s.rows, s.damaged
            encoded.next, encoded.first, encoded.finished = s.next, s.first, s.finished
            self.finish(s.cells, encoded)
        finally:
            self.drop(s.cells)
        return encoded

    cdef int _from_memory(self, Stretch* s) except? -1:
        """Used for a store in memory instead of `encode_feed`: encodes all records that may be in the range."""
        cdef bytes key, value
        cdef int status
        for key, value in self.contents.tables.scan(TABLE_FEED, b"", s.stop.to_bytes(8, "big"), 1 << 30):
            if s.rows == s.room:
                break
            status = encode_record(s, load_be64(<const uint8_t*>PyBytes_AS_STRING(key)), <const uint8_t*>PyBytes_AS_STRING(value), len(value))
            if status == MDB_CORRUPTED:
                pass_over(s, load_be64(<const uint8_t*>PyBytes_AS_STRING(key)))
            elif status:
                return status
        s.finished = s.rows < s.room or s.next >= s.stop
        return 0
