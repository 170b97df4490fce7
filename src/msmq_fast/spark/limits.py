"""Limits of a batch: its size, the wait for more rows, and its split into ranges. Pure functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Limits:
    """The limits of a batch; None means no limit. `max_rows`, `max_bytes`: its maximum size. `min_rows`,
    `max_delay_ms`: the number of rows for which it waits, and for how long. `min_partitions`: the minimum
    number of partitions. `partition_rows`: the maximum number of rows of a partition.
    """

    max_rows: int | None = None
    max_bytes: int | None = None
    min_rows: int | None = None
    max_delay_ms: int = 0
    min_partitions: int | None = None
    partition_rows: int | None = None

    def share_of(self, total: int) -> int | None:
        """Returns the number of rows that a task of several queues may have, so that a batch of `total` rows
        has at least `min_partitions` tasks; None without that limit.
        """
        return max(total // self.min_partitions, 1) if self.min_partitions else None

    def parts(self, rows: int, total: int) -> int:
        """Returns the number of ranges into which `rows` rows of one queue are split, if the batch has
        `total` rows.
        """
        parts = -(-self.min_partitions * rows // max(total, 1)) if self.min_partitions else 1
        if self.partition_rows:
            parts = max(parts, -(-rows // self.partition_rows))
        return max(1, min(parts, rows))

    def cuts(self, begin: int, rows: int, total: int) -> Iterator[tuple[int, int]]:
        """Yields the ranges (first number, number after the last one) into which the `rows` consecutive
        numbers from `begin` are split, if the batch has `total` rows.
        """
        parts = self.parts(rows, total)
        return pairwise(begin + rows * part // parts for part in range(parts + 1))


class Patience:
    """Decides how long a batch waits for more rows: until it has `min_rows` rows, but at most `max_delay_ms`
    after the batch was first found too small.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._since: float | None = None

    def wait(self, rows: int) -> bool:
        """Returns whether a batch of `rows` rows is too small and must still wait."""
        limits, now = self._limits, self._clock()
        since = now if self._since is None else self._since
        too_few = bool(limits.min_rows) and rows < (limits.min_rows or 0)
        wait = too_few and (now - since) * 1000 < limits.max_delay_ms
        self._since = since if wait else None
        return wait
