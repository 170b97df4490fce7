# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Reads the store on a thread without the GIL, and reads rows from a store that no server has open; see columnstore.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.errno cimport ENOMEM
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.columncells cimport make_room
from msmq_fast._native.columnrows cimport (
    MOVE_UNKNOWN,
    ROW_AVAILABLE,
    ROW_ORDERED,
    ROW_PREPARED,
    ROW_PURGED,
    Row,
    Rows,
)
from msmq_fast._native.gather cimport WHOLE_BYTES, monotonic_ns
from msmq_fast._native.lmdbapi cimport (
    MDB_CORRUPTED,
    MDB_NOTFOUND,
    MDB_RDONLY,
    MDB_SET,
    Generation,
    LmdbStore,
    MDB_val,
    MemItem,
    RedoStore,
    item_is_value,
    item_value,
    lmdb_api,
    load_liblmdb,
    read_content,
    redo_find,
    redo_unpin,
)
from msmq_fast._native.lmdbstore cimport LmdbTables
from msmq_fast._native.record cimport (
    CONTENT_KEY_SIZE,
    CONTENT_VERSION,
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_ORDERED,
    POSITION_PREPARED,
    POSITION_PURGE_PENDING,
    POSITION_RECOVERABLE,
    POSITION_VERSION,
    NumberedPosition,
    PositionRecord,
    content_key,
    position_key,
)
from msmq_fast._native.tablenumbers cimport TABLE_CONTENT, TABLE_POSITION
from msmq_fast._native.tables cimport Tables

from msmq_fast._native.tables import StoreError

cdef extern from "columns_priority.h" nogil:
    bint boost(int* thread)

cdef enum:
    LARGEST_PACKET = 1 << 26    # no stored packet is larger; a record with a larger size is damaged


load_liblmdb()


cdef int lookup_begin(Lookup* lookup) noexcept nogil:
    cdef LmdbStore* store = lookup.store
    cdef int status
    if lookup.txn != NULL:
        return 0
    status = lmdb_api.txn_begin(store.env, NULL, MDB_RDONLY, &lookup.txn)
    if status:
        lookup.txn = NULL
        return status
    status = lmdb_api.cursor_open(lookup.txn, store.dbi[<int>TABLE_CONTENT], &lookup.cursor)
    if status:
        lmdb_api.txn_abort(lookup.txn)
        lookup.txn = NULL
        return status
    lookup.begun_ns = monotonic_ns()
    lookup.bytes = 0
    return 0


cdef void lookup_unpin(Lookup* lookup) noexcept nogil:
    if lookup.pinned != NULL:
        redo_unpin(lookup.store.redo, lookup.pinned)
        lookup.pinned = NULL


cdef void lookup_end(Lookup* lookup) noexcept nogil:
    lookup_unpin(lookup)
    if lookup.txn != NULL:
        lmdb_api.cursor_close(lookup.cursor)
        lmdb_api.txn_abort(lookup.txn)
        lookup.txn = NULL


cdef int find_stored(Lookup* lookup, const Row* row, const uint8_t** packet) noexcept nogil:
    """Like `find_packet`, but searches only the store: the redo log, then the read transaction of `lookup`."""
    cdef uint8_t name[CONTENT_KEY_SIZE]
    cdef MDB_val key, value
    cdef MemItem item
    cdef RedoStore* redo = lookup.store.redo
    cdef int status
    if row.size > WHOLE_BYTES:
        status = lookup_begin(lookup)
        return read_content(lookup.store, lookup.txn, row.content_id, row.size, <char*>packet[0]) if status == 0 else status
    content_key(name, row.content_id, 0)
    key.mv_size = CONTENT_KEY_SIZE
    key.mv_data = &name[0]
    if redo != NULL and redo_find(redo, <int>TABLE_CONTENT, key.mv_data, key.mv_size, &item, &lookup.pinned):
        value.mv_size = item.value_len
        value.mv_data = <void*>item_value(&item)
        status = 0 if item_is_value(&item) else MDB_NOTFOUND
    else:
        status = lookup_begin(lookup)
        if status == 0:
            # Contents are stored in the order of arrival, so the next one is usually beside the last.
            status = lmdb_api.cursor_get(lookup.cursor, &key, &value, MDB_SET)
    if status:
        return status
    if value.mv_size != <size_t>row.size + 1 or (<const uint8_t*>value.mv_data)[0] != CONTENT_VERSION:
        return MDB_CORRUPTED
    packet[0] = <const uint8_t*>value.mv_data + 1
    return 0


