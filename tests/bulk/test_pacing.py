"""The share of a core of reading in bulk: by numbers, and of steps of coroutines."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from msmq_fast.bulk.pacing import Charged, Share


def test_a_piece_is_followed_by_its_pause() -> None:
    share = Share(0.25)
    share.begin(100.0)
    share.end(2.0)
    assert share.pause(102.0) == 6.0
    assert share.pause(109.0) < 0


def test_what_is_charged_makes_the_pause_longer() -> None:
    share = Share(0.5)
    share.begin(100.0)
    share.end(1.0)
    share.charge(0.5, 101.0)
    assert share.pause(101.0) == 2.0
    share.charge(1.0, 200.0)
    assert share.pause(200.0) == 1.0, "long after the pause it counts from its own beginning"


def test_what_is_charged_beside_a_piece_is_added_to_it() -> None:
    share = Share(0.5)
    share.begin(100.0)
    share.charge(0.5, 101.0)
    share.end(2.0)
    assert share.pause(102.0) == 3.0  # 2.5 seconds since 100, by half of a core


def test_without_a_share_there_is_no_pause() -> None:
    share = Share(0.0)
    share.begin(5.0)
    share.charge(10.0, 6.0)
    share.end(10.0)
    assert share.pause(5.0) < 0


@pytest.mark.parametrize("seed", range(20))
def test_all_together_stays_within_the_share(seed: int) -> None:
    random = Random(seed)
    share, now, used = Share(0.3), 0.0, 0.0
    for _ in range(500):
        now += max(0.0, share.pause(now))
        assert used <= 0.3 * now + 1e-6
        share.begin(now)
        piece, beside = random.uniform(0, 0.05), random.uniform(0, 0.02)
        share.charge(beside, now + max(beside, piece / 2))
        now += max(piece, beside)
        share.end(piece)
        used += piece + beside
        if random.random() < 0.5:
            written = random.uniform(0, 0.05)
            now += written
            share.charge(written, now)
            used += written


class Processor:
    """A clock that stands still but for `work`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.charged: list[float] = []

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def test_only_its_own_steps_are_charged() -> None:
    processor = Processor()

    async def stream() -> str:
        processor.work(1.0)
        await asyncio.sleep(0)
        processor.work(2.0)
        await asyncio.sleep(0)
        return "done"

    async def others() -> None:
        for _ in range(5):
            processor.work(100.0)
            await asyncio.sleep(0)

    async def run() -> str:
        beside = asyncio.create_task(others())
        result = await Charged(stream(), processor.charged.append, processor)
        await beside
        return result

    assert asyncio.run(run()) == "done"
    assert processor.charged == [1.0, 2.0, 0.0]


def test_failures_and_ends_come_through_and_are_charged() -> None:
    processor = Processor()

    async def waits() -> None:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        finally:
            processor.work(3.0)

    async def run() -> None:
        await Charged(waits(), processor.charged.append, processor)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert processor.charged == [0.0, 3.0]


def test_a_stream_is_charged_to_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    from msmq_fast.bulk import worker

    charges: list[tuple[float, float]] = []
    monkeypatch.setattr(worker.Share, "charge", lambda self, used, now: charges.append((used, now)))
    made = worker.Worker(0.5)
    made.charge(0.25)
    made.close()
    assert charges[0][0] == 0.25
