"""The kinds of queues for bulk readers and the event feed."""

from __future__ import annotations

from typing import Final

from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.system import ADMINISTRATION, DEADLETTER, DEADXACT, INTERNAL_KEYS, JOURNAL

__all__ = ["kind_of"]

_KINDS: Final = {
    QueueKind.PUBLIC: "queue",
    QueueKind.PRIVATE: "queue",
    QueueKind.SYSTEM: "system",
    QueueKind.CONNECTOR: "connector",
    QueueKind.OUTGOING: "outgoing",
    QueueKind.JOURNAL: "journal",
    QueueKind.SUBQUEUE: "subqueue",
}
_SYSTEM: Final = {
    JOURNAL.part.key: "journal",
    DEADLETTER.part.key: "deadletter",
    DEADXACT.part.key: "xact_deadletter",
    ADMINISTRATION.key: "admin",
} | dict.fromkeys(INTERNAL_KEYS, "system")


def kind_of(queue: Queue) -> str:
    """Returns the kind of a queue for readers: queue, subqueue, journal, deadletter, xact_deadletter,
    outgoing, connector, admin or system.
    """
    return _SYSTEM.get(queue.key) or _KINDS[queue.kind]