cdef int find_packet(Lookup* lookup, const Row* row, const uint8_t** packet) noexcept nogil:
    """Sets the address of a message's packet, valid until the next call. Returns 0, MDB_NOTFOUND, MDB_CORRUPTED or another status."""
    cdef bint begun = lookup.txn != NULL or row.size > WHOLE_BYTES
    cdef int status
    if row.body != NULL:
        packet[0] = row.packet
        return 0
    if row.size > LARGEST_PACKET:
        return MDB_CORRUPTED
    if lookup.store == NULL or not row.content_id:
        return MDB_NOTFOUND
    lookup_unpin(lookup)
    if row.size > WHOLE_BYTES:
        lookup.scratch.used = 0
        if make_room(&lookup.scratch, row.size):
            return ENOMEM
        packet[0] = lookup.scratch.data
    status = find_stored(lookup, row, packet)
    if status == MDB_NOTFOUND and begun and lookup.store.redo != NULL:
        lookup_end(lookup)      # the log may have given it to LMDB since the transaction began
        status = find_stored(lookup, row, packet)
    lookup.bytes += row.size
    return status


cdef int find_move(Lookup* lookup, uint32_t queue, const Row* row, uint32_t* seconds) noexcept nogil:
    """Sets the time at which a stored message was last moved, 0 if its record does not have it. Returns a status."""
    cdef uint8_t name[POSITION_KEY_SIZE]
    cdef MDB_val key, value
    cdef MemItem item
    cdef Generation* pinned
    cdef RedoStore* redo
    cdef int status
    seconds[0] = 0
    if lookup.store == NULL or not row.recoverable:
        return 0
    position_key(name, queue, row.key)
    key.mv_size = POSITION_KEY_SIZE
    key.mv_data = &name[0]
    redo = lookup.store.redo
    if redo != NULL and redo_find(redo, <int>TABLE_POSITION, key.mv_data, key.mv_size, &item, &pinned):
        if item_is_value(&item) and item.value_len >= sizeof(PositionRecord):
            seconds[0] = (<const PositionRecord*>item_value(&item)).last_move_s
        redo_unpin(redo, pinned)
        return 0
    status = lookup_begin(lookup)
    if status:
        return status
    status = lmdb_api.get(lookup.txn, lookup.store.dbi[<int>TABLE_POSITION], &key, &value)
    if status == 0 and value.mv_size >= sizeof(PositionRecord):
        seconds[0] = (<const PositionRecord*>value.mv_data).last_move_s
    return 0 if status == MDB_NOTFOUND else status


