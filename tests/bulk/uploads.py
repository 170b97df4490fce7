"""Arrow streams that are uploaded into stages."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from msmq_fast.bulk import ipc
from msmq_fast.bulk.flatbuffer import Table
from msmq_fast.bulk.staging import StageRequest, StageUpload
from msmq_fast.packet import Message
from msmq_fast.qm.bulk.stages import Staged
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import counts, publish

REMOTE = r"DIRECT=TCP:10.9.9.9\private$\far"
ORIGINAL = r"{6b29fc40-ca47-1067-b31d-00dd010662da}\77"


@pytest.fixture
def world() -> World:
    world = World()
    world.create("plain")
    world.create("exact", transactional=True)
    world.create("guarded", authenticated=True)
    return world


@pytest.fixture(scope="module")
def workers() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as workers:
        yield workers


def stream(table: pa.Table, rows: int | None = None, **options: Any) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return out.getvalue()


def schema_of(cutter: ipc.MessageCutter) -> Table:
    assert cutter.schema is not None
    return cutter.schema


class Uploads:
    """Brings streams into a world and shows what became of them."""

    def __init__(self, world: World, workers: Executor) -> None:
        self.world = world
        self.workers = workers
        self.batch = 0

    def stage(self, data: bytes, *, step: int = 1 << 20, token: Any = None, **query: str) -> Staged:
        async def upload() -> Staged:
            asked = StageRequest.parse({"writer": "w", "batch": str(self.batch), "part": "0"} | query)
            uploading = StageUpload(
                self.world.manager,
                self.workers,
                asked,
                token=token,
                touch=self.world.run,
                most_bytes=10 << 20,
            )
            try:
                for at in range(0, len(data), step):
                    await uploading.feed(data[at : at + step])
                return await uploading.finish()
            except BaseException:
                uploading.abort()
                raise

        return asyncio.run(upload())

    def messages(self, columns: Any, queue: str = "plain", **query: str) -> list[Message]:
        """The messages that rows become, in the order of the queue."""
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        staged = self.stage(stream(table), **({"queue": queue} | query))
        assert staged.rows == table.num_rows
        publish(self.world, batch=self.batch, stages=[staged.stage])
        self.batch += 1
        found: list[Message] = []
        core = self.world.manager.find(queue).core
        for key in core.positions.keys():  # noqa: SIM118 - no mapping
            core.peek(key, lambda message, _status: found.append(Message.from_packet(message.packet)))
            self.world.store.reader.complete()
        core.purge()
        self.world.run()
        return found

    def one(self, columns: Any, queue: str = "plain", **query: str) -> Message:
        (message,) = self.messages(columns, queue, **query)
        return message


@pytest.fixture
def uploads(world: World, workers: Executor) -> Uploads:
    return Uploads(world, workers)


def nothing_left(world: World) -> None:
    world.run()
    assert counts(world) == (0, 0, 0)
    assert world.manager.ledger.bytes == 0
    assert len(world.manager.staging) == 0
    assert not any(queue.descriptors for queue in world.manager.queues())
