"""The interface between the queue manager's outgoing queues and MS-MQQB sessions."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from msmq_fast._native.outbound import session_ended
from msmq_fast._native.receive import head
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.packet.names import NameKind
from msmq_fast.qm.outgoing.resending import OutgoingSequences
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.stall import Stall
from msmq_fast.qm.queues.system import is_internal

_FIRST = 1 << 16  # more than any base priority

_STATUS = {
    Progress.IN_PROCESS: (ConnectionStatus.IN_PROCESS, OutgoingState.WAITING, 0),
    Progress.ANSWERED: (ConnectionStatus.ESTABLISH_PACKET_RECEIVED, OutgoingState.WAITING, 0),
    Progress.ESTABLISHED: (ConnectionStatus.ESTABLISHED, OutgoingState.CONNECTED, 0),
    Progress.DNS_FAILURE: (ConnectionStatus.DNS_FAILURE, OutgoingState.NEED_VALIDATION, 0x80072AF9),
    Progress.ROUTE_FAILURE: (
        ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE,
        OutgoingState.NEED_VALIDATION,
        0xC00E000D,
    ),
    Progress.PING_FAILURE: (ConnectionStatus.PING_FAILURE, OutgoingState.WAITING, 0xC00E0069),
    Progress.CREATE_FAILURE: (ConnectionStatus.SOCKET_CREATE_FAILURE, OutgoingState.WAITING, 0x80072728),
    Progress.BIND_FAILURE: (ConnectionStatus.SOCKET_BIND_FAILURE, OutgoingState.WAITING, 0x80072741),
    Progress.CONNECT_FAILURE: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.WAITING, 0x8007274D),
    Progress.TIMED_OUT: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.WAITING, 0x8007274C),
    Progress.UNREACHABLE: (ConnectionStatus.SOCKET_CONNECT_FAILURE, OutgoingState.WAITING, 0x80072751),
    Progress.NOT_ENABLED: (ConnectionStatus.TCP_NOT_ENABLED, OutgoingState.WAITING, 0x8007273F),
    Progress.LOW_RESOURCE: (ConnectionStatus.LOW_RESOURCE, OutgoingState.WAITING, 0xC00E0027),
    Progress.SEND_FAILURE: (ConnectionStatus.SOCKET_SEND_FAILURE, OutgoingState.DISCONNECTED, 0x80072746),
    Progress.NOT_READY: (ConnectionStatus.CONNECTION_NOT_READY, OutgoingState.DISCONNECTED, 0x8007274C),
    Progress.REFUSED: (ConnectionStatus.CONNECTION_REFUSED, OutgoingState.DISCONNECTED, 0xC00E0069),
    Progress.FAILURE: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.DISCONNECTED, 0xC00E0001),
    Progress.OWN_HOST: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.NEED_VALIDATION, 0),
}
"""For each progress: the connection status, the state of the queue, and the HRESULT of a ConnectionHistory
entry.

For errors that Windows gets from Winsock, the HRESULT is Winsock's.
"""


Route = Callable[[str, UUID | None], tuple[Target, ...]]
"""Returns the next hops to a queue manager, given its host (empty: unknown) or its GUID; see
`routing.Router`.
"""


def straight(host: str, manager: UUID | None) -> tuple[Target, ...]:
    """Returns the destination itself as the only next hop; used as the `Route` if messages are not routed."""
    return (Target(host.casefold(), NULL_GUID if manager is None else manager),)


Protect = Callable[[int, bytes], bytes | None]
"""Encrypts a message: called with its (lookup id, packet), returns the encrypted packet to transmit.

