"""Packets made to do harm: nothing is raised, memory stays bounded, honest sessions go on."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from msmq_fast.srmp.pgm.model import Tsi
from msmq_fast.srmp.pgm.options import Fragment
from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, encode_data, encode_nak, encode_spm
from msmq_fast.srmp.pgm.receiver import Receiver
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source
from tests.srmp.pgm.sealing import sealed
from tests.srmp.pgm.stage import GROUP, SOURCE_IP, TSI

EDGES = [0, 1, 2, 0x7FFF_FFFE, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xFFFF_FFFE, 0xFFFF_FFFF]


class Attacker:
    """Draws packets: valid ones with any content, of few or many sessions, and broken ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def number(self) -> int:
        kind = self.random.randrange(4)
        if kind == 0:
            return self.random.choice(EDGES)
        return self.random.randrange(300) if kind < 3 else self.random.getrandbits(32)

    def host(self) -> str:
        return f"198.51.100.{self.random.randrange(20)}"

    def tsi(self) -> Tsi:
        draw = self.random.random()
        if draw < 0.2:
            return TSI
        return Tsi(b"attack", self.random.randrange(30 if draw < 0.9 else 65_536))

    def packet(self) -> bytes:
        random, number = self.random, self.number
        kind = random.randrange(10)
        tsi = self.tsi()
        if kind < 4:
            data = random.randbytes(random.choice([0, 1, 10, 1400]))
            fragment = None
            if random.random() < 0.7:
                offset = random.choice([0, 0, 1, len(data), 60_000, 0xFFF0_0000])
                fragment = Fragment(
                    number(), offset, offset + len(data) + random.choice([0, 1, 1400, 65_000])
                )
            packet = encode_data(
                Data(tsi, GROUP.port, number(), number(), data, fragment, random.random() < 0.3)
            )
        elif kind < 6:
            fin, rst = random.random() < 0.05, 0x40 if random.random() < 0.02 else None
            packet = encode_spm(Spm(tsi, GROUP.port, number(), number(), number(), self.host(), fin, rst))
        else:
            listed = tuple(number() for _ in range(random.choice([1, 2, 63])))
            source = random.choice([SOURCE_IP, self.host()])
            packet = encode_nak(Nak(tsi, GROUP.port, listed, source, GROUP.address, random.random() < 0.5))
        if random.random() < 0.2:
            broken = bytearray(packet)
            for _ in range(random.randrange(1, 4)):
                broken[random.randrange(len(broken))] = random.randrange(256)
            packet = bytes(broken[: random.randrange(len(broken) + 1)] if random.random() < 0.3 else broken)
            if random.random() < 0.8 and len(packet) >= 16:
                packet = sealed(packet)
        return packet


def attack(packets: int, seed: int, settings: PgmSettings) -> tuple[Receiver, Source]:
    """An honest session goes on meanwhile; its host and TSI cannot be forged by others."""
    attacker = Attacker(seed)
    delivered: list[int] = []

    def deliver(apdu: bytes, tsi: Tsi, source_ip: str) -> None:
        if source_ip == "192.0.2.77":
            delivered.append(int(apdu))

    receiver = Receiver(settings, GROUP, Random(seed), deliver)
    source = Source(settings, TSI, GROUP, SOURCE_IP, Random(seed), lambda handle: None, first=1)
    honest = Tsi(b"honest", 1)
    now, sent = 0.0, 0
    receiver.on_packet(encode_spm(Spm(honest, GROUP.port, 1, 1, 0, "192.0.2.77")), "192.0.2.77", now)
    for count in range(packets):
        packet = attacker.packet()
        receiver.on_packet(packet, attacker.host(), now)
        source.on_packet(packet, attacker.host(), now)
        if count % 20 == 0:
            now += 0.001
            for engine in (receiver, source):
                for datagram in engine.packets(now):
                    assert len(datagram.payload) < settings.mtu
        if count % 100 == 0:
            sent += 1
            text = b"%d" % sent
            receiver.on_packet(encode_data(Data(honest, GROUP.port, sent, 1, text)), "192.0.2.77", now)
            if source.backlog < 10_000:
                source.send(text * 100)
    assert delivered == list(range(1, sent + 1))
    assert source.statistics.odata > 0
    assert len(receiver) <= settings.max_sources
    return receiver, source


def anonymous_memory() -> int:
    """Octets of RssAnon of this process."""
    with open(f"/proc/{os.getpid()}/status") as status:
        line = next(line for line in status if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("seed", range(3))
def test_hostile_packets_disturb_nobody(seed: int) -> None:
    small = PgmSettings(
        max_rate=1e6,
        receive_memory=200_000,
        receive_memory_of_source=50_000,
        max_missing=100,
        window_seconds=2,
    )
    receiver, source = attack(4000, seed, small)
    assert receiver.statistics.malformed > 100
    assert source.statistics.naks_outside_window + source.statistics.naks > 10


@pytest.mark.long(seconds=200)
@pytest.mark.timeout(1200)
def test_a_million_hostile_packets_leave_memory_as_it_was() -> None:
    settings = PgmSettings(max_rate=1e6, window_memory=4 << 20, receive_memory=8 << 20)
    attack(50_000, 0, settings)
    gc.collect()
    before = anonymous_memory()
    attack(1_000_000, 1, settings)
    gc.collect()
    assert anonymous_memory() - before < 40 << 20


def test_fragments_of_nothing_cost_nothing() -> None:
    """65,536 fragments of one octet each, of 64 sessions that never end."""
    receiver = Receiver(PgmSettings(max_sources_of_host=64), GROUP, Random(1), lambda apdu, tsi, ip: None)
    before = anonymous_memory()
    for session in range(64):
        tsi = Tsi(b"attack", session)
        for sequence in range(300):
            fragment = Fragment(0, sequence, 65_536)
            receiver.on_packet(
                encode_data(Data(tsi, GROUP.port, sequence, 0, b"x", fragment)), "198.51.100.1", 0.0
            )
    assert anonymous_memory() - before < 4 << 20


def test_a_gap_of_two_thousand_million_packets_costs_nothing() -> None:
    receiver = Receiver(PgmSettings(), GROUP, Random(1), lambda apdu, tsi, ip: None)
    before = anonymous_memory()
    for session in range(8):
        tsi = Tsi(b"attack", session)
        receiver.on_packet(encode_spm(Spm(tsi, GROUP.port, 1, 1, 0, "198.51.100.1")), "198.51.100.1", 0.0)
        receiver.on_packet(
            encode_spm(Spm(tsi, GROUP.port, 2, 1, 0x7FFF_FFF0, "198.51.100.1")), "198.51.100.1", 0.0
        )
    now = 0.0
    while now < 20 and (deadline := receiver.next_deadline()) is not None:
        now = max(now, deadline)
        receiver.packets(now)
        receiver.on_packet(
            encode_data(Data(Tsi(b"attack", 1), GROUP.port, 1, 0x7000_0000, b"")), "198.51.100.1", now
        )
    assert anonymous_memory() - before < 16 << 20
    for session in range(8):  # the window jumps by as much
        tsi = Tsi(b"attack", session)
        receiver.on_packet(
            encode_data(Data(tsi, GROUP.port, 0x7FFF_FFF0, 0x7FFF_FFF0, b"x")), "198.51.100.1", now
        )
    assert receiver.statistics.apdus == 8


@pytest.mark.long(seconds=70)
@pytest.mark.timeout(300)
@pytest.mark.needs(modules=["atheris"])
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    fuzzer = Path(__file__).with_name("fuzz_packets.py")
    command = [sys.executable, str(fuzzer), "--seconds", "60", "--work", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
