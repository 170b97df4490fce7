"""What strangers may use up: sessions in all and per address, and how slow a peer may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msmq_fast.mqqb.reasons import CloseReason

UNLIMITED = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of accepted sessions, and times in seconds."""

    sessions: int = UNLIMITED
    """MaxInSessions (2.2.1)."""
    sessions_per_address: int = UNLIMITED
    slow_reader: float = 120.0
    """How long a peer may take no bytes while there is something for it."""
    slow_writer: float = 120.0
    """How long a packet may stay incomplete."""


class Admission:
    """Counts accepted sessions. One too many is still answered, with the refusal bit, and then
    closed (AMB-59)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._per_address: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Accepted sessions that live."""
        return self._per_address.total()

    def would_refuse(self, address: str) -> CloseReason | None:
        """Why one more session from `address` would be refused now."""
        if self.total >= self._limits.sessions:
            return CloseReason.SESSION_LIMIT
        if self._per_address[address] >= self._limits.sessions_per_address:
            return CloseReason.ADDRESS_LIMIT
        return None

    def enter(self, address: str) -> None:
        """A session was accepted."""
        self._per_address[address] += 1

    def leave(self, address: str) -> None:
        """An accepted session has ended."""
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
