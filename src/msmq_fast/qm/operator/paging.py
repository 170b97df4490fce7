"""Selects one page of a list of queues without describing the queues of the other pages.

1. Each queue costs its name, two counters and one comparison; only the queues of the page are described.
2. Ties are ordered by name, so that pages do not overlap while counts stand still.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from re import compile as compiled
from typing import Final

from msmq_fast.qm.queues.queue import Queue

__all__ = ["SORTS", "QueuePage", "page"]

SORTS: Final = ("name", "messages", "bytes")


@dataclass(frozen=True, slots=True)
class QueuePage:
    """The queues of one page, and the sums over all pages: number of queues, messages and bytes."""

    queues: list[Queue]
    total: int
    messages: int
    bytes: int


def page(
    queues: Iterable[Queue],
    *,
    text: str = "",
    glob: str = "",
    sort: str = "name",
    descending: bool = False,
    limit: int,
    offset: int = 0,
) -> QueuePage:
    """Return the page of `limit` queues after the first `offset`.

    `text` must be in the name. `glob` is a pattern with * ? and [] for the whole name, the name without the
    computer, or the name without the computer and `private$`. Case does not matter for either.
    """
    wanted = text.casefold()
    matches = compiled(translate(glob.casefold())).match if glob else None
    chosen: list[tuple[int, str, Queue]] = []
    messages = size = 0
    for queue in queues:
        name = queue.name.casefold()
        if wanted not in name:
            continue
        if matches and not any(
            matches(part) for part in (name, name.partition("\\")[2], name.rpartition("\\")[2])
        ):
            continue
        count, held = queue.messages, queue.bytes
        messages += count
        size += held
        key = 0 if sort == "name" else count if sort == "messages" else held
        chosen.append((-key if descending else key, name, queue))
    chosen.sort(key=lambda one: one[:2], reverse=descending and sort == "name")
    selected = [queue for _, _, queue in chosen[offset : offset + limit]]
    return QueuePage(selected, len(chosen), messages, size)
