"""The data that the admin port shows. The server supplies it as plain values, so that this package does not
import the server's other front ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo

__all__ = ["Fullest", "Histogram", "Labelled", "Resources", "View"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution of measured values. `counts[i]` is the number of values up to `bounds[i]` and above the
    bound before it; the last count is of the values above all bounds. `total` is the sum of all values.
    """

    name: str
    about: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Labelled:
    """A metric with several values, distinguished by labels. `grows`: True for a counter, whose values never
    fall; False for a gauge.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]
    grows: bool = True


@dataclass(frozen=True, slots=True)
class Resources:
    """What the server uses of the machine, in bytes, and since when it runs, in seconds since 1970."""

    started: int
    express_bytes: int
    """Bytes of express messages, which are held in memory only."""
    express_limit: int
    """Bytes of express messages above which no messages are accepted."""
    disk_used: int
    disk_available: int
    """Bytes that can still be stored."""


Info = TypeVar("Info", QueueInfo, OutgoingQueueInfo)


@dataclass(frozen=True, slots=True)
class Fullest(Generic[Info]):
    """The queues with the most messages, and sums over the others.

    `others` is the number of the other queues; `sums` has the sums of their numbers by the names that these
    have in the infos; `oldest` is the arrival time of their oldest message in Unix seconds, 0 if they are
    empty.
    """

    shown: Sequence[Info]
    others: int = 0
    sums: Mapping[str, int] = field(default_factory=dict)
    oldest: int = 0


class View(Protocol):
    """The view of the server for the admin port. Every call returns at once."""

    def ready(self) -> str | None:
        """Return None if the server accepts messages, otherwise the reason why it does not."""

    def shortage(self) -> str:
        """Return the name of a limit that was reached in the last minutes although the server still accepts
        messages; "" if no limit was reached.
        """

    def throttled(self) -> str:
        """Return which resource is used up, so that no messages are accepted; "" if none is."""

    def resources(self) -> Resources:
        """Return what the server uses of the machine."""

    def last_snapshot(self) -> int:
        """Return the time of the last snapshot in seconds since 1970; 0 if there was none since the start."""

    def queues(self) -> Iterable[QueueInfo]:
        """Return the user queues and the system queues."""

    def outgoing(self) -> Iterable[OutgoingQueueInfo]:
        """Return the outgoing queues."""

    def fullest_queues(self, limit: int) -> Fullest[QueueInfo]:
        """Return the `limit` fullest of `queues`, and sums over the others: `messages`, `bytes`,
        `journal_messages`, `journal_bytes`.
        """

    def fullest_outgoing(self, limit: int) -> Fullest[OutgoingQueueInfo]:
        """Return the `limit` fullest of `outgoing`, and sums over the others: `messages`, `bytes`,
        `no_ack_count`, `resend_count`.
        """

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Return the gauges: metric name without prefix → (help, value). Values may fall."""

    def totals(self) -> Mapping[str, tuple[str, float]]:
        """Return the counters: metric name without prefix → (help, value). Values only grow."""

    def labelled(self) -> Iterable[Labelled]:
        """Return the metrics that have labels."""

    def histograms(self) -> Iterable[Histogram]:
        """Return the distributions."""

    def refusals(self) -> Iterable[tuple[str, str, int]]:
        """Return the refusals: (what the server refused, reason, count) for each combination."""
