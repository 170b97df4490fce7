"""Resources for operators, the same in every interface: application protocol, admin API, `--json`, client.

Each resource is a frozen dataclass of plain values. `as_map()` returns its form in a frame and in JSON, and
`from_map()` reads that form: it ignores the keys of later versions, and a field that an earlier version does
not send gets its default. Times are seconds since 1970, 0 for never; sizes are bytes unless the name says
otherwise; names of queues are paths or format names.

To add a field: 1. add it here, with a default; 2. fill it in `qm/operator/showing.py`; 3. describe it in
docs/reference/application-protocol.md. All interfaces then have it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypedDict

__all__ = [
    "SESSION_KINDS",
    "AuditEntry",
    "ConnectionAttempt",
    "IncomingTransferInfo",
    "MessageEvent",
    "MessageInfo",
    "OutgoingQueueInfo",
    "QueueInfo",
    "QueuePage",
    "QueueProperties",
    "ReaderInfo",
    "Resource",
    "RouteInfo",
    "SeriesInfo",
    "SessionInfo",
    "SessionPage",
    "SnapshotInfo",
    "TransactionInfo",
    "plain",
]


_PLAIN: Final = frozenset((str, int, bool, float, bytes))
_LAYOUTS: Final[dict[type[Resource], tuple[tuple[str, type[Resource] | None], ...]]] = {}


class Resource:
    """A dataclass of plain values, of other resources (metadata `of`), or of tuples of either."""

    __slots__ = ()

    def as_map(self) -> dict[str, Any]:
        """Return the fields as a map of plain values; fields that are None are left out."""
        found: dict[str, Any] = {}
        for name, _ in _layout(type(self)):
            value = getattr(self, name)
            if value is not None:
                found[name] = value if type(value) in _PLAIN else plain(value)
        return found

    @classmethod
    def from_map(cls, given: Mapping[str, Any]) -> Self:
        """Return the resource that a map made by `as_map` describes."""
        values: dict[str, Any] = {}
        for name, kind in _layout(cls):
            if name not in given:
                continue
            value = given[name]
            if isinstance(value, list):
                value = tuple(value if kind is None else (kind.from_map(one) for one in value))
            elif kind is not None and isinstance(value, Mapping):
                value = kind.from_map(value)
            values[name] = value
        return cls(**values)


def plain(value: Any) -> Any:
    """Return the value of a field as it is in a map: lists in place of tuples, maps in place of resources."""
    if isinstance(value, tuple):
        return [one.as_map() if isinstance(one, Resource) else one for one in value]
    return value.as_map() if isinstance(value, Resource) else value


def _layout(kind: type[Resource]) -> tuple[tuple[str, type[Resource] | None], ...]:
    """Return the names of the fields, and the class of the resources in each."""
    found = _LAYOUTS.get(kind)
    if found is None:
        found = tuple((item.name, item.metadata.get("of")) for item in dataclasses.fields(kind))  # type: ignore[arg-type]
        _LAYOUTS[kind] = found
    return found


@dataclass(frozen=True, slots=True)
class IncomingTransferInfo(Resource):
    """The stream of transactional messages that one sender addresses to a queue by one of its names
    (IncomingTransactionalTransferInfo, MS-MQDMPR 3.1.1.11).
    """

    format_name: str = ""
    sender: str = ""
    """GUID of the sending queue manager."""
    sequence_id: int = 0
    """The sequence id: timestamp << 32 | ordinal."""
    sequence_number: int = 0
    """The number, in its sequence, of the last message that is stored."""
    last_access: int = 0
    reject_count: int = 0


@dataclass(frozen=True, slots=True)
class ConnectionAttempt(Resource):
    """An entry of the ConnectionHistory (MS-MQDMPR 3.1.1.3); `error` is an HRESULT, 0 for success."""

    time: int = 0
    status: str = ""
    error: int = 0
    addresses: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class QueueInfo(Resource):
    """A queue of this computer: a user or system queue, a subqueue or a journal."""

    name: str = ""
    format_name: str = ""
    kind: str = "queue"
    """`queue`, `subqueue`, `journal`, `deadletter`, `xact_deadletter`, `connector`, `admin` or `system`."""
    label: str = ""
    messages: int = 0
    bytes: int = 0
    journal_messages: int = 0
    journal_bytes: int = 0
    transactional: bool = False
    journal: bool = False
    quota_kb: int = 0
    journal_quota_kb: int = 0
    authenticated: bool = False
    base_priority: int = 0
    privacy_level: int = 1
    multicast_address: str = ""
    poison_after: int = 0
    subqueues: tuple[str, ...] = ()
    type: str = ""
    guid: str = ""
    created: int = 0
    modified: int = 0
    arrived: int = 0
    """Number of messages that have arrived since the server started; `removed` and `expired` are also counted
    from the start.
    """
    removed: int = 0
    expired: int = 0
    security: str | None = None
    """The security descriptor in SDDL; None for callers without the right to read it."""
    incoming: tuple[IncomingTransferInfo, ...] | None = field(
        default=None, metadata={"of": IncomingTransferInfo}
    )
    """The incoming streams of a transactional queue."""
    oldest: int = 0
    """When the oldest message in the queue arrived; 0 if the queue is empty."""
    in_per_second: float = 0.0
    """Messages that arrived per second during the last sampled interval, 5 s."""
    out_per_second: float = 0.0
    """Messages that left for any reason (received, sent, expired, purged, moved) per second during it."""


@dataclass(frozen=True, slots=True)
class QueuePage(Resource):
    """One page of a list of queues; `total`, `messages` and `bytes` count the queues of all pages."""

    queues: tuple[QueueInfo, ...] = field(default=(), metadata={"of": QueueInfo})
    total: int = 0
    messages: int = 0
    bytes: int = 0


class QueueProperties(TypedDict, total=False):
    """The properties that are given when a queue is created or changed; they mean the same as the fields of
    QueueInfo.
    """

    label: str
    transactional: bool
    """Can be given only when the queue is created."""
    journal: bool
    quota_kb: int
    journal_quota_kb: int
    authenticated: bool
    base_priority: int
    privacy_level: int
    security: str | bytes
    """A security descriptor in SDDL, or its bytes."""
    multicast_address: str
    poison_after: int
    type: str | bytes
    """The type of the queue, a GUID that applications define."""


@dataclass(frozen=True, slots=True)
class OutgoingQueueInfo(Resource):
    """A queue of messages for another computer.

    A position in a sequence is the text `SEQUENCE_ID:NUMBER after PREVIOUS_NUMBER`; empty if there is none.
    """

    name: str = ""
    format_name: str = ""
    kind: str = "outgoing"
    state: str = ""
    """The state of MS-MQDMPR 3.1.1.3 in lower case, such as `connected`."""
    messages: int = 0
    bytes: int = 0
    next_hops: tuple[str, ...] = ()
    manager: str = ""
    """GUID of the queue manager that owns the destination queue; empty for a direct name."""
    history: tuple[ConnectionAttempt, ...] = field(default=(), metadata={"of": ConnectionAttempt})
    stalled: str = ""
    """The cause why nothing is sent, a few words of a fixed vocabulary; usually empty."""
    reason: str = ""
    """The cause in a sentence, with addresses, numbers and what to do; usually empty."""
    last_error: str = ""
    """The latest failure of a connection since the start of the server, even after a success."""
    last_error_time: int = 0
    attempts: int = 0
    """Number of failed attempts to connect since the latest session."""
    next_attempt: int = 0
    """When the queue next tries to connect, or sends unacknowledged messages again; 0: not waiting."""
    oldest: int = 0
    """When the oldest message of the queue arrived here; 0 if the queue is empty."""
    paused_by: str = ""
    """The caller that paused the queue; empty if the queue is not paused, or the caller is not known."""
    first_non_ack: str = ""
    last_non_ack: str = ""
    next_sequence: str = ""
    last_ack: str = ""
    last_ack_time: int = 0
    last_ack_count: int = 0
    no_ack_count: int = 0
    no_read_count: int = 0
    resend_count: int = 0
    resend_interval: int = 0
    """The resend interval in seconds."""
    resend_time: int = 0
    in_per_second: float = 0.0
    """As the fields of QueueInfo with these names."""
    out_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class SeriesInfo(Resource):
    """The recent history of one queue, or of the sum of all user queues and their subqueues (`name` is
    empty), in columns of one length, oldest sample first.
    """

    name: str = ""
    resolution: int = 5
    """Seconds between two samples: 5 or 60."""
    tracked: bool = False
    """False if the queue has no history: only the most active queues have one."""
    time: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    in_per_second: tuple[float, ...] = ()
    out_per_second: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionInfo(Resource):
    """An open or prepared transaction; `sent`, `received` and `moved` are numbers of messages."""

    identifier: str = ""
    state: str = ""
    user: str = ""
    began: int = 0
    sent: int = 0
    received: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class ReaderInfo(Resource):
    """A queue that a program on another computer has open over RPC; `caller` is empty if the caller is
    anonymous.
    """

    queue: str = ""
    access: str = ""
    caller: str = ""
    address: str = ""
    authentication: str = ""
    level: str = ""
    waiting: int = 0
    """Number of reads that wait for a message."""
    unacknowledged: int = 0
    """Number of messages that the reader has received and not yet acknowledged."""
    cursors: int = 0


SESSION_KINDS: Final = ("mqqb", "program", "rpc", "http", "admin")
"""The values of `SessionInfo.kind`."""


@dataclass(frozen=True, slots=True)
class SessionInfo(Resource):
    """An open connection of the server, of any protocol."""

    number: int = 0
    """The number under which the session can be closed; later sessions have higher numbers."""
    kind: str = ""
    """One of SESSION_KINDS."""
    direction: str = ""
    """`incoming`, or `outgoing` if this server opened the connection."""
    address: str = ""
    """The network address of the peer, or its name while only that is known; `local` for a Unix socket."""
    manager: str = ""
    """GUID of the queue manager at the other end; empty if it is not known, and for other kinds than mqqb."""
    user: str = ""
    """The account of the program or of the RPC client; empty if it is not known."""
    state: str = ""
    """`connecting`, `handshake`, `open`, `lingering`, `silent`, `idle` or `busy`."""
    queues: int = 0
    """Number of queues that the program has open."""
    transactions: int = 0
    """Number of open transactions of the program."""
    since: int = 0


@dataclass(frozen=True, slots=True)
class SessionPage(Resource):
    """One page of a list of sessions, in the order of their numbers."""

    sessions: tuple[SessionInfo, ...] = field(default=(), metadata={"of": SessionInfo})
    total: int = 0
    """Number of sessions on all pages."""
    next: int = 0
    """The `after` of the next page; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class RouteInfo(Resource):
    """What would happen to a message for a name."""

    name: str = ""
    """The name as it was asked for."""
    format_name: str = ""
    """The format name that it stands for."""
    protocol: str = ""
    """`local`, `mqqb`, `http`, `https` or `pgm`."""
    queue: str = ""
    """The queue of this computer, local or outgoing, that the message would enter; empty if there is none."""
    exists: bool = False
    """Whether this queue exists; an outgoing queue is created with its first message."""
    hops: tuple[str, ...] = ()
    """The next hosts in the order in which they are tried; {GUID} if only that is known."""
    addresses: tuple[str, ...] = ()
    """The addresses of the latest connection."""
    state: str = ""
    """The state of the outgoing queue, as in `OutgoingQueueInfo`."""
    messages: int = 0
    """Messages that are in the queue, before a new one."""
    bytes: int = 0
    quota_kb: int | None = None
    """The quota of a local queue."""
    transactional: bool | None = None
    """Whether a local queue accepts transactional messages only, or others only."""
    next_attempt: int = 0
    """When the next connection is tried, in Unix seconds; 0: not known."""
    cause: str = ""
    """Why the message would be refused or would wait; empty if nothing is known to stop it."""
    reason: str = ""
    """A sentence that explains the cause and what to do."""


