"""The thread that reads in bulk: its share of a core."""

from __future__ import annotations

import asyncio
import threading
import time

from msmq_fast.bulk.worker import Worker


def test_it_rests_by_its_share() -> None:
    def busy() -> float:
        begun = time.thread_time()
        while time.thread_time() < begun + 0.05:
            pass
        return time.monotonic()

    async def run() -> tuple[float, float]:
        worker = Worker(0.25)
        ends = [await worker.run(busy) for _ in range(4)]
        worker.close()
        return ends[-1] - ends[0], worker.cpu_seconds

    seconds, used = asyncio.run(run())
    assert used >= 0.2
    assert seconds >= 3 * 0.05 / 0.25 * 0.9  # three pieces and the pauses before them


def test_a_piece_that_takes_long_is_hurried() -> None:
    hurried = threading.Event()

    async def run() -> bool:
        worker = Worker(boost=hurried.set)
        await worker.run(lambda: None)
        assert not hurried.is_set()
        try:
            return await worker.run(lambda: hurried.wait(30))
        finally:
            worker.close()

    assert asyncio.run(run())
