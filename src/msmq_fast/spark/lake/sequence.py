"""Follows one transactional sequence: which numbers are missing, repeated, or out of order. Needs no
Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Arrival(NamedTuple):
    """One number that arrived. `previous` is the previous number if the sender reported it, otherwise -1."""

    number: int
    previous: int
    time_us: int


class Finding(NamedTuple):
    """A finding of `kind` gap, duplicate or reorder; `time_us` is when it was first seen."""

    first: int
    last: int
    kind: str
    time_us: int


class Numbers:
    """The state of one sequence. `expected` is the next number. A gap is (first, last, time_us) of numbers
    that are missing so far.
    """

    def __init__(self, expected: int, gaps: Iterable[tuple[int, int, int]] = ()) -> None:
        self.expected = expected
        self.gaps = list(gaps)

    def arrive(self, arrivals: Iterable[Arrival]) -> Iterator[Finding]:
        """Returns the faults among arrivals, in order. `missing` returns the gaps, because they may be filled
        later.
        """
        for arrival in arrivals:
            if arrival.number >= self.expected:
                self._advance(arrival)
            elif self._fill(arrival.number):
                yield Finding(arrival.number, arrival.number, "reorder", arrival.time_us)
            else:
                yield Finding(arrival.number, arrival.number, "duplicate", arrival.time_us)

    def withdraw(self, numbers: Iterable[int]) -> None:
        """Removes numbers that their sender gave up before sending (expired, purged): they are not
        missing.
        """
        for number in numbers:
            self._fill(number)

    def missing(self) -> Iterator[Finding]:
        """Returns the open gaps."""
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
