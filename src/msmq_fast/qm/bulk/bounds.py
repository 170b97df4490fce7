"""Bounds for bulk readers: how far they can read, how many messages a queue holds, and how to split a range
of messages among readers.

A reader goes through a queue by arrival sequences, from one watermark to the next. Below the watermark no
messages are added, except those that are moved to the queue or returned to it; `late` counts these.
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
    """Tracks the watermark of a queue manager: the arrival sequence below which bulk readers can read. The
    watermark advances only when a property or method of this class is called, so that it costs senders and
    receivers no time.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._watermark = VisibilityWatermark(ledger)

    @property
    def watermark(self) -> int:
        """The arrival sequence below which every message is either available to readers or removed. May be
        lower than the result of `settled`.
        """
        return self._watermark.look()

    def settled(self) -> Completion[int]:
        """Returns a completion that is resolved with a watermark above every message that has arrived by now,
        once all of these are durable.

        The caller must submit the current batch, or the completion is not resolved.
        """
        completion: Completion[int] = Completion()
        self._watermark.look(lambda: completion.resolve(self._ledger.watermark))
        return completion


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """The bounds of one queue.

    `ordinal`: queues that are created later have greater ones. `first`: the arrival sequence below which the
    queue has no messages; the watermark if the queue is empty. `bytes`: total size of the packets. `late`:
    number of messages that were added below the watermark since the server started.
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


def bounds_of(ledger: Ledger, queue: Queue) -> QueueBounds:
    """Returns the bounds of a queue. Its `messages` and `bytes` count all visible messages, including those
    above the watermark.
    """
    core = queue.core
    return QueueBounds(
        queue.name,
        str(queue.guid),
        queue.ordinal,
        kind_of(queue),
        queue.transactional,
        first_sequence(core, ledger.watermark),
        core.messages,
        core.bytes,
        core.out_of_order,
    )


@dataclass(frozen=True, slots=True)
class Range:
    """The arrival sequences from `start` up to but not including `stop`.

    `rows` is the number of messages that are now in that range, `bytes` the total size of their packets.
    """

    start: int
    stop: int
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The result of a `Plan`: consecutive `ranges` that end at `stop`, with `rows` messages and `bytes` of
    packets in all. `ranges` is empty if there are no messages.
    """

    ranges: tuple[Range, ...]
    stop: int
    rows: int
    bytes: int


class Plan:
    """Counts the messages of a queue between two arrival sequences; a large range takes several steps.

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
        """Count about ten thousand more messages (takes under a millisecond). Returns True when all messages
        are counted.
        """
        return self._tally.advance()

    def planned(self, parts: int = 1) -> Planned:
        """Returns the counted messages as at most `parts` ranges with about the same number of messages
        each.
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