@dataclass(frozen=True, slots=True)
class MessageEvent(Resource):
    """An event in the life of a message, from the event feed. The fields have the names of the event columns
    of the bulk API, which does not have the last three.
    """

    feed_seq: int = 0
    """The number of the event; later events have higher numbers."""
    event: str = ""
    """The kind of event in lower case: `arrived`, `received`, …"""
    event_time: int = 0
    queue: str = ""
    """The queue that holds, got or lost the message; empty if the queue manager no longer knows the queue."""
    queue_kind: str = ""
    origin_queue: str = ""
    """The queue from which a moved message came."""
    lookup_id: int = 0
    arrival_seq: int = 0
    message_class: int = 0
    """The message class; for `acked` and `nacked`, the class of the acknowledgment."""
    reason: int = 0
    """The message class that gives the reason why the message failed, else 0."""
    transport: str = ""
    """The protocol by which the message came or, in an outgoing queue, leaves: `local`, `mqqb`, `mqqp` or
    `srmp`.
    """
    user: str = ""
    """The account whose program received, removed or moved the message; empty if that is not recorded."""
    address: str = ""
    """The network address of this program, `local` for a Unix socket."""
    program: str = ""
    """The name that this program gave itself: text of the client, which the server does not check."""


@dataclass(frozen=True, slots=True)
class SnapshotInfo(Resource):
    """The manifest of a copy of the store: what the copy contains."""

    schema_version: int = 0
    qm_guid: str = ""
    """GUID of the queue manager whose store was copied, in hexadecimal."""
    incarnation: int = 0
    feed_next: int = 0
    """The number of the first event that the copy does not contain."""
    created_s: int = 0
    size: int = 0
    sha256: str = ""
    url: str = ""
    """Where the copy is in object storage; empty for a copy in a directory."""


