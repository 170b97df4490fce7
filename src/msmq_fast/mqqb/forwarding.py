"""Store and forward: messages in transit to other queue managers (MS-MQQB 3.1.5.8.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.receive import DUPLICATE, EXPIRED, QUEUE_GONE, STORED, Receiver
from msmq_fast.mqqb.hooks import Refuse
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.packet.fields import NONE, Hosts, QueueField, field_name
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import IllegalFormatName, InsufficientResources, MSMQError

MAX_UNROUTED = 1_000
"""Maximum number of outgoing queues without a known route that messages in transit may open.

Senders choose the names, and a route may be configured later.
"""
GREATEST_HOP_COUNT = 0x1D
"""The greatest value of UserHeader.Flags.RC (MS-MQMQ 2.2.20.1, AMB-62)."""
_HOPS = 0x1F
_TRACED = 0x0100  # BaseHeader.Flags.TR


class TransitQueue(Protocol):
    """An outgoing queue for messages in transit, with the attributes that `Forwarder` uses."""

    @property
    def core(self) -> QueueCore:
        """The native queue that stores the messages."""

    @property
    def hops(self) -> tuple[Target, ...]:
        """The next hops of the messages, in the order in which they are tried."""


OpenOutgoing = Callable[[FormatName, UUID], TransitQueue]
"""Returns the outgoing queue for a destination and the queue manager that hosts it.

Raises INSUFFICIENT_RESOURCES at the limit of outgoing queues, ILLEGAL_FORMATNAME if the name violates MS-MQMQ
2.1, another MSMQError if there can be no such queue.
"""


class Forwarder:
    """Implements the hook `Hooks.forward` for the queue manager with the GUID `own`.

    Messages are forwarded while `routes` returns True. A message whose hop count has reached `hop_limit` is
    refused. `trace` reports traced messages.
    """

    def __init__(
        self,
        own: UUID,
        open_outgoing: OpenOutgoing,
        hop_limit: int = GREATEST_HOP_COUNT,
        trace: Callable[[ParsedMessage], None] | None = None,
        *,
        routes: Callable[[], bool] = lambda: True,
    ) -> None:
        self._own = own.bytes_le
        self._open_outgoing = open_outgoing
        self._hop_limit = hop_limit
        self._trace = trace
        self._routes = routes
        self._unrouted: set[FormatName] = set()

    @property
    def active(self) -> bool:
        """Whether this queue manager forwards messages of other queue managers."""
        return self._routes()

    def __call__(self, receiver: Receiver, message: ParsedMessage, refuse: Refuse) -> CloseReason | None:
        """Forward the current message of `receiver`. The receiver then knows the route, so native code
        forwards later messages to the same destination.
        """
        receiver.hop_limit = self._hop_limit
        if message.user_flags & _HOPS >= self._hop_limit:
            return refuse(receiver, Refusal.HOP_COUNT)
        if message.source == self._own:
            return refuse(receiver, Refusal.LOOP)
        if receiver.expired():
            return refuse(receiver, Refusal.EXPIRED)
        manager = UUID(bytes_le=message.destination_manager)
        name = destination_name(message, manager)
        if name is None:
            return refuse(receiver, Refusal.UNKNOWN_QUEUE)
        try:
            outgoing = self._open_outgoing(name, manager)
        except InsufficientResources:
            return CloseReason.UNROUTED
        except IllegalFormatName:
            return refuse(receiver, Refusal.BAD_NAME)
        except MSMQError:
            return refuse(receiver, Refusal.UNKNOWN_QUEUE)
        ended = self._store(receiver, name, outgoing, refuse)
        if ended is None and message.base_flags & _TRACED and self._trace is not None:
            self._trace(message)
        return ended

    def _store(
        self, receiver: Receiver, name: FormatName, outgoing: TransitQueue, refuse: Refuse
    ) -> CloseReason | None:
        if any(hop.guid.bytes_le == receiver.peer for hop in outgoing.hops):
            return refuse(receiver, Refusal.LOOP)
        if any(hop.host for hop in outgoing.hops):
            self._unrouted.discard(name)
        elif name not in self._unrouted:
            if len(self._unrouted) >= MAX_UNROUTED:
                return CloseReason.UNROUTED
            self._unrouted.add(name)
        return _ended(receiver, receiver.relay(outgoing.core), refuse)


def _ended(receiver: Receiver, result: int, refuse: Refuse) -> CloseReason | None:
    if result == STORED:
        return None
    if result == EXPIRED:
        return refuse(receiver, Refusal.EXPIRED)
    if result == DUPLICATE:
        return refuse(receiver, Refusal.DUPLICATE)
    if result == QUEUE_GONE:
        return refuse(receiver, Refusal.UNKNOWN_QUEUE)
    return CloseReason.QUOTA  # nothing else makes the sender keep the message (AMB-21)


def destination_name(message: ParsedMessage, manager: UUID) -> FormatName | None:
    """Returns the format name of a message's destination; None if the message has no destination.

    `manager` is the GUID of the queue manager that hosts the destination.
    """
    field = QueueField(message.dest_type, bytes(message.destination))
    if field.kind == NONE:
        return None
    return field_name(field, Hosts(UUID(bytes_le=message.source), manager))
