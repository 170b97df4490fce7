"""What the admin port shows: plain values that the server fills in, so that this room knows no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Histogram", "Labelled", "OutgoingView", "QueueView", "ReaderView", "View"]


@dataclass(frozen=True, slots=True)
class QueueView:
    """One user or system queue. `name` is the path, sizes are bytes."""

    name: str
    kind: str
    messages: int
    bytes: int
    journal_messages: int = 0
    journal_bytes: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutgoingView:
    """One outgoing queue; `state` is that of MS-MQDMPR ST-4."""

    name: str
    state: str
    messages: int
    bytes: int
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReaderView:
    """A queue that somebody on another computer has open over RPC. `caller` is empty for an anonymous one."""

    queue: str
    access: str
    caller: str
    address: str
    authentication: str
    level: str
    waiting: int
    """Reads that wait for a message."""
    unacknowledged: int
    """Messages that the reader has and did not acknowledge."""
    cursors: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts per upper bound (not cumulative, the last without bound) and the sum of what was measured."""

    name: str
    about: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Labelled:
    """One figure with several values, told apart by their labels; `grows`: none of them ever falls."""

    name: str
    about: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]
    grows: bool = True


class View(Protocol):
    """What the server offers to the admin port. Every call returns at once."""

    def ready(self) -> str | None:
        """None if the server takes messages, else the reason why not."""

    def shortage(self) -> str:
        """Which limit was hit within the last minutes although messages are taken; empty for none."""

    def queues(self) -> Iterable[QueueView]:
        """User and system queues."""

    def outgoing(self) -> Iterable[OutgoingView]:
        """Outgoing queues."""

    def readers(self) -> Iterable[ReaderView]:
        """Queues that are open on other computers."""

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Metric name without prefix → (help, value); values that may fall."""

    def totals(self) -> Mapping[str, tuple[str, float]]:
        """The same for values that only grow."""

    def labelled(self) -> Iterable[Labelled]:
        """Figures with labels."""

    def histograms(self) -> Iterable[Histogram]:
        """Distributions."""

    def refusals(self) -> Iterable[tuple[str, str, int]]:
        """(what, reason, count)."""

    def stats(self) -> Mapping[str, Any]:
        """Everything that `msmq-fast stats` shows."""
