"""What the calls of the bulk API answer, as dataclasses, and how they are read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msmq_fast.client.bulk.errors import BulkError

__all__ = [
    "Acked",
    "Bounds",
    "FeedSubscription",
    "Lease",
    "Plan",
    "PlanRequest",
    "Published",
    "QueueBounds",
    "Range",
    "RemovedQueue",
    "Stage",
    "acked_from",
    "bounds_from",
    "lease_from",
    "member",
    "number",
    "plan_from",
    "subscription_from",
    "text",
]


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The arrival numbers of one queue.

    `ordinal`: queues that are created later have greater ones. `first` is the lowest arrival number in the
    queue, or `Bounds.next` if the queue is empty. `late` is how many messages, since the server started,
    became readable too late: the server had already reported a `Bounds.next` above their arrival number.
    """

    name: str
    guid: str
    ordinal: int
    kind: str
    transactional: bool
    first: int
    messages: int
    bytes: int
    late: int


@dataclass(frozen=True, slots=True)
class RemovedQueue:
    """A queue that was deleted. `again`: whether there is another queue of its name."""

    name: str
    guid: str
    ordinal: int
    again: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    """The current positions of a queue manager.

    `next`: each message with a lower arrival number is readable now, or never will be. `start` is a number
    that is new at each start of the server. `feed_first` and `feed_next` are the numbers of the first event
    in the feed and of the next event.

    `ordinal` is the highest ordinal of its queues. `selected` is the number of queues that were asked for and
    exist, whether or not they are in `queues`; `known` counts those with ordinals up to `seen`. `removals`
    counts the queues that were deleted since the server started, and `removed` are the latest ones of them.
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
    ordinal: int
    selected: int
    known: int
    removals: int
    removed: tuple[RemovedQueue, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Arrival numbers from `start` up to but not including `stop`. `rows` is the number of messages in the
    range that are readable now, `bytes` the size of their packets.
    """

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Consecutive `ranges` that end at `stop`. `rows` and `bytes` are the totals of the ranges. `waiting` is
    about how many messages were there before a limit ended the plan; never less than `rows`.
    """

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What `BulkClient.plan` takes, for one of many queues."""

    queue: str
    start: int
    stop: int
    max_rows: int | None = None
    max_bytes: int | None = None
    parts: int = 1

    def asked(self) -> dict[str, Any]:
        """Return the parameters of the request, without those that are not set."""
        found = {
            "queue": self.queue,
            "from": self.start,
            "to": self.stop,
            "max_rows": self.max_rows,
            "max_bytes": self.max_bytes,
            "parts": self.parts,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class FeedSubscription:
    """A named position in the event feed. `details` is the whole description that the server returned."""

    name: str
    position: int
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lease:
    """The delivery numbers of leased messages, from `start` up to but not including `stop`; equal if the
    queue had no message to lease.
    """

    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True)
class Acked:
    """The counts of one acknowledgment: `removed` messages were removed by this call; `gone` messages had
    left the queue earlier (purged, expired, or the queue was deleted).
    """

    removed: int
    gone: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Rows that the server has stored durably and that stay invisible until they are published."""

    stage: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Published:
    """The result of `publish`. `dup`: whether the batch was published earlier, so that this call changed
    nothing. `last`: the number of the last batch that the writer has published in this epoch.
    """

    dup: bool
    rows: int
    last: int


# ---- answers: what is missing or of a wrong type means another version, or no queue manager at all


def member(answer: Any, name: str, kind: type) -> Any:
    """Return a member of a JSON object. Raises BulkError unless it has the type `kind`."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if type(value) is not kind:
        raise BulkError(f"the answer of the server has no valid {name!r}: its version may differ")
    return value


def number(answer: Any, name: str) -> int:
    """Return a member that must be a whole number, as `member`."""
    return int(member(answer, name, int))


def text(answer: Any, name: str) -> str:
    """Return a member that must be a text, as `member`."""
    return str(member(answer, name, str))


def bounds_from(answer: Any) -> Bounds:
    """Return the answer of /bounds."""
    feed = member(answer, "feed", dict)
    queues = tuple(
        QueueBounds(
            name=text(entry, "name"),
            guid=text(entry, "guid"),
            ordinal=number(entry, "ordinal"),
            kind=text(entry, "kind"),
            transactional=bool(member(entry, "transactional", bool)),
            first=number(entry, "first"),
            messages=number(entry, "messages"),
            bytes=number(entry, "bytes"),
            late=number(entry, "late"),
        )
        for entry in member(answer, "queues", list)
    )
    return Bounds(
        qm=text(answer, "qm"),
        name=text(answer, "name"),
        incarnation=number(answer, "incarnation"),
        start=number(answer, "start"),
        release=text(answer, "release"),
        next=number(answer, "next"),
        feed_first=number(feed, "first"),
        feed_next=number(feed, "next"),
        queues=queues,
        ordinal=number(answer, "ordinal"),
        selected=number(answer, "selected"),
        known=number(answer, "known"),
        removals=number(answer, "removals"),
        removed=tuple(
            RemovedQueue(
                text(entry, "name"),
                text(entry, "guid"),
                number(entry, "ordinal"),
                bool(member(entry, "again", bool)),
            )
            for entry in member(answer, "removed", list)
        ),
    )


def plan_from(answer: Any) -> Plan:
    """Return the answer of /plan for one queue, or for events."""
    ranges = tuple(
        Range(number(entry, "from"), number(entry, "to"), number(entry, "rows"), number(entry, "bytes"))
        for entry in member(answer, "ranges", list)
    )
    rows = number(answer, "rows")
    waiting = number(answer, "waiting") if "waiting" in answer else rows
    return Plan(ranges, number(answer, "to"), rows, number(answer, "bytes"), waiting)


def lease_from(answer: Any) -> Lease:
    """Return the answer of /lease for one queue."""
    return Lease(number(answer, "from"), number(answer, "to"), number(answer, "rows"))


def acked_from(answer: Any) -> Acked:
    """Return the answer of /ack or /release for one queue."""
    return Acked(number(answer, "removed"), number(answer, "gone"))


def subscription_from(answer: Any) -> FeedSubscription:
    """Return the answer of a call under /subscriptions."""
    return FeedSubscription(text(answer, "name"), number(answer, "position"), dict(answer))
