# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Converts Arrow columns to UserMessage packets on a worker thread, which rarely holds the GIL.

Every size and offset of a column was checked when the column was created (`arrowcolumn`).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset
from msmq_fast._native.arrowcolumn cimport Column, View, bytes_at, has, number_at
from msmq_fast._native.framing cimport MAX_PACKET, put_u16
from msmq_fast._native.packetblock cimport PacketBlock, allocate_packets, block_of
from msmq_fast._native.packetbuild cimport (
    BAD_LABEL, LONG_LABEL, MessageFields, clear_fields, packet_size, write_packet,
)

cdef enum:
    TRANSACTION_HEADER = 20
    CORRELATION = 20
    EMPTY = 0                   # body types: VT_EMPTY,
    BSTR = 8                    # and those whose text is UTF-16
    LPWSTR = 31
    LONGEST_IDENTIFIER = 49     # "{", 36, "}\\", ten digits
    HELD = 4096                 # names of response and admin queues that are remembered

cdef enum Problem:
    OK = 0
    BAD_PRIORITY = 1
    BAD_DELIVERY = 2
    BAD_ACKNOWLEDGE = 3
    BAD_JOURNAL = 4
    BAD_APP_SPECIFIC = 5
    BAD_BODY_TYPE = 6
    BAD_REACH = 7
    BAD_RECEIVE = 8
    BAD_CORRELATION = 9
    BAD_TEXT = 10
    LABEL_LONG = 11
    LABEL_TEXT = 12
    BAD_IDENTIFIER = 13
    TOO_LARGE = 14

_TEXTS = {
    BAD_PRIORITY: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "priority is a number from 0 to 7"),
    BAD_DELIVERY: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "delivery is 0 (express) or 1 (recoverable)"),
    BAD_ACKNOWLEDGE: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "acknowledge is a number from 0 to 15"),
    BAD_JOURNAL: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "journal is a number from 0 to 3"),
    BAD_APP_SPECIFIC: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "app_specific is a number from 0 to 4294967295"),
    BAD_BODY_TYPE: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "body_type is a number of 32 bits"),
    BAD_REACH: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "time_to_reach_queue is a number from 0 to 4294967295"),
    BAD_RECEIVE: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "time_to_be_received is a number from 0 to 4294967295"),
    BAD_CORRELATION: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "correlation_id has 20 bytes"),
    BAD_TEXT: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "body is not UTF-8"),
    LABEL_LONG: ("MQ_ERROR_LABEL_TOO_LONG", "the label has more than 249 characters"),
    LABEL_TEXT: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "the label is not UTF-8"),
    BAD_IDENTIFIER: ("MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "message_id has the form {GUID}\\number"),
    TOO_LARGE: (
        "MQ_ERROR_INSUFFICIENT_RESOURCES", "the message is too large: a packet has 4 MiB at most, headers included"
    ),
}

REPLAY_TAG = b"\0msmq-fast:replay_of="
"""In an extension, precedes the identifier of the message that was sent again."""

cdef const char* _tag = PyBytes_AS_STRING(REPLAY_TAG)
cdef uint32_t _tag_size = <uint32_t>PyBytes_GET_SIZE(REPLAY_TAG)


class RowError(Exception):
    """Raised for a row that cannot become a message: `row` is its index from 0, `code` the HRESULT or its name, `problem` the error text.
    """

    def __init__(self, row: int, code: object, problem: str) -> None:
        super().__init__(f"row {row}: {problem}")
        self.row = row
        self.code = code
        self.problem = problem


cdef class Destination:
    """``Destination(address, dest_type, field, transactional, resolve, keeps)``: a queue to which rows are sent.

    `address` is the GUID of its queue manager (16 bytes), `dest_type` and `field` the DQ value and the DestinationQueue of the UserHeader.
    `resolve(text)` returns (type, field of the UserHeader) of a response or admin queue, and raises an error with `code` and `detail` for
    an invalid name. `keeps`: whether messages to this queue may keep the identifiers of their originals.
    """

    cdef bytes _address, _field
    cdef uint8_t _type
    cdef readonly bint transactional, keeps
    cdef object _resolve
    cdef dict _known

    def __init__(self, bytes address not None, int dest_type, bytes field not None, bint transactional, resolve, bint keeps):
        if len(address) != 16:
            raise ValueError("a GUID has 16 bytes")
        self._address = address
        self._type = dest_type
        self._field = field
        self.transactional = transactional
        self._resolve = resolve
        self.keeps = keeps
        self._known = {}

    cdef tuple name(self, text):
        cdef tuple known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._resolve(text)
        return known


