# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Encodes messages as Arrow columns: `MessageEncoder`, for a thread that runs almost always without the GIL.

To add a column: 1. name it in protocol/columns.py; 2. number it in `Field` and in `_FIELDS` below; 3. set its value in `put_row` if the
position of the message has it, otherwise in `put_packet`. packet/ has the model that tests compare it with.
"""

cimport cython
from libc.errno cimport ENOMEM
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset
from msmq_fast._native.columncells cimport Cells, Encoded, put_bytes, put_null, put_number
from msmq_fast._native.columnencoder cimport FIELD_CONSTANT, Encoder, Word, Words, check, put_word
from msmq_fast._native.columnrows cimport (
    MOVE_UNKNOWN,
    ROW_LOCKED,
    ROW_ORDERED,
    ROW_PREPARED,
    ROW_PURGED,
    SEQUENCE_BITS,
    Row,
    Rows,
)
from msmq_fast._native.columnsoap cimport put_soap
from msmq_fast._native.columnstore cimport (
    Lookup,
    enter_background,
    find_move,
    find_packet,
    leave_background,
    lookup_breathe,
    lookup_end,
)
from msmq_fast._native.columntext cimport put_guid, put_identifier, put_name, put_names, put_text
from msmq_fast._native.framing cimport (
    BASE_TRACE,
    FAULT_LENGTH_MISMATCH,
    INFINITE,
    SOURCE_OFFSET,
    UserMessage,
    get_u16,
    get_u32,
    parse_user_message,
)
from msmq_fast._native.lmdbapi cimport MDB_CORRUPTED, MDB_NOTFOUND
from msmq_fast._native.record cimport POSITION_KEY_SIZE, position_key


cdef enum Field:
    FIELD_OF_PACKET = -1
    FIELD_ARRIVAL_SEQ = 1
    FIELD_LOOKUP_ID
    FIELD_PRIORITY
    FIELD_ARRIVED_TIME
    FIELD_ABORT_COUNT
    FIELD_MOVE_COUNT
    FIELD_LAST_MOVE_TIME
    FIELD_LEASE_HOLDER
    FIELD_DELIVERY_SEQ
    FIELD_STATE
    FIELD_STORE_KEY
    FIELD_CORRUPT
    FIELD_BODY
    FIELD_MESSAGE_ID
    FIELD_CORRELATION_ID
    FIELD_CLASS
    FIELD_CLASS_NAME
    FIELD_MESSAGE_VERSION
    FIELD_LABEL
    FIELD_APP_SPECIFIC
    FIELD_BODY_TYPE
    FIELD_BODY_SIZE
    FIELD_EXTENSION
    FIELD_SENT_TIME
    FIELD_TTRQ
    FIELD_TTBR
    FIELD_DELIVERY
    FIELD_ACKNOWLEDGE
    FIELD_JOURNAL
    FIELD_AUTH_LEVEL
    FIELD_ENCRYPTED
    FIELD_TRACE
    FIELD_DEST_NAME
    FIELD_RESP_NAME
    FIELD_ADMIN_NAME
    FIELD_MULTI_DEST
    FIELD_MULTI_RESP
    FIELD_SOURCE_GUID
    FIELD_SENDER_ID
    FIELD_SENDER_ID_TYPE
    FIELD_SENDER_CERT
    FIELD_SIGNATURE
    FIELD_HASH_ALGORITHM
    FIELD_ENCRYPT_ALGORITHM
    FIELD_CONNECTOR_TYPE
    FIELD_SOAP_ENVELOPE
    FIELD_COMPOUND_BODY
    FIELD_SOAP_HEADER
    FIELD_SOAP_BODY
    FIELD_RAW_PACKET
    FIELD_XACT_ID
    FIELD_XACT_SEQ_ID
    FIELD_XACT_SEQ_NO
    FIELD_XACT_PREV_NO
    FIELD_FIRST_IN_XACT
    FIELD_LAST_IN_XACT

_FIELDS = {
    "arrival_seq": FIELD_ARRIVAL_SEQ,
    "lookup_id": FIELD_LOOKUP_ID,
    "priority": FIELD_PRIORITY,
    "arrived_time": FIELD_ARRIVED_TIME,
    "abort_count": FIELD_ABORT_COUNT,
    "move_count": FIELD_MOVE_COUNT,
    "last_move_time": FIELD_LAST_MOVE_TIME,
    "lease_holder": FIELD_LEASE_HOLDER,
    "delivery_seq": FIELD_DELIVERY_SEQ,
    "state": FIELD_STATE,
    "store_key": FIELD_STORE_KEY,
    "_corrupt": FIELD_CORRUPT,
    "body": FIELD_BODY,
    "message_id": FIELD_MESSAGE_ID,
    "correlation_id": FIELD_CORRELATION_ID,
    "class": FIELD_CLASS,
    "class_name": FIELD_CLASS_NAME,
    "message_version": FIELD_MESSAGE_VERSION,
    "label": FIELD_LABEL,
    "app_specific": FIELD_APP_SPECIFIC,
    "body_type": FIELD_BODY_TYPE,
    "body_size": FIELD_BODY_SIZE,
    "extension": FIELD_EXTENSION,
    "sent_time": FIELD_SENT_TIME,
    "time_to_reach_queue": FIELD_TTRQ,
    "time_to_be_received": FIELD_TTBR,
    "delivery": FIELD_DELIVERY,
    "acknowledge": FIELD_ACKNOWLEDGE,
    "journal": FIELD_JOURNAL,
    "auth_level": FIELD_AUTH_LEVEL,
    "encrypted": FIELD_ENCRYPTED,
    "trace": FIELD_TRACE,
    "destination_queue": FIELD_DEST_NAME,
    "response_queue": FIELD_RESP_NAME,
    "admin_queue": FIELD_ADMIN_NAME,
    "destination_queues": FIELD_MULTI_DEST,
    "response_queues": FIELD_MULTI_RESP,
    "source_machine": FIELD_SOURCE_GUID,
    "sender_id": FIELD_SENDER_ID,
    "sender_id_type": FIELD_SENDER_ID_TYPE,
    "sender_cert": FIELD_SENDER_CERT,
    "signature": FIELD_SIGNATURE,
    "hash_algorithm": FIELD_HASH_ALGORITHM,
    "encryption_algorithm": FIELD_ENCRYPT_ALGORITHM,
    "connector_type": FIELD_CONNECTOR_TYPE,
    "soap_envelope": FIELD_SOAP_ENVELOPE,
    "compound_body": FIELD_COMPOUND_BODY,
    "soap_header": FIELD_SOAP_HEADER,
    "soap_body": FIELD_SOAP_BODY,
    "raw_packet": FIELD_RAW_PACKET,
    "xact_id": FIELD_XACT_ID,
    "xact_seq_id": FIELD_XACT_SEQ_ID,
    "xact_seq_no": FIELD_XACT_SEQ_NO,
    "xact_prev_no": FIELD_XACT_PREV_NO,
    "first_in_xact": FIELD_FIRST_IN_XACT,
    "last_in_xact": FIELD_LAST_IN_XACT,
}


cdef struct Work:
    # One batch while it is encoded.
    Lookup lookup
    Cells* cells
    size_t cell_count
    const Word* classes
    size_t class_count
    const Word* holders
    size_t holder_count
    uint32_t queue
    bint keep_damaged
    size_t rows, gone, damaged
    int status


cdef inline uint16_t security_flags(const uint8_t* packet, const UserMessage* m) noexcept nogil:
    return get_u16(packet + m.security_offset) if m.security_offset else 0


cdef inline int put_part(Cells* c, const uint8_t* packet, uint32_t offset, uint32_t length) noexcept nogil:
    """Adds `length` bytes of the packet as a value; null if the packet does not have this part."""
    return put_bytes(c, packet + offset, length) if offset else put_null(c)


cdef inline int put_seconds(Cells* c, uint32_t value) noexcept nogil:
    """Adds a duration in seconds as a value; null for an infinite one."""
    return put_null(c) if value == INFINITE else put_number(c, value)


cdef int put_transactional(Cells* c, const uint8_t* packet, const UserMessage* m, const Row* row) noexcept nogil:
    """Adds the value of a column of the TransactionHeader. A sequence number that this queue manager assigned comes from `row`; it is not
    in the packet.
    """
    cdef const uint8_t* h = packet + m.transaction_offset
    cdef uint32_t flags
    cdef uint64_t value = 0
    if not m.transaction_offset:
        return put_null(c)
    flags = get_u32(h)
    if c.what == FIELD_XACT_ID:
        return put_identifier(c, packet + SOURCE_OFFSET, flags >> 4 & 0xFFFFF)
    if c.what == FIELD_FIRST_IN_XACT:
        return put_number(c, flags >> 2 & 1)
    if c.what == FIELD_LAST_IN_XACT:
        return put_number(c, flags >> 3 & 1)
    if row.sequence_number:
        value = row.sequence_id if c.what == FIELD_XACT_SEQ_ID else row.sequence_number if c.what == FIELD_XACT_SEQ_NO else 0
    elif c.what == FIELD_XACT_SEQ_ID:
        value = <uint64_t>get_u32(h + 8) << 32 | get_u32(h + 4)
    elif get_u32(h + 4) or get_u32(h + 8):
        if c.what == FIELD_XACT_SEQ_NO:
            value = get_u32(h + 12)
        else:
            return put_number(c, get_u32(h + 16))
    return put_number(c, <int64_t>value) if value else put_null(c)


cdef int put_state(Cells* c, int state) noexcept nogil:
    if state == ROW_LOCKED:
        return put_bytes(c, b"locked", 6)
    if state == ROW_PURGED:
        return put_bytes(c, b"purged", 6)
    if state == ROW_PREPARED:
        return put_bytes(c, b"prepared", 8)
    if state == ROW_ORDERED:
        return put_bytes(c, b"ordered", 7)
    return put_bytes(c, b"available", 9)


cdef int put_moved(Cells* c, Work* work, const Row* row) noexcept nogil:
    cdef uint32_t seconds = row.last_move_s
    cdef int status
    if seconds == MOVE_UNKNOWN:
        status = find_move(&work.lookup, work.queue, row, &seconds)
        if status:
            work.status = status
    return put_number(c, <int64_t>seconds * 1000000) if seconds else put_null(c)


cdef int put_row(Cells* c, Work* work, const Row* row) noexcept nogil:
    """Adds the value of a column that does not depend on the packet. Returns FIELD_OF_PACKET, without effect, for any other column."""
    cdef int what = c.what
    cdef uint8_t key[POSITION_KEY_SIZE]
    if what == FIELD_ARRIVAL_SEQ:
        return put_number(c, row.key & ((<uint64_t>1 << SEQUENCE_BITS) - 1))
    elif what == FIELD_LOOKUP_ID:
        return put_number(c, <int64_t>row.key)
    elif what == FIELD_PRIORITY:
        return put_number(c, 7 - (row.key >> SEQUENCE_BITS))
    elif what == FIELD_ARRIVED_TIME:
        return put_number(c, <int64_t>row.arrived)
    elif what == FIELD_ABORT_COUNT:
        return put_number(c, row.abort_count)
    elif what == FIELD_MOVE_COUNT:
        return put_number(c, row.move_count)
    elif what == FIELD_LAST_MOVE_TIME:
        return put_moved(c, work, row)
    elif what == FIELD_LEASE_HOLDER:
        return put_word(c, work.holders, work.holder_count, row.owner) if row.state == ROW_LOCKED else put_null(c)
    elif what == FIELD_DELIVERY_SEQ:
        return put_number(c, <int64_t>row.delivery)
    elif what == FIELD_STATE:
        return put_state(c, row.state)
    elif what == FIELD_STORE_KEY:
        position_key(key, work.queue, row.key)
        return put_bytes(c, &key[0], POSITION_KEY_SIZE)
    return FIELD_OF_PACKET


cdef int put_packet(Cells* c, const Work* work, const Row* row, const uint8_t* packet, const UserMessage* m) noexcept nogil:
    cdef int what = c.what
    cdef uint32_t value
    if what == FIELD_BODY:
        return put_bytes(c, packet + m.body_offset, m.body_length)
    elif what == FIELD_MESSAGE_ID:
        return put_identifier(c, packet + SOURCE_OFFSET, m.message_id)
    elif what == FIELD_CORRELATION_ID:
        return put_bytes(c, packet + m.properties_offset + 4, 20)
    elif what == FIELD_CLASS:
        return put_number(c, row.reason if row.reason else m.message_class)
    elif what == FIELD_CLASS_NAME:
        return put_word(c, work.classes, work.class_count, row.reason if row.reason else m.message_class)
    elif what == FIELD_MESSAGE_VERSION:
        return put_number(c, packet[0])
    elif what == FIELD_LABEL:
        return put_text(c, packet + m.label_offset, m.label_chars)
    elif what == FIELD_APP_SPECIFIC:
        return put_number(c, m.app_specific)
    elif what == FIELD_BODY_TYPE:
        return put_number(c, <int32_t>m.body_type)
    elif what == FIELD_BODY_SIZE:
        return put_number(c, m.body_length)
    elif what == FIELD_EXTENSION:
        return put_bytes(c, packet + m.extension_offset, m.extension_length)
    elif what == FIELD_SENT_TIME:
        return put_number(c, <int64_t>m.sent_time * 1000000)
    elif what == FIELD_TTRQ:
        return put_seconds(c, m.time_to_reach_queue)
    elif what == FIELD_TTBR:
        return put_seconds(c, m.time_to_be_received)
    elif what == FIELD_DELIVERY:
        return put_number(c, m.delivery)
    elif what == FIELD_ACKNOWLEDGE:
        return put_number(c, m.ack_flags)
    elif what == FIELD_JOURNAL:
        return put_number(c, m.user_flags >> 8 & 3)
    elif what == FIELD_AUTH_LEVEL:
        return put_number(c, security_flags(packet, m) >> 8 & 15)
    elif what == FIELD_ENCRYPTED:
        return put_number(c, security_flags(packet, m) >> 5 & 1)
    elif what == FIELD_TRACE:
        return put_number(c, 1 if m.base_flags & BASE_TRACE else 0)
    elif what == FIELD_DEST_NAME:
        return put_name(c, packet, m.dest_type, m.dest_offset, m)
    elif what == FIELD_RESP_NAME:
        return put_name(c, packet, m.response_type, m.response_offset, m)
    elif what == FIELD_ADMIN_NAME:
        return put_name(c, packet, m.admin_type, m.admin_offset, m)
    elif what == FIELD_MULTI_DEST:
        return put_names(c, packet, m.mqf_offset, 0) if m.mqf_offset else put_null(c)
    elif what == FIELD_MULTI_RESP:
        return put_names(c, packet, m.mqf_offset, 2) if m.mqf_offset else put_null(c)
    elif what == FIELD_SOURCE_GUID:
        return put_guid(c, packet + SOURCE_OFFSET)
    elif what == FIELD_SENDER_ID:
        return put_part(c, packet, m.sender_id_offset, m.sender_id_length)
    elif what == FIELD_SENDER_ID_TYPE:
        return put_number(c, security_flags(packet, m) & 15)
    elif what == FIELD_SENDER_CERT:
        return put_part(c, packet, m.certificate_offset, m.certificate_length)
    elif what == FIELD_SIGNATURE:
        return put_part(c, packet, m.signature_offset, m.signature_length)
    elif what == FIELD_HASH_ALGORITHM:
        return put_number(c, <int32_t>get_u32(packet + m.properties_offset + 44))
    elif what == FIELD_ENCRYPT_ALGORITHM:
        return put_number(c, <int32_t>get_u32(packet + m.properties_offset + 48))
    elif what == FIELD_CONNECTOR_TYPE:
        return put_guid(c, packet + m.connector_offset) if m.connector_offset else put_null(c)
    elif what == FIELD_SOAP_ENVELOPE:
        value = m.envelope_offset
        return put_text(c, packet + value + 8, get_u32(packet + value + 4)) if value else put_null(c)
    elif what == FIELD_COMPOUND_BODY:
        value = m.compound_offset
        return put_bytes(c, packet + value + 16, get_u32(packet + value + 4)) if value else put_null(c)
    elif what == FIELD_SOAP_HEADER or what == FIELD_SOAP_BODY:
        return put_soap(c, packet, m, what == FIELD_SOAP_BODY)
    elif what == FIELD_RAW_PACKET:
        return put_bytes(c, packet, m.size)
    elif what == FIELD_CORRUPT:
        return put_null(c)
    return put_transactional(c, packet, m, row)


cdef int put_damaged(Work* work, const Row* row, const uint8_t* packet) noexcept nogil:
    """Adds a message without a readable packet: the values of its position, and the raw bytes."""
    cdef Cells* c
    cdef size_t i
    cdef int fault
    for i in range(work.cell_count):
        c = &work.cells[i]
        if c.what == FIELD_CONSTANT:
            continue
        if c.what == FIELD_CORRUPT:
            fault = put_bytes(c, packet, row.size if packet != NULL else 0)
        else:
            fault = put_row(c, work, row)
            if fault == FIELD_OF_PACKET:
                fault = put_null(c)
        if fault:
            return fault
    return 0


cdef int encode_rows(Work* work, const Row* rows, size_t count) noexcept nogil:
    """Encodes all rows, and counts the messages that cannot be read. Returns 0, ENOMEM or another status."""
    cdef UserMessage m
    cdef const Row* row
    cdef const uint8_t* packet
    cdef Cells* c
    cdef size_t i, number
    cdef int fault
    for number in range(count):
        row = &rows[number]
        lookup_breathe(&work.lookup)
        packet = NULL
        fault = find_packet(&work.lookup, row, &packet)
        if fault == MDB_NOTFOUND and not work.keep_damaged:
            work.gone += 1
            continue
        if fault == 0:
            fault = parse_user_message(packet, row.size, &m)
            if fault == 0 and m.size != row.size:
                fault = FAULT_LENGTH_MISMATCH
            if fault:
                fault = MDB_CORRUPTED
        elif fault == MDB_NOTFOUND or fault == MDB_CORRUPTED:
            packet = NULL
            fault = MDB_CORRUPTED
        if fault == MDB_CORRUPTED:
            work.damaged += 1
            if not work.keep_damaged:
                continue
            fault = put_damaged(work, row, packet)
            if fault:
                return fault
            work.rows += 1
            continue
        if fault:
            return fault
        for i in range(work.cell_count):
            c = &work.cells[i]
            if c.what == FIELD_CONSTANT:
                continue
            fault = put_row(c, work, row)
            if fault == FIELD_OF_PACKET:
                fault = put_packet(c, work, row, packet, &m)
            if fault:
                return fault
        if work.status:
            return work.status
        work.rows += 1
    return 0


@cython.final
cdef class MessageEncoder(Encoder):
    """``MessageEncoder(contents, columns, constants, classes)``: encodes rows of one queue as columns.

    `columns` are pairs of name and kind (protocol/columns.py), and may also include delivery_seq, state, store_key and _corrupt. With
    _corrupt, messages that cannot be read are kept, with nulls for the values of their packet. `constants` maps column names to values,
    `classes` message classes to names.
    """

    def _known(self):
        return _FIELDS

    def _large(self):
        return FIELD_BODY, FIELD_RAW_PACKET

    def encode(self, Rows rows not None, holders=None) -> Encoded:
        """Encodes the messages of `rows`. `holders` maps owner numbers of locks to names, for the column lease_holder.

        Raises StoreError if the store failed. May be called on any thread, but no other thread may use this encoder or `rows` meanwhile.
        """
        cdef Work work
        cdef Encoded encoded = Encoded.__new__(Encoded)
        cdef Words owners = Words(holders or {})
        cdef int status
        cdef int away
        cdef bint background = self.contents.background
        self.contents.fill(rows)
        memset(&work, 0, sizeof(work))
        work.lookup.store = self.contents._store
        work.queue = rows.ordinal
        work.classes, work.class_count = self.classes.words, self.classes.count
        work.holders, work.holder_count = owners.words, owners.count
        work.cell_count = len(self.fields)
        work.cells = self.begin(rows._count, min(rows.bytes, <uint64_t>64 << 20))
        for field in self.fields:
            work.keep_damaged = work.keep_damaged or field[0] == FIELD_CORRUPT
        try:
            with nogil:
                away = enter_background(background, &self.contents._away)
                status = encode_rows(&work, rows._rows, rows._count)
                lookup_end(&work.lookup)
                free(work.lookup.scratch.data)
                leave_background(away, &self.contents._away)
            check(status)
            encoded.rows, encoded.gone, encoded.damaged = work.rows, work.gone + rows.gone, work.damaged
            encoded.finished = rows.finished
            encoded.next = rows.next
            self.finish(work.cells, encoded)
        finally:
            self.drop(work.cells)
        return encoded
