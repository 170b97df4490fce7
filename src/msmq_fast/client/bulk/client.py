"""Client of the bulk API of one queue manager (docs/reference/bulk-api.md): what drivers and executors call.

Blocking; needs pyarrow for rows, nothing else outside the standard library. A client may be pickled and sent
to executors: it opens its connections where it is used. It is not for several threads at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from msmq_fast.client.bulk.errors import (
    AccessDenied,
    BadRequest,
    BulkError,
    Fenced,
    GoneEvents,
    LeaseLost,
    NoArrow,
    NotFound,
    QueueNotFound,
    SlotDropped,
    StageNotFound,
    SubscriptionNotFound,
    TooLarge,
    Truncated,
    Unauthorized,
    Unavailable,
    WrongIncarnation,
)
from msmq_fast.client.bulk.http import Endpoint, Link
from msmq_fast.client.bulk.stream import Batches, arrow_parts, batches

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AccessDenied",
    "Acked",
    "BadRequest",
    "Batches",
    "Bounds",
    "BulkClient",
    "BulkError",
    "Endpoint",
    "FeedSubscription",
    "Fenced",
    "GoneEvents",
    "Lease",
    "LeaseLost",
    "NoArrow",
    "NotFound",
    "Plan",
    "Published",
    "QueueBounds",
    "QueueNotFound",
    "Range",
    "SlotDropped",
    "Stage",
    "StageNotFound",
    "SubscriptionNotFound",
    "TooLarge",
    "Truncated",
    "Unauthorized",
    "Unavailable",
    "WrongIncarnation",
]


_LONGEST_QUERY: Final = 6000  # characters; more names go in a body


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """One queue: `first` is the lowest arrival number in it (the `next` of all if it is empty); `late` counts
    what came in behind the watermark since the server started.
    """

    name: str
    guid: str
    kind: str
    transactional: bool
    first: int
    messages: int
    bytes: int
    late: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a queue manager stands. `next`: every arrival below it is there to be read, or gone for good.

    `start` is another number after each start of the server. Feed numbers are those of events.
    """

    qm: str
    name: str
    incarnation: int
    start: int
    release: str
    next: int
    feed_first: int
    feed_next: int
    queues: tuple[QueueBounds, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Arrival numbers from `start` up to but not including `stop`, and what is there to be read now."""

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`ranges` follow one another; together they hold `rows` rows below `stop`."""

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FeedSubscription:
    """A named position in the event feed. `details` is all that the server says of it."""

    name: str
    position: int
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lease:
    """Delivery numbers from `start` up to but not including `stop`; equal when there was nothing."""

    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True)
