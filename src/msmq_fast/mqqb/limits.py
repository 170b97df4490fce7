"""Limits for unauthenticated peers: sessions in all and per address, session keys, and how slow a peer
may be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msmq_fast.mqqb.peersession import PeerSession
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.security.addresses import address_group

UNLIMITED = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of sessions, pings and connections. Times are in seconds."""

    sessions: int = UNLIMITED
    """MaxInSessions (2.2.1)."""
    sessions_per_address: int = UNLIMITED
    slow_reader: float = 120.0
    """Seconds for which a peer may stop reading while output waits for it."""
    slow_writer: float = 120.0
    """Seconds for which a packet may stay incomplete."""
    session_keys: float = 50.0
    """New session keys that one session may use per second: each takes a private RSA operation."""
    streams_per_address: int = UNLIMITED
    """Maximum number of transactional streams that the peers of one address group may begin."""
    dials: int = 64
    """Maximum number of concurrent connection attempts for messages; half as many for answers."""
    unfinished: int = 256 << 20
    """Maximum size in bytes of all packets that have not arrived in full, over all sessions."""
    pings_per_address: int = 500
    """Maximum number of pings from one address group that are answered per second."""
    ping_ports: frozenset[int] = frozenset()
    """UDP ports, besides 3527, at which other queue managers answer pings."""


class KeyBudget:
    """Limits the rate at which one session may use new session keys.

    The keys that the rate allows for one second may be used at once. If a session uses more, no bytes are
    read from its peer for a while. Times are monotonic seconds.
    """

    def __init__(self, rate: float) -> None:
        self._cost = 1 / rate
        self._spent_until = 0.0

    def spend(self, keys: int, now: float) -> float | None:
        """Count session keys that were decrypted; returns the time until which reading must pause, or None
        for no pause.
        """
        self._spent_until = max(self._spent_until, now) + keys * self._cost
        until = self._spent_until - 1.0
        return until if until > now else None


class PartialPackets:
    """The incomplete large packets of all sessions; together they may have at most `limit` bytes.

    Above the limit, the session whose packet has been incomplete for the longest time must end.
    """

    SMALL = 65_536
    """Packets up to this size in bytes are not counted: every active session has room for them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0
        self._held: dict[PeerSession, int] = {}  # in the order in which the packets became large

    def note(self, session: PeerSession, size: int, *, anew: bool) -> None:
        """Note how many bytes of an incomplete packet a session holds.

        `anew`: since the previous call for this session, another packet has begun.
        """
        before = self._held.pop(session, 0) if anew or size <= self.SMALL else self._held.get(session, 0)
        if size <= self.SMALL:
            size = 0
        else:
            self._held[session] = size
        self._total += size - before

    @property
    def excess(self) -> PeerSession | None:
        """The session that must end; None while the packets are within the limit."""
        return next(iter(self._held)) if self._total > self._limit else None


class Admission:
    """Counts accepted sessions, in all and by address group.

    A session above a limit is still answered, with the refusal bit, and then closed (AMB-59).
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._total = 0
        self._per_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Number of accepted sessions that are open."""
        return self._total

    def would_refuse(self, address: str) -> CloseReason | None:
        """Returns the reason why another session from `address` would be refused now; None if it would be
        accepted.
        """
        if self.total >= self.limits.sessions:
            return CloseReason.SESSION_LIMIT
        if self._per_address[address_group(address)] >= self.limits.sessions_per_address:
            return CloseReason.ADDRESS_LIMIT
        return None

    def enter(self, address: str) -> None:
        """Count an accepted session."""
        self._total += 1
        self._per_address[address_group(address)] += 1

    def leave(self, address: str) -> None:
        """Count the end of an accepted session."""
        self._total -= 1
        group = address_group(address)
        self._per_address[group] -= 1
        if not self._per_address[group]:
            del self._per_address[group]
