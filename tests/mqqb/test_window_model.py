"""The native windows against a plain model, with counters near the end of 16 bits as well."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.window import (
    ACK_UNSENT,
    COUNT_MISMATCH,
    IN_FLIGHT_LIMIT,
    OK,
    ReceiveWindow,
    SendWindow,
    session_header,
)
from tests.support.mqqb import wire


@dataclass
class Sender:
    """What 3.1.5.5 says, with unlimited integers."""

    sent: int = 0
    recoverable: int = 0
    acked: int = 0
    entries: list[tuple[int, int, int]] = field(
        default_factory=list
    )  # (lookup id, sequence, recoverable or 0)

    def send(self, lookup_id: int, recoverable: bool) -> None:
        self.sent += 1
        self.recoverable += recoverable
        self.entries.append((lookup_id, self.sent, self.recoverable if recoverable else 0))

    def header(self, ack: int, base: int, flags: int) -> list[int]:
        """Unlimited numbers; base 0 means none. Returns the lookup ids that leave."""
        self.acked = ack
        gone = []
        for entry in self.entries:
            _, sequence, number = entry
            express = number == 0 and sequence <= ack
            covered = (
                number and base and (number <= base or (number - base < 32 and flags >> (number - base) & 1))
            )
            if express or covered:
                gone.append(entry)
        self.entries = [entry for entry in self.entries if entry not in gone]
        return [lookup_id for lookup_id, _, _ in gone]


def skip_ahead(window: SendWindow, received: ReceiveWindow, model: Sender, count: int) -> None:
    """Send and acknowledge `count` recoverable messages so that the counters stand there."""
    for number in range(1, count + 1):
        window.sending("skip", 0, True)
        if number % 512 == 0 or number == count:
            on_wire = number & 0xFFFF
            assert window.process(wire.header(on_wire, on_wire, 1), received) == OK
    window.take_removed()
    model.sent = model.recoverable = model.acked = count


@pytest.mark.rule("QB-195", "QB-196", "QB-197", "QB-198", "QB-199", "QB-116", "QB-118")
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=60), st.sampled_from([0, 0, 65_500, 65_534]))
@settings(max_examples=80, deadline=None)
def test_send_window(seeds: list[int], start: int) -> None:
    window, received, model = SendWindow(64), ReceiveWindow(64), Sender()
    skip_ahead(window, received, model, start)
    base = model.recoverable
    for seed in seeds:
        random = Random(seed)
        if random.random() < 0.6:
            for _ in range(random.randint(1, 9)):
                recoverable = random.random() < 0.6
                window.sending(random.choice("ab"), model.sent + 1, recoverable)
                model.send(model.sent + 1, recoverable)
            continue
        ack = random.randint(model.acked, model.sent)
        base = random.randint(base, model.recoverable)
        flags = random.getrandbits(32) | 1
        flags &= (1 << max(0, min(32, model.recoverable - base + 1))) - 1
        on_wire = base & 0xFFFF
        if on_wire == 0:
            base_here, flags = 0, 0
        else:
            base_here = base
        peer = random.randint(0, 90)
        assert window.process(wire.header(ack & 0xFFFF, on_wire, flags, window=peer), received) == OK
        gone = sorted(model.header(ack, base_here, flags))
        assert sorted(key for _, keys in window.take_removed() for key in keys) == gone
        assert window.unacknowledged == model.sent - model.acked
        assert window.room == max(0, min(64, max(1, peer)) - (model.sent - model.acked))
        assert window.held == len(model.entries)
    released = [key for _, keys in window.abandon() for key in keys]
    assert released == [key for key, _, _ in model.entries]  # in the order in which they were sent


@pytest.mark.rule("QB-195", "QB-198", "QB-199")
@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFF),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=300, deadline=None)
def test_headers_for_what_was_never_sent_change_nothing(
    express: int, recoverable: int, ack: int, base: int, flags: int
) -> None:
    window, received = SendWindow(64), ReceiveWindow(64)
    for number in range(express + recoverable):
        window.sending("q", number + 1, number >= express)
    unsent = ack > express + recoverable
    if base:
        unsent |= base > recoverable or (flags & 0xFFFFFFFF) >> (recoverable - base + 1) != 0
    result = window.process(wire.header(ack, base, flags), received)
    assert (result == ACK_UNSENT) == unsent
    if unsent:
        assert window.held == express + recoverable
        assert window.take_removed() == []


@pytest.mark.rule("QB-202")
def test_counts_are_compared_modulo_16_bits() -> None:
    window, received = SendWindow(64), ReceiveWindow(64)
    for _ in range(65_536 + 3):
        received.count_message(True)
    assert window.process(wire.header(sent=3, recoverable=3), received) == OK
    assert window.process(wire.header(sent=4, recoverable=3), received) == COUNT_MISMATCH
    assert window.process(wire.header(sent=3, recoverable=2), received) == COUNT_MISMATCH


@pytest.mark.rule("QB-115", "QB-117", "QB-276", "QB-277", "QB-278", "QB-280")
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 0, 65_520, 65_535]))
@settings(max_examples=80, deadline=None)
def test_receive_window_acknowledges_exactly_what_is_durable(seed: int, start: int) -> None:
    random = Random(seed)
    window, sender = ReceiveWindow(64), SendWindow(64)
    received = recoverable = 0
    undecided: set[int] = set()
    acknowledged: Counter[int] = Counter()
    for _ in range(start):
        window.disposed(window.count_message(True))
        received, recoverable = received + 1, recoverable + 1
    while window.acknowledgeable:
        session_header(window, sender)
    for _ in range(random.randint(1, 80)):
        for _ in range(random.randint(0, 12)):
            kind = random.random() < 0.7
            number = window.count_message(kind)
            received += 1
            if kind:
                recoverable += 1
                assert number == recoverable
                undecided.add(number)
            else:
                assert number == 0
        for number in random.sample(sorted(undecided), random.randint(0, len(undecided))):
            window.disposed(number)
            undecided.discard(number)
        if random.random() < 0.5:
            continue
        durable = min(undecided, default=recoverable + 1) - 1
        reach = durable - start - len(acknowledged)
        assert window.acknowledgeable == reach
        ack, base, flags, _, _, size = wire.read_header(session_header(window, sender))
        assert (ack, size) == (received & 0xFFFF, 64)
        assert window.unacknowledged == 0
        if reach == 0:
            assert (base, flags) == (0, 0)
            continue
        assert base != 0
        assert flags & 1
        first = start + len(acknowledged) + 1
        wide = first + ((base - first + 0x8000) & 0xFFFF) - 0x8000
        named = {wide + bit for bit in range(32) if flags >> bit & 1}
        fresh = {number for number in named if number >= first}
        assert fresh
        assert max(fresh) <= durable
        assert fresh == set(range(first, first + len(fresh)))
        acknowledged.update(fresh)


def test_disposal_of_unknown_numbers_is_an_error() -> None:
    window = ReceiveWindow(64)
    number = window.count_message(True)
    window.disposed(number)
    for wrong in (0, number, number + 1):
        with pytest.raises(ValueError):
            window.disposed(wrong)


def test_the_ring_grows_and_its_limit_stops_sending() -> None:
    window = SendWindow(0xFFFF)
    window.peer_size = 0xFFFF
    assert IN_FLIGHT_LIMIT < 10_000  # what a receiver remembers
    for number in range(IN_FLIGHT_LIMIT):
        window.sending("q", number, True)
    assert window.room == 0
    with pytest.raises(OverflowError):
        window.sending("q", 1, True)
    ((queue, keys),) = window.abandon()
    assert queue == "q"
    assert list(keys) == list(range(IN_FLIGHT_LIMIT))
