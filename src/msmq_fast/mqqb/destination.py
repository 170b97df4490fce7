"""The local queues in which messages arrive, as the receive pipeline uses them."""

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
    """A local queue, and its demands on the messages that arrive in it."""

    core: QueueCore
    transactional: bool = False
    authenticated: bool = False
    encrypted_only: bool = False
    clear_only: bool = False
    everybody: bool = True
    """True: every sender may send; False: `security` and the sender decide."""
    security: SecurityDescriptor = field(default_factory=SecurityDescriptor)
    name: str = ""

    @property
    def plain(self) -> bool:
        """Whether the queue demands no protection of messages, so that the native path may deliver to it."""
        return not (self.authenticated or self.encrypted_only)


class Resolver(Protocol):
    """Finds the local queue that a message is for (3.1.5.8.5)."""

    def __call__(self, dest_type: int, name: bytes) -> Destination | None:
        """Returns the queue; None if it does not exist.

        `dest_type` and `name` are as in UserHeader.Flags.DQ and DestinationQueue.
        """


class Gate(Protocol):
    """Decides whether a sender may put a message into a queue (3.1.5.8.3), and audits refusals."""

    def __call__(
        self, target: Destination, sender_type: int, sender_id: bytes, message: str, *, verified: bool = False
    ) -> bool:
        """Returns whether the sender may send to `target`.

        `sender_type` and `sender_id` are as in the SecurityHeader, or 0 and empty if the message has none.
        `message` is the identifier of the message. `verified`: the message has a signature of this sender.
        """


def destinations(
    find_field: Callable[[int, bytes], Queue | None], open_to_everybody: Callable[[Queue], bool]
) -> Resolver:
    """Returns a resolver that finds queues with `QueueRegistry.find_field`.

    It does not find the queue manager's own system queues. `open_to_everybody` returns whether every sender
    may send to a queue.
    """

    def resolve(dest_type: int, name: bytes) -> Destination | None:
        queue = find_field(dest_type, name)
        if queue is None or queue.kind not in (QueueKind.PUBLIC, QueueKind.PRIVATE):
            return None
        return destination_of(queue, everybody=open_to_everybody(queue))

    return resolve


def destination_of(queue: Queue, *, everybody: bool) -> Destination:
    """Returns the destination for a local queue; `everybody`: every sender may send to it."""
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
