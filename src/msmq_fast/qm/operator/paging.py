"""Selects one page of a list of queues without describing the queues of the other pages.

1. The registry keeps the order of the names. Native code sums the counters and, if they order the list,
   selects the page; only the queues of the page are described.
2. Ties are ordered by name, so that pages do not overlap while counts stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from re import compile as compiled
from typing import Final

from msmq_fast._native.tally import COUNTERS, first, sums
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.queues.registry import Ordered

__all__ = ["SORTS", "QueuePage", "page"]

SORTS: Final = ("name", *COUNTERS)


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
    # The registry keeps the cores: with many queues, what is not touched need not come from memory.
    cores = ordered.cores if chosen is ordered.queues else [queue.core for queue in chosen]
    messages, size = sums(cores)
    if sort == "name":
        places: Sequence[int] = range(len(chosen))[:: -1 if descending else 1][offset : offset + limit]
    else:
        places = first(cores, sort, descending, offset + limit)[offset:]
    return QueuePage([chosen[place] for place in places], len(chosen), messages, size)
