"""The repairs that a source must send, and their times (RFC 3208, 5.3; [MC-MQSRM] 2.1.3.1)."""

from __future__ import annotations

import heapq


class Repairs:
    """The sequence numbers of the packets that receivers have requested. A packet is repaired only once, even
    if it is requested several times before its repair is due.
    """

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
        """The time at which the first repair is due; infinity if there is none."""
        return self._due[0][0] if self._due else float("inf")

    def first(self) -> int:
        return self._due[0][1]

    def done(self) -> None:
        """Remove the first repair, which has been sent."""
        self._pending.discard(heapq.heappop(self._due)[1])

    def clear(self) -> None:
        self._due.clear()
        self._pending.clear()


def repair_delay(sequence: int, trail: int, lead: int, spread: float) -> float:
    """Return the seconds to wait before the RDATA of `sequence` is sent: 0 for the oldest packet of the
    window, nearly `spread` for the newest.
    """
    return (sequence - trail) * spread / (lead - trail + 1)
