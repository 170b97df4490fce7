"""Repairs that a source owes, and when (RFC 3208, 5.3; [MC-MQSRM] 2.1.3.1)."""

from __future__ import annotations

import heapq


class Repairs:
    """Sequence numbers asked for; each is sent once, however often it was asked for meanwhile."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []
        self._pending: set[int] = set()

    def __contains__(self, sequence: object) -> bool:
        return sequence in self._pending

    def __bool__(self) -> bool:
        return bool(self._due)

    def add(self, sequence: int, due_at: float) -> None:
        if sequence not in self._pending:
            self._pending.add(sequence)
            heapq.heappush(self._due, (due_at, sequence))

    @property
    def due_at(self) -> float:
        """When the first of them has to go; infinite where none is owed."""
        return self._due[0][0] if self._due else float("inf")

    def first(self) -> int:
        return self._due[0][1]

    def done(self) -> None:
        """The first one has been sent."""
        self._pending.discard(heapq.heappop(self._due)[1])

    def clear(self) -> None:
        self._due.clear()
        self._pending.clear()


def repair_delay(sequence: int, trail: int, lead: int, spread: float) -> float:
    """Seconds to wait before an RDATA is sent: none for the oldest packet of the window, nearly `spread` for
    the newest."""
    return (sequence - trail) * spread / (lead - trail + 1)
