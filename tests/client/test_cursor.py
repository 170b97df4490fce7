"""Cursors, subqueues and moves through both clients."""

from __future__ import annotations

import asyncio

import pytest

import msmq_fast
from msmq_fast import Access, Message, errors, sync
from tests.client.connecting import connected, path
from tests.client.server import Server

__all__ = ["path"]


@connected
async def test_a_cursor_reads_on(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send_many(Message(b"%d" % number, priority=number) for number in range(4))
    async with await queue.cursor() as cursor:
        with pytest.raises(errors.IllegalCursorAction):
            await cursor.peek_next(0)
        assert (await cursor.peek(0)).body == b"3"
        assert (await cursor.peek_next(0)).body == b"2"
        assert (await cursor.receive(0)).body == b"2"
    async with await queue.cursor() as cursor:
        assert [message.body async for message in cursor] == [b"3", b"1", b"0"]
        waiting = asyncio.ensure_future(cursor.peek(5))
        await asyncio.sleep(0)
        await queue.send(b"late")
        assert (await waiting).body == b"late"
        assert [(await cursor.peek_next(0)).body for _ in range(2)] == [b"1", b"0"]
        waiting = asyncio.ensure_future(cursor.peek_next(None))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await connection.ping()
        await queue.send(b"last", priority=0)
        assert (await cursor.receive(0)).body == b"last"
    with pytest.raises(errors.InvalidHandle):
        await cursor.peek(0)


@connected
async def test_a_cursor_continues_after_a_place(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send_many(Message(b"%d" % number) for number in range(4))
    async with queue.cursor() as cursor:
        await cursor.peek(0)
        second = await cursor.peek_next(0)
    async with queue.cursor(after=second) as cursor:
        assert [message.body async for message in cursor] == [b"2", b"3"]
    await queue.lookup(second.lookup_id, receive=True)
    async with queue.cursor(after=second.lookup_id) as cursor:  # which is gone
        assert (await cursor.receive(0)).body == b"2"


@connected
async def test_messages_are_moved_to_a_subqueue(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    later = await connection.open("orders;later", Access.MOVE | Access.RECEIVE)
    await queue.send_many([Message(b"one", delivery=1), Message(b"two")])
    first = await queue.peek(0)
    await queue.move(first, later)
    moved = await later.peek(0)
    assert (moved.body, moved.lookup_id, moved.move_count) == (b"one", first.lookup_id, 1)
    assert moved.to_json()["move_count"] == 1
    back = await connection.open("orders", Access.MOVE)
    await later.move(moved.lookup_id, back)
    assert [(await queue.receive(0)).body for _ in range(2)] == [b"one", b"two"]
    with pytest.raises(errors.MessageNotFound):
        await queue.move(first, later)


@connected
async def test_moves_and_cursors_in_a_transaction(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders", transactional=True)
    queue = await connection.open("orders")
    later = await connection.open("orders;later", Access.MOVE | Access.RECEIVE)
    async with connection.transaction() as transaction:
        await queue.send_many([Message(b"one"), Message(b"two")], transaction=transaction)
    first = await queue.peek(0)
    for keep in (False, True):
        cursor = await queue.cursor()
        transaction = connection.transaction()
        await transaction.begin()
        await queue.move(first, later, transaction=transaction)
        assert (await cursor.receive(0, transaction=transaction)).body == b"two"
        with pytest.raises(errors.IOTimeout):
            await later.peek(0)
        await (transaction.commit() if keep else transaction.abort())
        if not keep:
            assert (await queue.peek(0)).abort_count == 1
    assert (await later.receive(0)).body == b"one"
    with pytest.raises(errors.IOTimeout):
        await queue.peek(0)


def test_the_blocking_client(path: str) -> None:
    with sync.connect(path) as connection:
        connection.admin.queues.create("orders", poison_after=3)
        assert connection.admin.queues.get("orders").poison_after == 3
        with connection.open("orders") as queue, connection.open("orders;later", Access.MOVE) as later:
            queue.send_many(Message(b"%d" % number) for number in range(3))
            with queue.cursor() as cursor:
                assert [message.body for message in cursor] == [b"0", b"1", b"2"]
            cursor = queue.cursor()
            assert cursor.receive(1).body == b"0"
            message = cursor.peek(1)
            queue.move(message, later)
            assert cursor.peek_next(0).body == b"2"
            cursor.close()
            assert connection.admin.queues.get("orders;later").messages == 1
