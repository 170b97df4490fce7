"""The journal of a queue (X-23): stores copies of received messages while journaling is on (X-60)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast._native.ledger import Ledger
from msmq_fast.packet.names import FormatName, Suffix
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties

if TYPE_CHECKING:
    from collections.abc import Iterable


class JournalQueue(Queue):
    """The journal of one queue. It is created and deleted with the queue, which determines its quota and
    security descriptor.
    """

    def __init__(self, ledger: Ledger, ordinal: int, guid: UUID, parent: Queue) -> None:
        if parent.part is None:
            raise ValueError("outgoing queues have no journal")
        super().__init__(
            ledger,
            ordinal,
            guid,
            replace(parent.part, journal=True),
            parent.computer,
            QueueKind.JOURNAL,
            QueueProperties(),
            created=parent.created,
        )
        self.parent = parent
        parent.journal = self
        parent.set_quota()

    def format_name(self, manager: UUID) -> FormatName:
        """Returns the format name of the journal's queue with the suffix ;JOURNAL."""
        return replace(self.parent.format_name(manager), suffix=Suffix.JOURNAL)

    def record(self) -> dict[str, Any]:
        """Returns the stored record of the queue."""
        return {
            "kind": int(self.kind),
            "guid": self.guid.bytes_le,
            "parent": self.parent.ordinal,
            "state": int(self.state),
            "purged_to": self.purged_to,
        }

    @classmethod
    def load_journal(
        cls, ledger: Ledger, ordinal: int, record: dict[str, Any], parent: Queue
    ) -> JournalQueue:
        """Create the journal from a stored record."""
        journal = cls(ledger, ordinal, UUID(bytes_le=record["guid"]), parent)
        journal.purged_to = record["purged_to"]
        return journal


def without_journal(queues: Iterable[Queue]) -> list[Queue]:
    """Returns those of `queues` that should have a journal but have none, because a version without journals
    created them.
    """
    kinds = (QueueKind.PUBLIC, QueueKind.PRIVATE)
    return [queue for queue in queues if queue.kind in kinds and queue.journal is None]
