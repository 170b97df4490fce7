"""Which messages are looked at, in which order, and how they are counted: beside a list in plain Python."""

from __future__ import annotations

import random
from array import array
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.columnrows import Tally, first_sequence, scan
from tests.support.bulk.packets import plain
from tests.support.worlds.cores import EVER, Core, sequences

AVAILABLE, LOCKED, PENDING = 1, 2, 3
OWNER = 99

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 7), st.booleans()),
        st.tuples(st.just("lock"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("release"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 50), st.just(0)),
        st.tuples(st.just("settle"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Checked:
    """A queue, and what it should hold: key -> [size, durable]."""

    def __init__(self) -> None:
        self.core = Core()
        self.held: dict[int, list[int]] = {}

    def run(self, step: str, number: int, recoverable: bool) -> None:
        queue = self.core.queue
        keys = sorted(self.held, key=lambda key: key & (EVER - 1))
        key = keys[number % len(keys)] if keys else 0
        if step == "put":
            packet = plain(bytes(number * 10), priority=number, recoverable=recoverable)
            _, (key,) = queue.enqueue_packets([packet])
            self.held[key] = [len(packet), not recoverable]
        elif step == "lock":
            queue.claim(key, OWNER)
        elif step == "release":
            queue.release(array("Q", [key]), OWNER)
        elif step == "remove":
            if queue.remove(key):
                del self.held[key]
        else:
            self.core.settle()
            for entry in self.held.values():
                entry[1] = True

    def expected(self, start: int, stop: int) -> list[tuple[int, int]]:
        """(sequence, size) of what a reader sees."""
        rows = [(key & (EVER - 1), size) for key, (size, durable) in self.held.items() if durable]
        return sorted(row for row in rows if start <= row[0] < stop)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 30), st.integers(0, 40), st.integers(1, 6), st.integers(1, 2000))
def test_a_look_sees_what_is_there_in_the_order_of_arrival(
    steps: list[tuple[str, int, bool]], start: int, length: int, max_rows: int, max_bytes: int
) -> None:
    checked = Checked()
    for step in steps:
        checked.run(*step)
    stop = start + length
    expected = checked.expected(start, stop)
    found, position = [], start
    for _ in range(100):
        rows = scan(checked.core.queue, position, stop, max_rows, max_bytes)
        numbers = sequences(rows)
        assert len(numbers) <= max_rows
        assert rows.bytes <= max_bytes or len(numbers) == 1
        assert all(position <= number < rows.next for number in numbers)
        assert numbers or rows.finished
        found += numbers
        position = rows.next
        if rows.finished:
            break
    assert found == [number for number, _ in expected]
    assert position == stop
    first = first_sequence(checked.core.queue, stop)
    assert first == min((number for number, _ in checked.expected(0, stop)), default=stop)
    count(checked, start, stop, max_rows, max_bytes)


def count(checked: Checked, start: int, stop: int, max_rows: int, max_bytes: int) -> None:
    """A tally against the list; in small steps and at once."""
    expected = checked.expected(start, stop)
    kept: list[tuple[int, int]] = []
    for row in expected:
        if kept and (len(kept) >= max_rows or sum(size for _, size in kept) + row[1] > max_bytes):
            break
        kept.append(row)
    end = expected[len(kept)][0] if len(kept) < len(expected) else stop
    for limit in (1, 1 << 16):
        tally = Tally(checked.core.queue, start, stop, max_rows, max_bytes)
        for _ in range(1000):
            if tally.advance(limit):
                break
        assert (tally.rows, tally.bytes, tally.next) == (len(kept), sum(size for _, size in kept), end)
        for parts in (1, 2, 3, 100):
            check_ranges(tally, kept, start, parts)


def check_ranges(tally: Tally, kept: list[tuple[int, int]], start: int, parts: int) -> None:
    ranges = tally.ranges(parts)
    assert len(ranges) == min(parts, len(kept))
    if not kept:
        return
    assert ranges[0][0] == start
    assert ranges[-1][1] == tally.next
    assert all(low[1] == high[0] for low, high in pairwise(ranges))
    for low, high, rows, size in ranges:
        inside = [row for row in kept if low <= row[0] < high]
        assert (rows, size) == (len(inside), sum(size for _, size in inside))
        assert rows >= 1


def test_parts_of_a_great_stretch_are_about_as_large() -> None:
    core = Core()
    generator = random.Random(3)
    express = [plain(b"", priority=generator.randrange(8), recoverable=False) for _ in range(1000)]
    for _ in range(20):
        core.queue.enqueue_packets(express)
    tally = Tally(core.queue, 0, EVER, 1 << 40, 1 << 50)
    while not tally.advance(3000):
        pass
    assert tally.rows == 20_000
    for parts in (2, 7, 64):
        ranges = tally.ranges(parts)
        assert len(ranges) == parts
        assert sum(rows for _, _, rows, _ in ranges) == 20_000
        assert max(rows for _, _, rows, _ in ranges) <= 20_000 // parts + 16
        assert tally.rows == len(sequences(scan(core.queue, 0, EVER, 20_000, 1 << 40)))


def test_one_look_does_not_walk_over_a_great_queue() -> None:
    """What nobody sees is passed over some ten thousand at a time, and what stands behind it is found."""
    core = Core()
    packets = [plain(b"", priority=7) for _ in range(1000)]
    for _ in range(60):
        core.queue.enqueue_packets(packets)  # none of them is durable
    _, (last,) = core.queue.enqueue_packets([plain(b"", priority=0, recoverable=False)])
    position, looks, found = 0, 0, []
    while True:
        rows = scan(core.queue, position, EVER, 10, 1 << 20)
        looks += 1
        found += sequences(rows)
        position = rows.next
        if rows.finished:
            break
    assert found == [last & (EVER - 1)]
    assert looks >= 3