cdef struct Plan:
    # The plan for a row, made before its packet. The pointers point into data that destinations own.
    const uint8_t* address
    const uint8_t* dest
    const uint8_t* admin
    const uint8_t* response
    uint32_t dest_length, admin_length, response_length
    uint8_t dest_type, admin_type, response_type
    bint transactional
    int64_t size


cdef struct Scratch:
    uint8_t* body               # room for the greatest text
    uint8_t* extension
    size_t body_room, extension_room
    uint8_t source[16]
    uint8_t header[TRANSACTION_HEADER]


cdef enum:
    # Places of columns
    BODY = 0
    LABEL
    PRIORITY
    CORRELATION_ID
    APP_SPECIFIC
    BODY_TYPE
    EXTENSION
    REACH
    RECEIVE
    DELIVERY
    ACKNOWLEDGE
    JOURNAL
    IDENTIFIER
    PLACES

_PLACES = {
    "body": (BODY, ("text", "binary")), "label": (LABEL, ("text",)), "priority": (PRIORITY, ("int",)),
    "correlation_id": (CORRELATION_ID, ("binary",)), "app_specific": (APP_SPECIFIC, ("int",)), "body_type": (BODY_TYPE, ("int",)),
    "extension": (EXTENSION, ("binary",)), "time_to_reach_queue": (REACH, ("int",)), "time_to_be_received": (RECEIVE, ("int",)),
    "delivery": (DELIVERY, ("int",)), "acknowledge": (ACKNOWLEDGE, ("int",)), "journal": (JOURNAL, ("int",)),
    "message_id": (IDENTIFIER, ("text",)),
}


