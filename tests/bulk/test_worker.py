"""The thread that reads in bulk: its share of a core, and its place behind others."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time

import pytest

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


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no priority of their own")
def test_its_thread_alone_stands_back() -> None:
    def priority() -> tuple[int, int]:
        return threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    async def run() -> tuple[int, int]:
        worker = Worker()
        found = await worker.run(priority)
        worker.close()
        return found

    thread, nice = asyncio.run(run())
    mine, ours = priority()
    assert thread != mine
    assert nice == min(ours + 10, 19)