Returns None if the message cannot be encrypted and was therefore removed from its queue.
"""


class Carrier(Protocol):
    """Assigns channels to sessions; implemented by `transfer.Transfer`."""

    def submit(self, channel: OutgoingChannel, now: float) -> None:
        """Called when a channel has messages to send: sends them."""

    def hold(self, channel: OutgoingChannel) -> None:
        """Called when the queue of a channel was paused: sends no more of its messages."""

    def release(self, channel: OutgoingChannel, now: float) -> None:
        """Called when the queue of a channel was resumed: sends its messages again."""

    def kick(self, channel: OutgoingChannel, now: float) -> None:
        """Called when an operator requests an attempt now: connects without the rest of a pause."""

    def obstacle(self, channel: OutgoingChannel, now: float) -> Stall:
        """Returns why the messages of a channel are not sent now; `FLOWING` if no reason is known."""


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """The context that all channels share.

    `unix_time` and `monotonic` return seconds. `touch` announces work, which is submitted to the store at the
    end of this iteration of the event loop. `last_address` returns the assumed address of a queue manager, or
    an empty text: acknowledgments of streams are sent to this address if no route to the queue manager is
    known.
    """

    carrier: Carrier
    unix_time: Callable[[], int]
    monotonic: Callable[[], float]
    touch: Callable[[], None]
    route: Route = straight
    sequences: OutgoingSequences | None = None
    last_address: Callable[[UUID], str] = lambda _: ""


class OutgoingChannel:
    """The interface through which a link and a session use one outgoing queue; each queue has one channel.

    `protect` is called for messages with a privacy level.
    """

    def __init__(self, queue: OutgoingQueue, context: ChannelContext, protect: Protect | None = None) -> None:
        self.queue = queue
        self._context = context
        self._sequences = context.sequences
        self.core = queue.core
        self.sequence = queue.core.sequence  # of the sent messages, if they are transactional; else None
        self.protect = protect
        self.direct = queue.destination.kind is NameKind.DIRECT
        self._carries_acks = is_internal(queue.destination)  # OrderAcks and FinalAcks of streams
        self._hops: tuple[Target, ...] = ()

    # ---- what the queue tells, see `qm.queues.outgoing.Channel`

    def has_work(self) -> None:
        """Let the carrier send the messages of the queue; called when messages are available."""
        context = self._context
        context.carrier.submit(self, context.monotonic())
        context.touch()

    def held(self, on_hold: bool) -> None:
        """Let the carrier stop sending when the queue was paused (`on_hold` is True), and send again when it
        was resumed (False).
        """
        context = self._context
        if on_hold:
            context.carrier.hold(self)
        else:
            context.carrier.release(self, context.monotonic())
        context.touch()

    def kick(self) -> None:
        """Connect now, and send now what the receiver has not acknowledged in order."""
        context = self._context
        now = context.monotonic()
        if self._sequences is not None:
            self._sequences.resend_now(self.core, now)
        context.carrier.kick(self, now)
        context.touch()

    def obstacle(self) -> Stall:
        """Return why the messages of the queue are not sent now, as far as the carrier knows."""
        return self._context.carrier.obstacle(self, self._context.monotonic())

    # ---- where its messages go

    @property
    def hops(self) -> tuple[Target, ...]:
        """The next hops of the queue's messages, in the order in which they are tried; at least one."""
        if not self._hops:
            self._hops = self._located()
        return self._hops

    def _located(self) -> tuple[Target, ...]:
        """Returns the next hops: Get Destination Info (3.1.7.4) and Get Next Hops (3.1.7.5).

        Messages with a direct name are never routed.
        """
        name = self.queue.destination
        if name.direct is not None:
            return straight(name.direct.address, None)
        hops = self._context.route(*self.queue.locate())
        if not self._carries_acks or name.guid is None or any(hop.host for hop in hops):
            return hops
        address = self._context.last_address(name.guid)
        return (*hops, Target(address, name.guid)) if address else hops

    def relocate(self) -> bool:
        """Look up the next hops again; returns whether `hops` changed."""
        before, self._hops = self.hops, self._located()
        return self._hops != before

    @property
    def base_priority(self) -> int:
        """The value that is added to the priority of each message of the queue.

        Acknowledgments of streams are sent before all other messages. They free space at a receiver that is
        full; such a receiver accepts nothing else, so they must not wait behind a full window.
        """
        return _FIRST if self._carries_acks else self.queue.properties.base_priority

    def head(self) -> tuple[int, int]:
        """Returns (priority, number): the highest priority of the messages to send, and the number of
        messages with this priority.

        Returns (-1, 0) if the queue is on hold, or has no messages to send.
        """
        return head(self.core) if self.queue.may_send else (-1, 0)

    def acknowledged(self, owner: int, lookup_ids: array[int]) -> None:
        """Remove messages that the peer acknowledged; messages of a transactional sequence stay until their
        destination confirms them (QB-125).
        """
        self.core.acked(lookup_ids, owner)

    def released(self, owner: int, lookup_ids: array[int]) -> None:
        """Unlock messages that must be sent again."""
        self.core.release(lookup_ids, owner)

    def expired(self, owner: int, lookup_ids: array[int]) -> None:
        """Unlock expired messages, so that the queue manager's own expiry removes them with all side
        effects.
        """
        self.core.release(lookup_ids, owner)
        self.core.ledger.expire()

    def transmitted(self, now: float) -> None:
        """Start the resend timer of the queue's transactional sequence, unless the timer runs already."""
        if self._sequences is not None:
            self._sequences.transmitted(self.core, now)

    def ended(self, owner: int, *, idle: bool) -> None:
        """Make the messages that an ended session had sent ready to be sent again; do nothing if the session
        ended because it was `idle`.

        After an idle session, the resend timer decides when the messages are sent again. Without this rule, a
        receiver that does not answer would get them over and over (AMB-17).
        """
        if idle:
            return
        session_ended(self.core, owner)
        if self._sequences is not None and self.sequence is not None and not self.sequence.sent:
            self._sequences.stop(self.core)

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        """Update the state of the queue (ST-4) and its ConnectionHistory after progress of the connection."""
        queue = self.queue
        if progress is Progress.DISCONNECTING:
            queue.set_state(OutgoingState.DISCONNECTING)
        elif progress is Progress.DISCONNECTED or (
            progress is Progress.GONE and queue.outgoing_state is OutgoingState.DISCONNECTING
        ):
            queue.set_state(OutgoingState.DISCONNECTED)
        if progress not in _STATUS:
            return
        queue.next_attempt = 0
        queue.reached = queue.reached or progress is Progress.ESTABLISHED
        if progress is Progress.ESTABLISHED and self._sequences is not None:
            name = queue.destination
            manager = None if name.direct is not None else queue.locate()[1]
            self._sequences.reached(queue.core, address, manager)
        status, state, error = _STATUS[progress]
        queue.set_state(state)
        if address:
            queue.next_hops = (address,)
        queue.note(status, self._context.unix_time(), error, (address,) if address else (), detail)

    @property
    def answers_only(self) -> bool:
        """Whether the queue is used only for answers to messages of other queue managers."""
        return self.queue.answers_only

    @property
    def answers_for(self) -> str:
        """The address group whose messages are answered, if the queue is for answers only; else empty."""
        return self.queue.answers_for

    def scheduled(self, wait: float) -> None:
        """Record when the next connection attempt is due, for operators; `wait` is in seconds."""
        self.queue.next_attempt = self._context.unix_time() + math.ceil(wait)

    def come_home(self) -> bool:
        """Deliver the messages of this outgoing queue to a local queue, because the destination host is this
        computer. Returns whether they go to a local queue from now on.
        """
        return self.queue.deliver_locally()
