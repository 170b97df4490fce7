"""Connections that are lost and come again: what goes on, what is in doubt, what has ended."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

import pytest

import msmq_fast
from msmq_fast import (
    Access,
    CommitInDoubt,
    Connection,
    ConnectionLost,
    Lookup,
    Message,
    Queue,
    Reconnect,
    SendInDoubt,
    errors,
    sync,
)
from msmq_fast.client.channel import Channel
from msmq_fast.client.transport import Link
from tests.client.server import Server, running
from tests.support.processes.servers import Server as Process
from tests.support.processes.servers import data_directory

QUICK = Reconnect(first=0.001, most=0.01)
Test = Callable[[Server, Connection], Awaitable[None]]


def lasting(test: Test) -> Callable[[Path], None]:
    """Run a test coroutine with a server and a connection that reconnects."""

    @wraps(test)
    def run(tmp_path: Path) -> None:
        async def main() -> None:
            async with (
                running(tmp_path / "app.sock") as server,
                msmq_fast.connect(server.path, reconnect=QUICK) as connection,
            ):
                await connection.admin.queues.create("orders")
                await asyncio.wait_for(test(server, connection), 10)

        asyncio.run(main())

    del run.__wrapped__
    return run


async def _dropped(server: Server, connection: Connection) -> None:
    """Drop the connection; returns when the client knows, before it can have another one."""
    link = connection._channel.link
    server.drop()
    await asyncio.shield(link._closed)


def test_pauses_double_up_to_a_limit_and_differ() -> None:
    policy = Reconnect(first=1.0, most=5.0)
    for attempt, longest in enumerate((1.0, 2.0, 4.0, 5.0, 5.0)):
        pauses = {policy.pause(attempt) for _ in range(20)}
        assert all(longest / 2 <= pause <= longest for pause in pauses)
        assert len(pauses) > 1
    assert policy.pause(100_000) <= 5.0


@lasting
async def test_queues_are_open_again_and_later_calls_wait(server: Server, connection: Connection) -> None:
    async with connection.open("orders") as queue:
        for number in range(3):
            await queue.send(b"%d" % number)
            await _dropped(server, connection)
        assert [(await queue.receive(0)).body for _ in range(3)] == [b"0", b"1", b"2"]
        assert connection.connected
        assert (await connection.admin.queues.get("orders")).messages == 0


@lasting
async def test_a_call_under_way_ends_with_the_connection(server: Server, connection: Connection) -> None:
    async with connection.open("orders") as queue:
        waiting = asyncio.ensure_future(queue.receive())
        await connection.ping()
        server.drop()
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await waiting


@lasting
async def test_a_call_that_changes_nothing_is_repeated(server: Server, connection: Connection) -> None:
    async with connection.open("orders") as queue:
        peeking = asyncio.ensure_future(queue.peek())
        await connection.ping()
        pinging = asyncio.ensure_future(connection.ping())
        asking = asyncio.ensure_future(connection.admin.queues.get("orders"))
        finding = asyncio.ensure_future(queue.lookup(operation=Lookup.FIRST))
        await asyncio.sleep(0)
        await _dropped(server, connection)
        await pinging
        assert (await asking).label == ""
        with pytest.raises(errors.MessageNotFound):
            await finding
        await queue.send(b"x")
        assert (await peeking).body == b"x"


@lasting
async def test_sends_under_way_are_named_as_in_doubt(server: Server, connection: Connection) -> None:
    async with connection.open("orders") as queue:
        sent = [Message(b"1"), Message(b"2")]
        sending = asyncio.ensure_future(queue.send_many(sent))
        await asyncio.sleep(0)  # it is written, and the server has had no turn to answer
        server.drop()
        with pytest.raises(SendInDoubt, match="2 messages are in doubt, kept or not: ") as caught:
            await sending
        assert caught.value.messages == sent
        assert caught.value.taken == 0
        await queue.send(b"3")


@lasting
async def test_a_sender_names_what_is_in_doubt_and_goes_on(server: Server, connection: Connection) -> None:
    async with connection.open("orders") as queue, queue.sender(batch=2) as sender:
        sender.post(Message(b"1"))
        sender.post(Message(b"2"))  # leaves
        await _dropped(server, connection)
        with pytest.raises(SendInDoubt) as caught:
            sender.post(Message(b"not posted"))
        assert [message.body for message in caught.value.messages] == [b"1", b"2"]
        for body in (b"3", b"4", b"5"):
            sender.post(Message(body))
        assert [message.body for message in sender.unsent] == [b"3", b"4", b"5"]
        await sender.flush()
        assert sender.acknowledged == 3
        assert sender.unsent == []
        assert [(await queue.receive(0)).body for _ in range(3)] == [b"3", b"4", b"5"]


@lasting
async def test_a_subscription_goes_on_with_what_was_not_acknowledged(
    server: Server, connection: Connection
) -> None:
    async with connection.open("orders") as queue, queue.subscribe(credit=64) as messages:
        await queue.send_many([Message(b"%d" % number, delivery=1) for number in range(20)])
        first, second = await anext(messages), await anext(messages)
        await messages.acknowledge(first)
        await _dropped(server, connection)
        again = await anext(messages)
        assert (first.body, second.body, again.body) == (b"0", b"1", b"1")
        assert second.tag < again.tag
        with pytest.raises(ConnectionLost, match="they are delivered again"):
            await messages.acknowledge(second)
        messages.acknowledge_soon(second)  # of the lost connection: nothing happens
        await messages.acknowledge(again)
        rest = [await anext(messages) for _ in range(8)]
        await messages.acknowledge(rest[0], rest[-1])
        rest += [await anext(messages) for _ in range(10)]
        assert [message.body for message in rest] == [b"%d" % number for number in range(2, 20)]
        await messages.release(rest[8], rest[-1])


@lasting
async def test_a_queue_that_is_gone_ends_what_depends_on_it(server: Server, connection: Connection) -> None:
    channel, gate = connection._channel, asyncio.Event()
    dial = channel._dial

    async def held_up(ended: Callable[[], None]) -> tuple[Link, dict[str, Any]]:
        await gate.wait()
        return await dial(ended)

    channel._dial = held_up
    async with connection.open("orders") as queue, queue.subscribe() as messages:
        sender = await queue.sender().__aenter__()
        waiting = asyncio.ensure_future(anext(messages))
        await connection.ping()
        await _dropped(server, connection)
        async with msmq_fast.connect(server.path) as other:
            await other.admin.queues.delete("orders")
        gate.set()
        with pytest.raises(errors.QueueNotFound):
            await waiting
        with pytest.raises(errors.QueueNotFound):
            await queue.send(b"")
        with pytest.raises(errors.QueueNotFound):
            sender.post(Message())


@lasting
async def test_a_connection_that_is_lost_while_something_is_closed(
    server: Server, connection: Connection
) -> None:
    queue = await connection.open("orders")
    messages = await queue.subscribe().__aenter__()
    cursor = await queue.cursor()
    closing = [asyncio.ensure_future(one.__aexit__(None, None, None)) for one in (cursor, messages, queue)]
    await asyncio.sleep(0)
    await _dropped(server, connection)
    assert await asyncio.gather(*closing) == [None, None, None]


@lasting
async def test_transactions_are_aborted(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("tx", transactional=True)
    async with connection.open("tx") as queue:
        transaction = connection.transaction()
        await transaction.begin()
        await queue.send(b"1", transaction=transaction)
        await _dropped(server, connection)
        for call in (queue.send(b"2", transaction=transaction), transaction.commit(), transaction.prepare()):
            with pytest.raises(ConnectionLost, match="the transaction was aborted"):
                await call
        async with connection.transaction() as transaction:
            await queue.send(b"3", transaction=transaction)
        assert (await queue.receive(0)).body == b"3"


@lasting
async def test_a_commit_under_way_is_in_doubt(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("tx", transactional=True)
    async with connection.open("tx") as queue:
        transaction = connection.transaction()
        await transaction.begin()
        await queue.send(b"1", transaction=transaction)
        committing = asyncio.ensure_future(transaction.commit())
        await asyncio.sleep(0)
        server.drop()
        with pytest.raises(CommitInDoubt, match=f"the commit of transaction {transaction.identifier}"):
            await committing


def test_a_connection_is_given_up_after_the_attempts_that_were_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            policy = Reconnect(first=0.001, most=0.001, attempts=3)
            async with msmq_fast.connect(server.path, reconnect=policy) as connection:
                await connection.admin.queues.create("orders")
                async with connection.open("orders") as queue, queue.subscribe() as messages:
                    waiting = asyncio.ensure_future(anext(messages))
                    await connection.ping()
                    await server.stop()
                    for call in (waiting, connection.ping(), queue.send(b"")):
                        with pytest.raises(ConnectionLost, match="no queue manager at"):
                            await call

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_wrong_token_is_not_tried_again(tmp_path: Path) -> None:
    """A server that takes the token no more answers: a pause would not help."""

    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            dials = 0

            async def dial(ended: Callable[[], None]) -> tuple[Link, dict[str, Any]]:
                nonlocal dials
                dials += 1
                if dials > 1:
                    raise errors.AccessDenied("the token is not valid")
                return await real(ended)

            async with msmq_fast.connect(server.path) as plain:
                real = plain._channel._dial
                channel = await Channel.open(dial, QUICK)
                server.drop()
                await asyncio.shield(channel.link._closed)
                with pytest.raises(errors.AccessDenied):
                    await channel.live()
                await channel.close()
            assert dials == 2

    asyncio.run(asyncio.wait_for(main(), 10))


@lasting
async def test_a_queue_that_is_closed_meanwhile_stays_closed(server: Server, connection: Connection) -> None:
    """Its old number may be that of another queue on the next connection."""
    await connection.admin.queues.create("other")
    closed = await connection.open("orders")
    async with connection.open("other") as kept:
        await _dropped(server, connection)
        await closed.close()
        await kept.send(b"x")
        assert kept.handle == 1
        assert (await kept.receive(0)).body == b"x"


@lasting
async def test_a_server_that_is_not_ready_is_asked_again(server: Server, connection: Connection) -> None:
    """The link on which not everything could be opened is closed."""
    queue = await connection.open("orders")
    links = [connection._channel.link]
    restore = queue.restore

    async def refused_once(link: Link) -> None:
        links.append(link)
        if len(links) == 2:
            raise errors.ServiceNotAvailable("not yet")
        await restore(link)

    queue.restore = refused_once  # type: ignore[method-assign]
    await _dropped(server, connection)
    await connection.ping()
    assert [link.lost is None for link in links] == [False, False, True]


def test_an_unexpected_error_ends_the_waiting(tmp_path: Path) -> None:
    async def main() -> None:
        async def broken(ended: Callable[[], None]) -> tuple[Link, dict[str, Any]]:
            raise ZeroDivisionError("a bug")

        async with (
            running(tmp_path / "app.sock") as server,
            msmq_fast.connect(server.path, reconnect=QUICK) as connection,
        ):
            connection._channel._dial = broken
            await _dropped(server, connection)
            with pytest.raises(ConnectionLost, match="a bug"):
                await connection.ping()

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_computer_that_is_gone_is_noticed(tmp_path: Path) -> None:
    """By the kernel, also while nothing is under way."""

    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            token = "s" * 8
            server.world.tokens(tester=token)
            async with msmq_fast.connect(f"tcp://127.0.0.1:{server.port}", token=token) as connection:
                transport = connection._channel.link._transport
                assert transport is not None
                found = transport.get_extra_info("socket")
                assert found.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30

    asyncio.run(asyncio.wait_for(main(), 10))


@lasting
async def test_closing_while_the_connection_is_lost(server: Server, connection: Connection) -> None:
    queue = await connection.open("orders")
    async with queue.subscribe() as messages:
        waiting = [asyncio.ensure_future(anext(messages))]
        await connection.ping()
        link = connection._channel.link
        await server.stop()
        await asyncio.shield(link._closed)
        waiting.append(asyncio.ensure_future(queue.send(b"")))
        await asyncio.sleep(0)
        await connection.close()
        for call in waiting:
            with pytest.raises(ConnectionLost, match="by this program"):
                await call


def test_the_blocking_client_waits_for_the_server_that_starts_again() -> None:
    with data_directory() as data:
        server = Process(data).start()
        try:
            reconnect = Reconnect(first=0.01, most=0.1)
            with sync.connect(server.ready["app"], reconnect=reconnect) as connection:
                connection.admin.queues.create("orders")
                with connection.open("orders") as queue, queue.subscribe() as messages:
                    queue.send(b"1", delivery=1)
                    assert [message.body for message in messages.batch()] == [b"1"]
                    server.kill()
                    server.start()
                    (again,) = messages.batch()
                    assert again.body == b"1"
                    messages.acknowledge(again)
                    queue.send(b"2", delivery=1)
                    (other,) = messages.batch()
                    messages.acknowledge(other)
                    assert connection.admin.queues.get("orders").messages == 0
        finally:
            server.kill()


# ------------------------------------------------------------------------------- kills of a real server


class Ledger:
    """What a sender and a subscriber know, over all kills."""

    def __init__(self) -> None:
        self.doubtful: Counter[int] = Counter()  # sends whose answer did not come
        self.received: Counter[int] = Counter()
        self.unsure: set[int] = set()  # received, but the acknowledgment was cut off
        self.settled = 0
        self.moved = asyncio.Event()  # for every answer


async def _send(connection: Connection, total: int, ledger: Ledger) -> None:
    """Send the numbers in order; one that is in doubt is sent again."""
    again: list[int] = []
    number = 0
    async with connection.open("ledger", Access.SEND) as queue:
        while number < total or again:
            batch = [again.pop(0) for _ in range(min(len(again), 20))]
            while len(batch) < 20 and number < total:
                batch.append(number)
                number += 1
            try:
                await _some(queue, batch)
                ledger.settled += len(batch)
            except SendInDoubt as doubt:
                lost = [int(message.body) for message in doubt.messages]
                ledger.doubtful.update(lost)
                ledger.settled += len(batch) - len(lost)
                again += lost
            ledger.moved.set()


async def _stream(connection: Connection, total: int, ledger: Ledger) -> None:
    """Send the numbers through a sender, which goes on by itself; one that is in doubt is sent again."""
    waiting = deque(range(total))
    async with connection.open("ledger", Access.SEND) as queue, queue.sender(window=64, batch=16) as sender:
        while waiting or sender.acknowledged < total:
            try:
                if waiting:
                    await sender.send(Message(b"%d" % waiting[0], delivery=1))
                    waiting.popleft()
                else:
                    await sender.flush()
            except SendInDoubt as doubt:
                lost = [int(message.body) for message in doubt.messages]
                ledger.doubtful.update(lost)
                waiting.extend(lost)
            ledger.settled = sender.acknowledged
            ledger.moved.set()


async def _some(queue: Queue, numbers: list[int]) -> None:
    await queue.send_many([Message(b"%d" % one, delivery=1) for one in numbers])


async def _receive(connection: Connection, total: int, ledger: Ledger) -> None:
    """Acknowledge message by message or in runs, until every number has come."""
    async with connection.open("ledger", Access.RECEIVE) as queue, queue.subscribe(credit=32) as messages:
        while len(ledger.received) < total:
            batch = await messages.batch(16)
            numbers = [int(message.body) for message in batch]
            try:
                await messages.acknowledge(batch[0], batch[-1])
            except ConnectionLost:
                ledger.unsure.update(numbers)
                continue  # they may come again, or not: then they were acknowledged
            finally:
                ledger.received.update(numbers)


Send = Callable[[Connection, int, Ledger], Awaitable[None]]


async def _with_kills(server: Process, send: Send, kills: int, total: int, random: Random) -> Ledger:
    ledger = Ledger()
    policy = Reconnect(first=0.01, most=0.1)
    async with (
        msmq_fast.connect(server.ready["app"], reconnect=policy) as one,
        msmq_fast.connect(server.ready["app"], reconnect=policy) as other,
    ):
        await one.admin.queues.create("ledger")
        work = asyncio.gather(send(one, total, ledger), _receive(other, total, ledger))
        for _ in range(kills):
            goal = ledger.settled + random.randrange(1, max(total // kills, 2))
            while ledger.settled < min(goal, total):
                ledger.moved.clear()
                await ledger.moved.wait()
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        await work
        async with other.open("ledger", Access.RECEIVE) as queue:  # what was sent twice
            for _ in range((await one.admin.queues.get("ledger")).messages):
                ledger.received[int((await queue.receive(0)).body)] += 1
    return ledger


def _no_message_is_lost(send: Send, kills: int, total: int, seed: int) -> Ledger:
    with data_directory() as data:
        server = Process(data).start()
        try:
            ledger = asyncio.run(_with_kills(server, send, kills, total, Random(seed)))
        finally:
            server.kill()
    assert set(ledger.received) == set(range(total))
    assert ledger.settled == total  # each number was answered for once, all others were named as in doubt
    for number, times in ledger.received.items():
        assert times <= 1 + ledger.doubtful[number] + kills * (number in ledger.unsure), number
    return ledger


@pytest.mark.timeout(180)
@pytest.mark.parametrize("send", [_send, _stream])
def test_five_kills(send: Send) -> None:
    _no_message_is_lost(send, 5, 2000, seed=1)


@pytest.mark.long(seconds=45)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("send", [_send, _stream])
def test_a_hundred_kills(send: Send) -> None:
    ledger = _no_message_is_lost(send, 100, 40_000, seed=2)
    assert ledger.doubtful  # some kills fell between a send and its answer
    assert ledger.unsure
