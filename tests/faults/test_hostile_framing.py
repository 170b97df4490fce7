"""Hostile packets do not get past the scanner, and do not cost memory."""

import itertools
from pathlib import Path

import pytest

from msmq_fast._native.framing import PacketScanner
from tests.faults.hostile import hostile_packets, hostile_session_packets

MIB = 1 << 20


def resident() -> int:
    """Anonymous memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


@pytest.mark.rule("QB-019", "QB-162", "QB-163")
def test_bad_session_packets_never_come_out() -> None:
    for name, packet in hostile_session_packets():
        scanner = PacketScanner()
        scanner.feed(packet + bytes(4096))
        taken = scanner.take()
        assert taken is None or taken == (-1, b""), name


@pytest.mark.long(seconds=30)
def test_memory_after_a_million_hostile_packets() -> None:
    packets = [packet for _, packet in itertools.chain(hostile_packets(), hostile_session_packets())]
    before = 0
    for count, packet in enumerate(itertools.islice(itertools.cycle(packets), 1_000_000)):
        scanner = PacketScanner()
        scanner.feed(packet)
        scanner.take()
        if count == 10_000:
            before = resident()
    assert resident() - before < 10 * MIB
