"""Client of the bulk API of one queue manager (docs/reference/bulk-api.md), for Spark drivers and executors.

The client blocks. It needs pyarrow for rows, and otherwise only the standard library. A client may be pickled
and sent to executors: the copy opens its own connections there. Threads must not use the same client at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from msmq_fast.client.bulk.answers import (
    Acked,
    Bounds,
    FeedSubscription,
    Lease,
    Plan,
    PlanRequest,
    Published,
    QueueBounds,
    Range,
    RemovedQueue,
    Stage,
    acked_from,
    bounds_from,
    lease_from,
    member,
    number,
    plan_from,
    subscription_from,
    text,
)
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
    error_of,
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
    "PlanRequest",
    "Published",
    "QueueBounds",
    "QueueNotFound",
    "Range",
    "RemovedQueue",
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
MOST_AT_ONCE: Final = 500
"""The most queues of one request; the server accepts no more."""
MOST_PARTS: Final = 10_000
"""The most ranges of one answer to a plan, likewise."""

T = TypeVar("T")


class BulkClient:
    """Client of the bulk API of one queue manager.

    All calls raise BulkError or one of its subclasses; they raise Unavailable once all retries
    (`Endpoint.retries`) have failed.

    Idempotent calls are retried. `lease`, `stage` of an iterator, and `publish` without `remember` are
    retried only if the server cannot have received the request.
    """

    def __init__(self, endpoint: Endpoint | str, *, incarnation: int | None = None) -> None:
        """Prepare a client; it connects at the first call.

        `incarnation` is the incarnation that the store must have; if it has another one, calls raise
        WrongIncarnation.
        """
        self._link = Link(Endpoint(endpoint) if isinstance(endpoint, str) else endpoint)
        self._link.incarnation = incarnation

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the queue manager."""
        return self._link.endpoint

    def with_incarnation(self, incarnation: int | None) -> BulkClient:
        """Return a client of the same queue manager that requires this incarnation of the store (None:
        any).
        """
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
        self,
        queues: Iterable[str] = (),
        *,
        pattern: str | None = None,
        content: str = "messages",
        since: int | None = None,
        seen: int | None = None,
        removals: int | None = None,
        skip_missing: bool = False,
    ) -> Bounds:
        """Return the current positions of the queue manager and of some of its queues.

        `queues` are path names; `pattern` is a regular expression that must match the whole path name of a
        queue. If neither is given, the result lists no queues. `content` is `messages`, `journal`,
        `deadletter` or `events`. `skip_missing`: leave out queues that do not exist, instead of raising
        QueueNotFound.

        With `since`, the result lists only queues that may hold messages with arrival numbers from `since`
        on, and queues with `late` messages. With `seen`, `Bounds.known` counts the queues with ordinals up to
        `seen`. With `removals`, `Bounds.removed` holds the queues that were deleted since `Bounds.removals`
        had this value.
        """
        asked: dict[str, Any] = {"queue": list(queues), "content": content}
        more = (("pattern", pattern), ("since", since), ("seen", seen), ("removals", removals))
        asked |= {name: value for name, value in more if value is not None}
        if skip_missing:
            asked["missing"] = "skip"
        query = f"/bounds?{urlencode(asked, doseq=True)}"
        if len(query) > _LONGEST_QUERY:
            return bounds_from(self._link.call("POST", "/bounds", asked, repeat=True))
        return bounds_from(self._link.call("GET", query, repeat=True))

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
        """Plan the reading of the messages with arrival numbers from `start` up to but not including `stop`.
        For the content `events`, the numbers are event numbers, and `queue` is ignored.

        The plan ends early at `max_rows` or `max_bytes`, but holds at least the first row. It is split into
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
        return plan_from(self._link.call("POST", "/plan", asked, repeat=True))

    def plans(
        self, requests: Sequence[PlanRequest], *, content: str = "messages"
    ) -> Iterator[Plan | BulkError]:
        """Yield the plan of each request, in their order; an error for a queue that was deleted or must not
        be read.
        """
        groups = _grouped(requests, lambda request: request.parts)
        asked = ([request.asked() for request in group] for group in groups)
        return self._each("/plan", {"content": content}, asked, plan_from, repeat=True)

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
        """Return the messages of a queue with `start` <= arrival_seq < `stop`, in the order of arrival_seq,
        as record batches.

        `columns` is `core`, `all` or column names separated by commas. This call sends the request; iteration
        only reads the answer. Raises Truncated (also during iteration) if the stream breaks off: discard the
        rows that were read. Closing the iterator closes the connection.
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
        """Return the messages that `subscription` leased with `start` <= delivery_seq < `stop`.

        The batches are those of `rows`, with `delivery_seq` as the first column. Raises LeaseLost if the
        lease has ended.
        """
        query = {"subscription": subscription, "queue": queue, "from": start, "to": stop}
        return self._rows({**query, **_choice(columns, body, raw, security)})

    def rows_of(
        self,
        ranges: Sequence[tuple[str, int, int]],
        *,
        content: str = "messages",
        subscription: str | None = None,
        columns: str = "all",
    ) -> Batches:
        """Return the rows of many ranges, at most MOST_AT_ONCE, given as (queue, start, stop), in their
        order: the batches of `rows`, or with `subscription` those of `leased`. An empty batch follows the
        batches of each range.

        Raises the error of the first range that cannot be read; Truncated if that shows during iteration.
        """
        asked: dict[str, Any] = {"content": content, "columns": columns}
        if subscription is not None:
            asked["subscription"] = subscription
        asked["queues"] = [{"queue": queue, "from": start, "to": stop} for queue, start, stop in ranges]
        return batches(self._link.open("/rows", asked), self.endpoint.url)

    def events(self, start: int, stop: int, *, columns: str = "all") -> Batches:
        """Return the events of the feed with `start` <= feed_seq < `stop`. Raises GoneEvents if the feed no
        longer holds event `start`.
        """
        return self._rows({"content": "events", "from": start, "to": stop, "columns": columns})

    def schema(
        self, *, content: str = "messages", queue: str | None = None, columns: str = "all", body: bool = True
    ) -> pa.Schema:
        """Return the schema of the batches that `rows` returns for these arguments, by a request for an empty
        range.
        """
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
            raise BulkError("the server returned rows for an empty range")
        return rows.schema

    # ---- subscriptions of the feed

    def subscriptions(self) -> list[FeedSubscription]:
        """Return all subscriptions of the feed."""
        answer = self._link.call("GET", "/subscriptions", repeat=True)
        return [subscription_from(entry) for entry in member(answer, "subscriptions", list)]

    def subscription(self, name: str) -> FeedSubscription:
        """Return one subscription of the feed. Raises SubscriptionNotFound, SlotDropped."""
        return subscription_from(self._link.call("GET", _slot(name), repeat=True))

    def subscribe(self, name: str, **settings: Any) -> FeedSubscription:
        """Create a subscription of the feed, or change its settings: `position`, the number of the first
        event to read, and `max_lag_bytes`.
        """
        return subscription_from(self._link.call("PUT", _slot(name), settings, repeat=True))

    def unsubscribe(self, name: str) -> None:
        """Delete a subscription of the feed; a missing one is not an error."""
        self._link.call("DELETE", _slot(name), repeat=True)

    def commit(self, name: str, position: int) -> FeedSubscription:
        """Record that the subscription has processed all events before number `position`.

        A position lower than the stored one changes nothing and is not an error. The position is durable when
        this call returns.
        """
        return subscription_from(
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
        """Lease up to `max_rows` messages to `subscription`, and renew the leases that it holds already."""
        asked: dict[str, Any] = {"subscription": subscription, "queue": queue}
        limits = (("max_rows", max_rows), ("max_bytes", max_bytes), ("lease_ms", lease_ms))
        asked |= {key: value for key, value in limits if value is not None}
        return lease_from(self._link.call("POST", "/lease", asked, repeat=False))

    def leases(
        self, subscription: str, limits: Sequence[tuple[str, int, int | None]], *, lease_ms: int
    ) -> Iterator[Lease | BulkError]:
        """Lease messages of many queues, given as (queue, most rows, most bytes or None). Yields a lease for
        each queue, in their order, or the error of that queue.
        """
        items = [
            {"queue": queue, "max_rows": rows} | ({} if size is None else {"max_bytes": size})
            for queue, rows, size in limits
        ]
        common = {"subscription": subscription, "lease_ms": lease_ms}
        return self._each("/lease", common, _grouped(items), lease_from, repeat=False)

    def ack(self, subscription: str, queue: str, upto: int) -> Acked:
        """Remove all leased messages with delivery numbers below `upto` from the queue. The call is
        idempotent.
        """
        return self._settle("/ack", subscription, queue, upto)

    def acks(self, subscription: str, upto: Sequence[tuple[str, int]]) -> Iterator[Acked | BulkError]:
        """Make the call `ack` for many queues, given as (queue, upto). Yields the result of each queue, in
        their order, or its error.
        """
        return self._settles("/ack", subscription, upto)

    def releases(self, subscription: str, upto: Sequence[tuple[str, int]]) -> Iterator[Acked | BulkError]:
        """Make the call `release` for many queues, as `acks`."""
        return self._settles("/release", subscription, upto)

    def release(self, subscription: str, queue: str, upto: int) -> Acked:
        """Return all leased messages with delivery numbers below `upto` to the queue. The call is
        idempotent.
        """
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
        """Upload rows. They are durable when this returns, and become messages when `publish` is called.

        If the connection breaks off, `content` is sent again if it is a sequence; an iterator cannot be sent
        again.

        `queue` is the destination of rows that name no queue. `defaults` maps the names of columns to the
        values that replace missing or null ones; it also holds the other parameters of the call:
        `transactional`, `transaction`, `message_id`, `unknown`.
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
        return Stage(text(answer, "stage"), number(answer, "rows"), number(answer, "bytes"))

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
        """Turn `stages` into messages, in this order. A batch of `writer` is published only once.

        Raises Fenced if the writer has used a later epoch, or has published in this epoch from another
        `origin`. The call is idempotent unless `remember` is false: the server then keeps no state of the
        writer.
        """
        asked = {"writer": writer, "epoch": epoch, "batch": batch, "stages": list(stages)}
        asked |= {"origin": origin, "remember": remember}
        answer = self._link.call("POST", "/publish", asked, repeat=remember)
        return Published(bool(member(answer, "dup", bool)), number(answer, "rows"), number(answer, "last"))

    def discard(self, stages: Sequence[str]) -> None:
        """Delete stages; missing ones are not an error."""
        self._link.call("POST", "/discard", {"stages": list(stages)}, repeat=True)

    # ---- administration

    def snapshot(
        self, directory: str, *, bytes_per_second: int | None = None, timeout_ms: int | None = None
    ) -> dict[str, Any]:
        """Copy the running store into a new directory on the computer of the server; returns the manifest of
        the copy.

        The call waits until the copy is complete, at most `timeout_ms` (None: without limit). The server
        cancels the copy when the client stops waiting.
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
        return acked_from(self._link.call("POST", path, asked, repeat=True))

    def _settles(
        self, path: str, subscription: str, upto: Sequence[tuple[str, int]]
    ) -> Iterator[Acked | BulkError]:
        items = [{"queue": queue, "upto": last} for queue, last in upto]
        return self._each(path, {"subscription": subscription}, _grouped(items), acked_from, repeat=True)

    def _each(
        self,
        path: str,
        common: Mapping[str, Any],
        groups: Iterable[Sequence[Mapping[str, Any]]],
        read: Callable[[Any], T],
        *,
        repeat: bool,
    ) -> Iterator[T | BulkError]:
        """Make a call for many queues, with a request for each group. Yields what `read` makes of the answer
        for each queue, or its error.
        """
        for group in groups:
            answer = self._link.call("POST", path, {**common, "queues": group}, repeat=repeat)
            found = member(answer, "answers", list)
            if len(found) != len(group):
                raise BulkError(f"the server answered for {len(found)} of {len(group)} queues")
            for one in found:
                failed = isinstance(one, dict) and "error" in one
                yield error_of(400, one, f"POST {path}") if failed else read(one)


def _grouped(items: Sequence[T], parts: Callable[[T], int] = lambda _: 1) -> Iterator[list[T]]:
    """Yield the items in groups that the server accepts in one call. `parts` returns the number of ranges in
    the answer for an item.
    """
    group: list[T] = []
    total = 0
    for item in items:
        if group and (len(group) == MOST_AT_ONCE or total + parts(item) > MOST_PARTS):
            yield group
            group, total = [], 0
        group.append(item)
        total += parts(item)
    if group:
        yield group


def _choice(columns: str, body: bool, raw: bool, security: bool) -> dict[str, Any]:
    return {"columns": columns, "body": int(body), "raw": int(raw), "security": int(security)}


def _slot(name: str) -> str:
    return f"/subscriptions/{quote(name, safe='')}"
