"""Queues of other computers through the client: two server processes, over RemoteRead and over qm2qm."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from msmq_fast.client import sync
from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.message import Message
from msmq_fast.client.queue import Queue
from msmq_fast.protocol.errors import (
    InvalidHandle,
    IOTimeout,
    MessageNotFound,
    MSMQError,
    OperationCancelled,
    SharingViolation,
    StaleHandle,
    TransactionEnlist,
    UnsupportedOperation,
)
from msmq_fast.protocol.frames import Access, Frame, Lookup, Share
from tests.support.processes.remotes import NAME, computers
from tests.support.processes.servers import Server

PATIENCE = 20.0


@pytest.fixture(scope="module", params=["RemoteRead", "qm2qm"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    off = {"MSMQ_FAST_RPC__REMOTE_READ": "false"} if request.param == "qm2qm" else {}
    with computers(off) as pair:
        yield pair


@pytest.fixture
def pair(both: tuple[Server, Server]) -> tuple[Server, Server]:
    """With an empty queue."""
    both[0].run("queue", "purge", "orders")
    return both


class Both:
    """Connections to the owner of a queue and to its reader, and the queue from either side."""

    def __init__(self, owner: Connection, reader: Connection, own: Queue, remote: Queue) -> None:
        self.owner, self.reader, self.own, self.remote = owner, reader, own, remote

    async def send(self, *bodies: bytes) -> None:
        await self.own.send_many([Message(body, delivery=1) for body in bodies])

    async def left(self) -> list[bytes]:
        """What is in the queue, locked or not, in its order."""
        own, found = self.own, []
        try:
            message = await own.lookup(0, Lookup.FIRST)
            while True:
                found.append(message.body)
                message = await own.lookup(message.lookup_id, Lookup.NEXT)
        except MessageNotFound:
            return found

    async def count(self) -> int:
        return (await self.owner.admin.queues.get("orders")).messages


def converse(pair: tuple[Server, Server], talk: Callable[[Both], Awaitable[None]]) -> None:
    async def run() -> None:
        owner, reader = pair
        async with await connect(owner.endpoint) as there, await connect(reader.endpoint) as here:
            own = await there.open("orders")
            remote = await here.open(NAME, Access.RECEIVE)
            await talk(Both(there, here, own, remote))

    asyncio.run(asyncio.wait_for(run(), 60))


def test_waiting_and_cancelling(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        waiting = asyncio.create_task(it.remote.receive(PATIENCE))
        await asyncio.sleep(0)
        await it.send(b"one")
        assert (await waiting).body == b"one"
        cancelled = asyncio.create_task(it.remote.receive(None))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(cancelled), 0.1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await it.send(b"two")
        assert (await it.remote.receive(PATIENCE)).body == b"two", "the cancelled one takes nothing"
        with pytest.raises(IOTimeout):
            await it.remote.receive(0.05)

    converse(pair, talk)


def test_cursors(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        await it.send(b"one", b"two", b"three")
        async with await it.remote.cursor() as cursor:
            assert [message.body async for message in cursor] == [b"one", b"two", b"three"]
        async with await it.remote.cursor() as cursor:
            await cursor.peek(PATIENCE)
            await cursor.peek_next(PATIENCE)
            assert (await cursor.receive(PATIENCE)).body == b"two"
        with pytest.raises(InvalidHandle):
            await cursor.peek(0)
        assert await it.left() == [b"one", b"three"]

    converse(pair, talk)


def test_subscriptions_lock_until_they_are_acknowledged(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        await it.send(b"one", b"two", b"three")
        async with it.remote.subscribe(8) as messages:
            came = [await anext(messages) for _ in range(3)]
            assert [message.body for message in came] == [b"one", b"two", b"three"]
            assert await it.left() == []
            assert await it.count() == 3
            await messages.acknowledge(came[0])
            assert await it.count() == 2
            await messages.release(came[1])
            assert (await anext(messages)).body == b"two"
        await _until(it.left, [b"two", b"three"])

    converse(pair, talk)


def test_iterating_receives_what_the_loop_has_finished(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        await it.send(*(b"%d" % number for number in range(200)))
        count = 0
        async for message in it.remote:
            assert message.body == b"%d" % count
            count += 1
            if count == 150:
                break
        await _until(it.left, [b"%d" % number for number in range(149, 200)])

    converse(pair, talk)


def test_many_at_once(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        bodies = [b"%d" % number for number in range(300)]
        reads = [asyncio.create_task(it.remote.receive(PATIENCE)) for _ in range(200)]
        await it.send(*bodies)
        came = [message.body for message in await asyncio.gather(*reads)]
        came += [(await it.remote.receive(0)).body for _ in range(100)]
        assert sorted(came) == sorted(bodies)
        assert await it.left() == []

    converse(pair, talk)


def test_a_program_that_goes_takes_nothing_with_it(pair: tuple[Server, Server]) -> None:
    reader = pair[1]

    async def talk(it: Both) -> None:
        await it.send(b"one", b"two")
        async with await connect(reader.endpoint) as another:
            queue = await another.open(NAME, Access.RECEIVE)
            messages = queue.subscribe(4)
            await messages.__aenter__()
            assert (await anext(messages)).body == b"one"
            waiting = asyncio.create_task(queue.receive(None))
            await asyncio.sleep(0.05)
        with pytest.raises(MSMQError):
            await waiting
        await _until(it.left, [b"one", b"two"])
        assert (await it.remote.receive(PATIENCE)).body == b"one"

    converse(pair, talk)


def test_closing_a_queue(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        waiting = asyncio.create_task(it.remote.receive(None))
        await asyncio.sleep(0.05)
        await it.remote.close()
        with pytest.raises(OperationCancelled):
            await waiting
        with pytest.raises(InvalidHandle):
            await it.remote.receive(0)

    converse(pair, talk)


def test_share_modes_are_those_of_the_other_computer(pair: tuple[Server, Server]) -> None:
    owner, reader = pair

    async def talk() -> None:
        async with await connect(owner.endpoint) as there, await connect(reader.endpoint) as here:
            alone = await here.open(NAME, Access.RECEIVE, Share.DENY_RECEIVE)
            with pytest.raises(SharingViolation):
                await there.open("orders", Access.RECEIVE)
            await alone.close()

            async def opened() -> bool:
                try:
                    await there.open("orders", Access.RECEIVE)
                except SharingViolation:
                    return False
                return True

            await _until(opened, True)

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_what_only_works_at_home(pair: tuple[Server, Server]) -> None:
    async def talk(it: Both) -> None:
        with pytest.raises(UnsupportedOperation):
            await it.remote.request(Frame.BROWSE, {}, 0, 0, 100)
        async with it.reader.transaction() as transaction:
            with pytest.raises(TransactionEnlist):
                await it.remote.receive(0, transaction=transaction)

    converse(pair, talk)


def test_the_synchronous_client(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    with sync.connect(owner.endpoint) as there, sync.connect(reader.endpoint) as here:
        there.open("orders").send_many([Message(b"one", delivery=1), Message(b"two", delivery=1)])
        queue = here.open(NAME, Access.RECEIVE)
        assert queue.peek(PATIENCE).body == b"one"
        assert queue.receive(PATIENCE).body == b"one"
        message = queue.lookup(0, Lookup.LAST, receive=True)
        assert message.body == b"two"
        with pytest.raises(IOTimeout):
            queue.receive(0)
        assert queue.purge() is None


def test_the_other_computer_dies() -> None:
    with computers() as (owner, reader):

        async def talk() -> None:
            async with await connect(reader.endpoint) as here:
                queue = await here.open(NAME, Access.RECEIVE)
                waiting = asyncio.create_task(queue.receive(None))
                await asyncio.sleep(0.05)
                owner.kill()
                with pytest.raises(MSMQError) as lost:
                    await waiting
                assert lost.value.name == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"
                with pytest.raises(StaleHandle):
                    await queue.receive(0)
                await queue.close()

        asyncio.run(asyncio.wait_for(talk(), 60))


def test_this_computer_dies_with_messages_locked_there() -> None:
    with computers() as (owner, reader):

        async def talk() -> None:
            async with await connect(owner.endpoint) as there, await connect(reader.endpoint) as here:
                own = await there.open("orders")
                await own.send_many([Message(b"one", delivery=1), Message(b"two", delivery=1)])
                queue = await here.open(NAME, Access.RECEIVE)
                messages = queue.subscribe(4)
                await messages.__aenter__()
                assert (await anext(messages)).body == b"one"
                reader.kill()
                # The second one may never have been locked, and is then received while the first still is.
                left = {(await own.receive(PATIENCE)).body for _ in range(2)}
                assert left == {b"one", b"two"}

        asyncio.run(asyncio.wait_for(talk(), 60))


async def _until(ask: Callable[[], Awaitable[object]], expected: object) -> None:
    """Wait until the answer is `expected`: locks end a moment after what held them."""
    async with asyncio.timeout(PATIENCE):
        while (found := await ask()) != expected:
            assert found is not None
            await asyncio.sleep(0.02)
