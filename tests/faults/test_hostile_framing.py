"""Hostile packets do not get past the scanner, and do not cost memory."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from msmq_fast._native.scanner import PacketScanner
from tests.faults.fuzz_framing_build import BUGS, build_copy
from tests.support.hostile.fields import hostile_packets, hostile_session_packets

ROOT = Path(__file__).parents[2]
MIB = 1 << 20

# Every packet, and every way to cut it short, in memory that ends where the packet ends.
UNDER_THE_SANITIZER = """
import pathlib, sys
from tests.faults.fuzz_framing_build import load_copy
load_copy(pathlib.Path(sys.argv[1]))
from msmq_fast._native import framing, scanner as stream
from tests.support.hostile.fields import hostile_packets, hostile_session_packets
from tests.support.packet.samples import seeds
packets = [packet for _, packet in [*hostile_packets(), *hostile_session_packets(), *seeds()]]
packets += [packet[:size] for _, packet in seeds() for size in range(len(packet))]
for packet in packets:
    try:
        parsed = framing.parse(packet)
        parsed.label, parsed.kept(), bytes(parsed.body)
    except framing.BadPacket:
        pass
    scanner = stream.PacketScanner()
    scanner.feed(packet)
    while (taken := scanner.take()) is not None and taken[0] != -1:
        pass
print(len(packets), "packets")
"""


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


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.needs("gcc")
@pytest.mark.parametrize("bug", [None, "an item is checked without its padding"])
def test_no_byte_outside_a_packet_is_touched(bug: str | None, tmp_path: Path) -> None:
    """The parser, built with the address sanitizer, over hostile packets and all prefixes of sound ones."""
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    passage = BUGS[bug] if bug else ("", "")
    modules = build_copy(tmp_path, *passage, flags=("-fsanitize=address", "-g", "-O1"))
    environment = os.environ | {
        "LD_PRELOAD": runtime.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    command = [sys.executable, "-c", UNDER_THE_SANITIZER, str(modules)]
    result = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False, timeout=300
    )
    if bug:  # the sanitizer does see it
        assert result.returncode == 1
        assert "AddressSanitizer" in result.stderr
    else:
        assert result.returncode == 0, result.stderr[-4000:]
        assert "packets" in result.stdout
