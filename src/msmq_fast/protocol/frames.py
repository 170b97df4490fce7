"""The frame layout of the application protocol: constants, field order, frame cutting.

The server and the client share this module. It imports nothing else of the package, so that the client can
import it without the server. docs/reference/application-protocol.md describes the same layout in words and
bytes.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

import msgpack

PROTOCOL_VERSION: Final = 1

HEADER: Final = struct.Struct(">IBI")  # bytes after the length field, frame type, request id
HEADER_SIZE: Final = HEADER.size
LENGTH_SIZE: Final = 4
MIN_LENGTH: Final = HEADER_SIZE - LENGTH_SIZE

MAX_MESSAGE: Final = 0x0040_0000  # bytes of one message packet, headers included (MS-MQMQ 2.2.19.1)
MAX_FRAME: Final = MAX_MESSAGE + 0x1_0000  # bytes after the length field
MAX_HELLO: Final = 4096  # bytes after the length field until the hello is accepted
MAX_BATCH: Final = 4096  # messages in one SEND frame
MAX_CREDIT: Final = 65_536  # messages on their way or unacknowledged in one subscription
MAX_PENDING: Final = 1024  # requests of one connection without a reply
MAX_HANDLES: Final = 1024  # open queues of one connection
MAX_TRANSACTIONS: Final = 256  # open transactions of one connection
MAX_CONFIG: Final = 262_144  # characters of a configuration that is checked
DELIVERY_TARGET: Final = 262_144  # a DELIVERY frame of several messages stays below this many bytes

INFINITE: Final = 0xFFFF_FFFF  # of a time-out in seconds or milliseconds
LONG_LIVED: Final = 0xFFFF_FFFE  # time to reach the queue: what the queue manager gives where none is given
MAX_LABEL: Final = 249  # UTF-16 code units
MAX_PRIORITY: Final = 7
CORRELATION_ID_SIZE: Final = 20
MESSAGE_ID_SIZE: Final = 20  # GUID of the source queue manager (16, little-endian fields), ordinal u32 LE


class Frame(IntEnum):
    """Frame types. Types below 0x80 are sent by the client, the others by the server."""

    HELLO = 0x01
    PING = 0x02
    STATS = 0x03
    SNAPSHOT = 0x04
    SHOW_SNAPSHOT = 0x05
    RELOAD = 0x06
    TRACE = 0x07
    LIST_SESSIONS = 0x08
    END_SESSION = 0x09
    LIST_AUDIT = 0x0A
    SERIES = 0x0B
    LIST_READERS = 0x0C
    CREATE_QUEUE = 0x10
    DELETE_QUEUE = 0x11
    GET_QUEUE = 0x12
    SET_QUEUE = 0x13
    LIST_QUEUES = 0x14
    SHOW_ACL = 0x15
    EDIT_ACL = 0x16
    EXPLAIN = 0x17
    PAGE_QUEUES = 0x18
    OPEN = 0x20
    CLOSE = 0x21
    SEND = 0x22
    RECEIVE = 0x23
    LOOKUP = 0x24
    CANCEL = 0x25
    SUBSCRIBE = 0x26
    CREDIT = 0x27
    ACKNOWLEDGE = 0x28
    RELEASE = 0x29
    UNSUBSCRIBE = 0x2A
    PURGE = 0x2B
    CURSOR_OPEN = 0x2C
    CURSOR_CLOSE = 0x2D
    CURSOR_READ = 0x2E
    MOVE = 0x2F
    LIST_OUTGOING = 0x30
    SHOW_OUTGOING = 0x31
    PAUSE_OUTGOING = 0x32
    RESUME_OUTGOING = 0x33
    PURGE_OUTGOING = 0x34
    KICK_OUTGOING = 0x35
    LIST_DIRECTORY = 0x40
    SHOW_DIRECTORY = 0x41
    PUT_DIRECTORY = 0x42
    DELETE_DIRECTORY = 0x43
    EXPLAIN_ROUTE = 0x44
    EXPORT_DEFINITIONS = 0x45
    PUT_DEFINITION = 0x46
    BROWSE = 0x50
    RELOCATE = 0x51
    RESUBMIT = 0x52
    OPEN_IMPORT = 0x53
    IMPORT = 0x54
    END_JOB = 0x55
    REMOVE = 0x56
    BEGIN = 0x60
    COMMIT = 0x61
    ABORT = 0x62
    LIST_TRANSACTIONS = 0x63
    END_TRANSACTION = 0x64
    REJECT = 0x65
    PREPARE = 0x66
    LIST_CERTIFICATES = 0x70
    CREATE_CERTIFICATE = 0x71
    ADD_CERTIFICATE = 0x72
    REMOVE_CERTIFICATE = 0x73
    SHOW_KEYS = 0x74
    TELL_KEYS = 0x75
    LIST_USERS = 0x76
    CHECK_CONFIG = 0x79
    SHOW_CONFIG = 0x7A

    REPLY = 0x80
    ERROR = 0x81
    SENT = 0x82
    SENT_ONE = 0x83
    MESSAGE = 0x84
    DELIVERY = 0x85
    ENDED = 0x86


class Access(IntFlag):
    """The access with which a queue is opened; the values of MQ_*_ACCESS."""

    RECEIVE = 0x01
    SEND = 0x02
    MOVE = 0x04
    PEEK = 0x20


class Share(IntEnum):
    """The share mode with which a queue is opened: MQ_DENY_NONE, MQ_DENY_RECEIVE_SHARE."""

    DENY_NONE = 0
    DENY_RECEIVE = 1


class Lookup(IntEnum):
    """The message that a LOOKUP selects, relative to the lookup identifier; FIRST and LAST ignore the
    identifier.
    """

    CURRENT = 0
    NEXT = 1
    PREV = 2
    FIRST = 4
    LAST = 8


class CursorRead(IntEnum):
    """The operation of a CURSOR_READ: peek the message at the cursor, peek the next one, or receive the
    message.
    """

    PEEK = 0
    PEEK_NEXT = 1
    RECEIVE = 2


class SendFlag(IntFlag):
    """Flags of a SEND frame."""

    IDS = 1  # the SENT frame lists the ordinal of each message
    EACH = 2  # one SENT_ONE frame for each message before the SENT frame
    SINGLE = 4  # each message is a transaction of its own


class Out(IntEnum):
    """Positions of the values in the array of one message in a SEND frame; trailing positions may be left
    out.
    """

    BODY = 0
    LABEL = 1
    DELIVERY = 2
    PRIORITY = 3
    BODY_TYPE = 4
    APP_SPECIFIC = 5
    CORRELATION_ID = 6
    EXTENSION = 7
    RESPONSE_QUEUE = 8
    ADMIN_QUEUE = 9
    ACKNOWLEDGE = 10
    JOURNAL = 11
    TIME_TO_REACH_QUEUE = 12
    TIME_TO_BE_RECEIVED = 13
    CLASS = 14
    DEAD_LETTER_QUEUE = 15
    AUTHENTICATION = 16  # 0 none, 1 a signature of MSMQ 1.0, 2 of MSMQ 2.0
    PRIVACY_LEVEL = 17
    HASH_ALGORITHM = 18
    ENCRYPTION_ALGORITHM = 19
    CERTIFICATE = 20  # MD5 of the certificate to sign with
    ATTACH_SENDER = 21  # the SID of the sender goes with the message


OUT_FIELDS: Final = len(Out)
# The value that a position takes when it is left out or nil.
OUT_DEFAULTS: Final[tuple[Any, ...]] = (
    b"", "", 0, 3, 0, 0, bytes(CORRELATION_ID_SIZE), b"", None, None, 0, 0, LONG_LIVED, INFINITE, 0, None,
    0, 0, 0, 0, b"", False,
)  # fmt: skip


class In(IntEnum):
    """Positions of the values in the array of one message in a MESSAGE or DELIVERY frame; later versions
    append positions.
    """

    LOOKUP_ID = 0
    BODY = 1
    LABEL = 2
    DELIVERY = 3
    PRIORITY = 4
    BODY_TYPE = 5
    APP_SPECIFIC = 6
    CORRELATION_ID = 7
    EXTENSION = 8
    RESPONSE_QUEUE = 9
    ADMIN_QUEUE = 10
    ACKNOWLEDGE = 11
    JOURNAL = 12
    CLASS = 13
    MESSAGE_ID = 14
    SENT_TIME = 15
    ARRIVED_TIME = 16
    ARRIVAL_SEQ = 17
    DESTINATION_QUEUE = 18
    FLAGS = 19
    SENDER_ID = 20
    ABORT_COUNT = 21
    MOVE_COUNT = 22
    TIME_TO_REACH_QUEUE = 23
    TIME_TO_BE_RECEIVED = 24
    REASON = 25
    TRANSACTION = 26


IN_FIELDS: Final = len(In)
# The value of a position that an earlier version of the server does not send.
IN_DEFAULTS: Final[tuple[Any, ...]] = (
    0, b"", "", 0, 3, 0, 0, bytes(CORRELATION_ID_SIZE), b"", None, None, 0, 0, 0, b"", 0, 0, 0, None, 0, None,
    0, 0, LONG_LIVED, INFINITE, 0, 0,
)  # fmt: skip


class MessageSizes(NamedTuple):
    """Sizes of the variable parts of a message: bytes, or for texts UTF-16 code units without a NUL.

    If the values are the limits of a read, INFINITE accepts any size. If they are the sizes of a message, 0
    means that the message does not have this part.
    """

    body: int = INFINITE
    label: int = INFINITE
    extension: int = INFINITE
    response_queue: int = INFINITE
    admin_queue: int = INFINITE
    destination_queue: int = INFINITE
    sender_id: int = INFINITE


class InFlag(IntFlag):
    """Flags of a delivered message."""

    TRANSACTIONAL = 1
    AUTHENTICATED = 2
    UNKNOWN_SIGNER = 4


class WireError(Exception):
    """The peer violated the frame format; the connection cannot continue."""


def pack_frame(kind: int, request_id: int, payload: Any) -> bytes:
    """Return one frame with `payload` encoded as msgpack."""
    body: bytes = msgpack.packb(payload)
    return HEADER.pack(MIN_LENGTH + len(body), kind, request_id) + body


def unpack_payload(data: bytes | memoryview) -> Any:
    """Return the msgpack value of a frame. Raises WireError unless the payload is exactly one value."""
    try:
        return msgpack.unpackb(data)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"the payload is not one msgpack value: {error}") from None


class FrameCutter:
    """Splits a byte stream into (type, request id, payload bytes); buffers at most one incomplete frame."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.max_frame = max_frame
        self._pending = bytearray()
        self._wanted = HEADER_SIZE  # total bytes of the frame at the head, once its header is known

    def feed(self, data: bytes | bytearray | memoryview) -> list[tuple[int, int, bytes]]:
        """Return the frames that `data` completes. Raises WireError if the length of a frame exceeds the
        limits.
        """
        pending = self._pending
        pending += data
        frames: list[tuple[int, int, bytes]] = []
        if len(pending) < self._wanted:
            return frames
        start = 0
        end = len(pending)
        self._wanted = HEADER_SIZE
        with memoryview(pending) as view:
            while end - start >= HEADER_SIZE:
                length, kind, request_id = HEADER.unpack_from(view, start)
                if not MIN_LENGTH <= length <= self.max_frame:
                    raise WireError(
                        f"a frame has a length of {length} bytes: "
                        f"it must be from {MIN_LENGTH} to {self.max_frame}"
                    )
                stop = start + LENGTH_SIZE + length
                if stop > end:
                    self._wanted = LENGTH_SIZE + length
                    break
                frames.append((kind, request_id, bytes(view[start + HEADER_SIZE : stop])))
                start = stop
        del pending[:start]
        return frames