class Acked:
    """`removed` by this call; `gone` were no longer there (purged, expired, the queue deleted)."""

    removed: int
    gone: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows that are durable at the server, and invisible until they are published."""

    stage: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Published:
    """`dup`: the batch had been published before, and nothing happened now. `last`: the last batch of the
    writer in this epoch.
    """

    dup: bool
    rows: int
    last: int


class BulkClient:
    """All calls raise BulkError or one of its classes; Unavailable after the retries that the endpoint
    allows.

    Calls that may be made twice are retried; `lease`, `stage` of an iterator, and `publish` of what is not
    remembered, only when the server cannot have heard them.
    """

    def __init__(self, endpoint: Endpoint | str, *, incarnation: int | None = None) -> None:
        """`incarnation`: what the store must have, else WrongIncarnation."""
        self._link = Link(Endpoint(endpoint) if isinstance(endpoint, str) else endpoint)
        self._link.incarnation = incarnation

    @property
    def endpoint(self) -> Endpoint:
        """Where the queue manager is."""
        return self._link.endpoint

    def with_incarnation(self, incarnation: int | None) -> BulkClient:
        """Another client of the same queue manager that insists on an incarnation."""
        return BulkClient(self.endpoint, incarnation=incarnation)

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        self._link.close()

    def __enter__(self) -> BulkClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- planning

    def bounds(
        self, queues: Iterable[str] = (), *, pattern: str | None = None, content: str = "messages"
    ) -> Bounds:
        """Bounds of the queues with these path names, or of those whose path name matches `pattern` as a
        whole (a regular expression); of none without both. `content`: messages, journal, deadletter, events.
        """
        asked: dict[str, Any] = {"queue": list(queues), "content": content}
        if pattern is not None:
            asked["pattern"] = pattern
        query = f"/bounds?{urlencode(asked, doseq=True)}"
        if len(query) > _LONGEST_QUERY:
            return _bounds(self._link.call("POST", "/bounds", asked, repeat=True))
        return _bounds(self._link.call("GET", query, repeat=True))

    def plan(
        self,
        queue: str,
        start: int,
        stop: int,
        *,
        content: str = "messages",
        max_rows: int | None = None,
        max_bytes: int | None = None,
        parts: int = 1,
    ) -> Plan:
        """What lies in from `start` to `stop` (arrival numbers; event numbers for `events`, which are of no
        queue): cut off where `max_rows` or `max_bytes` is reached, never before the first row, and split in
        about `parts` ranges.
        """
        asked: dict[str, Any] = {"content": content, "from": start, "to": stop, "parts": parts}
        if content != "events":
            asked["queue"] = queue
        asked |= {
            key: value
            for key, value in (("max_rows", max_rows), ("max_bytes", max_bytes))
            if value is not None
        }
        return _plan(self._link.call("POST", "/plan", asked, repeat=True))

    # ---- reading

    def rows(
        self,
        queue: str,
        start: int,
        stop: int,
        *,
        content: str = "messages",
        columns: str = "all",
        body: bool = True,
        raw: bool = False,
        security: bool = False,
    ) -> Batches:
        """The messages of a queue with `start` <= arrival_seq < `stop`, in that order, as record batches.

        `columns` is `core`, `all` or names separated by commas. The request is made by this call, not by the
        first batch. Raises Truncated (in the iteration too) when the stream ended before its end: what came
        is to be thrown away. Closing the iterator closes the connection.
        """
        query = {"queue": queue, "content": content, "from": start, "to": stop}
        return self._rows({**query, **_choice(columns, body, raw, security)})

    def leased(
        self,
        subscription: str,
        queue: str,
        start: int,
        stop: int,
        *,
        columns: str = "all",
        body: bool = True,
        raw: bool = False,
        security: bool = False,
    ) -> Batches:
        """The messages that `subscription` has been given as deliveries `start` <= delivery_seq < `stop`.

        As `rows`, with `delivery_seq` as the first column. LeaseLost when the lease has ended.
        """
        query = {"subscription": subscription, "queue": queue, "from": start, "to": stop}
        return self._rows({**query, **_choice(columns, body, raw, security)})

    def events(self, start: int, stop: int, *, columns: str = "all") -> Batches:
        """The events of the feed with `start` <= feed_seq < `stop`. GoneEvents when `start` is no longer
        kept.
        """
        return self._rows({"content": "events", "from": start, "to": stop, "columns": columns})

    def schema(
        self, *, content: str = "messages", queue: str | None = None, columns: str = "all", body: bool = True
    ) -> pa.Schema:
        """The schema that `rows` would have: that of an empty range."""
        query: dict[str, Any] = {
            "content": content,
            "from": 0,
            "to": 0,
            **_choice(columns, body, False, False),
        }
        if queue is not None:
            query["queue"] = queue
        rows = self._rows(query)
        for _ in rows:
            raise BulkError("an empty range of rows is not empty")
        return rows.schema

    # ---- subscriptions of the feed

    def subscriptions(self) -> list[FeedSubscription]:
        """All of them."""
        answer = self._link.call("GET", "/subscriptions", repeat=True)
        return [_subscription(entry) for entry in _member(answer, "subscriptions", list)]

    def subscription(self, name: str) -> FeedSubscription:
        """One; SubscriptionNotFound, or SlotDropped."""
        return _subscription(self._link.call("GET", _slot(name), repeat=True))

    def subscribe(self, name: str, **settings: Any) -> FeedSubscription:
        """Create one, or change its settings: `position` (a new one begins there), `max_lag_bytes`."""
        return _subscription(self._link.call("PUT", _slot(name), settings, repeat=True))

    def unsubscribe(self, name: str) -> None:
        """Drop one; no error if there is none."""
        self._link.call("DELETE", _slot(name), repeat=True)

    def commit(self, name: str, position: int) -> FeedSubscription:
        """Everything before event number `position` is done with. A lower position than before is no error
        and changes nothing. Durable when this returns.
        """
        return _subscription(
            self._link.call("POST", f"{_slot(name)}/commit", {"position": position}, repeat=True)
        )

    # ---- consuming

    def lease(
        self,
        subscription: str,
        queue: str,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        lease_ms: int | None = None,
    ) -> Lease:
        """Take up to `max_rows` messages for `subscription`, and renew what it holds already."""
        asked: dict[str, Any] = {"subscription": subscription, "queue": queue}
        limits = (("max_rows", max_rows), ("max_bytes", max_bytes), ("lease_ms", lease_ms))
        asked |= {key: value for key, value in limits if value is not None}
        answer = self._link.call("POST", "/lease", asked, repeat=False)
        return Lease(_number(answer, "from"), _number(answer, "to"), _number(answer, "rows"))

    def ack(self, subscription: str, queue: str, upto: int) -> Acked:
        """Remove all deliveries below `upto` for good. May be repeated."""
        return self._settle("/ack", subscription, queue, upto)

    def release(self, subscription: str, queue: str, upto: int) -> Acked:
        """Put all deliveries below `upto` back into the queue. May be repeated."""
        return self._settle("/release", subscription, queue, upto)

    # ---- writing

    def stage(
        self,
        writer: str,
        batch: int,
        part: int,
        attempt: int,
        schema: pa.Schema,
        content: Iterable[pa.RecordBatch],
        *,
        queue: str | None = None,
        defaults: Mapping[str, str | int | bool] | None = None,
    ) -> Stage:
        """Send rows ahead; they are durable when this returns and become messages with `publish`. A list is
        sent again when the connection breaks off, an iterator cannot be.

        `queue` and `defaults` (names of columns) stand for columns that are missing or null; `defaults` also
        has the other parameters of the call: `transactional`, `transaction`, `message_id`, `unknown`.
        """
        query: dict[str, Any] = {"writer": writer, "batch": batch, "part": part, "attempt": attempt}
        if queue is not None:
            query["queue"] = queue
        for name, value in (defaults or {}).items():
            query[name] = str(value).lower() if isinstance(value, bool) else value
        answer = self._link.upload(
            f"/stage?{urlencode(query)}",
            lambda: arrow_parts(schema, content),
            repeat=isinstance(content, Sequence),
        )
        return Stage(_text(answer, "stage"), _number(answer, "rows"), _number(answer, "bytes"))

    def publish(
        self,
        writer: str,
        epoch: int,
        batch: int,
        stages: Sequence[str],
        *,
        origin: str = "",
        remember: bool = True,
    ) -> Published:
        """Make messages of `stages`, in this order, once for each batch of `writer`. Fenced when a later
        epoch has been here, or in this one batches of another `origin`. May be repeated; not so without
        `remember`: then the server keeps nothing of the writer.
        """
        asked = {"writer": writer, "epoch": epoch, "batch": batch, "stages": list(stages)}
        asked |= {"origin": origin, "remember": remember}
        answer = self._link.call("POST", "/publish", asked, repeat=remember)
        return Published(bool(_member(answer, "dup", bool)), _number(answer, "rows"), _number(answer, "last"))

    def discard(self, stages: Sequence[str]) -> None:
        """Throw stages away; those that do not exist are no error."""
        self._link.call("POST", "/discard", {"stages": list(stages)}, repeat=True)

    # ---- administration

    def snapshot(
        self, directory: str, *, bytes_per_second: int | None = None, timeout_ms: int | None = None
    ) -> dict[str, Any]:
        """Copy the running store into a new directory of the server's machine; the answer is the manifest. It
        waits as long as that takes, or for `timeout_ms`; the server gives up when nobody waits any more.
        """
        asked: dict[str, Any] = {"directory": directory}
        if bytes_per_second is not None:
            asked["bytes_per_second"] = bytes_per_second
        endpoint = replace(self.endpoint, timeout_ms=timeout_ms)
        link = Link(endpoint)
        try:
            return dict(link.call("POST", "/snapshot", asked, repeat=False))
        finally:
            link.close()

    # ---- inside

    def _rows(self, query: Mapping[str, Any]) -> Batches:
        response = self._link.open(f"/rows?{urlencode(query)}")
        return batches(response, self.endpoint.url)

    def _settle(self, path: str, subscription: str, queue: str, upto: int) -> Acked:
        asked = {"subscription": subscription, "queue": queue, "upto": upto}
        answer = self._link.call("POST", path, asked, repeat=True)
        return Acked(_number(answer, "removed"), _number(answer, "gone"))


def _choice(columns: str, body: bool, raw: bool, security: bool) -> dict[str, Any]:
    return {"columns": columns, "body": int(body), "raw": int(raw), "security": int(security)}


def _slot(name: str) -> str:
    return f"/subscriptions/{quote(name, safe='')}"


# ---- answers: what is missing or of a wrong type means another version, or no queue manager at all


def _member(answer: Any, name: str, kind: type) -> Any:
    value = answer.get(name) if isinstance(answer, dict) else None
    if type(value) is not kind:
        raise BulkError(f"the answer holds no {name!r} as this version expects it")
    return value


def _number(answer: Any, name: str) -> int:
    return int(_member(answer, name, int))


def _text(answer: Any, name: str) -> str:
    return str(_member(answer, name, str))


def _bounds(answer: Any) -> Bounds:
    feed = _member(answer, "feed", dict)
    queues = tuple(
        QueueBounds(
            name=_text(entry, "name"),
            guid=_text(entry, "guid"),
            kind=_text(entry, "kind"),
            transactional=bool(_member(entry, "transactional", bool)),
            first=_number(entry, "first"),
            messages=_number(entry, "messages"),
            bytes=_number(entry, "bytes"),
            late=_number(entry, "late"),
        )
        for entry in _member(answer, "queues", list)
    )
    return Bounds(
        qm=_text(answer, "qm"),
        name=_text(answer, "name"),
        incarnation=_number(answer, "incarnation"),
        start=_number(answer, "start"),
        release=_text(answer, "release"),
        next=_number(answer, "next"),
        feed_first=_number(feed, "first"),
        feed_next=_number(feed, "next"),
        queues=queues,
    )


def _plan(answer: Any) -> Plan:
    ranges = tuple(
        Range(_number(entry, "from"), _number(entry, "to"), _number(entry, "rows"), _number(entry, "bytes"))
        for entry in _member(answer, "ranges", list)
    )
    return Plan(ranges, _number(answer, "to"), _number(answer, "rows"), _number(answer, "bytes"))


def _subscription(answer: Any) -> FeedSubscription:
    return FeedSubscription(_text(answer, "name"), _number(answer, "position"), dict(answer))
