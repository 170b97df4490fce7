"""The local queues that messages arrive in, as the receive pipeline sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from msmq_fast._native.queue import QueueCore
from msmq_fast.qm.queues.queue import Privacy, Queue, QueueKind
from msmq_fast.security.descriptor import SecurityDescriptor

__all__ = ["Destination", "Gate", "Resolver", "destination_of", "destinations"]


@dataclass(frozen=True, slots=True)
class Destination:
    """A local queue: where messages go, and whether every message that is plain in itself may go
    there unseen."""

    core: QueueCore
    transactional: bool = False
    authenticated: bool = False
    encrypted_only: bool = False
    clear_only: bool = False
    everybody: bool = True
    """True: every sender may; False: `security` and the sender decide."""
    security: SecurityDescriptor = field(default_factory=SecurityDescriptor)
    name: str = ""

    @property
    def plain(self) -> bool:
        """No demand on the protection of messages: the native path may deliver to it."""
        return not (self.authenticated or self.encrypted_only)


class Resolver(Protocol):
    """Finds the local queue that a message is for (3.1.5.8.5)."""

    def __call__(self, dest_type: int, name: bytes) -> Destination | None:
        """`dest_type` and `name` as in UserHeader.Flags.DQ and DestinationQueue; None: there is no
        such queue."""


class Gate(Protocol):
    """Decides whether a sender may put a message into a queue (3.1.5.8.3), and records refusals."""

    def __call__(
        self, target: Destination, sender_type: int, sender_id: bytes, message: str, *, verified: bool = False
    ) -> bool:
        """`sender_type` and `sender_id` as in the SecurityHeader, 0 and nothing without; `message` is
        the identifier. `verified`: the message carries a signature of this sender."""


def destinations(
    find_field: Callable[[int, bytes], Queue | None], open_to_everybody: Callable[[Queue], bool]
) -> Resolver:
    """A resolver over `QueueRegistry.find_field`; no sender may use the queue manager's own system queues.
    `open_to_everybody` tells the queues to which every sender may send."""

    def resolve(dest_type: int, name: bytes) -> Destination | None:
        queue = find_field(dest_type, name)
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return None
        return destination_of(queue, everybody=open_to_everybody(queue))

    return resolve


def destination_of(queue: Queue, *, everybody: bool) -> Destination:
    """A queue of this computer as the receive pipeline sees it; `everybody`: every sender may send to it."""
    properties = queue.properties
    return Destination(
        queue.core,
        transactional=properties.transactional,
        authenticated=properties.authenticated,
        encrypted_only=properties.privacy is Privacy.BODY,
        clear_only=properties.privacy is Privacy.NONE,
        everybody=everybody,
        security=queue.security,
        name=queue.name,
    )
