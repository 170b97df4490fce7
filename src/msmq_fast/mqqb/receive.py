"""The receive pipeline of MS-MQQB 3.1.5.8 for messages that the native plain path does not handle.

Counting and the SessionHeader come before it and are native for every message. What is here runs
once for a message with any special demand, and does for a plain message exactly what the native path does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.receive import (
    DUPLICATE,
    EXPIRED,
    MACHINE_QUOTA,
    NEW,
    QUEUE_GONE,
    QUEUE_QUOTA,
    STORED,
    Receiver,
    Routes,
)
from msmq_fast.mqqb.reasons import CloseReason, Refusal

NULL_ADDRESS = bytes(16)
SECURITY_ENCRYPTED = 0x20
"""SecurityHeader.Flags.EB"""


@dataclass(frozen=True, slots=True)
class Destination:
    """A local queue: where messages go, and whether every message that is plain in itself may go
    there unseen."""

    core: QueueCore
    transactional: bool = False
    authenticated: bool = False
    encrypted_only: bool = False

    @property
    def plain(self) -> bool:
        """No demand on the messages: the native path may deliver to it."""
        return not (self.transactional or self.authenticated or self.encrypted_only)


class Resolver(Protocol):
    """Finds the local queue that a message is for (3.1.5.8.5)."""

    def __call__(self, dest_type: int, name: bytes) -> Destination | None:
        """`dest_type` and `name` as in UserHeader.Flags.DQ and DestinationQueue; None: there is no
        such queue."""


@dataclass(slots=True)
class Counts:
    """What became of messages, for metrics; the native path keeps its own counts per session."""

    refused: Counter[Refusal] = field(default_factory=Counter)
    closed: Counter[CloseReason] = field(default_factory=Counter)


class Pipeline:
    """Decides about one message at a time; a returned CloseReason ends the session and leaves the
    message undecided."""

    def __init__(
        self,
        guid: UUID,
        resolve: Resolver,
        routes: Routes,
        counts: Counts,
        on_refusal: Callable[[Refusal, str], None] | None,
    ) -> None:
        self._local = (guid.bytes_le, NULL_ADDRESS)
        self._resolve = resolve
        self._routes = routes
        self._counts = counts
        self._on_refusal = on_refusal

    def handle(self, receiver: Receiver) -> CloseReason | None:
        """The steps of 3.1.5.8 for the message that `receiver` stands at."""
        message = receiver.message()
        if message.destination_manager not in self._local:
            return CloseReason.NOT_LOCAL
        if message.transaction_offset:
            return CloseReason.TRANSACTIONAL
        if receiver.sight() != NEW:
            self._refuse(receiver, Refusal.DUPLICATE)
            return None
        if receiver.expired():
            self._refuse(receiver, Refusal.EXPIRED)
            return None
        name = bytes(message.destination)
        target = self._resolve(message.dest_type, name)
        if target is None:
            self._refuse(receiver, Refusal.UNKNOWN_QUEUE)
            return None
        if target.transactional:
            self._refuse(receiver, Refusal.NOT_TRANSACTIONAL)
            return None
        refusal = _security(message, target)
        if refusal is not None:
            self._refuse(receiver, refusal)
            return None
        if target.plain:
            self._routes.add(message.dest_type, name, target.core)
        result = receiver.deliver(target.core)
        return None if result == STORED else self.refused(receiver, result)

    def refused(self, receiver: Receiver, result: int) -> CloseReason | None:
        """What follows when a queue did not take the message, or when the native path found a duplicate."""
        if result == MACHINE_QUOTA:
            return CloseReason.QUOTA
        refusal = {
            QUEUE_QUOTA: Refusal.QUEUE_QUOTA,
            EXPIRED: Refusal.EXPIRED,
            DUPLICATE: Refusal.DUPLICATE,
            QUEUE_GONE: Refusal.UNKNOWN_QUEUE,
        }[result]
        self._refuse(receiver, refusal)
        return None

    def _refuse(self, receiver: Receiver, refusal: Refusal) -> None:
        receiver.drop()
        self._counts.refused[refusal] += 1
        if self._on_refusal is not None:
            self._on_refusal(refusal, receiver.describe())


def _security(message: ParsedMessage, target: Destination) -> Refusal | None:
    """Demands that need keys are refused as long as there are none; an unsigned sender id is
    carried (AMB-23)."""
    if message.security_offset and message.packet[message.security_offset] & SECURITY_ENCRYPTED:
        return Refusal.ENCRYPTED
    if target.authenticated:
        return Refusal.ACCESS_DENIED
    if target.encrypted_only:
        return Refusal.ENCRYPTED
    return None
