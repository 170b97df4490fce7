"""The outgoing queues of the queue manager as sessions need them."""

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
    Progress.NOT_ENABLED: (ConnectionStatus.TCP_NOT_ENABLED, OutgoingState.WAITING, 0x8007273F),
    Progress.LOW_RESOURCE: (ConnectionStatus.LOW_RESOURCE, OutgoingState.WAITING, 0xC00E0027),
    Progress.SEND_FAILURE: (ConnectionStatus.SOCKET_SEND_FAILURE, OutgoingState.DISCONNECTED, 0x80072746),
    Progress.NOT_READY: (ConnectionStatus.CONNECTION_NOT_READY, OutgoingState.DISCONNECTED, 0x8007274C),
    Progress.REFUSED: (ConnectionStatus.CONNECTION_REFUSED, OutgoingState.DISCONNECTED, 0xC00E0069),
    Progress.FAILURE: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.DISCONNECTED, 0xC00E0001),
    Progress.OWN_HOST: (ConnectionStatus.UNKNOWN_FAILURE, OutgoingState.NEED_VALIDATION, 0),
}
"""Status, state, and the HRESULT of a ConnectionHistory entry: Winsock's for what Windows learns from it."""


Route = Callable[[str, UUID | None], tuple[Target, ...]]
"""The next hops to the queue manager on a host (empty: unknown) or with a GUID, see `routing.Router`."""


def straight(host: str, manager: UUID | None) -> tuple[Target, ...]:
    """Without routing the next hop is the destination."""
    return (Target(host.casefold(), NULL_GUID if manager is None else manager),)


Protect = Callable[[int, bytes], bytes | None]
"""Encrypts the message with a lookup id before it is transmitted; None: it cannot, and has removed it."""


class Carrier(Protocol):
    """Brings channels and sessions together: `transfer.Transfer`."""

    def submit(self, channel: OutgoingChannel, now: float) -> None:
        """A channel has something to send."""

    def hold(self, channel: OutgoingChannel) -> None:
        """Its queue was paused."""

    def release(self, channel: OutgoingChannel, now: float) -> None:
        """Its queue was resumed."""


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """The context that all channels share. `unix_time` and `monotonic` give seconds; `touch` asks for a turn
    of the commit loop. Acknowledgments of streams that have no other way go to the address at which a session
    with their queue manager was last, which `last_address` gives.
    """

    carrier: Carrier
    unix_time: Callable[[], int]
    monotonic: Callable[[], float]
    touch: Callable[[], None]
    route: Route = straight
    sequences: OutgoingSequences | None = None
    last_address: Callable[[UUID], str] = lambda _: ""


class OutgoingChannel:
    """One outgoing queue as its link and its session see it; there is one for each.

    `protect` is called for messages with a privacy level.
    """

    def __init__(self, queue: OutgoingQueue, context: ChannelContext, protect: Protect | None = None) -> None:
        self.queue = queue
        self._context = context
        self._sequences = context.sequences
        self.core = queue.core
        self.sequence = queue.core.sequence  # the transactional sequence of what was sent; None: it has none
        self.protect = protect
        self.direct = queue.destination.kind is NameKind.DIRECT
        self._concludes = is_internal(queue.destination)
        self._hops: tuple[Target, ...] = ()

    # ---- what the queue tells, see `qm.queues.outgoing.Channel`

    def has_work(self) -> None:
        """Messages are available."""
        context = self._context
        context.carrier.submit(self, context.monotonic())
        context.touch()

    def held(self, on_hold: bool) -> None:
        """The queue was paused or resumed."""
        context = self._context
        if on_hold:
            context.carrier.hold(self)
        else:
            context.carrier.release(self, context.monotonic())
        context.touch()

    # ---- where its messages go

    @property
    def hops(self) -> tuple[Target, ...]:
        """The next hops of its messages, in the order in which they are tried; at least one."""
        if not self._hops:
            self._hops = self._located()
        return self._hops

    def _located(self) -> tuple[Target, ...]:
        """Get Destination Info (3.1.7.4) and Get Next Hops (3.1.7.5); a direct name is never routed."""
        name = self.queue.destination
        if name.direct is not None:
            return straight(name.direct.address, None)
        hops = self._context.route(*self.queue.locate())
        if not self._concludes or name.guid is None or any(hop.host for hop in hops):
            return hops
        address = self._context.last_address(name.guid)
        return (*hops, Target(address, name.guid)) if address else hops

    def relocate(self) -> bool:
        """Look anew where its messages go; whether `hops` changed."""
        before, self._hops = self.hops, self._located()
        return self._hops != before

    @property
    def base_priority(self) -> int:
        """Added to the priority of each message. Acknowledgments of streams go first: they make room at a
        receiver that takes nothing else while it is full, and it would never see them behind its window.
        """
        return _FIRST if self._concludes else self.queue.properties.base_priority

    def head(self) -> tuple[int, int]:
        """(priority, number) of the messages that go first; (-1, 0) on hold or when there is nothing
        to send."""
        return head(self.core) if self.queue.may_send else (-1, 0)

    def acknowledged(self, owner: int, lookup_ids: array[int]) -> None:
        """The peer keeps these messages; those of a sequence stay until their receiver says so (QB-125)."""
        self.core.acked(lookup_ids, owner)

    def released(self, owner: int, lookup_ids: array[int]) -> None:
        """These messages are to be sent again."""
        self.core.release(lookup_ids, owner)

    def expired(self, owner: int, lookup_ids: array[int]) -> None:
        """Unlocked, so that the queue manager's own expiry removes them with all that follows from it."""
        self.core.release(lookup_ids, owner)
        self.core.ledger.expire()

    def transmitted(self, now: float) -> None:
        """The resend timer of its sequence runs."""
        if self._sequences is not None:
            self._sequences.transmitted(self.core, now)

    def ended(self, owner: int, *, idle: bool) -> None:
        """A session that was idle leaves it to the resend timer when to send again what it had sent: else a
        receiver that says nothing would be asked over and over (AMB-17)."""
        if idle:
            return
        session_ended(self.core, owner)
        if self._sequences is not None and self.sequence is not None and not self.sequence.sent:
            self._sequences.stop(self.core)

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        """Keep the state (ST-4) and the ConnectionHistory."""
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
        """Whether nothing but answers to messages of other queue managers ever went there."""
        return self.queue.answers_only

    @property
    def answers_for(self) -> str:
        """The address group whose messages are answered there, and nothing else."""
        return self.queue.answers_for

    def scheduled(self, wait: float) -> None:
        """For operators: when the next attempt to connect is."""
        self.queue.next_attempt = self._context.unix_time() + math.ceil(wait)

    def come_home(self) -> bool:
        """Its host is this computer: whether its messages go to a local queue from now on."""
        return self.queue.deliver_locally()
