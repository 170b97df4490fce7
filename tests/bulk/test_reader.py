"""Streams of messages: whole ones and broken ones, slow clients, several at a time."""

from __future__ import annotations

import asyncio
import builtins
import threading
import time
from array import array
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.bulk import reader
from msmq_fast.bulk.reader import BulkReader, Part
from msmq_fast.bulk.worker import Worker
from msmq_fast.packet import Message
from msmq_fast.protocol import arrow
from msmq_fast.protocol.arrow import END_OF_STREAM, ArrowMissing, arrow_schema, record_batch
from msmq_fast.protocol.columns import DELIVERY_SEQUENCE, MESSAGE_COLUMNS, chosen
from msmq_fast.protocol.errors import QueueNotFound
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from tests.support.bulk import model
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

EVER = (1 << 56) - 1


class Reading:
    """A queue manager in memory, and a reader of it."""

    def __init__(self, *, share: float = 0, **settings: Any) -> None:
        self.world = World(**settings)
        self.world.create()
        self.queue = self.world.manager.find("orders")
        self.reader = BulkReader(self.world.manager, self.settle, share=share)

    async def settle(self) -> int:
        return int(self.world.finish(self.world.manager.bounds.settled()))

    async def table(self, columns: str = "all", start: int = 0, stop: int = EVER) -> pa.Table:
        return whole(await parts(self.reader.messages(self.queue, start, stop, chosen(columns))))


async def into(got: list[bytes], stream: AsyncIterator[Part]) -> None:
    """What comes of a stream before it breaks off."""
    async for part in stream:
        got += (bytes(part),)


async def parts(stream: AsyncIterator[Part]) -> list[bytes]:
    return [bytes(part) async for part in stream]


def whole(pieces: list[bytes]) -> pa.Table:
    """The rows of a stream that came to its end."""
    assert pieces[-1] == END_OF_STREAM
    table = pa.ipc.open_stream(b"".join(pieces)).read_all()
    table.validate(full=True)
    return table


def run(main: Callable[[Reading], Coroutine[Any, Any, None]], **settings: Any) -> None:
    reading = Reading(**settings)
    try:
        asyncio.run(asyncio.wait_for(main(reading), 60))
    finally:
        reading.reader.close()


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_a_stream_has_every_message_in_the_order_of_arrival(cache: int) -> None:
    async def main(reading: Reading) -> None:
        world = reading.world
        sent = {
            world.send(b"%d" % n, priority=n % 8, delivery=n % 2, label=f"läbel {n}"): b"%d" % n
            for n in range(40)
        }
        table = await reading.table()
        assert table.schema.equals(arrow_schema(chosen("all")))
        by_arrival = sorted(sent, key=lambda key: key & EVER)
        assert table["lookup_id"].to_pylist() == by_arrival
        assert table["body"].to_pylist() == [sent[key] for key in by_arrival]
        assert set(table["queue"].to_pylist()) == {r"HOST\private$\orders"}
        assert set(table["queue_guid"].to_pylist()) == {str(reading.queue.guid)}
        assert set(table["qm_guid"].to_pylist()) == {str(world.manager.guid)}
        assert set(table["queue_kind"].to_pylist()) == {"queue"}
        some = await reading.table("lookup_id", by_arrival[3] & EVER, by_arrival[7] & EVER)
        assert some["lookup_id"].to_pylist() == by_arrival[3:7]
        assert reading.reader.figures.rows == 44

    run(main, cache_bytes=cache)


def test_an_empty_stretch_is_a_stream_with_columns_and_no_rows() -> None:
    async def main(reading: Reading) -> None:
        pieces = await parts(reading.reader.messages(reading.queue, 5, 5, chosen("core")))
        assert whole(pieces).num_rows == 0
        assert whole(pieces).schema.equals(arrow_schema(chosen("core")))

    run(main)


def test_what_is_not_durable_yet_is_waited_for_or_left_out() -> None:
    """A stretch that ends above the watermark ends with what has arrived until now."""

    async def main(reading: Reading) -> None:
        reading.world.sender().send(Message(body=b"pending", delivery=1))
        assert (await reading.table("body"))["body"].to_pylist() == [b"pending"]
        stop = reading.world.manager.ledger.watermark
        reading.world.sender().send(Message(body=b"later", delivery=1))
        assert (await reading.table("body", 0, stop))["body"].to_pylist() == [b"pending"]

    run(main)


