"""Bounds for bulk readers: how far they can read, how much a queue holds, and how to split it.

A reader goes through a queue by arrival sequences, from one watermark to the next. Below the watermark
nothing new appears except messages that are moved to a queue or returned to it: `late` counts those.
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
    """The watermark of a queue manager. It advances only when it is read, so it costs the hot paths
    nothing.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._watermark = VisibilityWatermark(ledger)

    @property
    def watermark(self) -> int:
        """Every message that arrived before this sequence is available or gone. May lag behind `settled`."""
        return self._watermark.look()

    def settled(self) -> Completion[int]:
        """Returns the watermark that covers every message that has arrived by now; resolved once it is
        durable.

        The caller submits the current batch.
        """
        completion: Completion[int] = Completion()
        self._watermark.look(lambda: completion.resolve(self._ledger.watermark))
        return completion


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The bounds of one queue.

    `first`: no message has a lower sequence (the watermark if the queue is empty). `bytes`: size of the
    packets. `late`: messages that appeared below the watermark since the server started.
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
    """The bounds of a queue. `messages` and `bytes` count all visible messages, including those above the
    watermark.
    """
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
    """The sequences from `start` up to but not including `stop`.

    `rows` is the number of messages now in that range, `bytes` the size of their packets.
    """

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of a `Plan`: consecutive `ranges` up to `stop`; no ranges if there are no messages."""

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int


class Plan:
    """Counts the messages of a queue between two sequences; a large range takes several steps.

    The count ends at `stop`, at the watermark, or before the message that would exceed `max_rows` messages or
    `max_bytes` of packets, but never before the first message.
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
        """Count about ten thousand more messages (takes under a millisecond). Returns True when all are
        counted.
        """
        return self._tally.advance()

    def planned(self, parts: int = 1) -> Planned:
        """Returns the counted range, split into at most `parts` ranges with about the same number of
        messages.
        """
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
    """Run a `Plan` to the end and return its result.

    On the event loop, call `Plan.step` instead, so that other work can run between the steps.
    """
    steps = Plan(ledger, queue, start, stop, max_rows, max_bytes)
    while not steps.step():
        pass
    return steps.planned(parts)
