"""Selects one page of a list of queues without describing the queues of the other pages.

1. The registry keeps the order of the names. Each queue costs two counters and, if the counters order the
   list, one comparison; only the queues of the page are described.
2. A page near the beginning is selected with a heap; only a page far behind needs all counters in order.
3. Ties are ordered by name, so that pages do not overlap while counts stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from heapq import nsmallest
from re import compile as compiled
from typing import Final

from msmq_fast._native.queue import QueueCore
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import Ordered

__all__ = ["SORTS", "QueuePage", "page"]

_EVER: Final = 1 << 64  # Unix microseconds: later than every arrival
_SELECTED: Final = 8  # a heap selects up to this part of the queues, 1/8; sorting is quicker for more


def _age(core: QueueCore) -> int:
    """Return a number that grows with the age of the oldest message; 0 if the queue is empty."""
    oldest = core.positions.oldest()
    return _EVER - oldest if oldest else 0


_KEYS: Final[dict[str, Callable[[QueueCore], float]]] = {
    "messages": lambda core: core.messages,
    "bytes": lambda core: core.bytes,
    "oldest": _age,
    "in_per_second": lambda core: core.in_per_second,
    "out_per_second": lambda core: core.out_per_second,
}
SORTS: Final = ("name", *_KEYS)


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The queues of one page, and the sums over all pages: number of queues, messages and bytes."""

    queues: list[Queue]
    total: int
    messages: int
    bytes: int


def page(
    ordered: Ordered,
    visible: Sequence[Queue] | None = None,
    *,
    text: str = "",
    glob: str = "",
    sort: str = "name",
    descending: bool = False,
    limit: int,
    offset: int = 0,
) -> QueuePage:
    """Return the page of `limit` queues after the first `offset`. `visible` has those of `ordered` that the
    caller may see, in the same order; None: all of them.

    `text` must be in the name. `glob` is a pattern with * ? and [] for the whole name, the name without the
    computer, or the name without the computer and `private$`. Case does not matter for either. `sort` is one
    of SORTS; `oldest` is the age of the oldest message, so that with `descending` the oldest one is first.
    """
    chosen = ordered.queues if visible is None else visible
    if text:
        wanted = text.casefold()
        chosen = [queue for queue in chosen if wanted in queue.folded]
    if glob:
        matches = compiled(translate(glob.casefold())).match
        chosen = [
            queue
            for queue in chosen
            if matches(name := queue.folded)
            or matches(name.partition("\\")[2])
            or matches(name.rpartition("\\")[2])
        ]
    # Not the queues: with many of them, what is not touched need not come from memory.
    cores = ordered.cores if chosen is ordered.queues else [queue.core for queue in chosen]
    messages = [core.messages for core in cores]
    sizes = [core.bytes for core in cores]
    if sort == "name":
        places: Sequence[int] = range(len(chosen))[:: -1 if descending else 1][offset : offset + limit]
    else:
        key = _KEYS[sort]
        places = _places([key(core) for core in cores], offset + limit, descending)[offset:]
    return QueuePage([chosen[place] for place in places], len(chosen), sum(messages), sum(sizes))


def _places(counts: Sequence[float], most: int, descending: bool) -> Sequence[int]:
    """Return the places of the first `most` counts in their order; equal counts keep the order of places."""
    pairs = zip([-count for count in counts] if descending else counts, range(len(counts)), strict=True)
    found = nsmallest(most, pairs) if most * _SELECTED <= len(counts) else sorted(pairs)[:most]
    return [place for _, place in found]
