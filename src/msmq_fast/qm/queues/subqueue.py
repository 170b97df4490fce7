"""Subqueues (X-50 … X-53): `queue;name`, parts of a queue to which its messages are moved.

A subqueue owns only its messages: properties, rights and quota are those of its queue. It is created when it
is first opened, and deleted when it is empty and no handle has it open.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast.packet.names import FormatName, PathName, QueuePart, direct_format_name
from msmq_fast.protocol.errors import IllegalQueuePathName, UnsupportedAccessMode
from msmq_fast.qm.queues.changes import QueueChanges
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueState, stored_part
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.queues.system import INTERNAL_KEYS
from msmq_fast.qm.services import Services

SWEEP = 10.0  # seconds between two searches for subqueues that became empty while they were not open
RESERVED = frozenset(("journal", "deadletter", "deadxact"))


class Subqueue(Queue):
    """One subqueue. `family` is the queue that the subqueue belongs to."""

    def __init__(
        self, ledger: Ledger, ordinal: int, guid: UUID, parent: Queue, part: QueuePart, created: int
    ) -> None:
        super().__init__(
            ledger,
            ordinal,
            guid,
            part,
            parent.computer,
            QueueKind.SUBQUEUE,
            parent.properties,
            created=created,
            parent=parent,
        )
        self.security = parent.security
        self.core.journal = parent.core.journal

    def format_name(self, manager: UUID) -> FormatName:
        """Returns the direct format name of the subqueue, since other kinds of format names cannot denote a
        subqueue.
        """
        assert self.part is not None  # noqa: S101 - of every queue that is not outgoing
        return direct_format_name(PathName(self.computer, self.part))

    @property
    def disposable(self) -> bool:
        """Whether the subqueue can be deleted: it is empty, not open, and no message is being moved to it."""
        core = self.core
        return not (self.descriptors or core.positions.live or core.expected)

    def record(self) -> dict[str, Any]:
        """Returns the stored record of the queue."""
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "part": str(self.part),
            "parent": self.family.ordinal,
            "created": self.created,
            "state": int(self.state),
            "purged_to": self.purged_to,
        }


class Subqueues:
    """The subqueues of all queues: creates and deletes them as needed."""

    def __init__(self, services: Services, registry: QueueRegistry, changes: QueueChanges) -> None:
        self._services = services
        self._ledger = services.ledger
        self._registry = registry
        self._changes = changes
        self._idle: set[Subqueue] = set()  # no handle has them open
        self._due: float | None = None

    def make(self, parent: Queue, name: str) -> Subqueue:
        """Returns the subqueue of `parent` with this name, and creates it if it does not exist (DM-087).

        Raises UNSUPPORTED_ACCESS_MODE if the queue cannot have subqueues, ILLEGAL_QUEUE_PATHNAME if the name
        is reserved.
        """
        if parent.part is None or parent.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            raise UnsupportedAccessMode(
                f"{parent.name} cannot have subqueues: only public and private queues can"
            )
        if parent.key in INTERNAL_KEYS:
            raise UnsupportedAccessMode("only the queue manager itself can open this queue")
        if name.casefold() in RESERVED:
            raise IllegalQueuePathName(f"{name} is a reserved name and cannot be the name of a subqueue")
        found = parent.subqueues.get(name.casefold())
        if isinstance(found, Subqueue):
            return found
        part = QueuePart(parent.part.scope, parent.part.queue, name)
        queue = Subqueue(
            self._ledger,
            self._registry.new_ordinal(),
            self._services.new_guid(),
            parent,
            part,
            self._ledger.now_s,
        )
        self._changes.write_new(queue)
        self._add(queue)
        return queue

    def _add(self, queue: Subqueue) -> None:
        """Register a subqueue."""
        assert queue.part is not None  # noqa: S101 - of every queue that is not outgoing
        queue.family.subqueues[queue.part.subqueue.casefold()] = queue
        self._registry.add(queue)
        self.idle(queue)

    def load(self, ordinal: int, record: dict[str, Any], parent: Queue) -> None:
        """Restore a subqueue from its stored record."""
        guid, part = UUID(bytes_le=record["guid"]), stored_part(record["part"])
        state, purged_to = QueueState(record["state"]), int(record["purged_to"])
        queue = Subqueue(self._ledger, ordinal, guid, parent, part, record["created"])
        queue.state, queue.purged_to = state, purged_to
        self._add(queue)

    def idle(self, queue: Queue) -> None:
        """Let the next `expire` delete a subqueue whose last handle was closed, if it is empty (DM-091)."""
        if isinstance(queue, Subqueue) and not queue.descriptors:
            self._idle.add(queue)
            self._due = self._services.monotonic()

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due, None for never."""
        return self._due

    def expire(self, now: float) -> None:
        """If `next_deadline` has passed, delete the subqueues that are empty and not open."""
        if self._due is None or now < self._due:
            return
        self._idle = {
            queue for queue in self._idle if queue.state is QueueState.EXISTING and not queue.descriptors
        }
        # Returned messages that wait for room in the store are in no queue, and need their original queue.
        unneeded = () if self._ledger.returned else tuple(self._idle)
        for queue in [queue for queue in unneeded if queue.disposable]:
            self._idle.discard(queue)
            try:
                self._changes.drop(queue)
            except Exception as error:
                self._services.faults.note("an empty subqueue", error)
        self._due = now + SWEEP if self._idle else None
