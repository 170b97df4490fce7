"""Admission of MS-MQQB connections: how many in all, how many from one address."""

from __future__ import annotations

from collections import Counter

__all__ = ["ConnectionLimits"]


class ConnectionLimits:
    """Counts open connections; `admit` says why one more is refused."""

    def __init__(self, connections: int, per_address: int) -> None:
        self._connections = connections
        self._per_address = per_address
        self._open: Counter[str] = Counter()
        self._total = 0

    @property
    def total(self) -> int:
        """Open connections."""
        return self._total

    def admit(self, address: str) -> str | None:
        """Count a connection in, or return the reason why not."""
        if self._total >= self._connections:
            return "too many connections"
        if self._open[address] >= self._per_address:
            return "too many connections from one address"
        self._total += 1
        self._open[address] += 1
        return None

    def release(self, address: str) -> None:
        """An admitted connection has ended."""
        self._total -= 1
        self._open[address] -= 1
        if self._open[address] <= 0:
            del self._open[address]
