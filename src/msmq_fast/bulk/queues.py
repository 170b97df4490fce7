"""Finds the queues that a request names or whose names match its pattern."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msmq_fast.bulk.errors import bad_request
from msmq_fast.bulk.patterns import NamePattern
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.protocol.text import printable
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.system import DEADLETTER, DEADXACT, INTERNAL_KEYS

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.security.token import Token

__all__ = ["CONTENTS", "DEADLETTERS", "EVENTS", "JOURNAL", "MESSAGES", "dead_letters", "matching", "named"]

MESSAGES: Final = "messages"
JOURNAL: Final = "journal"
DEADLETTERS: Final = "deadletter"
EVENTS: Final = "events"
CONTENTS: Final = (MESSAGES, JOURNAL, DEADLETTERS, EVENTS)

_SLICE: Final = 0.01  # seconds that the search keeps the loop
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


async def matching(manager: QueueManager, pattern: NamePattern, content: str, token: Token) -> list[Queue]:
    """Return the application queues whose path names match `pattern` and that the caller may read; their
    journals if `content` is "journal". Yields to the event loop while it searches.

    Only a pattern with a semicolon finds subqueues, which exist only as long as they hold messages.
    """
    now = asyncio.get_running_loop().time
    found: list[Queue] = []
    until = now() + _SLICE
    kinds = (*_OF_PROGRAMS, QueueKind.SUBQUEUE) if ";" in pattern.text else _OF_PROGRAMS
    for queue in sorted(manager.registry.local(), key=lambda queue: queue.key):
        if now() > until:
            await asyncio.sleep(0)
            until = now() + _SLICE
        if queue.kind not in kinds or queue.key in INTERNAL_KEYS or not pattern.matches(queue.name):
            continue
        if content == JOURNAL and queue.journal is None:
            continue
        if not queue.core.gone and manager.guard.may_read(token, queue):
            found.append(queue.journal if content == JOURNAL and queue.journal is not None else queue)
    return found


def dead_letters(manager: QueueManager) -> list[Queue]:
    """Return both dead-letter queues."""
    return [manager.registry.existing(part.key) for part in (DEADLETTER.part, DEADXACT.part)]
