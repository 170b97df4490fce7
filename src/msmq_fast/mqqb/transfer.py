"""The transfer of outgoing messages: which queue needs which peer, and how the queue gets a session to that
peer (3.1.5.2, 3.1.7.12).
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from random import Random
from uuid import UUID

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.dialing import Backoff, Dials, Purpose
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.link import Connect, Effect, Link, LinkState, Ping, Resolve
from msmq_fast.mqqb.linktable import LinkTable
from msmq_fast.mqqb.peersession import PeerSession
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session, Wake
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionowner import SessionOwner
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.protocol.text import counted
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import for_each
from msmq_fast.qm.queues.stall import FLOWING, Stall, StallCause

__all__ = [
    "Connect",
    "Effect",
    "Link",
    "LinkState",
    "Ping",
    "Resolve",
    "Transfer",
]

_ENDINGS = {
    CloseReason.REFUSED: Progress.REFUSED,
    CloseReason.HANDSHAKE_TIMEOUT: Progress.NOT_READY,
    CloseReason.STORE_FAILED: Progress.LOW_RESOURCE,
    CloseReason.SLOW_READER: Progress.SEND_FAILURE,
}
"""The progress to report when a session ends, by the reason; the same whether the session was open or not."""
_TURN = 100
"""Maximum number of links that are retried in one turn of the loop; the others have the next turn."""
_CLOSED_EARLY = "the peer closed it while messages waited"
_SILENCE = 5.0
"""Seconds after which a peer that acknowledges nothing counts as an obstacle: longer than acknowledgments
take.
"""
_ORDERLY = (CloseReason.IDLE, CloseReason.STOPPED, CloseReason.SUPERSEDED)


class Transfer:
    """Assigns outgoing queues to sessions, and opens sessions.

    `on_effect` is called with each action that needs a socket: Resolve, Ping or Connect. All queues that lead
    to a peer share one session, which may be one that the peer opened. `is_own` returns whether an address
    belongs to this computer: such addresses are never dialled. Times are monotonic seconds.

    A link that fails waits longer after each failure (see `Backoff`), until a session with its peer opens or
    the peer pings. The hops of a link without an address are looked up again after the same pauses, and also
    when routes change.
    """

    def __init__(
        self,
        session_context: SessionContext,
        on_effect: Callable[[Effect, float], None],
        *,
        ping: bool = False,
        is_own: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._session_context = session_context
        self._is_own = is_own
        self._closing: dict[PeerSession, list[OutgoingChannel]] = {}
        self._on_effect = on_effect
        self._ping = ping
        self._table = LinkTable()
        self._retries: Deadlines[Link] = Deadlines()
        self._unlocated: dict[Link, None] = {}  # their hops have no address
        self.dials = Dials(session_context.limits.dials)
        chance = Random(session_context.guid.int).random  # noqa: S311 - jitter only has to differ between computers
        self._backoff = Backoff(session_context.timers.retry, session_context.timers.retry_max, chance)

    @property
    def links(self) -> tuple[Link, ...]:
        """All links, for management: those that have a session or messages to send."""
        return self._table.all()

    # -------------------------------------------------------------------------------------------- queues

    def submit(self, queue: OutgoingChannel, now: float) -> None:
        """Called when a queue has messages to send: its session sends them, or its link gets a session.

        A repeated call has no effect.
        """
        link = self._enlist(queue, now)
        if link.state is LinkState.OPEN and link.session is not None:
            _pump(link.session, now)
        elif link.state is LinkState.IDLE:
            self._connect(link, now)

    def _enlist(self, queue: OutgoingChannel, now: float) -> Link:
        """Add a queue to its link, and return the link."""
        link = self._table.find(queue.hops) or self._table.add(queue.hops)
        if queue not in link.queues:
            if link.state is LinkState.QUEUED and link.answers_only and not queue.answers_only:
                self._retries.set(link, now)  # it need not wait for its turn among answers
            link.queues[queue] = None
            if link.session is not None and link.state is LinkState.OPEN:
                link.session.attach(queue)
                queue.progress(Progress.ESTABLISHED, link.session.peer_address, "")
        return link

    def _connect(self, link: Link, now: float) -> None:
        """Get a session for an idle link, now or when its backoff is over."""
        due = self._backoff.until(link.hops, now)
        if due is None or self._join(link, now):
            self._begin(link, now)
        else:
            link.state = LinkState.WAITING
            self._schedule(link, due, now)

    def withdraw(self, queue: OutgoingChannel) -> None:
        """Send nothing more from a queue, because it was paused or deleted."""
        link = self._table.find(queue.hops)
        if link is None or queue not in link.queues:
            return
        del link.queues[queue]
        if link.session is not None:
            link.session.detach(queue)

    def hold(self, queue: OutgoingChannel) -> None:
        """Pause a queue (3.1.7.13). If its session serves no other queue, the peer of the session is notified
        (AMB-68).
        """
        link = self._table.find(queue.hops)
        served = link is not None and queue in link.queues
        self.withdraw(queue)
        if link is not None and served and link.session is not None and not link.session.serves:
            link.session.pause()
            link.session.wake()

    def release(self, queue: OutgoingChannel, now: float) -> None:
        """Resume Queue (3.1.7.14): send waiting messages at once, on a new session if necessary (AMB-69)."""
        link = self._table.find(queue.hops)
        if link is not None and link.session is not None:
            link.session.resume()
        self.kick(queue, now)

    def kick(self, queue: OutgoingChannel, now: float) -> None:
        """End the pause before the next attempt to connect, because an operator requests an attempt now."""
        link = self._table.find(queue.hops)
        self._backoff.reset(queue.hops)
        if link is not None and link.state is LinkState.WAITING:
            self._retries.set(link, now)
        if queue.head()[1]:
            self.submit(queue, now)

    def obstacle(self, queue: OutgoingChannel, now: float) -> Stall:
        """Returns why the messages of a queue are not sent now, if the reason is not a failed connection."""
        link = self._table.find(queue.hops)
        if link is None or queue not in link.queues:
            return FLOWING
        if link.state is LinkState.QUEUED:
            return Stall(
                StallCause.QUEUED,
                "waits for its turn to connect: "
                f"{counted(self.dials.active, 'attempt runs', 'attempts run')} (limits.dials)",
            )
        session = link.session
        if session is None or link.state is not LinkState.OPEN:
            return FLOWING
        silence, in_flight = now - session.heard_at, session.sent.unacknowledged
        if silence < _SILENCE or not in_flight:
            return FLOWING
        return Stall(
            StallCause.SILENT,
            f"{session.peer_address} has acknowledged nothing for {silence:.0f} s, "
            f"and has {counted(in_flight, 'message')} that it has not acknowledged",
        )

    # ------------------------------------------------------------------------------------------ sessions

    def answered(self, session: PeerSession) -> None:
        """Report to the queues of a session that its peer has accepted our EstablishConnection (see
        `SessionOwner`).
        """
        for link in self._table.of_session(session):
            self._tell(link, Progress.ANSWERED, session.peer_address, "")

    def opened(self, session: PeerSession, now: float) -> None:
        """Let a session that is open now serve all links that lead to its peer."""
        for link in self._table.of_session(session):
            self._attach(link, session)
        for link in self._table.leading_to(session.peer_guid, session.peer_address):
            if link.session is None:
                self._backoff.reset(link.hops)
                if self._serves(session, link):
                    self._attach(link, session)
                elif link.state is LinkState.WAITING:
                    self._retries.set(link, now)
        _pump(session, now)  # with all of them: what goes first may be in the last one

    def _attach(self, link: Link, session: PeerSession) -> None:
        self._table.bind(link, session)
        link.state = LinkState.OPEN
        self._backoff.reset(link.hops)
        self._settle(link)
        for queue in link.queues:
            session.attach(queue)
            queue.progress(Progress.ESTABLISHED, session.peer_address, "")

    def _serves(self, session: PeerSession, link: Link) -> bool:
        """Whether a session that was not opened for `link` leads to one of the hops of the link (AMB-18)."""
        if session.state is not SessionState.OPEN or not (
            session.initiator or self._session_context.switches.amb18_reuse_accepted
        ):
            return False
        for hop in link.hops:
            if hop.guid != NULL_GUID:
                if session.peer_guid == hop.guid and self._is(session, hop.guid):
                    return True
            elif session.peer_address == hop.host:
                return True
        return link.target.guid == NULL_GUID and session.peer_address in link.addresses

    def _is(self, session: PeerSession, guid: UUID) -> bool:
        """Whether a session whose peer claims a GUID leads to that queue manager.

        It does if it was dialled for that queue manager, at an address from the directory or a route, or if
        its address is the one at which that queue manager is assumed to be (see `Peers.holds`).
        """
        return session.server_guid == guid or self._session_context.peers.holds(session)

    def closed(self, session: PeerSession, now: float) -> None:
        """Detach the links of a session that has ended. They get another session if they have messages to
        send.
        """
        for link in self._table.of_session(session):
            was_open = link.state is LinkState.OPEN
            self._table.bind(link, None)
            self._told_end(link, session, was_open)
            if not link.backlog:
                self._rest(link)
            elif not was_open:
                self._fail(link, now)
            elif session.initiator or not self._lasted(session, now):
                self._wait(link, now)
            else:
                self._begin(link, now)
        self._grant(now)

    def _lasted(self, session: PeerSession, now: float) -> bool:
        """Whether a session that the peer opened lasted so long that its links may reconnect at once.

        Without this check, after a refusal or a session that ended as soon as it was open, both sides would
        dial in turn without a pause.
        """
        if session.opened_at is None or (session.reason is not None and session.reason.is_refusal):
            return False
        return now - session.opened_at >= self._session_context.timers.retry

    def _told_end(self, link: Link, session: PeerSession, was_open: bool) -> None:
        """Report the end of a session, and the error if any, to the queues of a link.

        The state of the queues is Disconnecting until the transport is closed, then Disconnected (3.1.5.9).
        """
        reason = session.reason
        assert reason is not None  # noqa: S101 - of every session that was closed
        lost = reason is CloseReason.DISCONNECTED
        progress = _ENDINGS.get(reason)
        if lost and not was_open:
            progress = Progress.NOT_READY
        elif lost and (session.detail or link.backlog):
            progress = Progress.SEND_FAILURE
        elif progress is None and not lost and reason not in _ORDERLY:
            progress = Progress.FAILURE
        if progress is not None:
            detail = reason.value if session.detail or not lost else _CLOSED_EARLY
            self._tell(link, progress, session.peer_address, detail)
        self._tell(link, Progress.DISCONNECTED if lost else Progress.DISCONNECTING, session.peer_address, "")
        if not lost:
            self._closing.setdefault(session, []).extend(link.queues)

    def gone(self, session: PeerSession) -> None:
        """Report to the queues of an ended session that its connection is closed."""
        for queue in self._closing.pop(session, ()):
            queue.progress(Progress.GONE, session.peer_address, "")

    # ----------------------------------------------------------------------------------------- connecting

    def _begin(self, link: Link, now: float, *, retry: bool = False) -> None:
        """Start to connect a link again: look up its hops, use a session that leads to one of them, or else
        try the first hop.
        """
        link.hop, link.attempt, link.retry = 0, 0, retry
        self._table.locate(link, ())
        self._retries.set(link, None)
        if link.session is not None or self._join(link, now):
            return
        link.state = LinkState.WAITING
        for queue in [queue for queue in link.queues if queue.relocate()]:
            del link.queues[queue]
            self.submit(queue, now)
        if not link.queues:
            self._rest(link)
            return
        self._try_hop(link, now)

    def _join(self, link: Link, now: float) -> bool:
        peers = self._session_context.peers
        for hop in link.hops:
            found = peers.at(hop.host) if hop.guid == NULL_GUID else peers.of_guid(hop.guid)
            if self._join_one(found, link, now):
                return True
        return any(self._join_one(peers.at(address), link, now) for address in link.addresses)

    def _join_one(self, sessions: list[PeerSession], link: Link, now: float) -> bool:
        for session in sessions:
            if self._serves(session, link):
                self._attach(link, session)
                _pump(session, now)
                return True
        return False

    def _try_hop(self, link: Link, now: float) -> None:
        """Try the addresses of the current hop, or of the next hop whose host is known."""
        self._table.locate(link, ())
        link.attempt = 0
        while not link.target.host and link.hop + 1 < len(link.hops):
            link.hop += 1
        host = link.target.host
        if link.target.guid == self._session_context.guid:
            self._come_home(link, now)
        elif not host:
            self._tell(link, Progress.ROUTE_FAILURE, "", "no route or address for this queue manager")
            self._fail(link, now)
            if link.state is LinkState.WAITING:
                self._unlocated[link] = None
        elif _is_literal(host):
            self._go_on(link, [host], now)
        elif self._may_connect(link, Purpose.ANSWERS_BY_NAME):
            link.state = LinkState.RESOLVING
            self._tell(link, Progress.RESOLVING, "", "")
            self._on_effect(Resolve(link.number, host), now)

    def _may_connect(self, link: Link, purpose: Purpose) -> bool:
        """Whether a link may connect now; otherwise it waits for a slot (see `Dials`).

        `purpose` is the purpose of the slot if the link is only for answers; all other links get slots for
        messages.
        """
        if self.dials.take(link, purpose if link.answers_only else Purpose.MESSAGES):
            return True
        link.state = LinkState.QUEUED
        return False

    def _grant(self, now: float) -> None:
        """Let the links that have got a slot continue: the next call of `expire` connects them."""
        for link in self.dials.granted():
            self._retries.set(link, now)

    def routes_changed(self, now: float) -> None:
        """Retry the links without an address, because the directory or the routes have changed."""
        for link in self._unlocated:
            self._backoff.reset(link.hops)
            self._retries.set(link, now)
        self._unlocated.clear()

    def heard_from(self, address: str, now: float) -> None:
        """Shorten the pause before the next attempt, because a queue manager at this address has pinged us.

        The links that wait for this queue manager are tried again after the shortest pause at the latest.
        """
        for link in self._table.leading_to(address):
            if link.state is LinkState.WAITING:
                self._backoff.reset(link.hops)
                due = self._backoff.failed(link.hops, now)
                if link.due is not None and due < link.due:
                    self._schedule(link, due, now)

    def _unresolved(self, link: Link, detail: str, now: float) -> None:
        """Try the next hop, because the host has no address."""
        self._tell(link, Progress.DNS_FAILURE, "", detail)
        if link.hop + 1 < len(link.hops):
            link.hop += 1
            self._try_hop(link, now)
        else:
            self._fail(link, now)
            self._grant(now)

    def resolved(self, number: int, addresses: list[str], now: float) -> None:
        """Connect the link `number`, whose host name was resolved, to the first address that answers."""
        link = self._table.numbered(number)
        if link is not None and link.state is LinkState.RESOLVING:
            allowed = [each for each in addresses if self._is_own(each) or link.may_lead_to(each)]
            if addresses and not allowed:
                self._unresolved(link, f"answers are not sent to {', '.join(addresses)}", now)
            else:
                self._go_on(link, allowed, now)

    def _go_on(self, link: Link, addresses: list[str], now: float) -> None:
        """Connect to the first of the addresses of a hop, unless a session to one of them can be used."""
        self._table.locate(link, addresses)
        link.attempt = 0
        if not link.addresses:
            self._unresolved(link, "no address", now)
        elif any(self._is_own(address) for address in link.addresses):
            self._come_home(link, now)
        elif not self._join(link, now):
            self._dial(link, now)

    def _come_home(self, link: Link, now: float) -> None:
        """Deliver the messages of the link locally, because the hop is this computer.

        Either a host name has turned out to denote this computer, or the destination is a foreign system for
        which this computer is the connector.
        """
        self._tell(link, Progress.OWN_HOST, link.address, "")
        taken = [queue.come_home() for queue in link.queues]
        if all(taken):
            self._rest(link)
        else:
            self._fail(link, now)
        self._grant(now)

    def _dial(self, link: Link, now: float) -> None:
        self._retries.set(link, None)
        if not self._may_connect(link, Purpose.ANSWERS):
            return
        self._tell(link, Progress.IN_PROCESS, link.address, "")
        link.pinged = self._ping and not link.retry  # an attempt of the retry timer does not ping (AMB-71)
        if link.pinged:
            link.state = LinkState.PINGING
            self._on_effect(Ping(link.number, link.address), now)
        else:
            link.state = LinkState.CONNECTING
            self._on_effect(Connect(link.number, link.address), now)

    def pinged(self, number: int, good: bool, now: float) -> None:
        """Continue the attempt of the link `number` after the ping of its peer was answered or has timed out.

        `good`: the peer has answered that it would accept a session.
        """
        link = self._table.numbered(number)
        if link is None or link.state is not LinkState.PINGING:
            return
        if good:
            link.state = LinkState.CONNECTING
            self._on_effect(Connect(link.number, link.address), now)
        else:
            self._tell(link, Progress.PING_FAILURE, link.address, "")
            self._attempt_failed(link, now)

    def connected(self, number: int, now: float, owner: SessionOwner[Session], wake: Wake) -> Session | None:
        """Returns the session for a connection that was opened; None if the connection is no longer needed.

        `owner` must forward the events of the session to this object.
        """
        link = self._table.numbered(number)
        if link is None or link.state is not LinkState.CONNECTING:
            return None
        session = Session(
            self._session_context,
            link.address,
            now,
            initiator=True,
            server_guid=link.target.guid,
            pinged=link.pinged,
            owner=owner,
            wake=wake,
        )
        self._table.bind(link, session)
        link.state = LinkState.HANDSHAKE
        return session

    def failed(
        self, number: int, detail: str, now: float, cause: Progress = Progress.CONNECT_FAILURE
    ) -> None:
        """End the attempt of the link `number`, because a name could not be resolved or a connection could
        not be opened. `cause` is the reason, `detail` describes it.
        """
        link = self._table.numbered(number)
        if link is None:
            return
        if link.state is LinkState.RESOLVING:
            self._unresolved(link, detail, now)
        elif link.state is LinkState.CONNECTING:
            self._tell(link, cause, link.address, detail)
            self._attempt_failed(link, now)

    # -------------------------------------------------------------------------------------------- retrying

    def _attempt_failed(self, link: Link, now: float) -> None:
        """Try the next address or hop later; after the last one, the attempt as a whole has failed."""
        if link.attempt + 1 < len(link.addresses) or link.hop + 1 < len(link.hops):
            self._wait(link, now)
        else:
            self._fail(link, now)
        self._grant(now)

    def _fail(self, link: Link, now: float) -> None:
        """Schedule a new attempt after no hop could be reached; the pause grows with each failure."""
        self._wait(link, now, self._backoff.failed(link.hops, now))

    def _wait(self, link: Link, now: float, due: float | None = None) -> None:
        if not link.backlog:
            self._rest(link)
            return
        self._settle(link)
        link.state = LinkState.WAITING
        self._schedule(link, now + self._session_context.timers.retry if due is None else due, now)

    def _schedule(self, link: Link, due: float, now: float) -> None:
        link.due = due
        self._retries.set(link, due)
        for queue in link.queues:
            queue.scheduled(due - now)

    def _settle(self, link: Link) -> None:
        """Stop the timer of a link, release its slot, and remove it from the links without an address."""
        link.due = None
        self._retries.set(link, None)
        self.dials.release(link)
        self._unlocated.pop(link, None)

    def _rest(self, link: Link) -> None:
        """Forget a link that has nothing to send.

        Its queues return through `submit`, which dials at once unless the latest attempts failed. Later
        socket events of this link are ignored.
        """
        link.state = LinkState.IDLE
        self._settle(link)
        link.queues.clear()
        self._table.remove(link)

    def _tell(self, link: Link, progress: Progress, address: str, detail: str) -> None:
        for queue in link.queues:
            queue.progress(progress, address, detail)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._retries.next_deadline()

    def expire(self, now: float) -> None:
        """Run the Session Retry Connect Timer (3.1.6.1): each link whose pause is over tries its next address
        or its next hop; after the last hop, the link starts again with the first.
        """
        try:
            for_each(self._retries.take(now, _TURN), lambda link: self._retry(link, now))
        finally:
            self._grant(now)

    def _retry(self, link: Link, now: float) -> None:
        self._unlocated.pop(link, None)
        if link.session is not None:
            return
        if not link.backlog:
            self._rest(link)
        elif link.state is LinkState.QUEUED:
            if link.addresses:
                self._dial(link, now)
            else:
                self._try_hop(link, now)
        elif link.attempt + 1 < len(link.addresses):
            link.attempt, link.retry = link.attempt + 1, True
            self._dial(link, now)
        elif link.addresses and link.hop + 1 < len(link.hops):
            link.hop, link.retry = link.hop + 1, True
            self._try_hop(link, now)
        else:
            self._begin(link, now, retry=True)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _pump(session: PeerSession, now: float) -> None:
    """Fill the window, then wake the transport. The session may end if the store has failed."""
    session.pump(now)
    session.wake()
