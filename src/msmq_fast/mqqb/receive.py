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
from msmq_fast.packet.classes import MessageClass
from msmq_fast.security.descriptor import SecurityDescriptor

NULL_ADDRESS = bytes(16)
SECURITY_ENCRYPTED = 0x20
"""SecurityHeader.Flags.EB"""
SENDER_TYPE = 0x0F
"""SecurityHeader.Flags.ST"""


@dataclass(frozen=True, slots=True)
class Destination:
    """A local queue: where messages go, and whether every message that is plain in itself may go
    there unseen."""

    core: QueueCore
    transactional: bool = False
    authenticated: bool = False
    encrypted_only: bool = False
    everybody: bool = True
    """Whoever sends may; otherwise `security` and the sender decide."""
    security: SecurityDescriptor = field(default_factory=SecurityDescriptor)
    name: str = ""

    @property
    def plain(self) -> bool:
        """No demand on the messages: the native path may deliver to it."""
        return not (self.transactional or self.authenticated or self.encrypted_only)


class Resolver(Protocol):
    """Finds the local queue that a message is for (3.1.5.8.5)."""

    def __call__(self, dest_type: int, name: bytes) -> Destination | None:
        """`dest_type` and `name` as in UserHeader.Flags.DQ and DestinationQueue; None: there is no
        such queue."""


class Gate(Protocol):
    """Decides whether a sender may put a message into a queue (3.1.5.8.3), and records refusals."""

    def __call__(self, target: Destination, sender_type: int, sender_id: bytes, message: str) -> bool:
        """`sender_type` and `sender_id` as in the SecurityHeader, 0 and nothing without; `message` is
        the identifier."""


Nack = Callable[[bytes, MessageClass], bool]
"""Does what follows when a message is refused, inside a unit: a negative acknowledgment, a dead letter.
Whether it did anything."""

_REASONS = {
    Refusal.EXPIRED: MessageClass.NACK_REACH_QUEUE_TIMEOUT,
    Refusal.UNKNOWN_QUEUE: MessageClass.NACK_BAD_DST_Q,
    Refusal.NOT_TRANSACTIONAL: MessageClass.NACK_NOT_TRANSACTIONAL_MSG,
    Refusal.ENCRYPTED: MessageClass.NACK_BAD_ENCRYPTION,
    Refusal.SIGNED: MessageClass.NACK_BAD_SIGNATURE,
    Refusal.ACCESS_DENIED: MessageClass.NACK_ACCESS_DENIED,
    Refusal.QUEUE_QUOTA: MessageClass.NACK_Q_EXCEED_QUOTA,
}


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
        gate: Gate | None = None,
        quarantine: Callable[[], QueueCore | None] | None = None,
        nack: Nack | None = None,
    ) -> None:
        self._local = (guid.bytes_le, NULL_ADDRESS)
        self._resolve = resolve
        self._routes = routes
        self._counts = counts
        self._on_refusal = on_refusal
        self._gate = gate
        self._quarantine = quarantine
        self._nack = nack

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
        if refusal is None and not self._admits(target, message, name, receiver):
            refusal = Refusal.ACCESS_DENIED
        if refusal is not None:
            if refusal is not Refusal.ACCESS_DENIED or not self._set_aside(receiver):
                self._refuse(receiver, refusal)
            return None
        result = receiver.deliver(target.core)
        return None if result == STORED else self.refused(receiver, result)

    def _admits(self, target: Destination, message: ParsedMessage, name: bytes, receiver: Receiver) -> bool:
        """Whether the sender may send there. What is decided is a route for the plain path from then on."""
        if target.everybody:
            if target.plain:
                self._routes.add(message.dest_type, name, target.core)
            return True
        kind, sender = _sender(message)
        if self._gate is None or not self._gate(target, kind, sender, receiver.describe()):
            return False
        if target.plain:
            self._routes.admit(message.dest_type, name, kind, sender, target.core)
        return True

    def _set_aside(self, receiver: Receiver) -> bool:
        """Keep a message whose sender was refused in the quarantine queue, if there is one that takes it."""
        core = self._quarantine() if self._quarantine is not None else None
        if core is None or receiver.deliver(core, MessageClass.NACK_ACCESS_DENIED) != STORED:
            return False
        self._tell(receiver, Refusal.QUARANTINED)
        if self._nack is not None:
            self._nack(receiver.message().packet, MessageClass.NACK_ACCESS_DENIED)
        return True

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
        reason = _REASONS.get(refusal)
        if reason is None or self._nack is None:
            receiver.drop()
        else:
            receiver.reject(self._nack, reason)
        self._tell(receiver, refusal)

    def _tell(self, receiver: Receiver, refusal: Refusal) -> None:
        self._counts.refused[refusal] += 1
        if self._on_refusal is not None:
            self._on_refusal(refusal, receiver.describe())


def _sender(message: ParsedMessage) -> tuple[int, bytes]:
    """SecurityHeader.Flags.ST and SecurityID; 0 and nothing without a header."""
    if not message.security_offset:
        return 0, b""
    start = message.sender_id_offset
    kind = message.packet[message.security_offset] & SENDER_TYPE
    return kind, message.packet[start : start + message.sender_id_length]


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
