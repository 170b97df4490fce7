"""Hostile peers against a server process: each packet has its verdict and its count, and others go on."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
import uvloop

from tests.faults.hostile_attack import Attack
from tests.faults.hostile_server import corpus, target
from tests.support.hostile.hostile_model import totals

PROBE_QUEUE = "OS:host\\private$\\probe"
MIB = 1 << 20


@pytest.mark.rule("QB-007", "QB-019", "QB-162", "QB-163", "QB-178", "QB-187", "QB-193", "QB-221")
def test_every_hostile_packet_once() -> None:
    now = int(time.time())
    cases = corpus(now)
    with target() as server:

        async def run() -> list[str]:
            attack = Attack(server.server.host, server.server.port("mqqb"), now, PROBE_QUEUE)
            await attack.run(cases)
            await attack.settle()
            return attack.complaints

        began = time.monotonic()
        complaints = uvloop.run(run())
        print(f"{len(cases)} sessions in {time.monotonic() - began:.1f} s")
        assert not complaints, f"{len(complaints)} wrong verdicts:\n" + "\n".join(complaints[:20])
        server.settled()
        assert server.refusals() == totals([case.expected for case in cases])
        probes = sum(case.expected.open and not case.expected.waits for case in cases)
        handled = sum(case.expected.handled for case in cases)
        seen = server.check()
        print(seen, server.refusals(), server.refusals("message"))
        stats = server.stats()
        delivered = stats["messages_in"] - probes - seen.sent["peer"] - seen.sent["newcomer"]
        assert delivered + server.refusals("message").total() == handled


@pytest.mark.long(seconds=420)
@pytest.mark.timeout(1500)
def test_memory_after_a_million_hostile_packets() -> None:
    """Each packet in a session of its own, again and again: memory fills up in the first 10^5 packets, by a
    few megabytes, and then stays as it is: the next 900,000 packets cost less than five bytes each.
    """
    now = int(time.time())
    cases = corpus(now)
    early, full, many, slice_size = 10_000, 100_000, 1_000_000, 10_000
    # The witness brings a new peer every half second; the queues for their OrderAcks must not stay for a day.
    with target(MSMQ_FAST_QUEUE_MANAGER__OUTGOING_IDLE="5") as server:
        resident: dict[int, int] = {}

        async def run() -> list[str]:
            attack = Attack(server.server.host, server.server.port("mqqb"), now, PROBE_QUEUE)
            endless = itertools.cycle(cases)
            for sent in range(slice_size, many + 1, slice_size):
                await attack.run(itertools.islice(endless, slice_size))
                await attack.settle()
                if sent == early or sent % full == 0:
                    resident[sent] = await asyncio.to_thread(server.resident)
                assert not attack.complaints, attack.complaints[:20]
            return attack.complaints

        began = time.monotonic()
        uvloop.run(run())
        took = time.monotonic() - began
        print({count: f"{size / MIB:.1f} MiB" for count, size in resident.items()}, f"in {took:.0f} s")
        server.settled()
        # Measured: 78 MiB, 96, 97. After some 40,000 packets the heaps of the allocators, the connection
        # histories of the witness's queues and the rings of limits.metric_queues queues have their full size.
        assert resident[full] - resident[early] < 24 * MIB
        assert resident[many] - resident[full] < 4 * MIB
        rounds, rest = divmod(many, len(cases))
        expected = totals([case.expected for case in cases * rounds + cases[:rest]])
        assert server.refusals() == expected
        print(server.check())
