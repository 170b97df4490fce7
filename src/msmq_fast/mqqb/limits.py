"""Limits for strangers: sessions in all and per address, session keys, and how slow a peer may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msmq_fast.mqqb.peersession import PeerSession
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.security.addresses import address_group

UNLIMITED = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of accepted sessions, and times in seconds."""

    sessions: int = UNLIMITED
    """MaxInSessions (2.2.1)."""
    sessions_per_address: int = UNLIMITED
    slow_reader: float = 120.0
    """Seconds that a peer may stop reading while output waits for it."""
    slow_writer: float = 120.0
    """Seconds that a packet may stay incomplete."""
    session_keys: float = 50.0
    """New session keys that one session may bring in a second: each takes a private RSA operation."""
    streams_per_address: int = UNLIMITED
    """Transactional streams that the peers of one address group may begin."""
    dials: int = 64
    """Connections to other queue managers that are tried at a time for messages; half as many for answers."""
    unfinished: int = 256 << 20
    """Bytes of packets that have not arrived in full, over all sessions."""
    pings_per_address: int = 500
    """Pings of one address group that are answered in a second."""
    ping_ports: frozenset[int] = frozenset()
    """UDP ports, besides 3527, at which other queue managers answer pings."""


class KeyBudget:
    """The session keys of one session. The quota of a second may be used at once; a session with more
    is not listened to for a while. Times are monotonic seconds.
    """

    def __init__(self, rate: float) -> None:
        self._cost = 1 / rate
        self._spent_until = 0.0

    def spend(self, keys: int, now: float) -> float | None:
        """Counts opened keys; returns the time until which to pause reading, None for no pause."""
        self._spent_until = max(self._spent_until, now) + keys * self._cost
        until = self._spent_until - 1.0
        return until if until > now else None


class PartialPackets:
    """The large packets of all sessions that have not arrived in full, at most `limit` bytes of them.

    A session that leaves a packet unfinished makes room for the others: the oldest first.
    """

    SMALL = 65_536
    """Bytes of a packet that are not counted: a session that is at work has room for them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0
        self._held: dict[PeerSession, int] = {}  # in the order in which the packets became large

    def note(self, session: PeerSession, size: int, *, anew: bool) -> None:
        """Records the bytes that a session holds of a packet; `anew`: of another packet than before."""
        before = self._held.pop(session, 0) if anew or size <= self.SMALL else self._held.get(session, 0)
        if size <= self.SMALL:
            size = 0
        else:
            self._held[session] = size
        self._total += size - before

    @property
    def excess(self) -> PeerSession | None:
        """Returns the session that must end, None while all of them have room."""
        return next(iter(self._held)) if self._total > self._limit else None


class Admission:
    """Counts accepted sessions, in all and by address group. One too many is still answered, with the refusal
    bit, and then closed (AMB-59)."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._total = 0
        self._per_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Accepted sessions that live."""
        return self._total

    def would_refuse(self, address: str) -> CloseReason | None:
        """Why one more session from `address` would be refused now."""
        if self.total >= self.limits.sessions:
            return CloseReason.SESSION_LIMIT
        if self._per_address[address_group(address)] >= self.limits.sessions_per_address:
            return CloseReason.ADDRESS_LIMIT
        return None

    def enter(self, address: str) -> None:
        """A session was accepted."""
        self._total += 1
        self._per_address[address_group(address)] += 1

    def leave(self, address: str) -> None:
        """An accepted session has ended."""
        self._total -= 1
        group = address_group(address)
        self._per_address[group] -= 1
        if not self._per_address[group]:
            del self._per_address[group]
