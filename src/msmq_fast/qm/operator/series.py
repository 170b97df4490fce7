"""The recent history of queues in memory: samples every 5 s for an hour, and every 60 s for a day.

Nothing is stored: a restart begins anew. src/_native/series.pyx describes which queues have a history, and
what a sample contains.
"""

from __future__ import annotations

from typing import Final

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.series import QueueSampler
from msmq_fast.protocol.errors import InvalidParameter
from msmq_fast.protocol.resources import SeriesInfo
from msmq_fast.qm.clock import Clock
from msmq_fast.qm.queues.queue import Queue

__all__ = ["RESOLUTIONS", "QueueSeries"]

RESOLUTIONS: Final = (5, 60)
"""The seconds between two samples of each resolution, in the order of the native numbers."""

_MOST_QUEUES: Final = 1000  # with a history; each takes 52 KB


class QueueSeries:
    """Samples all queues of a ledger, and keeps the samples of at most `limit` queues and of their sum.

    The commit loop calls it every 5 s (`Timed`).
    """

    def __init__(self, ledger: Ledger, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._sampler = QueueSampler(ledger, min(limit, _MOST_QUEUES))
        self._sampler.select()
        now = clock.monotonic()
        self._last = [now for _ in RESOLUTIONS]

    def next_deadline(self) -> float:
        """Return the monotonic time of the next sample."""
        return self._last[0] + RESOLUTIONS[0]

    def expire(self, now: float) -> None:
        """Take the samples that are due."""
        wall = self._clock.wall_us() // 1_000_000
        for number, step in enumerate(RESOLUTIONS):
            elapsed = now - self._last[number]
            if elapsed < step:
                continue
            self._sampler.sample(number, wall, elapsed)
            self._last[number] = now
            if number or self._sampler.room:
                self._sampler.select()

    def of(self, queue: Queue | None, resolution: int, since: int) -> SeriesInfo:
        """Return the samples of a queue, or of the sum of all user queues and their subqueues (None), with a
        time after `since`. Raises InvalidParameter for an unknown resolution.
        """
        if resolution not in RESOLUTIONS:
            raise InvalidParameter(f"a resolution is 5 or 60 (seconds), not {resolution}")
        core = None if queue is None else queue.core
        name = "" if queue is None else queue.name
        columns = self._sampler.columns(core, RESOLUTIONS.index(resolution), since)
        if columns is None:
            return SeriesInfo(name=name, resolution=resolution)
        times, messages, sizes, arrived, left = columns
        return SeriesInfo(
            name=name,
            resolution=resolution,
            tracked=True,
            time=tuple(times),
            messages=tuple(messages),
            bytes=tuple(sizes),
            in_per_second=tuple(arrived),
            out_per_second=tuple(left),
        )

    def latency(self) -> tuple[list[int], int]:
        """See `QueueSampler.latency`."""
        return self._sampler.latency()
