"""Transactions of programs, with asyncio and without."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msmq_fast.client import SINGLE_MESSAGE, Access, Message, connect, sync
from msmq_fast.protocol import errors
from msmq_fast.protocol.frames import Lookup

from .server import running


def test_commit_and_abort(tmp_path: Path) -> None:
    asyncio.run(_commit_and_abort(tmp_path))


async def _commit_and_abort(tmp_path: Path) -> None:
    async with running(tmp_path / "app.sock") as server, await connect(server.path) as connection:
        await connection.admin.queues.create("orders", transactional=True)
        queue = await connection.open("orders")
        async with connection.transaction() as transaction:
            await queue.send(b"1", transaction=transaction)
            await queue.send_many([Message(b"2"), Message(b"3")], transaction=transaction)
            with pytest.raises(errors.IOTimeout):
                await queue.peek(0)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with connection.transaction() as transaction:
                message = await queue.receive(1, transaction=transaction)
                assert (message.body, message.transactional) == (b"1", True)
                await queue.send(b"4", transaction=transaction)
                1 / 0  # noqa: B018
        async with connection.transaction() as transaction:
            message = await queue.receive(1, transaction=transaction)
            assert (message.body, message.abort_count) == (b"1", 1)
            async with queue.subscribe(2, transaction=transaction) as messages:
                assert [message.body for message in await messages.batch()] == [b"2", b"3"]
        with pytest.raises(errors.IOTimeout):
            await queue.receive(0)
        with pytest.raises(errors.TransactionSequence):
            await transaction.commit()
        with pytest.raises(errors.TransactionUsage):
            await queue.send(b"x")


def test_messages_show_their_place_in_their_transaction(tmp_path: Path) -> None:
    asyncio.run(_places(tmp_path))


async def _places(tmp_path: Path) -> None:
    async with running(tmp_path / "app.sock") as server, await connect(server.path) as connection:
        await connection.admin.queues.create("orders", transactional=True)
        queue = await connection.open("orders")
        async with connection.transaction() as transaction:
            await queue.send_many([Message(b"1"), Message(b"2"), Message(b"3")], transaction=transaction)
        await queue.send(b"4", transaction=SINGLE_MESSAGE)
        marks = [(await queue.receive(1)).transaction for _ in range(4)]
        assert [mark & 3 for mark in marks] == [1, 0, 2, 3]
        numbers = [mark >> 2 for mark in marks]
        assert numbers[0] == numbers[1] == numbers[2] != numbers[3]
        await connection.admin.queues.create("plain")
        plain = await connection.open("plain")
        await plain.send(b"5")
        assert (await plain.receive(1)).transaction == 0


def test_what_a_program_rejects_is_a_dead_letter(tmp_path: Path) -> None:
    asyncio.run(_rejects(tmp_path))


async def _rejects(tmp_path: Path) -> None:
    async with running(tmp_path / "app.sock") as server, await connect(server.path) as connection:
        await connection.admin.queues.create("orders", transactional=True)
        queue = await connection.open("orders")
        async with connection.transaction() as transaction:
            await queue.send(Message(b"1", journal=1), transaction=transaction)
        async with connection.transaction() as transaction:
            message = await queue.receive(1, transaction=transaction)
            await queue.reject(message, transaction=transaction)
            with pytest.raises(errors.MessageNotFound):
                await queue.reject(message.lookup_id + 1, transaction=transaction)
        dead = await (await connection.open(r".\system$;deadxact", Access.RECEIVE)).receive(1)
        assert (dead.body, dead.message_class) == (b"1", 0xC004)
        with pytest.raises(errors.IOTimeout):
            await queue.receive(0)


def test_senders_and_single_messages(tmp_path: Path) -> None:
    asyncio.run(_senders_and_single_messages(tmp_path))


async def _senders_and_single_messages(tmp_path: Path) -> None:
    async with running(tmp_path / "app.sock") as server, await connect(server.path) as connection:
        await connection.admin.queues.create("orders", transactional=True)
        queue = await connection.open("orders")
        async with queue.sender(batch=10, transaction=SINGLE_MESSAGE) as sender:
            for number in range(25):
                await sender.send(Message(b"%d" % number))
        assert sender.acknowledged == 25
        async with (
            connection.transaction() as transaction,
            queue.sender(batch=10, transaction=transaction) as sender,
        ):
            for number in range(25):
                await sender.send(Message(b"%d" % number))
        await queue.send(b"last", transaction=SINGLE_MESSAGE)
        assert await queue.purge() == 51


def test_operators(tmp_path: Path) -> None:
    asyncio.run(_operators(tmp_path))


async def _operators(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "app.sock") as server,
        await connect(server.path) as connection,
        connection.transaction() as transaction,
    ):
        (shown,) = [one.as_map() for one in await connection.admin.transactions.all()]
        assert shown["identifier"] == transaction.identifier
        await connection.admin.transactions.abort(transaction.identifier)
        with pytest.raises(errors.TransactionSequence):
            await transaction.abort()


def test_two_phases(tmp_path: Path) -> None:
    asyncio.run(_two_phases(tmp_path))


async def _two_phases(tmp_path: Path) -> None:
    async with running(tmp_path / "app.sock") as server, await connect(server.path) as connection:
        await connection.admin.queues.create("orders", transactional=True)
        queue = await connection.open("orders")
        async with await connect(server.path) as other:
            sending = await other.open("orders")
            transaction = other.transaction()
            await transaction.begin()
            await sending.send(b"1", transaction=transaction)
            await transaction.prepare()
            with pytest.raises(errors.TransactionSequence):
                await sending.send(b"2", transaction=transaction)
        (shown,) = [one.as_map() for one in await connection.admin.transactions.all()]
        assert (shown["identifier"], shown["state"]) == (transaction.identifier, "prepared")
        await connection.admin.transactions.commit(transaction.identifier)
        assert (await queue.receive(timeout=5)).body == b"1"


def test_without_asyncio(tmp_path: Path) -> None:
    async def serve(started: asyncio.Event, stop: asyncio.Event) -> None:
        async with running(tmp_path / "app.sock"):
            started.set()
            await stop.wait()

    async def main() -> None:
        started, stop = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(serve(started, stop))
        await started.wait()
        await asyncio.to_thread(use)
        stop.set()
        await task

    def use() -> None:
        with sync.connect(str(tmp_path / "app.sock")) as connection:
            connection.admin.queues.create("orders", transactional=True)
            queue = connection.open("orders")
            with connection.transaction() as transaction:
                queue.send(b"1", transaction=transaction)
                queue.send_many([Message(b"2")], transaction=transaction)
            queue.send(b"3", transaction=sync.SINGLE_MESSAGE)
            with pytest.raises(ZeroDivisionError), connection.transaction() as transaction:  # noqa: PT012
                assert queue.receive(0, transaction=transaction).body == b"1"
                1 / 0  # noqa: B018
            with connection.transaction() as transaction:
                first = queue.receive(0, transaction=transaction)
                assert (first.body, first.abort_count) == (b"1", 1)
                assert (
                    queue.lookup(first.lookup_id, Lookup.NEXT, receive=True, transaction=transaction).body
                    == b"2"
                )
            assert queue.receive(0).body == b"3"
            queue.send(Message(b"4", journal=1), transaction=sync.SINGLE_MESSAGE)
            with connection.transaction() as transaction:
                queue.reject(queue.receive(0, transaction=transaction), transaction=transaction)
            assert connection.open(r".\system$;deadxact", Access.RECEIVE).receive(0).body == b"4"

    asyncio.run(main())
