"""Outgoing messages: which queue needs which peer, and how a session to that peer comes about
(3.1.5.2, 3.1.7.12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from itertools import count
from typing import Protocol
from uuid import UUID

from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.node import Node
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sending import Source
from msmq_fast.mqqb.session import Session, State
from msmq_fast.mqqb.timers import earliest


@dataclass(frozen=True, slots=True)
class Target:
    """The queue manager that an outgoing queue leads to.

    `host` is a name or a literal address, empty if only the GUID is known; `guid` is NULL_GUID for
    direct names.
    """

    host: str
    guid: UUID = NULL_GUID


class Progress(Enum):
    """What a queue hears of its connection: the statuses of MS-MQDMPR 3.1.1.3 that apply here."""

    RESOLVING = "resolving"
    IN_PROCESS = "in process"
    ANSWERED = "answered"
    ESTABLISHED = "established"
    DNS_FAILURE = "name not resolved"
    ROUTE_FAILURE = "no route"
    PING_FAILURE = "ping failed"
    CONNECT_FAILURE = "connection failed"
    REFUSED = "connection refused by the peer"
    DISCONNECTED = "disconnected"


class Outgoing(Source, Protocol):
    """An outgoing queue as the transfer sees it."""

    @property
    def target(self) -> Target:
        """Where its messages go."""

    def relocate(self) -> bool:
        """Look anew for a host that was not known; whether `target` changed."""

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        """Something happened to its connection."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """Find the addresses of `host`; `Transfer.resolved` or `Transfer.failed` ends it."""

    link: int
    host: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask `address` by UDP whether it would accept a session; `Transfer.pinged` ends it."""

    link: int
    address: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a TCP connection to `address`; `Transfer.connected` or `Transfer.failed` ends it."""

    link: int
    address: str


Effect = Resolve | Ping | Connect


class LinkState(Enum):
    """Where a link stands; WAITING is WAITING_RECONNECT of the session table."""

    IDLE = "idle"
    RESOLVING = "resolving"
    PINGING = "pinging"
    CONNECTING = "connecting"
    HANDSHAKE = "handshake"
    OPEN = "open"
    WAITING = "waiting to reconnect"


@dataclass(slots=True, eq=False)
class Link:
    """One target and the queues that lead to it."""

    number: int
    target: Target
    state: LinkState = LinkState.IDLE
    queues: list[Outgoing] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    attempt: int = 0
    pinged: bool = False
    retry: bool = False
    session: Session | None = None
    deadline: float | None = None

    @property
    def address(self) -> str:
        """The address that is tried now."""
        return self.addresses[self.attempt] if self.attempt < len(self.addresses) else ""

    @property
    def backlog(self) -> bool:
        """Whether a queue has something to send."""
        return any(queue.head()[1] for queue in self.queues)


class Transfer:
    """Brings outgoing queues and sessions together.

    `on_effect` is told what has to be done by somebody with sockets. A session is shared by all
    queues that lead to its peer, also one that the peer opened. Times are monotonic seconds.
    """

    def __init__(self, node: Node, on_effect: Callable[[Effect, float], None], *, ping: bool = False) -> None:
        self._node = node
        self._on_effect = on_effect
        self._ping = ping
        self._numbers = count(1)
        self._links: dict[Target, Link] = {}
        self._by_number: dict[int, Link] = {}

    @property
    def links(self) -> tuple[Link, ...]:
        """All links, for management."""
        return tuple(self._links.values())

    # -------------------------------------------------------------------------------------------- queues

    def submit(self, queue: Outgoing, now: float) -> None:
        """A queue has something to send; may be said any number of times."""
        link = self._links.get(queue.target)
        if link is None:
            link = Link(next(self._numbers), queue.target)
            self._links[queue.target] = link
            self._by_number[link.number] = link
        if queue not in link.queues:
            link.queues.append(queue)
            if link.session is not None and link.state is LinkState.OPEN:
                link.session.attach(queue)
                queue.progress(Progress.ESTABLISHED, link.session.peer_address, "")
        if link.state is LinkState.OPEN and link.session is not None:
            link.session.pump(now)
            link.session.wake()
        elif link.state is LinkState.IDLE:
            self._begin(link, now)

    def withdraw(self, queue: Outgoing) -> None:
        """A queue is paused or gone: nothing more of it is sent."""
        link = self._links.get(queue.target)
        if link is None or queue not in link.queues:
            return
        link.queues.remove(queue)
        if link.session is not None:
            link.session.detach(queue)

    # ------------------------------------------------------------------------------------------ sessions

    def adopt(self, session: Session) -> None:
        """Follow a session, accepted or dialled, to its end."""
        session.on_answer = self._answered
        session.on_open = self._opened
        session.on_close = self._closed

    def _answered(self, session: Session) -> None:
        for link in self.links:
            if link.session is session:
                self._tell(link, Progress.ANSWERED, session.peer_address, "")

    def _opened(self, session: Session, now: float) -> None:
        for link in self.links:
            if link.session is session or (link.session is None and self._serves(session, link)):
                self._attach(link, session, now)

    def _attach(self, link: Link, session: Session, now: float) -> None:
        link.session, link.state, link.deadline = session, LinkState.OPEN, None
        for queue in link.queues:
            session.attach(queue)
            queue.progress(Progress.ESTABLISHED, session.peer_address, "")
        session.pump(now)
        session.wake()

    def _serves(self, session: Session, link: Link) -> bool:
        """Whether a session that this link did not dial leads to its target (AMB-18)."""
        if session.state is not State.OPEN or not (
            session.initiator or self._node.switches.amb18_reuse_accepted
        ):
            return False
        if link.target.guid != NULL_GUID:
            return session.peer_guid == link.target.guid
        return session.peer_address in (link.target.host, *link.addresses)

    def _closed(self, session: Session, now: float) -> None:
        for link in self.links:
            if link.session is not session:
                continue
            was_open = link.state is LinkState.OPEN
            link.session = None
            refused = session.reason is CloseReason.REFUSED
            progress = Progress.REFUSED if refused else Progress.DISCONNECTED
            self._tell(link, progress, session.peer_address, session.reason.value if session.reason else "")
            if not link.backlog:
                self._rest(link)
            elif session.initiator or not was_open:
                self._wait(link, now)
            else:
                self._begin(link, now)

    # ----------------------------------------------------------------------------------------- connecting

    def _begin(self, link: Link, now: float, *, retry: bool = False) -> None:
        """From the start: a session that serves already, a literal address, or the resolver."""
        link.attempt, link.addresses, link.deadline, link.retry = 0, [], None, retry
        for session in self._node.peers:
            if self._serves(session, link):
                self._attach(link, session, now)
                return
        host = link.target.host
        if not host:
            for queue in [queue for queue in link.queues if queue.relocate()]:
                link.queues.remove(queue)
                self.submit(queue, now)
            self._tell(link, Progress.ROUTE_FAILURE, "", "the address of this queue manager is not known")
            self._wait(link, now)
            return
        if _is_literal(host):
            self._go_on(link, [host], now)
            return
        link.state = LinkState.RESOLVING
        self._tell(link, Progress.RESOLVING, "", "")
        self._on_effect(Resolve(link.number, host), now)

    def resolved(self, number: int, addresses: list[str], now: float) -> None:
        """The addresses of a host, in the order in which they are to be tried."""
        link = self._by_number[number]
        if link.state is LinkState.RESOLVING:
            self._go_on(link, addresses, now)

    def _go_on(self, link: Link, addresses: list[str], now: float) -> None:
        """Go on with the first address, unless a session to one of them exists."""
        link.addresses, link.attempt = list(dict.fromkeys(addresses)), 0
        if not link.addresses:
            self._tell(link, Progress.DNS_FAILURE, "", "no address")
            self._wait(link, now)
            return
        for session in self._node.peers:
            if self._serves(session, link):
                self._attach(link, session, now)
                return
        self._dial(link, now)

    def _dial(self, link: Link, now: float) -> None:
        link.deadline = None
        self._tell(link, Progress.IN_PROCESS, link.address, "")
        link.pinged = self._ping and not link.retry  # an attempt of the retry timer does not ping (AMB-71)
        if link.pinged:
            link.state = LinkState.PINGING
            self._on_effect(Ping(link.number, link.address), now)
        else:
            link.state = LinkState.CONNECTING
            self._on_effect(Connect(link.number, link.address), now)

    def pinged(self, number: int, good: bool, now: float) -> None:
        """A ping was answered, or not."""
        link = self._by_number[number]
        if link.state is not LinkState.PINGING:
            return
        if good:
            link.state = LinkState.CONNECTING
            self._on_effect(Connect(link.number, link.address), now)
        else:
            self._tell(link, Progress.PING_FAILURE, link.address, "")
            self._wait(link, now)

    def connected(self, number: int, now: float) -> Session | None:
        """The session for a connection that was opened; None if it is not wanted any more."""
        link = self._by_number[number]
        if link.state is not LinkState.CONNECTING:
            return None
        session = Session(
            self._node, link.address, now, initiator=True, server_guid=link.target.guid, pinged=link.pinged
        )
        link.session, link.state = session, LinkState.HANDSHAKE
        self.adopt(session)
        return session

    def failed(self, number: int, detail: str, now: float) -> None:
        """A name was not resolved, or a connection not opened."""
        link = self._by_number[number]
        if link.state is LinkState.RESOLVING:
            self._tell(link, Progress.DNS_FAILURE, "", detail)
        elif link.state is LinkState.CONNECTING:
            self._tell(link, Progress.CONNECT_FAILURE, link.address, detail)
        else:
            return
        self._wait(link, now)

    # -------------------------------------------------------------------------------------------- retrying

    def _wait(self, link: Link, now: float) -> None:
        if not link.backlog:
            self._rest(link)
            return
        link.state = LinkState.WAITING
        link.deadline = now + self._node.timers.retry

    def _rest(self, link: Link) -> None:
        """Nothing to send: the queues come back by `submit`, which dials at once."""
        link.state, link.deadline = LinkState.IDLE, None
        link.queues.clear()

    def _tell(self, link: Link, progress: Progress, address: str, detail: str) -> None:
        for queue in link.queues:
            queue.progress(progress, address, detail)

    @property
    def next_deadline(self) -> float | None:
        """When `handle_deadline` is to be called."""
        return earliest(*(link.deadline for link in self._links.values()))

    def handle_deadline(self, now: float) -> None:
        """Session Retry Connect Timer: the next address, or the resolver again behind the last one
        (3.1.6.1)."""
        for link in self.links:
            if link.deadline is None or now < link.deadline:
                continue
            link.deadline = None
            if not link.backlog:
                self._rest(link)
            elif link.attempt + 1 < len(link.addresses):
                link.attempt, link.retry = link.attempt + 1, True
                self._dial(link, now)
            else:
                self._begin(link, now, retry=True)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
