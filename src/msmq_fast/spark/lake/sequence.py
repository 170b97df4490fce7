"""One transactional sequence: which numbers are missing, came twice, or came out of order. Nothing of Spark
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Arrival(NamedTuple):
    """One number that arrived. `previous` is the number before it where the sender told it, else -1."""

    number: int
    previous: int
    time_us: int


class Finding(NamedTuple):
    """`kind`: gap, duplicate or reorder; `time_us` is when it was first seen."""

    first: int
    last: int
    kind: str
    time_us: int


class Numbers:
    """Follows one sequence. `expected` is the next number; a gap is (first, last, time_us) of what is missing
    so far.
    """

    def __init__(self, expected: int, gaps: Iterable[tuple[int, int, int]] = ()) -> None:
        self.expected = expected
        self.gaps = list(gaps)

    def arrive(self, arrivals: Iterable[Arrival]) -> Iterator[Finding]:
        """Returns the faults of arrivals, given in their order. `missing` returns gaps: they may be filled
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
        """Numbers that their sender gave up before they left (expired, purged): they are not missing."""
        for number in numbers:
            self._fill(number)

    def missing(self) -> Iterator[Finding]:
        """The gaps that are open."""
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
