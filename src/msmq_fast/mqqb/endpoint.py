"""The MS-MQQB endpoint of one queue manager: accepted and dialled sessions, outgoing queues, pings, the
history timer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom
from uuid import UUID

from msmq_fast.mqqb import ping
from msmq_fast.mqqb.limits import Admission, Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session, Wake
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionowner import ignore
from msmq_fast.mqqb.transfer import Connect, Effect, Ping, Resolve, Transfer
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.timed import TimedGroup
from msmq_fast.store.schema import Table

TRIM_INTERVAL = 10.0
"""Seconds between two trims of the stored history."""
TRIM_AGAIN = 0.25
TRIM_RECORDS = 200
"""Maximum number of stored records that one trim removes."""


def _random_cookie() -> int:
    return SystemRandom().getrandbits(32)


@dataclass(frozen=True, slots=True)
class SendPing:
    """Send a datagram to the ping port of `address`; answers go to `Endpoint.ping_answered`."""

    address: str
    datagram: bytes


@dataclass(frozen=True, slots=True)
class _Part:
    """A timer of the endpoint itself: its deadline, and the function to call at the deadline."""

    next_deadline: Callable[[], float | None]
    expire: Callable[[float], None]


class Endpoint:
    """All sessions of one queue manager, sans-IO. Times are monotonic seconds.

    - `execute` is called with each action that needs a socket: Resolve, Connect or SendPing.
    - `trim_history(before, limit)` removes records of the duplicate history from the store: at most `limit`,
      and only those with entries before the number `before`. It returns the number of removed records.
    - `on_close` is called for every session that has ended, after the reason of its end was counted.
    - `is_own` returns whether an address belongs to this computer.
    - `cookie` returns 32 random bits.

    Each session has a deadline of its own; `next_deadline` covers all other timers.
    """

    def __init__(
        self,
        session_context: SessionContext,
        execute: Callable[[Resolve | Connect | SendPing], None],
        now: float,
        *,
        ping_first: bool = False,
        is_own: Callable[[str], bool] = lambda _: False,
        on_close: Callable[[Session], None] | None = None,
        trim_history: Callable[[int, int], int] | None = None,
        cookie: Callable[[], int] = _random_cookie,
        faults: Faults | None = None,
    ) -> None:
        self.session_context = session_context
        self.sessions: set[Session] = set()
        self.transfer = Transfer(session_context, self._effect, ping=ping_first, is_own=is_own)
        self._execute = execute
        self._on_close = on_close
        self._admission = Admission(session_context.limits)
        self._responder = ping.Responder(
            session_context.guid, session_context.limits.ping_ports, session_context.limits.pings_per_address
        )
        self._pinger = ping.Pinger(
            session_context.guid, session_context.timers.ping_response, self.transfer.pinged
        )
        self._inquirer = ping.Inquirer(session_context.guid, session_context.timers.ping_response, cookie)
        self._history_deadline = now + session_context.timers.history_cleanup
        self._trim_history = trim_history
        self._trim_deadline = now + TRIM_INTERVAL
        self._timed = TimedGroup(faults or Faults())
        self._timed.add("pings", self._pinger)
        self._timed.add("inquiries", self._inquirer)
        self._timed.add("peers", _Part(session_context.peers.next_deadline, self._question_peers))
        self._timed.add("resending", _Part(self._next_resend, self._resend))
        self._timed.add("connecting", self.transfer)
        if session_context.order_acks is not None:
            self._timed.add("OrderAcks", session_context.order_acks)
        self._timed.add("windows", _Part(session_context.windows.next_deadline, self._widen))
        self._timed.add("the duplicate history", _Part(self._history_next, self._expire_history))

    def set_limits(self, limits: Limits, session_init: float) -> None:
        """Replace the limits of sessions, pings and connection attempts, and the Session Initialization
        Timer.

        `session_init` is in seconds. Open sessions stay open, even above a limit.
        """
        self.session_context.set_limits(limits, session_init)
        self._admission.limits = limits
        self._responder.set_rate(limits.pings_per_address)
        self.transfer.dials.resize(limits.dials)

    def accept(
        self, address: str, now: float, wake: Wake = ignore, *, crowded: bool | None = None
    ) -> Session:
        """Returns the session of a connection that was accepted from `address`; above a limit, the session
        answers with a refusal.

        `crowded` is the decision of a caller that limits connections itself: True refuses the session; False
        accepts it, because the caller is below its limit or has closed another connection to make room. None:
        the limits of the endpoint decide. `wake` is called when the transport must call `Session.pump`.
        """
        refusal = None if crowded is False else self._admission.would_refuse(address)
        if crowded:
            refusal = refusal or CloseReason.SESSION_LIMIT
        session = Session(
            self.session_context, address, now, initiator=False, refusal=refusal, owner=self, wake=wake
        )
        self._admission.enter(address)
        self.sessions.add(session)
        return session

    def connected(self, link: int, now: float, wake: Wake = ignore) -> Session | None:
        """Returns the session of a connection that was opened for the Connect action of the link with the
        number `link`; None if the caller must close the connection.
        """
        session = self.transfer.connected(link, now, self, wake)
        if session is not None:
            self.sessions.add(session)
        return session

    # -------------------------------------------------------------------- the sessions, see SessionOwner

    def answered(self, session: Session) -> None:
        """Notify `transfer` that the peer of a session has accepted our EstablishConnection."""
        self.transfer.answered(session)

    def opened(self, session: Session, now: float) -> None:
        """Notify `transfer` that the handshake of a session is complete."""
        self.transfer.opened(session, now)

    def closed(self, session: Session, now: float) -> None:
        """Forget a session that has ended, count its reason, and notify `transfer` and `on_close`."""
        self.sessions.discard(session)
        if not session.initiator:
            self._admission.leave(session.peer_address)
        if session.reason is not None:
            self.session_context.counts.closed[session.reason] += 1
        self.transfer.closed(session, now)
        if self._on_close is not None:
            self._on_close(session)

    def gone(self, session: Session) -> None:
        """Notify `transfer` that the transport of an ended session is closed."""
        self.transfer.gone(session)

    # ---------------------------------------------------------------------------------------- pings

    def answer_ping(
        self, datagram: bytes, address: str, port: int, own_port: int, now: float
    ) -> bytes | None:
        """Returns the response to a datagram from `address` and `port` at our ping port; None for no
        response.
        """
        refused = self._admission.would_refuse(address) is not None
        answer = self._responder.answer(datagram, address, port, own_port, now, would_refuse=refused)
        if answer is not None:
            self.transfer.heard_from(address, now)
        return answer

    def ping_answered(self, datagram: bytes, now: float) -> None:
        """Process a datagram that arrived at the socket that sends our pings."""
        self._pinger.receive(datagram, now)
        self._inquirer.receive(datagram, now)

    def _ask(self, address: str, done: Callable[[UUID | None, float], None], now: float) -> None:
        self._execute(SendPing(address, self._inquirer.ask(done, now)))

    def _question_peers(self, now: float) -> None:
        self.session_context.peers.expire(now, self._ask)

    def _effect(self, effect: Effect, now: float) -> None:
        if isinstance(effect, Ping):
            self._execute(SendPing(effect.address, self._pinger.send(effect.link, now)))
        else:
            self._execute(effect)

    def shortage(self, short: bool, now: float) -> None:
        """Change the advertised window: resources run short (`short` is True) or are sufficient again
        (AMB-20).
        """
        if short:
            self.session_context.windows.short()
        else:
            self.session_context.windows.enough(now)
        self._resize()

    def _resize(self) -> None:
        for session in self.sessions:
            session.resize()

    def stop(self, now: float) -> None:
        """End every session; no packet announces it (3.1.4.2)."""
        for session in list(self.sessions):
            session.close(CloseReason.STOPPED, now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._timed.next_deadline()

    def expire(self, now: float) -> None:
        """Run the retry timers, ping time-outs, OrderAcks, and the clean-up of the duplicate history
        (3.1.6.7).
        """
        self._timed.expire(now)

    def _next_resend(self) -> float | None:
        sequences = self.session_context.hooks.sequences
        return None if sequences is None else sequences.next_deadline()

    def _resend(self, now: float) -> None:
        if self.session_context.hooks.sequences is not None:
            self.session_context.hooks.sequences.expire(now)

    def _widen(self, now: float) -> None:
        if self.session_context.windows.expire(now):
            self._resize()

    def _history_next(self) -> float:
        return min(self._trim_deadline, self._history_deadline)

    def _expire_history(self, now: float) -> None:
        if now >= self._trim_deadline:
            self._trim(now)
        if now >= self._history_deadline:
            self.session_context.history.expire(self.session_context.ledger.now_s)
            self._history_deadline = now + self.session_context.timers.history_cleanup

    def _trim(self, now: float) -> None:
        """Remove old identifiers from the stored duplicate history, so that it holds no more of them than the
        history in memory can hold (3.1.1.3).
        """
        before = (
            self.session_context.ledger.writer.next_entry(Table.HISTORY)
            - self.session_context.history.capacity
        )
        removed = 0
        if self._trim_history is not None and before > 0:
            removed = self._trim_history(before, TRIM_RECORDS)
        self._trim_deadline = now + (TRIM_AGAIN if removed == TRIM_RECORDS else TRIM_INTERVAL)