cdef class RowBuilder:
    """``RowBuilder(source, long_lived, defaults, replay="extension")``: `source` is the GUID of this queue manager, `long_lived` the
    TimeToReachQueue, in seconds, of messages without one.

    `defaults` are values for rows without a value: priority, delivery, acknowledge, journal, app_specific, body_type (by default from the
    type of the column body), time_to_reach_queue, time_to_be_received (by default without limit), label, response_queue and admin_queue
    (text), extension (bytes). `replay` is the use of the column message_id, the identifier of an earlier message that a row sends again:
    "extension" puts it into the extension, "keep" makes it the identifier of the new message, "ignore" ignores it.
    """

    cdef bytes _source, _label, _extension
    cdef const uint8_t* _source_at          # where they stand
    cdef const uint8_t* _label_at
    cdef const uint8_t* _extension_at
    cdef uint32_t _label_size, _extension_size
    cdef int64_t _priority, _delivery, _acknowledge, _journal, _app_specific, _body_type, _reach, _receive
    cdef str _response, _admin
    cdef bint _note, _keep
    cdef uint32_t _now
    cdef View _views[PLACES]

    def __init__(self, bytes source not None, uint32_t long_lived, dict defaults not None, str replay not None="extension"):
        if len(source) != 16:
            raise ValueError("a GUID has 16 bytes")
        self._source = source
        self._priority = defaults.get("priority", 3)
        self._delivery = defaults.get("delivery", 1)
        self._acknowledge = defaults.get("acknowledge", 0)
        self._journal = defaults.get("journal", 0)
        self._app_specific = defaults.get("app_specific", 0)
        self._body_type = defaults.get("body_type", -1)
        self._reach = defaults.get("time_to_reach_queue", long_lived)
        self._receive = defaults.get("time_to_be_received", 0xFFFFFFFF)
        self._label = defaults.get("label", "").encode()
        self._extension = defaults.get("extension", b"")
        self._response = defaults.get("response_queue", "")
        self._admin = defaults.get("admin_queue", "")
        self._note = replay == "extension"
        self._keep = replay == "keep"
        self._source_at = <const uint8_t*>PyBytes_AS_STRING(self._source)
        self._label_at = <const uint8_t*>PyBytes_AS_STRING(self._label)
        self._label_size = <uint32_t>PyBytes_GET_SIZE(self._label)
        self._extension_at = <const uint8_t*>PyBytes_AS_STRING(self._extension)
        self._extension_size = <uint32_t>PyBytes_GET_SIZE(self._extension)

    def build(
        self, size_t rows, dict columns not None, uint32_t now_s, list destinations not None, Column targets,
        Column responses=None, list response_names=None, Column admins=None, list admin_names=None,
    ) -> PacketBlock:
        """Builds one packet for each row. The packets have no transaction number yet, and no identifier unless they keep that of their
        original.

        `columns` maps names to columns with `rows` values each. `targets` is a column of indices in `destinations` (None: all rows use the
        first), `responses` and `admins` are columns of indices in `response_names` and `admin_names`. Raises RowError, and ValueError for
        columns that do not fit together.
        """
        cdef Plan* plans = NULL
        cdef Scratch scratch
        cdef PacketBlock packets = block_of(rows)
        cdef size_t row, failed = 0
        cdef int problem = OK
        cdef uint8_t* made
        self._take(rows, columns, (targets, responses, admins))
        self._now = now_s
        if not rows:
            return packets
        memset(&scratch, 0, sizeof(scratch))
        try:
            plans = <Plan*>calloc(rows, sizeof(Plan))
            if plans == NULL:
                raise MemoryError("no memory for rows")
            self._resolve(plans, rows, destinations, targets)
            self._reply(plans, rows, destinations, targets, responses, response_names or [], admins, admin_names or [])
            with nogil:
                for row in range(rows):
                    problem = self._measure(row, &plans[row], &scratch)
                    if problem:
                        failed = row
                        break
                    packets.starts[row + 1] = packets.starts[row] + plans[row].size
            if problem:
                code, text = _TEXTS[problem]
                raise RowError(failed, code, text)
            scratch.body = <uint8_t*>malloc(scratch.body_room + 1)
            scratch.extension = <uint8_t*>malloc(scratch.extension_room + 1)
            if scratch.body == NULL or scratch.extension == NULL:
                raise MemoryError("no memory for a message")
            made = allocate_packets(packets)
            with nogil:
                for row in range(rows):
                    self._write(row, &plans[row], &scratch, made + packets.starts[row])
        finally:
            free(scratch.body)
            free(scratch.extension)
            free(plans)
            memset(self._views, 0, sizeof(self._views))
        return packets

    cdef int _take(self, size_t rows, dict columns, tuple others) except -1:
        cdef Column column
        memset(self._views, 0, sizeof(self._views))
        for column in [*columns.values(), *others]:
            if column is not None and column.length != rows:
                raise ValueError("the columns have different lengths")
        for name, column in columns.items():
            place, kinds = _PLACES[name]
            if column.kind not in kinds:
                raise ValueError(f"the column {name} is not of the type {kinds[0]}")
            self._views[<int>place] = column.view
        return 0

    # ---- with the GIL: names

    cdef int _resolve(self, Plan* plans, size_t rows, list destinations, Column targets) except -1:
        cdef Destination destination
        cdef size_t row
        cdef Plan* plan
        for destination in destinations:
            if len(destination._known) > HELD:
                destination._known.clear()
        if targets is None and not destinations:
            raise ValueError("build() needs at least one destination")
        for row in range(rows):
            destination = self._destination(destinations, targets, row)
            plan = &plans[row]
            plan.address = <const uint8_t*>PyBytes_AS_STRING(destination._address)
            plan.dest = <const uint8_t*>PyBytes_AS_STRING(destination._field)
            plan.dest_length = <uint32_t>PyBytes_GET_SIZE(destination._field)
            plan.dest_type = destination._type
            plan.transactional = destination.transactional
            if self._keep and not destination.keeps and has(&self._views[IDENTIFIER], row):
                raise RowError(
                    row, "MQ_ERROR_ILLEGAL_PROPERTY_VALUE", "a message for another computer cannot keep the identifier of its original"
                )
        return 0

    cdef Destination _destination(self, list destinations, Column targets, size_t row):
        cdef int64_t place
        if targets is None:
            return <Destination?>destinations[0]
        if not has(&targets.view, row):
            raise RowError(row, "MQ_ERROR_QUEUE_NOT_FOUND", "no queue is given")
        place = number_at(&targets.view, row, 0)
        if not 0 <= place < <int64_t>len(destinations):
            raise ValueError("a dictionary index is out of range")
        if destinations[place] is None:
            raise RowError(row, "MQ_ERROR_QUEUE_NOT_FOUND", "no queue is given")
        return <Destination?>destinations[place]

    cdef int _reply(
        self, Plan* plans, size_t rows, list destinations, Column targets, Column responses, list response_names, Column admins,
        list admin_names,
    ) except -1:
        """Sets response queues, and admin queues if an acknowledgment is requested (MS-MQMQ 2.2.19.2)."""
        cdef Destination destination
        cdef size_t row
        cdef str text
        cdef tuple field
        cdef bint asked = self._acknowledge or self._views[ACKNOWLEDGE].present, answered = responses is not None or self._response
        if not asked and not answered:
            return 0
        for row in range(rows):
            destination = self._destination(destinations, targets, row)
            if number_at(&self._views[ACKNOWLEDGE], row, self._acknowledge):
                text = self._name(admins, admin_names, row, self._admin)
                if not text:
                    raise RowError(
                        row, "MQ_ERROR_INSUFFICIENT_PROPERTIES", "the row requests an acknowledgment, but has no admin_queue"
                    )
                field = self._field(destination, text, row, "admin_queue")
                plans[row].admin_type = field[0]
                plans[row].admin = <const uint8_t*>PyBytes_AS_STRING(<bytes?>field[1])
                plans[row].admin_length = <uint32_t>PyBytes_GET_SIZE(<bytes>field[1])
            text = self._name(responses, response_names, row, self._response)
            if text:
                field = self._field(destination, text, row, "response_queue")
                plans[row].response_type = field[0]
                plans[row].response = <const uint8_t*>PyBytes_AS_STRING(<bytes?>field[1])
                plans[row].response_length = <uint32_t>PyBytes_GET_SIZE(<bytes>field[1])
        return 0

    cdef str _name(self, Column places, list names, size_t row, str default):
        cdef int64_t place
        if places is None or not has(&places.view, row):
            return default
        place = number_at(&places.view, row, 0)
        if not 0 <= place < <int64_t>len(names):
            raise ValueError("a dictionary index is out of range")
        return names[place] or default

    cdef tuple _field(self, Destination destination, str text, size_t row, str column):
        try:
            return destination.name(text)
        except Exception as error:
            code = getattr(error, "code", None)
            if code is None:
                raise
            raise RowError(row, code, f"{column}: {getattr(error, 'detail', '') or error}") from None

    # ---- without it: values

    cdef int _measure(self, size_t row, Plan* plan, Scratch* scratch) noexcept nogil:
        """Checks a row, and notes the size of its packet in `plan`. Returns 0, or the Problem for which the row cannot become a message."""
        cdef MessageFields f
        cdef const uint8_t* text
        cdef const uint8_t* name
        cdef uint32_t size = 0
        cdef uint8_t identifier[20]
        cdef int64_t length
        cdef int problem = self._fields(row, plan, scratch, &f)
        if problem:
            return problem
        if has(&self._views[BODY], row):
            text = bytes_at(&self._views[BODY], row, &size)
            if size > MAX_PACKET:
                return TOO_LARGE
            length = size
            if self._is_wide(&f):
                length = to_utf16(text, size, NULL)
                if length < 0:
                    return BAD_TEXT
                scratch.body_room = max(scratch.body_room, <size_t>length)
            elif self._views[BODY].text and to_utf16(text, size, NULL) < 0:
                return BAD_TEXT
            f.body_length = <uint32_t>length
        text = self._extension_of(row, &f.extension_length)
        if f.extension_length > MAX_PACKET:
            return TOO_LARGE
        if (self._note or self._keep) and has(&self._views[IDENTIFIER], row):
            name = bytes_at(&self._views[IDENTIFIER], row, &size)
            if not read_identifier(name, size, identifier):
                return BAD_IDENTIFIER
            f.extension_length += self._note_size(text, f.extension_length, size)
            scratch.extension_room = max(scratch.extension_room, <size_t>f.extension_length)
        plan.size = packet_size(&f)
        if plan.size == LONG_LABEL:
            return LABEL_LONG
        if plan.size < 0:
            return LABEL_TEXT
        return TOO_LARGE if plan.size > MAX_PACKET else OK

    cdef void _write(self, size_t row, const Plan* plan, Scratch* scratch, uint8_t* packet) noexcept nogil:
        """Writes the packet of a row that was measured."""
        cdef MessageFields f
        cdef uint8_t identifier[20]
        cdef uint32_t size = 0, note
        cdef const uint8_t* text
        self._fields(row, plan, scratch, &f)
        if has(&self._views[BODY], row):
            f.body = bytes_at(&self._views[BODY], row, &f.body_length)
            if self._is_wide(&f):
                f.body_length = <uint32_t>to_utf16(f.body, f.body_length, scratch.body)
                f.body = scratch.body
        f.extension = self._extension_of(row, &f.extension_length)
        if (self._note or self._keep) and has(&self._views[IDENTIFIER], row):
            text = bytes_at(&self._views[IDENTIFIER], row, &size)
            note = self._note_size(f.extension, f.extension_length, size)
            if note:
                if f.extension_length:
                    memcpy(scratch.extension, f.extension, f.extension_length)
                memcpy(scratch.extension + f.extension_length, _tag, note - size)
                memcpy(scratch.extension + f.extension_length + note - size, text, size)
                f.extension = scratch.extension
                f.extension_length += note
            if self._keep and read_identifier(text, size, identifier):
                memcpy(scratch.source, identifier, 16)
                memcpy(&f.message_id, identifier + 16, 4)
                f.source = scratch.source
        write_packet(&f, packet, plan.size)

    cdef int _fields(self, size_t row, const Plan* plan, Scratch* scratch, MessageFields* f) noexcept nogil:
        """Sets all fields except body, extension and identifier."""
        cdef View* views = self._views
        cdef int64_t value
        cdef uint32_t size
        clear_fields(f)
        f.source = self._source_at
        f.destination_manager = plan.address
        f.dest_type, f.admin_type, f.response_type = plan.dest_type, plan.admin_type, plan.response_type
        f.dest, f.dest_length = plan.dest, plan.dest_length
        f.admin, f.admin_length = plan.admin, plan.admin_length
        f.response, f.response_length = plan.response, plan.response_length
        f.sent_time = self._now
        value = number_at(&views[PRIORITY], row, self._priority)
        if not 0 <= value <= 7:
            return BAD_PRIORITY
        f.priority = <uint8_t>value
        value = number_at(&views[DELIVERY], row, self._delivery)
        if not 0 <= value <= 1:
            return BAD_DELIVERY
        f.delivery = <uint8_t>value
        value = number_at(&views[ACKNOWLEDGE], row, self._acknowledge)
        if not 0 <= value <= 15:
            return BAD_ACKNOWLEDGE
        f.ack_flags = <uint8_t>value
        value = number_at(&views[JOURNAL], row, self._journal)
        if not 0 <= value <= 3:
            return BAD_JOURNAL
        f.user_flags = <uint32_t>value << 8
        value = number_at(&views[APP_SPECIFIC], row, self._app_specific)
        if value >> 32:
            return BAD_APP_SPECIFIC
        f.app_specific = <uint32_t>value
        value = number_at(&views[REACH], row, self._reach)
        if value >> 32:
            return BAD_REACH
        f.time_to_reach_queue = <uint32_t>value
        value = number_at(&views[RECEIVE], row, self._receive)
        if value >> 32:
            return BAD_RECEIVE
        f.time_to_be_received = <uint32_t>value
        if has(&views[BODY_TYPE], row) or self._body_type >= 0:
            value = number_at(&views[BODY_TYPE], row, self._body_type)
            if value >> 32 and value >> 31 != -1:   # a column of 32 bits may have a sign
                return BAD_BODY_TYPE
            f.body_type = <uint32_t>value
        else:
            f.body_type = LPWSTR if views[BODY].text and has(&views[BODY], row) else EMPTY
        if has(&views[CORRELATION_ID], row):
            f.correlation_id = bytes_at(&views[CORRELATION_ID], row, &size)
            if size and size != CORRELATION:
                return BAD_CORRELATION
        f.label, f.label_length = self._label_at, self._label_size
        if has(&views[LABEL], row):
            f.label = bytes_at(&views[LABEL], row, &f.label_length)
        if plan.transactional:
            # Transactional messages are recoverable and of priority 0 (MS-MQMQ 2.2.20.5).
            f.transaction = scratch.header
            f.transaction_length = TRANSACTION_HEADER
            f.delivery = 1
            f.priority = 0
        return OK

    cdef inline bint _is_wide(self, const MessageFields* f) noexcept nogil:
        """Whether the body is text that is sent as UTF-16."""
        return self._views[BODY].text and (f.body_type == LPWSTR or f.body_type == BSTR)

    cdef const uint8_t* _extension_of(self, size_t row, uint32_t* size) noexcept nogil:
        if has(&self._views[EXTENSION], row):
            return bytes_at(&self._views[EXTENSION], row, size)
        size[0] = self._extension_size
        return self._extension_at

    cdef uint32_t _note_size(self, const uint8_t* extension, uint32_t length, uint32_t identifier) noexcept nogil:
        """Returns how many bytes the identifier of the original adds to an extension: 0 if the extension already has it."""
        cdef uint32_t at = length - _tag_size - LONGEST_IDENTIFIER if length > _tag_size + LONGEST_IDENTIFIER else 0
        if not self._note:
            return 0
        while at + _tag_size <= length:
            if memcmp(extension + at, _tag, _tag_size) == 0:
                return 0
            at += 1
        return _tag_size + identifier


