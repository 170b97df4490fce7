"""A server process with large transactions: bounded memory, kills in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from msmq_fast.client import Connection, Message, Queue, Transaction, connect
from tests.support.processes.servers import Server, data_directory

COUNT = 100_000
BODY = 2_000
MIB = 1 << 20


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--admin-port", "off").start()
        try:
            yield running
        finally:
            running.kill()


async def _opened(server: Server, *, create: bool = False) -> tuple[Connection, Queue]:
    connection = await connect(server.endpoint)
    if create:
        await connection.admin.queues.create("ledger", transactional=True)
    return connection, await connection.open("ledger")


async def _send(queue: Queue, transaction: Transaction, count: int, size: int = 4) -> None:
    async with queue.sender(transaction=transaction) as sender:
        for number in range(count):
            await sender.send(Message(number.to_bytes(4, "big").ljust(size, b"x")))


async def _numbers(queue: Queue, count: int, transaction: Transaction | None = None) -> list[tuple[int, int]]:
    """(number, abort count) of the next messages."""
    found: list[tuple[int, int]] = []
    async with queue.subscribe(count, acknowledge=False, transaction=transaction) as messages:
        while len(found) < count:
            batch = await messages.batch()
            found += [(int.from_bytes(message.body[:4], "big"), message.abort_count) for message in batch]
    return found


@pytest.mark.long(seconds=40)
@pytest.mark.rule("KV-07", "DU-05", "REC-06")
def test_a_hundred_thousand_messages_in_bounded_memory(server: Server) -> None:
    async def main() -> None:
        connection, queue = await _opened(server, create=True)
        async with connection:
            idle = server.resident
            transaction = connection.transaction()
            await transaction.begin()
            await _send(queue, transaction, COUNT, BODY)
            held = server.resident - idle
            assert (await connection.admin.queues.get("ledger")).messages == 0
            await transaction.commit()
            committed = server.resident - idle
            print(f"anonymous memory: +{held / MIB:.0f} MiB open, +{committed / MIB:.0f} MiB committed")
            assert (await connection.admin.queues.get("ledger")).messages == COUNT
            assert held < 64 * MIB < COUNT * BODY
            assert committed < 128 * MIB
            transaction = connection.transaction()
            await transaction.begin()
            assert await _numbers(queue, COUNT, transaction) == [(number, 0) for number in range(COUNT)]
            received = server.resident - idle
            print(f"anonymous memory: +{received / MIB:.0f} MiB received")
            assert received < 160 * MIB
            await transaction.abort()
            back = await _numbers(queue, 10_000)
            assert back[:10_000] == [(number, 1) for number in range(10_000)]

    asyncio.run(main())


@pytest.mark.long(seconds=20)
@pytest.mark.rule("DM-015", "DM-018", "REC-06")
def test_a_kill_in_the_middle_puts_everything_back(server: Server) -> None:
    async def fill() -> None:
        connection, queue = await _opened(server, create=True)
        async with connection:
            async with connection.transaction() as transaction:
                await _send(queue, transaction, 10_000)
            transaction = connection.transaction()
            await transaction.begin()
            assert len(await _numbers(queue, 10_000, transaction)) == 10_000
            await _send(queue, transaction, 2_000, BODY)
            server.kill()

    kept = [0] * 10_000

    async def check() -> None:
        """Each count is what it was, or one more where the abort before the last kill was written."""
        connection, queue = await _opened(server)
        async with connection:
            assert (await connection.admin.queues.get("ledger")).messages == 10_000
            transaction = connection.transaction()
            await transaction.begin()
            found = await _numbers(queue, 10_000, transaction)
            assert [number for number, _ in found] == list(range(10_000))
            counts = [count for _, count in found]
            assert all(new - old in (0, 1) for new, old in zip(counts, kept, strict=True))
            kept[:] = counts
            abort = asyncio.ensure_future(transaction.abort())
            await asyncio.sleep(0.01)
            server.kill()
            await asyncio.gather(abort, return_exceptions=True)

    told: list[int] = []

    async def aborted() -> None:
        """An abort that was over in good time before the kill is kept with its counts."""
        connection, queue = await _opened(server)
        async with connection:
            transaction = connection.transaction()
            await transaction.begin()
            told.extend(count for _, count in await _numbers(queue, 10_000, transaction))
            kept[:] = told
            await transaction.abort()
            for number in range(10):  # commits later than those of the counts
                await connection.admin.queues.create(f"later{number}")

    asyncio.run(fill())
    for _ in range(4):
        server.start()
        asyncio.run(check())
    server.start()
    asyncio.run(aborted())
    server.kill()
    server.start()
    asyncio.run(check())
    assert kept == [before + 1 for before in told]
