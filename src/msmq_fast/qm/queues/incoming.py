"""What protocols take in: how they look at messages for queues of this computer, and incoming transactional
transfers as management sees them (MS-MQDMPR 3.1.1.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from msmq_fast.packet.classes import MessageClass
    from msmq_fast.qm.queues.queue import Queue

Arrival = Callable[["Queue", bytes], "bytes | MessageClass"]
"""What is kept of a packet that arrives at a queue: decrypted, its sender verified, as one from another
computer; or the class of its refusal."""


@dataclass(frozen=True, slots=True)
class IncomingTransfer:
    """IncomingTransactionalTransferInfo: a stream of transactional messages from one sender by one name."""

    queue: int
    """Ordinal of QueueReference, 0 if there is no such queue."""
    format_name: str
    sender: UUID
    sequence_id: int
    """TimeStamp << 32 | Ordinal"""
    sequence_number: int
    """The last one that is kept."""
    last_access: int
    """Unix seconds"""
    reject_count: int

    def as_map(self) -> dict[str, Any]:
        """For the admin port and for programs."""
        return {
            "format_name": self.format_name,
            "sender": str(self.sender),
            "sequence_id": self.sequence_id,
            "sequence_number": self.sequence_number,
            "last_access": self.last_access,
            "reject_count": self.reject_count,
        }
