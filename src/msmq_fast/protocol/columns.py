"""The columns of messages and events in bulk: the single definition for the server and for the programs that
read from it.

Plain Python, so that an analytics worker can import it. Every column may be null.
docs/reference/bulk-columns.md describes the columns, including those that no queue manager can fill.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

KINDS: Final = ("string", "binary", "int8", "int16", "int32", "int64", "bool", "timestamp")
"""Types of columns; a timestamp has a resolution of one microsecond and is in UTC."""

GROUPS: Final = ("core", "body", "extra", "security", "raw")


class Column(NamedTuple):
    """One column: its name, its type (one of `KINDS`), and its group (one of `GROUPS`). Requests select
    columns by group or by name.
    """

    name: str
    kind: str
    group: str = "core"


def _columns(group: str, text: str) -> tuple[Column, ...]:
    pairs = (item.split() for item in text.strip().splitlines())
    return tuple(Column(name, kind, group) for name, kind in pairs)


MESSAGE_COLUMNS: Final = (
    *_columns(
        "core",
        """
        qm_guid string
        queue string
        queue_guid string
        queue_kind string
        arrival_seq int64
        lookup_id int64
        priority int8
        message_id string
        correlation_id binary
        class int32
        class_name string
        label string
        app_specific int64
        body_type int32
        body_size int64
        """,
    ),
    *_columns("body", "body binary"),
    *_columns(
        "core",
        """
        extension binary
        sent_time timestamp
        arrived_time timestamp
        time_to_reach_queue int64
        time_to_be_received int64
        delivery int8
        acknowledge int8
        journal int8
        destination_queue string
        response_queue string
        admin_queue string
        source_machine string
        abort_count int32
        move_count int32
        """,
    ),
    *_columns(
        "extra",
        """
        message_version int32
        auth_level int32
        encrypted bool
        trace bool
        destination_queues string
        response_queues string
        sender_id binary
        sender_id_type int32
        hash_algorithm int32
        encryption_algorithm int32
        xact_id string
        xact_seq_id int64
        xact_seq_no int64
        xact_prev_no int64
        first_in_xact bool
        last_in_xact bool
        connector_type string
        last_move_time timestamp
        lease_holder string
        soap_envelope string
        compound_body binary
        soap_header string
        soap_body string
        """,
    ),
    *_columns("security", "sender_cert binary\nsignature binary"),
    *_columns("raw", "raw_packet binary"),
)
"""The columns of a message. `class` is the message class; for a message in a dead-letter queue, the class
that gives the reason. `priority` is the one by which the queue orders the message. `lookup_id` is unsigned on
the wire, but always fits a signed column.
"""

_COPIES: Final = (
    ("body",),
    ("raw_packet",),
    ("compound_body",),
    ("soap_envelope", "soap_header", "soap_body"),  # in UTF-16 there, and the latter within the former
)

BODY_COLUMNS: Final = tuple(name for names in _COPIES for name in names)
"""Message columns whose values can be as long as the packet."""

DELIVERY_SEQUENCE: Final = Column("delivery_seq", "int64")
"""The additional first column of rows that are read from a lease."""

EVENT_COLUMNS: Final = _columns(
    "core",
    """
    qm_guid string
    incarnation int32
    feed_seq int64
    event string
    event_time timestamp
    queue string
    queue_guid string
    queue_kind string
    origin_queue string
    message_id string
    lookup_id int64
    arrival_seq int64
    class int32
    priority int8
    packet_size int64
    source_machine string
    transport string
    seq_id int64
    seq_no int64
    prev_seq_no int64
    abort_count int32
    reason string
    """,
)
"""The columns of an event. In an event about a queue or the queue manager, the columns of the message are
null. The name of a deleted queue is kept as long as there are events of the queue. `packet_size` is the size
of the stored packet, which is larger than the body. `origin_queue` is the queue from which a message was
moved; `reason` names the message class that gives the reason why a message failed.
"""


OLD_NAMES: Final = {
    "ttrq_seconds": "time_to_reach_queue",
    "ttbr_seconds": "time_to_be_received",
    "dest_format_name": "destination_queue",
    "resp_format_name": "response_queue",
    "admin_format_name": "admin_queue",
    "source_machine_guid": "source_machine",
    "encrypt_algorithm": "encryption_algorithm",
    "multi_dest_format_name": "destination_queues",
    "multi_resp_format_name": "response_queues",
}
"""The old names of columns, and the new ones, which are those of the client. Requests, staged rows and lakes
with the old names are still accepted.
"""


class ColumnError(ValueError):
    """A requested column does not exist or is requested twice; the text is one line for the client."""


def _named(text: str, known: tuple[Column, ...]) -> tuple[Column, ...]:
    columns = {column.name: column for column in known}
    names = [OLD_NAMES.get(name.strip(), name.strip()) for name in text.split(",")]
    for name in names:
        if name not in columns:
            raise ColumnError(f"there is no column {name!r}; known are {', '.join(columns)}, or core, or all")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"the column {twice[0]!r} is named twice")
    return tuple(columns[name] for name in names)


def chosen(
    columns: str, *, body: bool = True, raw: bool = False, security: bool = False
) -> tuple[Column, ...]:
    """Return the message columns that `columns` selects: `core`, `all`, or names separated by commas.

    `body`, `raw` and `security` add these groups to `core` and `all`. A list of names selects these columns
    in this order. A group and names, such as `core,xact_id`, selects the group, followed by the names that it
    does not contain. Raises ValueError if a name is not a column or occurs twice.
    """
    names = [name.strip() for name in columns.split(",")]
    wanted = [name for name in ("all", "core") if name in names]
    if not wanted:
        return _named(columns, MESSAGE_COLUMNS)
    groups = {"core", "extra"} if "all" in wanted else {"core"}
    groups |= {name for name, asked in (("body", body), ("raw", raw), ("security", security)) if asked}
    found = tuple(column for column in MESSAGE_COLUMNS if column.group in groups)
    more = [name for name in names if name not in wanted]
    added = _named(",".join(more), MESSAGE_COLUMNS) if more else ()
    return (*found, *(column for column in added if column not in found))


def copies(columns: Iterable[Column]) -> int:
    """Return how many copies of the bytes of a packet these columns hold at most; columns with short values
    do not count.
    """
    chosen_names = {column.name for column in columns}
    return sum(not chosen_names.isdisjoint(names) for names in _COPIES)


def chosen_events(columns: str) -> tuple[Column, ...]:
    """Return the event columns that `columns` selects, like `chosen`; `core` and `all` select all of them."""
    return EVENT_COLUMNS if columns in ("core", "all") else _named(columns, EVENT_COLUMNS)
