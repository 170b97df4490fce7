"""A set of deadlines, one for each key."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    """Deadlines by key; each key has at most one.

    Reading the nearest deadline takes constant time, setting one logarithmic time. A changed or removed
    deadline leaves an outdated entry in the heap, which is skipped when it reaches the front.
    """

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def set(self, key: K, deadline: float | None) -> None:
        """Set the deadline of a key; None removes it."""
        if deadline is None:
            self._due.pop(key, None)
        else:
            number = next(self._numbers)
            self._due[key] = (deadline, number)
            heappush(self._heap, (deadline, number, key))
        self._pass_over()

    def _pass_over(self) -> None:
        """Remove outdated entries from the front of the heap, and rebuild the heap if most of its entries are
        outdated.
        """
        heap, due = self._heap, self._due
        while heap and due.get(heap[0][2], (0.0, -1))[1] != heap[0][1]:
            heappop(heap)
        if len(heap) > 64 and len(heap) > 4 * len(due):
            self._heap = sorted((deadline, number, key) for key, (deadline, number) in due.items())

    def next_deadline(self) -> float | None:
        """The nearest deadline; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def take(self, now: float, limit: int | None = None) -> list[K]:
        """Remove the keys whose deadlines have passed at `now`, at most `limit` of them, and return them,
        earliest deadline first.
        """
        taken: list[K] = []
        while self._heap and self._heap[0][0] <= now and (limit is None or len(taken) < limit):
            key = heappop(self._heap)[2]
            del self._due[key]
            taken.append(key)
            self._pass_over()
        return taken