cdef class Contents:
    def __init__(self, Tables tables not None, *, bint background=False):
        self.tables = tables
        self.background = background
        if isinstance(tables, LmdbTables):
            self._store = &(<LmdbTables>tables)._store
            if self._store.env == NULL:
                raise StoreError("the store is closed")
            (<LmdbTables>tables)._users += 1

    def __dealloc__(self):
        self.close()

    def close(self):
        """Ends reading. Closing twice has no effect."""
        if not self._closed and self._store != NULL:
            (<LmdbTables>self.tables)._users -= 1
        self._closed = True

    def boost(self):
        """Ends the background mode of the encoding thread for its current work; called from another thread. Returns False if the thread was
        not in the background.
        """
        return boost(&self._away)

    cdef int check(self) except -1:
        """Raises StoreError if the reader was closed."""
        if self._closed:
            raise StoreError("the store is closed")
        return 0

    cdef int fill(self, Rows rows) except -1:
        """Prepares a read from a store in memory: copies the packets of `rows` at once, since the encoding thread cannot read them."""
        cdef size_t i
        cdef Row* row
        cdef bytes packet
        self.check()
        if self._store != NULL:
            return 0
        for i in range(rows._count):
            row = &rows._rows[i]
            if row.last_move_s == MOVE_UNKNOWN:
                record = self.tables.get(TABLE_POSITION, rows.ordinal.to_bytes(4, "big") + row.key.to_bytes(8, "big"))
                row.last_move_s = 0 if record is None else (<const PositionRecord*>PyBytes_AS_STRING(<bytes>record)).last_move_s
            if row.body != NULL:
                continue
            try:
                packet = self.tables.read_content(row.content_id, row.size)
            except StoreError as error:
                if error.status != MDB_NOTFOUND:
                    row.size = LARGEST_PACKET + 1   # damaged
                continue
            Py_INCREF(packet)
            row.body = <PyObject*>packet
            row.packet = <const uint8_t*>PyBytes_AS_STRING(packet)
        return 0


cdef int add_stored(Rows rows, uint64_t key, const PositionRecord* record, size_t size) except -1:
    cdef Row* row = rows._add()
    row.key = key
    row.content_id = record.content_id
    row.arrived = record.arrived_us
    row.size = record.content_bytes
    row.last_move_s = record.last_move_s
    row.abort_count = <uint16_t>min(record.abort_count, <uint32_t>0xFFFF)
    row.move_count = <uint16_t>min(record.move_count, <uint32_t>0xFFFF)
    row.reason = record.reason
    row.recoverable = record.flags & POSITION_RECOVERABLE != 0
    row.state = (
        ROW_PURGED if record.flags & POSITION_PURGE_PENDING
        else ROW_PREPARED if record.flags & POSITION_PREPARED
        else ROW_ORDERED if record.flags & POSITION_ORDERED
        else ROW_AVAILABLE
    )
    if record.version == POSITION_NUMBERED and size >= sizeof(NumberedPosition):
        row.sequence_id = (<const NumberedPosition*>record).sequence_id
        row.sequence_number = (<const NumberedPosition*>record).sequence_number
    rows.bytes += record.content_bytes
    return 0


def stored(Tables tables not None, uint32_t queue, uint64_t start, uint64_t stop, size_t max_rows, uint64_t max_bytes) -> Rows:
    """Returns the messages of a queue in a store with start <= LookupIdentifier < stop, in queue order.

    `max_rows` and `max_bytes` limit the result as in `scan`. In the result, `next` is the LookupIdentifier at which the next call begins,
    and `damaged` has the keys of invalid position records, which are left out.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef const PositionRecord* record
    cdef bytes name, value
    cdef uint64_t key
    rows.ordinal = queue
    rows.next = start
    prefix = queue.to_bytes(4, "big")
    found = tables.scan(TABLE_POSITION, prefix + start.to_bytes(8, "big"), prefix + stop.to_bytes(8, "big"), max_rows)
    for name, value in found:
        key = int.from_bytes(name[4:12], "big")
        rows.next = key
        record = <const PositionRecord*>PyBytes_AS_STRING(value)
        if (
            len(name) != POSITION_KEY_SIZE
            or len(value) < <Py_ssize_t>sizeof(PositionRecord)
            or (record.version != POSITION_VERSION and record.version != POSITION_NUMBERED)
        ):
            rows.damaged.append(name)
        elif rows._count and rows.bytes + record.content_bytes > max_bytes:
            return rows
        else:
            add_stored(rows, key, record, len(value))
        rows.next = key + 1
    if <size_t>len(found) < max_rows:
        rows.next = stop
        rows.finished = True
    return rows
