"""What operators do, by subject: each request answers with a type."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

import msmq_fast
from msmq_fast import Access, Connection, Message, errors
from msmq_fast.app.handlers import administration
from msmq_fast.cli.messageid import message_id
from msmq_fast.client.exchange import Filter
from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo, QueueProperties, TransactionInfo
from msmq_fast.protocol.security import AccessDecision, AccessEntry, AccessList
from tests.client.connecting import connected
from tests.client.server import Server, running

pytestmark = pytest.mark.smoke


@connected
async def test_queues(server: Server, connection: Connection) -> None:
    queues = connection.admin.queues
    made = await queues.create("orders", label="Incoming", quota_kb=64)
    assert isinstance(made, QueueInfo)
    assert (made.label, made.quota_kb, made.transactional, made.messages) == ("Incoming", 64, False, 0)
    async with connection.open("orders") as queue:
        await queue.send(b"x")
    assert (await queues.get("orders")).messages == 1
    assert (await queues.set("orders", label="Other")).label == "Other"
    assert [queue.name for queue in await queues.all()] == [made.name]
    assert {"journal", "deadletter"} <= {queue.kind for queue in await queues.all("system")}
    await queues.delete("orders")
    with pytest.raises(errors.QueueNotFound):
        await queues.get("orders")


def test_every_property_of_a_queue_is_a_keyword() -> None:
    assert QueueProperties.__optional_keys__ == administration._SETTABLE
    assert QueueProperties.__optional_keys__ <= {field.name for field in dataclasses.fields(QueueInfo)}


@connected
async def test_messages_in_batches(server: Server, connection: Connection) -> None:
    for name in ("orders", "later"):
        await connection.admin.queues.create(name)
    messages = connection.admin.messages
    async with connection.open("orders") as orders, connection.open("later") as later:
        await orders.send_many([Message(b"%d" % number, label=str(number)) for number in range(5)])
        first = await messages.browse(orders, limit=2)
        rest = await messages.browse(orders, after=first.next, upto=first.upto)
        assert (len(first.messages), first.finished, len(rest.messages), rest.finished) == (2, False, 3, True)
        moved = await messages.move(orders, later, Filter(label="[01]"))
        assert (moved.count, moved.finished, moved.refusals) == (2, True, {})
        copied = await messages.copy(orders, later, job=bytes(16))
        assert (copied.count, (await connection.admin.queues.get("later")).messages) == (3, 5)
        await messages.end_job(bytes(16))
        incoming = await messages.open_import(bytes(15) + b"1")
        assert await incoming.put("later", rest.messages, skip=True) == (0, 3)
        await incoming.end()


@connected
async def test_fields_of_a_filter(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("orders")
    browse = connection.admin.messages.browse
    async with connection.open("orders") as orders:
        sent = [
            await orders.send(b"", label=str(number), priority=number, correlation_id=bytes([number]) * 20)
            for number in range(5)
        ]

        async def labels(**fields: Any) -> list[str]:
            page = await browse(orders, Filter(**fields))
            ids = [message.lookup_id for message in page.messages]
            return [(await orders.lookup(lookup_id)).label for lookup_id in ids]

        assert await labels(id=message_id(sent[3])) == ["3"]
        assert await labels(correlation_id=b"\2" * 20) == ["2"]
        assert await labels(priority=4) == ["4"]
        assert await labels(priority=4, label="[0-3]") == []
        everything = await browse(orders)
        ids = tuple(message.lookup_id for message in everything.messages)
        assert await labels(lookup_ids=(ids[4], ids[1], ids[1], 2**64 - 1)) == ["1", "4"]
        assert await labels(lookup_ids=()) == []
        assert await labels(lookup_ids=tuple(range(10_000))) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"id": b"short"}, "id must have 20 bytes, not 5"),
        ({"correlation_id": bytes(21)}, "correlation_id must have 20 bytes, not 21"),
        ({"priority": 8}, "priority must be a whole number from 0, at most 7"),
        ({"lookup_ids": tuple(range(10_001))}, "lookup_ids may have at most 10000 entries, not 10001"),
        ({"lookup_ids": (1, "2")}, "a lookup id must be a whole number from 0"),
        ({"lookup_ids": (1, True)}, "a lookup id must be a whole number from 0"),
    ],
)
def test_a_filter_that_is_not_valid(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    @connected
    async def check(server: Server, connection: Connection) -> None:
        await connection.admin.queues.create("orders")
        async with connection.open("orders") as orders:
            with pytest.raises(errors.InvalidParameter, match=expected):
                await connection.admin.messages.browse(orders, Filter(**fields))

    check(tmp_path)


@connected
async def test_outgoing_queues(server: Server, connection: Connection) -> None:
    name = "DIRECT=OS:elsewhere\\private$\\orders"
    async with connection.open(name, Access.SEND) as queue:
        await queue.send(b"x")
    outgoing = connection.admin.outgoing
    (found,) = await outgoing.all()
    assert isinstance(found, OutgoingQueueInfo)
    assert (found.format_name, found.messages) == (name, 1)
    await outgoing.pause(name)
    assert (await outgoing.get(name)).state == "on_hold"
    await outgoing.resume(name)
    assert (await outgoing.kick(name)).messages == 1
    assert await outgoing.purge(name) == 1


@connected
async def test_transactions(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("tx", transactional=True)
    transactions = connection.admin.transactions
    async with connection.open("tx") as queue:
        transaction = connection.transaction()
        await transaction.begin()
        await queue.send(b"x", transaction=transaction)
        (found,) = await transactions.all()
        assert isinstance(found, TransactionInfo)
        assert (found.identifier, found.state, found.sent) == (transaction.identifier, "active", 1)
        await transactions.abort(found.identifier)
        assert await transactions.all() == []
        with pytest.raises(errors.TransactionSequence):
            await transactions.commit(found.identifier)


@connected
async def test_access(server: Server, connection: Connection) -> None:
    await connection.admin.queues.create("orders")
    access = connection.admin.access
    before = await access.get("orders")
    assert isinstance(before, AccessList)
    granted = await access.grant("orders", "S-1-5-21-1-2-3-1001", "send")
    (entry,) = set(granted.entries or ()) - set(before.entries or ())
    assert isinstance(entry, AccessEntry)
    assert (entry.type, entry.sid) == ("allow", "S-1-5-21-1-2-3-1001")
    assert entry.rights == ("MQSEC_WRITE_MESSAGE",)
    decision = await access.explain("orders", "", "send")
    assert isinstance(decision, AccessDecision)
    assert decision.granted
    assert await access.revoke("orders", "S-1-5-21-1-2-3-1001") == before
    assert (await access.set_owner("orders", "S-1-5-21-1-2-3-1002")).owner.sid == "S-1-5-21-1-2-3-1002"


@connected
async def test_the_rest(server: Server, connection: Connection) -> None:
    assert isinstance(await connection.admin.stats(), dict)
    with pytest.raises(errors.UnsupportedOperation, match="this store cannot be copied"):
        await connection.admin.snapshot("/nowhere")


def test_what_is_opened_is_awaited_or_entered(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            connection = await msmq_fast.connect(server.path)
            await connection.admin.queues.create("orders")
            queue = await asyncio.create_task(connection.open("orders"))
            await queue.send(b"x")
            async with queue.cursor() as cursor:
                assert (await cursor.peek()).body == b"x"
            await connection.close()
            async with (
                msmq_fast.connect(server.path) as connection,
                connection.open("orders") as queue,
                await queue.cursor() as cursor,
            ):
                assert (await cursor.peek()).body == b"x"
            with pytest.raises(errors.ServiceNotAvailable):
                await queue.send(b"")
            with pytest.raises(ValueError, match="is not an endpoint"):
                msmq_fast.connect("tcp://nowhere")

    asyncio.run(asyncio.wait_for(main(), 10))
