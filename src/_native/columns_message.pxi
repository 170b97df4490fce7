# One message as a value in each of its columns.

cdef inline uint16_t security_flags(const uint8_t* packet, const UserMessage* m) noexcept nogil:
    return get_u16(packet + m.security_offset) if m.security_offset else 0


cdef inline int put_part(Cells* c, const uint8_t* packet, uint32_t offset, uint32_t length) noexcept nogil:
    """A part of the packet; null where there is none."""
    return put_bytes(c, packet + offset, length) if offset else put_null(c)


cdef int put_word(Cells* c, const Word* words, size_t count, uint32_t value) noexcept nogil:
    """What the number stands for, or null."""
    cdef size_t i
    for i in range(count):
        if words[i].value == value:
            return put_bytes(c, words[i].text, words[i].size)
    return put_null(c)


cdef inline int put_seconds(Cells* c, uint32_t value) noexcept nogil:
    """A duration; null for an infinite one."""
    return put_null(c) if value == INFINITE else put_number(c, value)


cdef int put_transactional(Cells* c, const uint8_t* packet, const UserMessage* m, const Row* row) noexcept nogil:
    """A column of the TransactionHeader. A place in a sequence that this queue manager gave is not in the packet."""
    cdef const uint8_t* h = packet + m.transaction_offset
    cdef uint32_t flags
    cdef uint64_t value = 0
    if not m.transaction_offset:
        return put_null(c)
    flags = get_u32(h)
    if c.what == FIELD_XACT_ID:
        return put_identifier(c, packet + SOURCE_AT, flags >> 4 & 0xFFFFF)
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
    """A column that the packet has no part in. Returns FIELD_OF_PACKET for one of the others."""
    cdef int what = c.what
    cdef uint8_t key[POSITION_KEY_SIZE]
    if what == FIELD_ARRIVAL_SEQ:
        return put_number(c, row.key & SEQUENCE_MASK)
    elif what == FIELD_LOOKUP_ID:
        return put_number(c, <int64_t>row.key)
    elif what == FIELD_PRIORITY:
        return put_number(c, 7 - (row.key >> 56))
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
        return put_identifier(c, packet + SOURCE_AT, m.message_id)
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
        return put_guid(c, packet + SOURCE_AT)
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
        return put_soap(c, packet, m)
    elif what == FIELD_RAW_PACKET:
        return put_bytes(c, packet, m.size)
    elif what == FIELD_CORRUPT:
        return put_null(c)
    return put_transactional(c, packet, m, row)


cdef int put_damaged(Work* work, const Row* row, const uint8_t* packet) noexcept nogil:
    """A message without a readable packet: what its position says, and the bytes themselves."""
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
    """All rows; counts those that cannot be had. Returns 0, ENOMEM or another status."""
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
