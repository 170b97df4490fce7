"""The other computer is killed again and again while its queue is read: every message comes once."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.message import Message, ReceivedMessage
from msmq_fast.client.queue import Queue
from msmq_fast.protocol.errors import IOTimeout, MSMQError
from msmq_fast.protocol.frames import Access
from tests.support.processes.remotes import HOST, NAME, computers
from tests.support.processes.servers import Server


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


async def send(owner: Server, messages: int) -> None:
    async with await connect(owner.endpoint) as there:
        queue = await there.open("orders", Access.SEND)
        await queue.send_many([Message(b"%d" % number, delivery=1) for number in range(messages)])


async def opened(here: Connection) -> Queue:
    """The queue, as soon as its computer is there again."""
    while True:
        try:
            return await here.open(NAME, Access.RECEIVE)
        except MSMQError:
            await asyncio.sleep(0.05)


async def kill_again_and_again(owner: Server, done: asyncio.Event, seed: int, kills: int) -> int:
    """How often."""
    chance = random.Random(seed)
    for number in range(kills):
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        if done.is_set():
            return number
        await asyncio.to_thread(owner.kill)
        await asyncio.to_thread(owner.start)
    return kills


Reading = Callable[[Connection, list[bytes]], Awaitable[None]]


async def one_by_one(here: Connection, came: list[bytes]) -> None:
    """Several receives at a time, until nothing is left."""
    queue = await opened(here)
    while True:
        reads = await asyncio.gather(*(queue.receive(0.5) for _ in range(8)), return_exceptions=True)
        came += [read.body for read in reads if isinstance(read, ReceivedMessage)]
        failures = [read for read in reads if isinstance(read, BaseException)]
        if len(failures) == 8 and all(isinstance(failure, IOTimeout) for failure in failures):
            return
        for failure in failures:
            if not isinstance(failure, MSMQError):
                raise failure
            if not isinstance(failure, IOTimeout):
                queue = await opened(here)
                break


@pytest.mark.parametrize(
    "interface", ["RemoteRead", pytest.param("qm2qm", marks=pytest.mark.long(seconds=7))]
)
def test_a_few_kills_lose_nothing(interface: str) -> None:
    """The reads that were under way are answered, which takes the deadlines of remote reading."""
    assert read_through_kills(interface, messages=3_000, kills=5) >= 3


@pytest.mark.long(seconds=30)
@pytest.mark.rule("QP-111", "QP-112")
@pytest.mark.parametrize("interface", ["RemoteRead", "qm2qm"])
def test_nothing_is_lost_and_nothing_comes_twice(interface: str) -> None:
    assert read_through_kills(interface, messages=3_000, kills=10) >= 3


def read_through_kills(interface: str, *, messages: int, kills: int) -> int:
    """Read all messages while their server is killed; how often that happened."""
    environment = {"MSMQ_FAST_RPC__REMOTE_READ": "false"} if interface == "qm2qm" else {}
    came: list[bytes] = []

    async def run(owner: Server, reader: Server) -> int:
        await send(owner, messages)
        done = asyncio.Event()
        killing = asyncio.create_task(kill_again_and_again(owner, done, 17, kills))
        async with await connect(reader.endpoint) as here:
            await one_by_one(here, came)
        done.set()
        return await killing

    with computers(environment, owner_flags=("--epm-port", str(free_port()))) as pair:
        killed = asyncio.run(asyncio.wait_for(run(*pair), 60))
    counted = Counter(came)
    assert [body for body, count in counted.items() if count > 1] == []
    assert len(counted) == messages
    return killed
