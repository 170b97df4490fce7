"""What the admin port shows: plain values that the server fills in, so that this room knows no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo, ReaderInfo

__all__ = ["Histogram", "Labelled", "View"]


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
    """The view of the server for the admin port. Every call returns at once."""

    def ready(self) -> str | None:
        """None if the server takes messages, else the reason why not."""

    def shortage(self) -> str:
        """Which limit was hit within the last minutes although messages are taken; empty for none."""

    def queues(self) -> Iterable[QueueInfo]:
        """User and system queues."""

    def outgoing(self) -> Iterable[OutgoingQueueInfo]:
        """Outgoing queues."""

    def readers(self) -> Iterable[ReaderInfo]:
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
