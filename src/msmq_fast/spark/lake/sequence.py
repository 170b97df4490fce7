"""Follows one transactional sequence: which numbers are missing, repeated, or out of order. Needs no
Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Arrival(NamedTuple):
    """A message that arrived. `number`: its number in the sequence. `previous`: the number of the message
    before it, as the sender reported it; otherwise -1. `time_us`: the arrival time in Unix microseconds.
    """

    number: int
    previous: int
    time_us: int


class Finding(NamedTuple):
    """An irregularity in a sequence that concerns the numbers from `first` to `last`. `kind`: gap, duplicate
    or reorder. `time_us`: the time at which it was first seen, in Unix microseconds.
    """

    first: int
    last: int
    kind: str
    time_us: int


class Numbers:
    """The state of one sequence. `expected` is the next number. `gaps` are the numbers that are missing so
    far, as ranges (first, last, time at which the gap was seen in Unix microseconds).
    """

    def __init__(self, expected: int, gaps: Iterable[tuple[int, int, int]] = ()) -> None:
        self.expected = expected
        self.gaps = list(gaps)

    def arrive(self, arrivals: Iterable[Arrival]) -> Iterator[Finding]:
        """Processes arrivals in order, and yields the duplicates and reorders among them. Gaps are yielded by
        `missing`, not here, because later arrivals may fill them.
        """
        for arrival in arrivals:
            if arrival.number >= self.expected:
                self._advance(arrival)
            elif self._fill(arrival.number):
                yield Finding(arrival.number, arrival.number, "reorder", arrival.time_us)
            else:
                yield Finding(arrival.number, arrival.number, "duplicate", arrival.time_us)

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Removes from the gaps the numbers of messages that expired or were purged at the sender before they
        were sent.
        """
        for number in numbers:
            self._fill(number)

    def missing(self) -> Iterator[Finding]:
        """Yields the gaps that are still open."""
        for first, last, time_us in self.gaps:
            yield Finding(first, last, "gap", time_us)

    def _advance(self, arrival: Arrival) -> None:
        before = arrival.number - 1
        if 0 <= arrival.previous < before:
            before = arrival.previous
        if before >= self.expected:
            self.gaps.append((self.expected, before, arrival.time_us))
        self.expected = arrival.number + 1

    def _fill(self, number: int) -> bool:
        for index, (first, last, time_us) in enumerate(self.gaps):
            if first <= number <= last:
                rest = ((first, number - 1, time_us), (number + 1, last, time_us))
                self.gaps[index : index + 1] = [gap for gap in rest if gap[0] <= gap[1]]
                return True
        return False
