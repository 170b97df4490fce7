"""The data that the admin port shows: plain values that the server fills in, so that this package depends on
no other front end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo, ReaderInfo

__all__ = ["Histogram", "Labelled", "View"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """A distribution: counts per upper bound (not cumulative, the last without bound) and the sum of all
    measured values.
    """

    name: str
    about: str
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class Labelled:
    """A metric with several values, distinguished by labels. `grows`: it is a counter, whose values never
    fall.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]
    grows: bool = True


class View(Protocol):
    """The view of the server for the admin port. Every call returns at once."""

    def ready(self) -> str | None:
        """Return None if the server accepts messages, otherwise the reason why it does not."""

    def shortage(self) -> str:
        """Return the name of a limit that was reached in the last minutes while the server still accepts
        messages; "" for none.
        """

    def queues(self) -> Iterable[QueueInfo]:
        """Return the user queues and the system queues."""

    def outgoing(self) -> Iterable[OutgoingQueueInfo]:
        """Return the outgoing queues."""

    def readers(self) -> Iterable[ReaderInfo]:
        """Return the queues of this computer that programs on other computers have open."""

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Return the gauges: metric name without prefix → (help, value). Values may fall."""

    def totals(self) -> Mapping[str, tuple[str, float]]:
        """Return the counters: metric name without prefix → (help, value). Values only grow."""

    def labelled(self) -> Iterable[Labelled]:
        """Return the metrics that have labels."""

    def histograms(self) -> Iterable[Histogram]:
        """Return the distributions."""

    def refusals(self) -> Iterable[tuple[str, str, int]]:
        """Return how often the server refused something: (what it refused, reason, count)."""

    def stats(self) -> Mapping[str, Any]:
        """Return everything that `msmq-fast stats` shows."""