@dataclass(frozen=True, slots=True)
class AuditEntry(Resource):
    """An entry of the audit: an administrative act, a denial, or an attempt to log on."""

    number: int = 0
    """Later entries have higher numbers; numbers may be missing."""
    time: int = 0
    kind: str = ""
    """`act`, `denial` or `login`."""
    caller: str = ""
    """The caller's name and SID, for people."""
    sid: str = ""
    """The caller's SID; empty for the queue manager itself, and for a caller that is not known."""
    address: str = ""
    """The network address of the caller, `local` for a Unix socket; empty if the caller has none."""
    operation: str = ""
    object: str = ""
    result: str = ""
    """`done` or `failed` for an act, `denied` for a denial, `accepted` or `refused` for a log-on."""
    detail: str = ""
    more: int = 0
    """Number of further entries that were left out, because the caller caused too many: the entry stands for
    them.
    """


# By call, as the key `class` cannot be the name of a field.
MessageInfo = TypedDict(
    "MessageInfo",
    {
        "lookup_id": int,
        "arrival_seq": int,
        "message_id": str,
        "label": str,
        "body_b64": str,
        "body_size": int,
        "body_type": int,
        "priority": int,
        "class": int,
        "correlation_id": str,
        "app_specific": int,
        "extension_b64": str,
        "delivery": str,
        "transactional": bool,
        "sent_time": int,
        "arrived_time": int,
        "time_to_reach_queue": int,
        "time_to_be_received": int,
        "response_queue": str | None,
        "admin_queue": str | None,
        "destination_queue": str | None,
        "source_machine": str | None,
        "sender_id_b64": str | None,
        "authenticated": bool,
        "signature_state": str,
        "acknowledge": int,
        "journal": int,
        "abort_count": int,
        "move_count": int,
        "reason": int,
    },
)
"""A message in JSON: `correlation_id` in hexadecimal, `delivery` as `express` or `recoverable`."""