cdef int64_t to_utf16(const uint8_t* text, size_t length, uint8_t* out) noexcept nogil:
    """Converts UTF-8 to UTF-16LE at `out`; if `out` is NULL, only computes the length. Returns the length in bytes, or -1 if the text is
    not UTF-8.
    """
    cdef size_t i = 0, size = 0
    cdef uint32_t code, more
    while i < length:
        code = text[i]
        i += 1
        if code >= 0x80:
            more = 1 if 0xC2 <= code < 0xE0 else 2 if 0xE0 <= code < 0xF0 else 3 if 0xF0 <= code < 0xF5 else 0
            if not more or length - i < more:
                return -1
            code &= 0x3F >> more
            while more:
                if text[i] & 0xC0 != 0x80:
                    return -1
                code = code << 6 | (text[i] & 0x3F)
                i += 1
                more -= 1
            if code > 0x10FFFF:
                return -1
        if code > 0xFFFF:
            if out != NULL:
                put_u16(out + size, <uint16_t>(0xD800 | (code - 0x10000) >> 10))
            size += 2
            code = 0xDC00 | (code & 0x3FF)
        if out != NULL:
            put_u16(out + size, <uint16_t>code)
        size += 2
    return size


cdef inline int hex_digit(uint8_t c) noexcept nogil:
    if c"0" <= c <= c"9":
        return c - c"0"
    c |= 0x20
    return c - c"a" + 10 if c"a" <= c <= c"f" else -1


cdef bint read_identifier(const uint8_t* text, uint32_t size, uint8_t* out) noexcept nogil:
    """Converts {GUID}\number to 16 bytes as on the wire and a 32-bit number, 20 bytes in all. Returns False if it is invalid."""
    cdef const char* order = b"\x03\x02\x01\x00\x05\x04\x07\x06\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
    cdef uint64_t number = 0
    cdef uint32_t at = 1, i
    cdef int high, low
    if not 40 <= size <= LONGEST_IDENTIFIER or text[0] != c"{" or text[37] != c"}" or text[38] != c"\\":
        return False
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            if text[at] != c"-":
                return False
            at += 1
        high, low = hex_digit(text[at]), hex_digit(text[at + 1])
        if high < 0 or low < 0:
            return False
        out[<int>order[i]] = <uint8_t>(high << 4 | low)
        at += 2
    for at in range(39, size):
        if not c"0" <= text[at] <= c"9":
            return False
        number = number * 10 + text[at] - c"0"
    if number == 0 or number >> 32:
        return False
    for i in range(4):
        out[16 + i] = <uint8_t>(number >> (8 * i))
    return True
