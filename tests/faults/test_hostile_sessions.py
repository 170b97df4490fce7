"""Hostile sessions against a server process: order, counts, connections cut, left idle or drip-fed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from msmq_fast.mqqb.reasons import CloseReason, Contest
from tests.faults.hostile_attack import Attack, Case, guid
from tests.faults.hostile_server import OWN, Target, target
from tests.support.hostile.hostile_model import totals
from tests.support.hostile.hostile_sessions import QUEUE, Raw, abuses
from tests.support.mqqb import wire
from tests.support.processes.servers import until

PROBE_QUEUE = "OS:host\\private$\\probe"
MIB = 1 << 20


def attack(server: Target, work: Callable[[str, int], Awaitable[None]]) -> None:
    """Run `work(host, port)`; then the witness must be well."""
    uvloop.run(work(server.server.host, server.server.port("mqqb")))  # type: ignore[arg-type]
    server.settled()


@pytest.mark.rule("QB-007", "QB-021", "QB-025", "QB-026", "QB-178", "QB-187", "QB-193", "QB-221")
def test_sound_packets_out_of_order_and_lies_in_counts() -> None:
    now = int(time.time())
    cases = [
        Case.of(name, position, stream, OWN, number)
        for number, (name, position, stream) in enumerate(abuses(OWN, now))
    ]
    assert {case.expected.reason for case in cases} >= {
        None,
        CloseReason.OUT_OF_STATE,
        CloseReason.WRONG_SERVER,
        CloseReason.OWN_GUID,
        CloseReason.BAD_PARAMETERS,
        CloseReason.ACK_UNSENT,
        CloseReason.COUNT_MISMATCH,
    }
    with target() as server:

        async def work(host: str, port: int) -> None:
            run = Attack(host, port, now, PROBE_QUEUE, width=8)
            await run.run(cases)
            await run.settle()
            assert not run.complaints, "\n".join(run.complaints)

        attack(server, work)
        assert server.refusals() == totals([case.expected for case in cases])
        print(server.check())


def test_slow_and_silent_peers() -> None:
    """Slow-loris before and in a session, silence, a GUID that lives twice: each closed, with its reason."""
    many = 60
    short = {
        "MSMQ_FAST_LIMITS__HANDSHAKE_TIMEOUT": "1s",
        "MSMQ_FAST_LIMITS__SLOW_WRITER_TIMEOUT": "1s",
    }
    with target(**short) as server:

        async def work(host: str, port: int) -> None:
            silent = [await Raw.open(host, port) for _ in range(many)]
            dripping = [await Raw.open(host, port) for _ in range(many)]
            half = [await Raw.open(host, port) for _ in range(many)]
            for peer in half:
                peer.writer.write(wire.establish())
            slow = [await Raw.open(host, port, client=guid(5, number)) for number in range(many)]
            drops = [asyncio.create_task(peer.dribble(wire.establish(), 0.05)) for peer in dripping]
            drops += [asyncio.create_task(peer.dribble(wire.message(1), 0.05)) for peer in slow]
            ends = await asyncio.gather(*(peer.ended(6) for peer in silent + dripping + half + slow))
            assert all(ends), f"{ends.count(False)} sessions still open"
            await asyncio.gather(*drops)
            first = await Raw.open(host, port, client=guid(6, 1), source="127.0.0.1")
            second = await Raw.open(host, port, source="127.0.0.9")
            second.writer.write(wire.establish(guid(6, 1)))
            assert not await second.ended(0.2)
            assert not await first.ended(0.2)
            first.reset()
            second.reset()

        attack(server, work)
        assert server.refusals() == {
            CloseReason.HANDSHAKE_TIMEOUT: 3 * many,
            CloseReason.SLOW_WRITER: many,
            Contest.ANOTHER_ADDRESS: 1,
        }
        print(server.check())


def test_connections_that_are_cut() -> None:
    """At any byte, by RST or by half: what was whole is kept, no refusal is counted, nothing is left."""
    sound = wire.message(1, queue=QUEUE, recoverable=True, sent_time=int(time.time()), source=guid(7, 1))
    stream = wire.establish(guid(7, 2)) + wire.parameters() + sound
    with target() as server:
        before = server.stats()["messages_in"]

        async def work(host: str, port: int) -> None:
            for cut in [*range(0, len(stream), 7), len(stream) - 1]:
                peer = await Raw.open(host, port)
                peer.writer.write(stream[:cut])
                await asyncio.sleep(0)
                peer.reset()
            half = await Raw.open(host, port)
            half.writer.write(stream + sound[:50])
            half.writer.write_eof()
            assert await half.ended(5)

        attack(server, work)
        assert server.refusals() == {}
        seen = server.check()
        print(seen)
        assert server.stats()["messages_in"] - before <= seen.sent["peer"] + seen.sent["newcomer"] + 1
        assert len(server.server.messages("queue")) == 1


@pytest.mark.long(seconds=18)
def test_idle_sessions_and_unfinished_packets_cost_little() -> None:
    """2,000 idle sessions, then 40 packets of 4 MiB that never end: others go on, the memory comes back."""
    idle, large = 2_000, 40
    packet = wire.message(1, queue=QUEUE, body=bytes(4 * MIB - 1000))
    with target(MSMQ_FAST_LIMITS__SLOW_WRITER_TIMEOUT="3s") as server:

        async def work(host: str, port: int) -> None:
            start = server.resident()
            peers = [
                await Raw.open(host, port, client=guid(8, n), source=f"127.0.1.{n % 200 + 1}")
                for n in range(idle)
            ]
            until(lambda: server.stats()["sessions"] == idle + 1, what="all sessions")
            each = (server.resident() - start) / idle
            print(f"{each / 1024:.1f} KiB for each idle session")
            assert each < 32 * 1024
            for peer in peers:
                peer.reset()
            await asyncio.to_thread(server.settled)
            after = []
            for repetition in range(3):
                peers = [await Raw.open(host, port, client=guid(9 + repetition, n)) for n in range(large)]
                for peer in peers:
                    peer.writer.write(packet[:-1])
                    await peer.writer.drain()
                assert all(await asyncio.gather(*(peer.ended(15) for peer in peers)))
                await asyncio.to_thread(server.settled)
                after.append(server.resident())
            print([f"{size / MIB:.1f} MiB" for size in after])
            assert after[2] - after[0] < 10 * MIB

        attack(server, work)
        assert server.refusals() == {CloseReason.SLOW_WRITER: 3 * large}
        print(server.check())
