"""The histogram of the time from arrival to receive, with delays that the clock of the test makes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from msmq_fast.qm.handles.handle import OpenQueue
from tests.support.worlds.queue_manager import World

DELAYS = (0.0, 0.003, 0.5, 3.0, 100.0)


def counted(world: World) -> tuple[list[int], int]:
    counts, total_us = world.manager.series.latency()
    return list(counts), total_us


def bin_of(delay: float) -> int:
    """Bin i has the times below 2**i microseconds that no lower bin has."""
    return round(delay * 1e6).bit_length()


@pytest.mark.parametrize("delivery", [0, 1], ids=["express", "recoverable"])
def test_each_delay_is_counted_in_its_bin(delivery: int) -> None:
    world = World()
    world.create("orders")
    for delay in DELAYS:
        before, total = counted(world)
        world.send(b"x", delivery=delivery)
        world.advance(delay)
        world.receive()
        after, larger = counted(world)
        grown = [index for index, (old, new) in enumerate(zip(before, after, strict=True)) if new > old]
        assert grown == [bin_of(delay)], delay
        assert larger - total == pytest.approx(delay * 1e6, abs=1)
    assert sum(after) == len(DELAYS)


def test_a_peek_an_abort_and_a_removal_are_no_receive() -> None:
    world = World()
    world.create("orders")
    world.send(b"x")
    world.receive(peek=True)
    handle: OpenQueue = world.reader()
    world.finish(handle.purge())
    handle.close()
    assert sum(counted(world)[0]) == 0


def test_the_bounds_of_the_metric_are_those_of_the_bins() -> None:
    """A time of exactly 2**i microseconds is in the bin above, so that every value is below its bound."""
    assert [bin_of(2**number / 1e6) for number in range(4)] == [1, 2, 3, 4]
    assert all(upper == lower + 1 for lower, upper in pairwise(bin_of(2**n / 1e6) for n in range(20)))
