"""What readers in bulk ask before they read: how far they may, what is there, and how to part it.

A reader goes through a queue by arrival sequences, from one watermark to the next. Below the watermark
nothing new appears except messages that are moved to a queue or given back to it: `late` counts those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from msmq_fast._native.columnrows import Tally, first_sequence
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.watermark import VisibilityWatermark
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.store.completion import Completion

__all__ = ["Bounds", "Plan", "Planned", "QueueBounds", "Range", "bounds_of", "plan"]

UNLIMITED: Final = (1 << 63) - 1


class Bounds:
    """The watermark of a queue manager. It moves only when it is read, so it costs the hot paths nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._watermark = VisibilityWatermark(ledger)

    @property
    def watermark(self) -> int:
        """All messages that arrived before this sequence are available or removed. It may lag behind
        `settled`.
        """
        return self._watermark.look()

    def settled(self) -> Completion[int]:
        """The watermark behind all that has arrived until now, when that is durable.

        The caller submits the current batch.
        """
        completion: Completion[int] = Completion()
        self._watermark.look(lambda: completion.resolve(self._ledger.watermark))
        return completion


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """One queue. `first`: nothing stands before this sequence (the watermark, if it is empty); `bytes` of
    packets; `late`: messages that came behind a watermark since the server started.
    """

    name: str
    guid: str
    kind: str
    transactional: bool
    first: int
    messages: int
    bytes: int
    late: int


def bounds_of(ledger: Ledger, queue: Queue) -> QueueBounds:
    """The bounds of a queue. `messages` and `bytes` are of all that is visible, also above the watermark."""
    core = queue.core
    return QueueBounds(
        queue.name,
        str(queue.guid),
        kind_of(queue),
        queue.transactional,
        first_sequence(core, ledger.watermark),
        core.messages,
        core.bytes,
        core.out_of_order,
    )


@dataclass(frozen=True, slots=True)
class Range:
    """Sequences from `start` up to but not including `stop`, and what is there now; `bytes` of packets."""

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Planned:
    """`ranges` follow one another up to `stop`; none if nothing is there."""

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int


class Plan:
    """Counts what a queue holds between two sequences; a great one takes several steps.

    It ends at `stop`, at the watermark, or before the message by which it would exceed `max_rows` messages or
    `max_bytes` of packets, but not before the first.
    """

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        start: int,
        stop: int,
        max_rows: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        stop = max(start, min(stop, ledger.watermark))
        self._tally = Tally(queue.core, start, stop, max_rows or UNLIMITED, max_bytes or UNLIMITED)

    def step(self) -> bool:
        """Count some ten thousand messages more (under a millisecond). True when all are counted."""
        return self._tally.advance()

    def planned(self, parts: int = 1) -> Planned:
        """The stretch in at most `parts` ranges of about as many messages."""
        tally = self._tally
        ranges = tuple(Range(*cut) for cut in tally.ranges(parts))
        return Planned(ranges, tally.next, tally.rows, tally.bytes)


def plan(
    ledger: Ledger,
    queue: Queue,
    start: int,
    stop: int,
    max_rows: int | None = None,
    max_bytes: int | None = None,
    parts: int = 1,
) -> Planned:
    """Run a `Plan` to the end. On the event loop, call `Plan.step` instead, so that other work can run in
    between.
    """
    steps = Plan(ledger, queue, start, stop, max_rows, max_bytes)
    while not steps.step():
        pass
    return steps.planned(parts)
