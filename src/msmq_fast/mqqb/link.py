"""Links between outgoing queues and peers, and the actions that need sockets (`Effect`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.peersession import PeerSession
from msmq_fast.security.addresses import address_group, is_confined


@dataclass(frozen=True, slots=True)
class Resolve:
    """Resolve `host` to addresses; completed by `Transfer.resolved` or `Transfer.failed`."""

    link: int
    host: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask `address` by UDP whether it would accept a session; completed by `Transfer.pinged`."""

    link: int
    address: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a TCP connection to `address`; completed by `Transfer.connected` or `Transfer.failed`."""

    link: int
    address: str


Effect = Resolve | Ping | Connect


class LinkState(Enum):
    """The state of a link; WAITING is WAITING_RECONNECT of the session table."""

    IDLE = "idle"
    RESOLVING = "resolving"
    PINGING = "pinging"
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    OPEN = "open"
    QUEUED = "waiting for its turn to connect"
    WAITING = "waiting to reconnect"


@dataclass(slots=True, eq=False)
class Link:
    """One list of next hops, and the outgoing queues that use it.

    - `addresses` are the addresses of the hop that is being tried: the host name of a hop is resolved when
      the hop is tried.
    - `hop` is the index of this hop in `hops`; `attempt` is the index of the address that is being tried.

    The specification calls `hops` with `addresses` NextHopCollection, and the two indexes NextHopIndexer.
    """

    number: int
    hops: tuple[Target, ...]
    state: LinkState = LinkState.IDLE
    queues: dict[OutgoingChannel, None] = field(default_factory=dict)
    hop: int = 0
    addresses: list[str] = field(default_factory=list)
    attempt: int = 0
    pinged: bool = False
    retry: bool = False
    session: PeerSession | None = None
    due: float | None = None
    """Monotonic seconds of the next attempt, while the link waits to reconnect."""

    @property
    def target(self) -> Target:
        """The hop that is being tried."""
        return self.hops[self.hop]

    @property
    def address(self) -> str:
        """The address that is being tried."""
        return self.addresses[self.attempt] if self.attempt < len(self.addresses) else ""

    @property
    def answers_only(self) -> bool:
        """Whether the link is used only for answers to messages of other queue managers."""
        return all(queue.answers_only for queue in self.queues)

    def may_lead_to(self, address: str) -> bool:
        """Whether the link may connect to an address to which its host name was resolved.

        The peer that named a host for answers may also control to which addresses the name resolves. So
        answers are not sent to an address that denotes another computer for the peer than here, such as a
        loopback address, unless it is the address of the peer itself (see `qm.answers.may_answer`).
        """
        return (
            not self.answers_only
            or self.target.guid != NULL_GUID
            or not is_confined(address)
            or address_group(address) in {queue.answers_for for queue in self.queues}
        )

    @property
    def backlog(self) -> bool:
        """Whether a queue of the link has messages to send."""
        return any(queue.head()[1] for queue in self.queues)
