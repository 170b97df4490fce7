# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Messages and events as Arrow columns, for reading in bulk.

On the event loop `scan`, `pick` and `Tally` note which messages are meant; a thread makes columns of them (`MessageEncoder`,
`EventEncoder`) with short read transactions and nearly all of the time without the GIL.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.errno cimport ENOMEM
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cimport cython

import os

import lmdb.cpython

from msmq_fast._native.lmdbstore import status_text
from msmq_fast._native.tables import StoreError

from msmq_fast._native.gather cimport WHOLE_BYTES, monotonic_ns
from msmq_fast._native.lmdbapi cimport (
    MDB_CORRUPTED,
    MDB_FIRST,
    MDB_LAST,
    MDB_NEXT,
    MDB_NOTFOUND,
    MDB_PREV,
    MDB_RDONLY,
    MDB_SET,
    MDB_SET_RANGE,
    LmdbStore,
    MDB_cursor,
    MDB_txn,
    MDB_val,
    lmdb_api,
    lmdb_load,
    read_content,
)
from msmq_fast._native.lmdbstore cimport LmdbTables
from msmq_fast._native.tables cimport TABLE_CONTENT, TABLE_FEED, TABLE_POSITION
from msmq_fast._native.framing cimport (
    BASE_TRACE,
    FAULT_LENGTH_MISMATCH,
    INFINITE,
    UserMessage,
    get_u16,
    get_u32,
    parse_user_message,
)
from msmq_fast._native.outsequence cimport OutEntry
from msmq_fast._native.positions cimport (
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
from msmq_fast._native.record cimport (
    CONTENT_KEY_SIZE,
    CONTENT_VERSION,
    PACK_VERSION,
    POSITION_KEY_SIZE,
    POSITION_NUMBERED,
    POSITION_ORDERED,
    POSITION_PREPARED,
    POSITION_PURGE_PENDING,
    POSITION_RECOVERABLE,
    POSITION_VERSION,
    FeedEntry,
    NumberedPosition,
    PackHead,
    PositionRecord,
    content_key,
    load_be64,
    position_key,
    store_be64,
)

cdef extern from "columns_priority.h" nogil:
    int enter_background(int background, int* thread)
    void leave_background(int away, int* thread)
    bint boost(int* thread)

cdef enum:
    MOVE_UNKNOWN = 0xFFFFFFFF
    SOURCE_AT = 16              # UserHeader.SourceQueueManager in a packet
    MANAGER_AT = 32             # UserHeader.QueueManagerAddress
    LARGEST_COLUMN = 0x7FFFFFFF # an offset has 31 bits
    LARGEST_PACKET = 1 << 26    # no stored packet is greater; a record that says so is damaged
    EXAMINED = 16384            # slots that a call may pass over
    MOST_MARKS = 4096
    READ_BYTES = 16 << 20       # of one read transaction
    READ_NS = 250000000
    FIRST_ENTRY_SIZE = 56       # of events, before they had a place in a sequence
    ASK_QUEUE = -2
    KIND_MOVED = 6              # EventKind
    KIND_NACKED = 11
    KIND_QUEUE_CREATED = 12
    KIND_QUEUE_DELETED = 13
    KIND_DUPLICATE = 17
    NAME_SAME_AS_ADMIN = 1      # types of queue names in a UserHeader
    NAME_ON_SOURCE = 2
    NAME_ON_DESTINATION = 3
    NAME_ON_ADMIN_HOST = 4
    NAME_PUBLIC = 5
    NAME_ON_OTHER = 6
    NAME_DIRECT = 7
    ELEMENT_PUBLIC = 1          # and of elements of a MultiQueueFormatHeader
    ELEMENT_PRIVATE = 2
    ELEMENT_DIRECT = 3
    WIDTH_VARIABLE = 0
    WIDTH_BIT = -1

cdef enum Field:
    FIELD_OF_PACKET = -1
    FIELD_CONSTANT = 0
    FIELD_ARRIVAL_SEQ
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
    EVENT_FEED_SEQ
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

# Bytes of a value by the kind of its column.
_WIDTHS = {"string": WIDTH_VARIABLE, "binary": WIDTH_VARIABLE, "int8": 1, "int32": 4, "int64": 8, "timestamp": 8, "bool": WIDTH_BIT}

_MESSAGE_FIELDS = {
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
    "ttrq_seconds": FIELD_TTRQ,
    "ttbr_seconds": FIELD_TTBR,
    "delivery": FIELD_DELIVERY,
    "acknowledge": FIELD_ACKNOWLEDGE,
    "journal": FIELD_JOURNAL,
    "auth_level": FIELD_AUTH_LEVEL,
    "encrypted": FIELD_ENCRYPTED,
    "trace": FIELD_TRACE,
    "dest_format_name": FIELD_DEST_NAME,
    "resp_format_name": FIELD_RESP_NAME,
    "admin_format_name": FIELD_ADMIN_NAME,
    "multi_dest_format_name": FIELD_MULTI_DEST,
    "multi_resp_format_name": FIELD_MULTI_RESP,
    "source_machine_guid": FIELD_SOURCE_GUID,
    "sender_id": FIELD_SENDER_ID,
    "sender_id_type": FIELD_SENDER_ID_TYPE,
    "sender_cert": FIELD_SENDER_CERT,
    "signature": FIELD_SIGNATURE,
    "hash_algorithm": FIELD_HASH_ALGORITHM,
    "encrypt_algorithm": FIELD_ENCRYPT_ALGORITHM,
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
_EVENT_FIELDS = {
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
    "source_machine_guid": EVENT_SOURCE_GUID,
    "transport": EVENT_TRANSPORT,
    "seq_id": EVENT_SEQ_ID,
    "seq_no": EVENT_SEQ_NO,
    "prev_seq_no": EVENT_PREV_SEQ_NO,
    "abort_count": EVENT_ABORT_COUNT,
    "reason": EVENT_REASON,
}


cdef struct Word:
    # What a number is called.
    uint32_t value
    size_t size
    const char* text


def _load_liblmdb():
    cdef char problem[512]
    cdef bytes path = os.fsencode(lmdb.cpython.__file__)
    if lmdb_load(path, problem, sizeof(problem)) != NULL:
        raise ImportError(f"liblmdb cannot be used: {problem.decode(errors='replace')}")


_load_liblmdb()


include "columns_cells.pxi"
include "columns_text.pxi"
include "columns_soap.pxi"
include "columns_rows.pxi"
include "columns_packets.pxi"
include "columns_stored.pxi"


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


include "columns_message.pxi"
include "columns_encoder.pxi"
include "columns_event.pxi"