@pytest.mark.parametrize(("share", "bound"), [(0, "UNLIMITED_BYTES"), (1, "BYTES")])
def test_batches_are_bounded_in_rows_and_bytes(
    monkeypatch: pytest.MonkeyPatch, share: float, bound: str
) -> None:
    monkeypatch.setattr(reader, "ROWS", 10)
    monkeypatch.setattr(reader, bound, 20_000)

    async def main(reading: Reading) -> None:
        for size in (0,) * 25 + (15_000, 15_000, 50_000, 1):
            reading.world.send(bytes(size))
        pieces = await parts(reading.reader.messages(reading.queue, 0, EVER, chosen("body")))
        lengths = [batch.num_rows for batch in pa.ipc.open_stream(b"".join(pieces))]
        assert lengths == [10, 10, 6, 1, 1, 1]
        assert whole(pieces).num_rows == 29

    run(main, share=share)


def test_all_that_has_become_of_a_message_is_in_its_row() -> None:
    async def main(reading: Reading) -> None:
        world = reading.world
        key = world.send(b"one", priority=6)
        world.advance(5)
        target = world.manager.open(r".\private$\orders;sub", Access.MOVE)
        world.finish(world.reader().move(key, target))
        (row,) = whole(await parts(reading.reader.messages(target.queue, 0, EVER, chosen("all")))).to_pylist()
        assert (row["lookup_id"], row["priority"], row["queue_kind"]) == (key, 6, "subqueue")
        assert (row["move_count"], row["last_move_time"]) == (1, model.seconds(WALL + 5))

    run(main)


def test_journals_and_dead_letters() -> None:
    async def main(reading: Reading) -> None:
        world = reading.world
        world.create("kept", journaling=True)
        world.send(b"received", "kept")
        world.receive("kept")
        world.send(b"late", journal=Journal.DEADLETTER, time_to_be_received=1)
        world.advance(10)
        journal = world.manager.find(r".\private$\kept;JOURNAL")
        table = whole(await parts(reading.reader.messages(journal, 0, EVER, chosen("core"))))
        assert table.select(["body", "queue_kind", "class"]).to_pylist() == [
            {"body": b"received", "queue_kind": "journal", "class": 0}
        ]
        dead = world.manager.find(r".\system$;deadletter")
        table = whole(await parts(reading.reader.messages(dead, 0, EVER, chosen("core"))))
        assert table.select(["body", "queue_kind", "class_name"]).to_pylist() == [
            {"body": b"late", "queue_kind": "deadletter", "class_name": "NACK_RECEIVE_TIMEOUT"}
        ]

    run(main)


def test_chosen_messages_have_their_numbers() -> None:
    async def main(reading: Reading) -> None:
        keys = [reading.world.send(b"%d" % n, priority=n) for n in range(5)]
        stream = reading.reader.chosen(
            reading.queue, array("Q", reversed(keys)), array("Q", range(100, 105)), chosen("body")
        )
        table = whole(await parts(stream))
        assert table.column_names == [DELIVERY_SEQUENCE.name, "body"]
        assert table["delivery_seq"].to_pylist() == [100, 101, 102, 103, 104]
        assert table["body"].to_pylist() == [b"4", b"3", b"2", b"1", b"0"]
        gone = reading.reader.chosen(reading.queue, array("Q", [1, 2]), array("Q", [1, 2]), chosen("body"))
        assert whole(await parts(gone)).num_rows == 0
        assert reading.reader.figures.gone == 2

    run(main)


def test_a_queue_that_is_deleted_breaks_its_streams_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(reading: Reading) -> None:
        monkeypatch.setattr(reader, "ROWS", 2)
        for n in range(10):
            reading.world.send(b"%d" % n)
        stream = reading.reader.messages(reading.queue, 0, EVER, chosen("body"))
        got = [bytes(await anext(stream)), bytes(await anext(stream))]
        reading.world.finish(reading.world.manager.delete_queue("orders"))
        with pytest.raises(QueueNotFound, match="deleted"):
            await into(got, stream)
        assert END_OF_STREAM not in got
        with pytest.raises(QueueNotFound):
            await anext(reading.reader.messages(reading.queue, 0, EVER, chosen("body")))

    run(main)


