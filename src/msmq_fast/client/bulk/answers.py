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
    "Published",
    "QueueBounds",
    "Range",
    "Stage",
    "bounds_from",
    "member",
    "number",
    "plan_from",
    "subscription_from",
    "text",
]


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The arrival numbers of one queue.

    `first` is the lowest arrival number in the queue, or `Bounds.next` if the queue is empty. `late` is how
    many messages, since the server started, became readable too late: the server had already reported a
    `Bounds.next` above their arrival number.
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
    """The current positions of a queue manager.

    `next`: each message with a lower arrival number is readable now, or never will be. `start` is a number
    that is new at each start of the server. `feed_first` and `feed_next` are the numbers of the first event
    in the feed and of the next event.
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
    """Arrival numbers from `start` up to but not including `stop`. `rows` is the number of messages in the
    range that are readable now, `bytes` the size of their packets.
    """

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Consecutive `ranges` that end at `stop`. `rows` and `bytes` are the totals of the ranges."""

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int


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
    value = answer.get(name) if isinstance(answer, dict) else None
    if type(value) is not kind:
        raise BulkError(f"the answer of the server has no valid {name!r}: its version may differ")
    return value


def number(answer: Any, name: str) -> int:
    return int(member(answer, name, int))


def text(answer: Any, name: str) -> str:
    return str(member(answer, name, str))


def bounds_from(answer: Any) -> Bounds:
    feed = member(answer, "feed", dict)
    queues = tuple(
        QueueBounds(
            name=text(entry, "name"),
            guid=text(entry, "guid"),
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
    )


def plan_from(answer: Any) -> Plan:
    ranges = tuple(
        Range(number(entry, "from"), number(entry, "to"), number(entry, "rows"), number(entry, "bytes"))
        for entry in member(answer, "ranges", list)
    )
    return Plan(ranges, number(answer, "to"), number(answer, "rows"), number(answer, "bytes"))


def subscription_from(answer: Any) -> FeedSubscription:
    return FeedSubscription(text(answer, "name"), number(answer, "position"), dict(answer))
