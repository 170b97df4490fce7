"""Reads with limits through the client."""

from __future__ import annotations

import pytest

from msmq_fast import Connection, Lookup, Message, MessageSizes, errors
from tests.client.connecting import connected
from tests.client.server import Server

pytestmark = pytest.mark.smoke


@connected
async def test_every_read_takes_limits(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("orders", transactional=True)
    small = MessageSizes(body=4)
    async with connection.open("orders") as queue, queue.cursor() as cursor:
        async with connection.transaction() as transaction:
            await queue.send(Message(b"large", label="ab"), transaction=transaction)
        async with connection.transaction() as transaction:
            for read in (
                queue.receive(0, limits=small),
                queue.receive(0, limits=small, transaction=transaction),
                queue.peek(0, limits=small),
                queue.lookup(operation=Lookup.FIRST, limits=small),
                queue.lookup(operation=Lookup.FIRST, receive=True, limits=small, transaction=transaction),
                cursor.receive(0, limits=small),
                cursor.receive(0, limits=small, transaction=transaction),
                cursor.peek(0, limits=small),
            ):
                with pytest.raises(
                    errors.BufferTooSmall, match="the size of the body is 5; the limit is 4"
                ) as caught:
                    await read
                needed = MessageSizes(*caught.value.needed)
                assert (needed.body, needed.label, needed.extension) == (5, 2, 0)
                assert caught.value.name == "MQ_ERROR_BUFFER_OVERFLOW"
        assert (await queue.receive(0, limits=needed)).body == b"large"


@connected
async def test_the_code_says_what_did_not_fit(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("orders")
    async with connection.open("orders") as queue:
        await queue.send(b"x", label="too long")
        with pytest.raises(errors.BufferTooSmall) as caught:
            await queue.receive(0, limits=MessageSizes(label=3))
        assert caught.value.name == "MQ_ERROR_LABEL_BUFFER_TOO_SMALL"
        assert (await queue.receive(0, limits=MessageSizes())).label == "too long"