def test_a_client_that_reads_slowly_or_leaves_costs_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(reading: Reading) -> None:
        monkeypatch.setattr(reader, "ROWS", 1)
        made: list[Any] = []
        monkeypatch.setattr(reader, "record_batch", lambda *parts: made.append(1) or record_batch(*parts))
        for n in range(20):
            reading.world.send(b"%d" % n)
        stream = reading.reader.messages(reading.queue, 0, EVER, chosen("body"))
        await anext(stream)
        await anext(stream)
        for _ in range(3):
            await reading.reader._worker.run(int)
        assert len(made) == 2
        await stream.aclose()  # type: ignore[attr-defined]
        await reading.reader._worker.run(int)
        assert len(made) == 2
        assert (await reading.table("body")).num_rows == 20

    run(main)


def test_several_clients_share_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A great stretch does not hold up a small one: they take turns, batch by batch."""

    async def main(reading: Reading) -> None:
        monkeypatch.setattr(reader, "ROWS", 4)
        for n in range(400):
            reading.world.send(b"%d" % n)
        stop = await reading.settle()
        order: list[str] = []
        begun = asyncio.Event()

        async def read(name: str, start: int) -> None:
            nonlocal order
            async for _ in reading.reader.messages(reading.queue, start, stop, chosen("body")):
                order += (name,)
                if len(order) == 3:
                    begun.set()

        great = asyncio.ensure_future(read("great", 0))
        await begun.wait()
        await read("small", stop - 8)
        assert order.count("great") < 20
        await great
        assert order.count("great") == 102

    run(main)


def test_closing_breaks_streams_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(reading: Reading) -> None:
        monkeypatch.setattr(reader, "ROWS", 1)
        for _ in range(5):
            reading.world.send(b"x")
        stream = reading.reader.messages(reading.queue, 0, EVER, chosen("body"))
        await anext(stream)
        reading.reader.close()
        reading.reader.close()
        got: list[bytes] = []
        with pytest.raises((RuntimeError, asyncio.CancelledError)):
            await into(got, stream)
        assert END_OF_STREAM not in got
        with pytest.raises(RuntimeError):
            await anext(reading.reader.messages(reading.queue, 0, EVER, chosen("body")))

    run(main)


def test_a_server_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "pyarrow":
            raise ImportError(name)
        return plain_import(name, *rest, **more)

    plain_import = builtins.__import__

    async def main(reading: Reading) -> None:
        arrow.arrow.cache_clear()
        arrow._types.cache_clear()
        monkeypatch.setattr(builtins, "__import__", missing)
        with pytest.raises(ArrowMissing, match=r"install msmq-fast\[bulk\]"):
            await anext(reading.reader.messages(reading.queue, 0, EVER, chosen("body")))

    try:
        run(main)
    finally:
        monkeypatch.undo()
        arrow.arrow.cache_clear()
        arrow._types.cache_clear()


def test_the_thread_keeps_to_its_share() -> None:
    """Work of 4 x 20 ms with a share of a quarter takes as long as 3 x 80 ms and the last piece."""

    def work() -> int:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return threading.get_ident()

    async def main() -> None:
        worker = Worker(0.25)
        begun = time.monotonic()
        threads = {await worker.run(work) for _ in range(4)}
        assert time.monotonic() - begun >= 3 * 0.08
        assert len(threads) == 1
        assert threading.get_ident() not in threads
        assert worker.cpu_seconds >= 0.08
        worker.close()

    asyncio.run(main())


def test_every_column_has_been_thought_of() -> None:
    """The server can say all of them."""

    async def main(reading: Reading) -> None:
        reading.world.send(b"x")
        stream = reading.reader.messages(reading.queue, 0, EVER, MESSAGE_COLUMNS)
        assert whole(await parts(stream)).column_names == [column.name for column in MESSAGE_COLUMNS]

    run(main)
