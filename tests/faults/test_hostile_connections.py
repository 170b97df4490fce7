"""Connections, datagrams and log-ons of strangers in masses, while a witness checks what must go on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
import uvloop

from tests.support.hostile.attacked import Scene, attacked
from tests.support.hostile.hostile_sessions import Raw
from tests.support.mqqb import wire

HOST = "127.0.54.40"
CROWD = tuple(f"127.0.54.{last}" for last in range(41, 61))
TCP = ("mqqb", "http", "epm", "rpc", "qm2qm")
LIMITS = """
[limits]
network_connections = 400
network_per_address = 100
first_byte_timeout = 2
pings_per_address = 50
"""
PING = struct.pack("<HHI16s", 0, 0x5548, 77, bytes(16))
HALF = (
    b"",
    wire.establish()[:300],
    wire.establish(),
    b"POST /msmq/q HTTP/1.1\r\nHost: x\r\n",
    b"\x05\x00\x0b",
)
"""What a stranger says before it falls silent."""


def strangers(scene: Scene, sources: tuple[str, ...], seconds: float) -> Iterator[int]:
    """Connections to all ports, half begun, all of them kept; the number of each."""
    ends = time.monotonic() + seconds
    with contextlib.ExitStack() as kept:
        for number in range(10_000):
            if time.monotonic() > ends:
                return
            address = (scene.server.host, scene.server.port(TCP[number % len(TCP)]))
            with contextlib.suppress(OSError):
                made = socket.create_connection(address, 5, (sources[number % len(sources)], 0))
                kept.enter_context(made).sendall(HALF[number // len(TCP) % len(HALF)])
            yield number


def test_a_crowd_of_half_open_connections_at_all_ports() -> None:
    with attacked(LIMITS, "--http-port", "0", host=HOST) as scene:
        count = max(strangers(scene, CROWD, 3.0))
        report = scene.check()
        refusals = scene.stats()["refusals"]
        print(count, report)
    assert count > 500
    assert report.after.descriptors < 500
    made_room = sum(n for what, n in refusals.items() if "made room for another connection" in what)
    assert made_room > 500
    assert not [what for what in refusals if "too many connections over all ports" in what]


@pytest.mark.long(seconds=15)
def test_one_address_takes_only_its_share() -> None:
    with attacked(LIMITS, "--http-port", "0", host=HOST) as scene:
        for number in strangers(scene, CROWD[:1], 3.0):
            if number % 50 == 0:
                assert scene.stats()["sessions"] <= 100 + 30
        print(scene.check())


FULL = """
[listen.mqqb]
max_connections = 40
max_connections_per_address = 10
"""


@pytest.mark.long(seconds=9)
def test_addresses_that_keep_all_their_sessions_busy_shut_nobody_out() -> None:
    """Four of them have all the sessions that there may be, and connect anew as soon as one is closed."""
    with attacked(FULL, host=HOST) as scene:

        async def attack() -> None:
            ends = time.monotonic() + 4.0
            await asyncio.gather(*(busy(scene, source, ends) for source in CROWD[:4] for _ in range(10)))

        uvloop.run(attack())
        report = scene.check()
        print(scene.stats()["refusals"], report)
        assert report.retried == 0


async def busy(scene: Scene, source: str, ends: float) -> None:
    """One session after the other, with a message now and then."""
    own, number = uuid4(), 0
    while time.monotonic() < ends:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            port = scene.server.port("mqqb")
            peer = await Raw.open(scene.server.host, port, client=own, source=source)
            try:
                while time.monotonic() < ends and not peer.reader.at_eof():
                    number += 1
                    packet = wire.message(number, queue="OS:h\\private$\\none", source=own)
                    peer.writer.write(packet)
                    await peer.writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(peer.reader.read(1 << 16), 0.1)
            finally:
                peer.writer.close()
        await asyncio.sleep(0.02)


@pytest.mark.long(seconds=7)
def test_pings_in_masses_from_ports_that_answer() -> None:
    with attacked(LIMITS, "--http-port", "0", host=HOST) as scene, contextlib.ExitStack() as stack:
        target = (HOST, scene.server.port("ping"))
        senders = []
        for source, port in ((CROWD[0], target[1]), (CROWD[1], 3527), (CROWD[2], 0)):
            sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sender.bind((source, port))
            sender.setblocking(False)
            senders.append(sender)
        ends = time.monotonic() + 2.0
        answered = [0, 0, 0]
        while time.monotonic() < ends:
            for number, sender in enumerate(senders):
                with contextlib.suppress(BlockingIOError):
                    sender.sendto(PING, target)
                with contextlib.suppress(BlockingIOError):
                    answered[number] += len(sender.recv(100)) > 0
        print(answered, scene.check())
    assert answered[:2] == [0, 0]
    assert 50 <= answered[2] <= 50 * 5
