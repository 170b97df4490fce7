"""Finds the queues that a request names or whose names match its pattern."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from msmq_fast._native.queue import QueueCore
from msmq_fast.bulk.errors import bad_request
from msmq_fast.bulk.patterns import NamePattern
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.protocol.text import printable
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.system import DEADLETTER, DEADXACT, INTERNAL_KEYS

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager

__all__ = [
    "CONTENTS",
    "DEADLETTERS",
    "EVENTS",
    "JOURNAL",
    "MESSAGES",
    "Patterns",
    "Selected",
    "Turns",
    "dead_letters",
    "named",
    "wanted",
]

MESSAGES: Final = "messages"
JOURNAL: Final = "journal"
DEADLETTERS: Final = "deadletter"
EVENTS: Final = "events"
CONTENTS: Final = (MESSAGES, JOURNAL, DEADLETTERS, EVENTS)

MOST_PATTERNS: Final = 16
"""The most patterns whose queues are kept."""

_SLICE: Final = 0.01  # seconds that one search keeps the loop
_DEAD_KINDS: Final = ("deadletter", "xact_deadletter")
_OF_PROGRAMS: Final = (QueueKind.PUBLIC, QueueKind.PRIVATE)


def named(manager: QueueManager, name: str, content: str) -> Queue:
    """Return the queue with the path or format name `name`; its journal if `content` is "journal".

    Raises Refusal (BAD_REQUEST), QUEUE_NOT_FOUND, and whatever QueueManager.find raises.
    """
    queue = manager.find(name)
    if queue.key in INTERNAL_KEYS:
        raise QueueNotFound(f"there is no queue {printable(name)}")
    if content == JOURNAL and kind_of(queue) != JOURNAL:
        if queue.journal is None:
            raise bad_request(f"{queue.name} has no journal")
        return queue.journal
    if content == DEADLETTERS and kind_of(queue) not in _DEAD_KINDS:
        raise bad_request(f"{queue.name} is not a dead-letter queue")
    return queue


class Selected(NamedTuple):
    """Queues and, in the same order, their cores. `ordinals` are those of the queues, in ascending order."""

    queues: list[Queue]
    cores: list[QueueCore]
    ordinals: list[int]

    @classmethod
    def of(cls, queues: list[Queue]) -> Selected:
        """Return the selection of these queues."""
        return cls(queues, [queue.core for queue in queues], sorted(queue.ordinal for queue in queues))


class Patterns:
    """Finds the application queues whose path names match a pattern. What it found for the last MOST_PATTERNS
    patterns is kept until a queue is created or deleted, so that a reader that asks again costs little.
    """

    def __init__(self, manager: QueueManager) -> None:
        self._manager = manager
        self._known: OrderedDict[tuple[str, str], tuple[int, NamePattern, Selected]] = OrderedDict()

    async def matching(self, text: str, content: str) -> Selected:
        """Return the queues that match the pattern `text`, or their journals if `content` is "journal",
        whether or not a caller may read them. Yields to the event loop while it searches.

        Only a pattern with a semicolon finds subqueues, which exist only as long as they hold messages.
        Raises ValueError for an invalid pattern.
        """
        key, version = (text, content), self._manager.registry.version
        known = self._known.get(key)
        if known is not None and known[0] == version:
            self._known.move_to_end(key)
            return known[2]
        pattern = NamePattern(text) if known is None else known[1]
        selected = Selected.of(await self._search(pattern, content))
        self._known[key] = version, pattern, selected
        self._known.move_to_end(key)
        while len(self._known) > MOST_PATTERNS:
            self._known.popitem(last=False)
        return selected

    async def _search(self, pattern: NamePattern, content: str) -> list[Queue]:
        found: list[Queue] = []
        turns = Turns()
        for queue in sorted(self._manager.registry.local(), key=lambda queue: queue.key):
            await turns.yielded()
            if not wanted(queue, pattern) or queue.core.gone:
                continue
            if content != JOURNAL:
                found.append(queue)
            elif queue.journal is not None:
                found.append(queue.journal)
        return found


def wanted(queue: Queue, pattern: NamePattern) -> bool:
    """Whether a queue is one of applications and its path name matches `pattern`."""
    kinds = (*_OF_PROGRAMS, QueueKind.SUBQUEUE) if ";" in pattern.text else _OF_PROGRAMS
    return queue.kind in kinds and queue.key not in INTERNAL_KEYS and pattern.matches(queue.name)


class Turns:
    """Lets other work of the event loop run while a loop goes over many queues."""

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self._until = self._now() + _SLICE

    async def yielded(self) -> None:
        """Yield to the event loop if the current slice of time is over."""
        if self._now() > self._until:
            await asyncio.sleep(0)
            self._until = self._now() + _SLICE


def dead_letters(manager: QueueManager) -> list[Queue]:
    """Return both dead-letter queues."""
    return [manager.registry.existing(part.key) for part in (DEADLETTER.part, DEADXACT.part)]
