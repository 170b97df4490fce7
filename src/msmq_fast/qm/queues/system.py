"""The queues that every queue manager has (3.2, DM-011, DM-012)."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.packet.names import FormatName, NameKind, QueuePart, Scope

FIRST_FREE_NUMBER = 15  # private queue numbers 1 … 15 are reserved (DM-059)
RESERVED_ORDINALS = 15


@dataclass(frozen=True, slots=True)
class SystemQueue:
    """A system queue. Its `ordinal` never changes, since stored messages refer to it."""

    ordinal: int
    part: QueuePart
    number: int = 0  # private queue number by which other queue managers address it (DA-055)
    transactional: bool = False
    internal: bool = False  # not to be opened by applications


JOURNAL = SystemQueue(1, QueuePart(Scope.SYSTEM, "journal"))
DEADLETTER = SystemQueue(2, QueuePart(Scope.SYSTEM, "deadletter"))
DEADXACT = SystemQueue(3, QueuePart(Scope.SYSTEM, "deadxact"), transactional=True)
ORDER = SystemQueue(4, QueuePart(Scope.PRIVATE, "order_queue$"), number=4, internal=True)
NOTIFY = SystemQueue(5, QueuePart(Scope.PRIVATE, "notify_queue$"), number=3, internal=True)

SYSTEM_QUEUES = (JOURNAL, DEADLETTER, DEADXACT, ORDER, NOTIFY)
INTERNAL_KEYS = frozenset(queue.part.key for queue in SYSTEM_QUEUES if queue.internal)

ADMINISTRATION = QueuePart(Scope.PRIVATE, "admin_queue$")
_INTERNAL_PARTS = INTERNAL_KEYS | {ADMINISTRATION.key}
_INTERNAL_NUMBERS = frozenset(queue.number for queue in SYSTEM_QUEUES if queue.internal) | {1}


def is_internal(name: FormatName) -> bool:
    """Whether a name denotes the administration, notification or order queue of any queue manager.

    Messages to these queues are neither journaled nor acknowledged (QB-294).
    """
    if name.kind is NameKind.PRIVATE:
        return name.number in _INTERNAL_NUMBERS
    return name.direct is not None and name.direct.part.key in _INTERNAL_PARTS
