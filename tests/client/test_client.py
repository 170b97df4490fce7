"""The asyncio client against a server in the same loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import msmq_fast
from msmq_fast import Access, BatchRefused, ConnectionLost, Lookup, Message, errors
from tests.client.connecting import connected
from tests.client.server import Server, running
from tests.support.processes.contract import JSON_KEYS

pytestmark = pytest.mark.smoke


@connected
async def test_send_and_receive(server: Server, connection: msmq_fast.Connection) -> None:
    assert connection.computer_name == "here"
    assert connection.guid == server.world.manager.guid
    await connection.admin.queues.create("orders", label="Orders")
    async with await connection.open("orders") as queue:
        message = Message(
            b"body",
            label="größer",
            delivery=msmq_fast.RECOVERABLE,
            priority=5,
            body_type=17,
            app_specific=9,
            correlation_id=bytes(range(20)),
            extension=b"ext",
            response_queue=r"DIRECT=OS:other\private$\replies",
            admin_queue="acks",
            acknowledge=15,
            journal=1,
            time_to_be_received=100,
        )
        sent = await queue.send(message)
        got = await queue.receive(timeout=5)
    assert got.message_id == sent
    assert got.source_machine == connection.guid
    assert (got.body, got.label, got.priority) == (b"body", "größer", 5)
    assert (got.body_type, got.app_specific) == (17, 9)
    assert (got.correlation_id, got.extension) == (bytes(range(20)), b"ext")
    assert (got.acknowledge, got.journal) == (15, 1)
    assert got.response_queue == r"DIRECT=OS:other\private$\replies"
    assert got.admin_queue == r"DIRECT=OS:here\private$\acks"
    assert got.recoverable
    assert not got.transactional
    assert (got.time_to_reach_queue, got.time_to_be_received) == (345_600, 100)
    assert got.arrived_time >= got.sent_time > 1_700_000_000
    shown = got.to_json()
    assert list(shown) == JSON_KEYS
    assert shown["message_id"] == sent
    assert shown["delivery"] == "recoverable"


@connected
async def test_text_messages(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send(Message.of_text("Grüße"))
    await queue.send(b"plain", label="keyword")
    first, second = await queue.receive(1), await queue.receive(1)
    assert (first.text, first.body_type) == ("Grüße", 8)
    assert (second.text, second.label) == ("plain", "keyword")


@connected
async def test_many_requests_at_once(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    waiting = [asyncio.create_task(queue.receive(5)) for _ in range(20)]
    await asyncio.gather(*(queue.send(b"%d" % n, delivery=1) for n in range(20)), connection.ping())
    assert [(await task).body for task in waiting] == [b"%d" % n for n in range(20)]


@connected
async def test_timeouts_and_cancellation(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    with pytest.raises(errors.IOTimeout):
        await queue.receive(timeout=0)
    with pytest.raises(errors.IOTimeout):
        await queue.peek(timeout=0.02)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await queue.receive()
    await connection.ping()
    await queue.send(b"not for the one that left")
    assert (await queue.receive(timeout=0)).body == b"not for the one that left"


@connected
async def test_lookup_and_purge(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send_many([Message(b"%d" % n, delivery=1) for n in range(5)])
    first = await queue.lookup(operation=Lookup.FIRST)
    last = await queue.lookup(operation=Lookup.LAST)
    second = await queue.lookup(first.lookup_id, Lookup.NEXT, receive=True)
    assert [m.body for m in (first, second, last)] == [b"0", b"1", b"4"]
    with pytest.raises(errors.MessageNotFound):
        await queue.lookup(second.lookup_id)
    assert await queue.purge() == 4


@connected
async def test_administration(server: Server, connection: msmq_fast.Connection) -> None:
    with pytest.raises(errors.QueueNotFound):
        await connection.open("nowhere")
    with pytest.raises(errors.IllegalQueuePathName):
        await connection.admin.queues.create("a;b;c")
    made = (await connection.admin.queues.create(r".\private$\orders", quota_kb=10)).as_map()
    with pytest.raises(errors.QueueExists, match="QUEUE_EXISTS"):
        await connection.admin.queues.create("orders")
    assert (await connection.admin.queues.get("orders")).as_map() == made
    assert (await connection.admin.queues.set("orders", label="x")).label == "x"
    with pytest.raises(errors.PropertyError):
        await connection.admin.queues.set("orders", colour="red")
    assert len(await connection.admin.queues.all()) == 1
    away = await connection.open(r"DIRECT=TCP:10.0.0.7\private$\orders", Access.SEND)
    await away.send(b"hello", delivery=1)
    (outgoing,) = [one.as_map() for one in await connection.admin.outgoing.all()]
    name = outgoing["name"]
    await connection.admin.outgoing.pause(name)
    assert (await connection.admin.outgoing.get(name)).state == "on_hold"
    await connection.admin.outgoing.resume(name)
    assert await connection.admin.outgoing.purge(name) == 1
    assert (await connection.admin.stats())["app_sent"] == 1
    await connection.admin.queues.delete("orders")
    assert await connection.admin.queues.all() == []


@connected
async def test_refusals(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    with pytest.raises(errors.LabelTooLong):
        await queue.send(b"", label="x" * 250)
    with pytest.raises(errors.InsufficientResources):
        await queue.send(bytes(0x400000))
    with pytest.raises(BatchRefused) as caught:
        await queue.send_many([Message(b"1"), Message(b"2", label="x" * 250), Message(b"3")])
    assert (caught.value.taken, [refusal.index for refusal in caught.value.refusals]) == (2, [1])
    assert caught.value.name == "MQ_ERROR_LABEL_TOO_LONG"
    await queue.close()
    with pytest.raises(errors.InvalidHandle):
        await queue.send(b"")


@connected
async def test_large_messages(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    body = bytes(range(256)) * 16_000
    ids = await queue.send_many([Message(body, delivery=1), Message(b"small"), Message(body)])
    assert len(set(ids)) == 3
    assert [(await queue.receive(5)).body for _ in range(3)] == [body, b"small", body]


# ------------------------------------------------------------------------------------------------ senders


@connected
async def test_a_sender_batches(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    before = server.world.service.counters.frames
    async with queue.sender(window=100_000) as sender:
        for n in range(1000):
            await sender.send(Message(b"%d" % n, delivery=1))
    assert sender.acknowledged == 1000
    assert sender.unacknowledged == 0
    assert server.world.service.counters.frames - before < 20
    async with queue.subscribe(credit=100, acknowledge=False) as messages:
        assert [(await anext(messages)).body for _ in range(1000)] == [b"%d" % n for n in range(1000)]


@connected
async def test_a_sender_keeps_to_its_window(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    async with queue.sender(window=10, batch=5) as sender:
        for n in range(200):
            await sender.send(Message(b"%d" % n))
            assert sender.unacknowledged <= 10
    assert (await connection.admin.queues.get("orders")).messages == 200


@connected
async def test_a_sender_reports_refusals(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    sender = queue.sender()
    for n in range(10):
        sender.post(Message(b"", label="x" * 250 if n in (3, 7) else ""))
    with pytest.raises(BatchRefused) as caught:
        await sender.flush()
    assert [refusal.index for refusal in caught.value.refusals] == [3, 7]
    assert caught.value.taken == sender.acknowledged == 8
    await sender.send(Message(b"goes on"))
    await sender.flush()
    await queue.close()
    sender.post(Message(b"too late"))
    with pytest.raises(BatchRefused, match="INVALID_HANDLE"):
        await sender.flush()


# ---------------------------------------------------------------------------------------------- subscriptions


@connected
async def test_plain_subscription(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    async with queue.subscribe(credit=4, acknowledge=False) as messages:
        await queue.send_many([Message(b"%d" % n, delivery=1) for n in range(50)])
        assert [(await anext(messages)).body for _ in range(30)] == [b"%d" % n for n in range(30)]
        seen = 0
        while seen < 20:
            seen += len(await messages.batch(7))
    assert (await connection.admin.queues.get("orders")).messages == 0


@connected
async def test_acknowledging_subscription(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send_many([Message(b"%d" % n, delivery=1) for n in range(10)])
    async with queue.subscribe(credit=8) as messages:
        batch = [await anext(messages) for _ in range(8)]
        await messages.acknowledge(batch[0], batch[3])
        await messages.release(batch[4])
        again = [await anext(messages) for _ in range(3)]
        assert [message.body for message in again] == [b"8", b"9", b"4"]
        messages.acknowledge_soon(batch[7])
        messages.acknowledge_soon(batch[5])
    assert [(await queue.receive(1)).body for _ in range(4)] == [b"4", b"6", b"8", b"9"]
    with pytest.raises(errors.IOTimeout):
        await queue.receive(0)


@connected
async def test_a_loop_over_a_queue_leaves_what_it_did_not_finish(
    server: Server, connection: msmq_fast.Connection
) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    await queue.send_many([Message(b"%d" % n, delivery=1) for n in range(10)])
    stream = aiter(queue)
    async for message in stream:
        if message.body == b"3":
            break
    await stream.aclose()
    assert [(await queue.receive(1)).body for _ in range(7)] == [b"%d" % n for n in range(3, 10)]


@connected
async def test_a_deleted_queue_ends_a_subscription(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    async with queue.subscribe() as messages:
        await connection.admin.queues.delete("orders")
        with pytest.raises(errors.QueueDeleted):
            await anext(messages)


@connected
async def test_a_closed_queue_ends_its_loop(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    async with queue.subscribe() as messages:
        await queue.close()
        assert await messages.batch() == []
        assert [message async for message in messages] == []


# ------------------------------------------------------------------------------------------------ connections


@connected
async def test_a_lost_connection_raises_one_error_everywhere(
    server: Server, connection: msmq_fast.Connection
) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    sender = queue.sender()
    async with queue.subscribe() as messages:
        calls: list[Any] = [asyncio.ensure_future(queue.receive()) for _ in range(3)]
        calls.append(asyncio.ensure_future(anext(messages)))
        await connection.ping()
        server.drop()
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(result) for result in results} == {ConnectionLost}
    for call in (connection.ping(), queue.send(b""), sender.flush()):
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await call
    with pytest.raises(ConnectionLost):
        sender.post(Message())
    assert issubclass(ConnectionLost, ConnectionError)


@connected
async def test_closing_ends_pending_calls(server: Server, connection: msmq_fast.Connection) -> None:
    await connection.admin.queues.create("orders")
    queue = await connection.open("orders")
    call = asyncio.ensure_future(queue.receive())
    await connection.ping()
    await connection.close()
    with pytest.raises(ConnectionLost, match="by this program"):
        await call


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(ConnectionLost, match="no queue manager at"):
        asyncio.run(msmq_fast.connect(str(tmp_path / "nothing.sock")))  # type: ignore[arg-type]


def test_tokens(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            server.world.tokens(me="secret")
            endpoint = f"tcp://127.0.0.1:{server.port}"
            with pytest.raises(errors.AccessDenied):
                await msmq_fast.connect(endpoint, token="wrong")  # noqa: S106
            with pytest.raises(errors.AccessDenied):
                await msmq_fast.connect(endpoint)
            async with await msmq_fast.connect(endpoint, token="secret") as connection:  # noqa: S106
                await connection.ping()

    asyncio.run(main())


@pytest.mark.parametrize(
    "text", ["", "tcp://", "tcp://host", "tcp://host:99999", "http://host:1", "tcp://host:1/path", "tcp://:1"]
)
def test_bad_endpoints(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSMQ_FAST_ENDPOINT", raising=False)
    with pytest.raises(ValueError, match="endpoint"):
        asyncio.run(msmq_fast.connect(text or None))  # type: ignore[arg-type]


def test_the_endpoint_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with running(tmp_path / "app.sock") as server:
            monkeypatch.setenv("MSMQ_FAST_ENDPOINT", f"unix:{server.path}")
            async with await msmq_fast.connect() as connection:
                await connection.ping()

    asyncio.run(main())
