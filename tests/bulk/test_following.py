"""A reader that follows queues beside senders, receivers and moves, over a store on disk."""

from __future__ import annotations

import asyncio
from array import array
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from msmq_fast._native.moving import move
from msmq_fast.bulk.reader import BulkReader
from msmq_fast.packet import Message
from msmq_fast.protocol.columns import chosen
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.bounds import bounds_of
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.store.completion import Completion
from msmq_fast.store.store import Store, StoreOptions

SUB = r".\private$\orders;sub"
SEQUENCE = (1 << 56) - 1
ROUNDS = 60


class Live:
    """A queue manager in the event loop of the test; `turn` is what a server does in each turn of it."""

    def __init__(self, directory: Path) -> None:
        options = StoreOptions(map_size=1 << 30, force_place=True)
        self.store = Store.open(directory, now_s=1_700_000_000, random=Random(1), options=options)
        settings = QueueManagerSettings(computer_name="HOST", cache_bytes=1 << 16)
        self.manager = QueueManager(self.store, settings, SystemClock(), Random(2))
        self.store.writer.before_seal.connect(self.manager.before_submit)
        self.manager.start()
        self.reader = BulkReader(self.manager, self.settle, share=0)

    async def run(self, completion: Completion[Any]) -> Any:
        """The result, when there is one."""
        while not completion.done:
            self.turn()
            await asyncio.sleep(0)
        return completion.result()

    def turn(self) -> None:
        self.manager.tick()
        self.manager.before_submit()
        self.store.writer.submit()
        self.store.writer.complete()
        self.store.reader.complete()
        self.manager.transactions.expire(self.manager.monotonic())

    async def settle(self) -> int:
        return int(await self.run(self.manager.bounds.settled()))

    def close(self) -> None:
        self.reader.close()
        self.manager.stop()
        self.store.close()


async def follow(live: Live, queue: Queue, begin: int) -> tuple[list[tuple[int, bytes]], int]:
    """From one watermark to the next: sequences and bodies, and where it ended."""
    stop = await live.settle()
    stream = live.reader.messages(queue, begin, stop, chosen("arrival_seq,body"))
    pieces = [bytes(part) async for part in stream]
    table = pa.ipc.open_stream(b"".join(pieces)).read_all()
    return list(zip(table["arrival_seq"].to_pylist(), table["body"].to_pylist(), strict=True)), stop


async def traffic(live: Live, rng: Random, sent: dict[int, bytes], queue: Queue) -> None:
    """Senders of all kinds, transactions that commit and abort, receives that are given up."""
    manager = live.manager
    handle, plain = manager.open("tx", Access.SEND), manager.open("orders", Access.SEND)
    number = 0
    for _ in range(ROUNDS):
        waiting: list[tuple[Completion[Any], bytes]] = []
        for _ in range(rng.randrange(20)):
            number += 1
            body = b"%d" % number + bytes(rng.choice((0, 10, 3000)))
            message = Message(body=body, priority=rng.randrange(8), delivery=rng.randrange(2))
            waiting.append((plain.send(message), body))
        if rng.random() < 0.3:
            transaction = manager.transactions.begin()
            for index in range(rng.choice((2, 1500))):
                TransactedQueue(handle, transaction).send(Message(body=b"tx %d" % index))
            await live.run(transaction.commit() if rng.random() < 0.7 else transaction.abort())
        available = queue.core.positions.first()
        if available is not None and rng.random() < 0.5:
            owner = manager.ledger.new_owner()
            assert queue.core.claim(available, owner)
            await asyncio.sleep(0)
            queue.core.release(array("Q", [available]), owner)
        for completion, body in waiting:
            sent[(await live.run(completion)).lookup_id & SEQUENCE] = body
        await asyncio.sleep(0)


def test_a_reader_that_follows_misses_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        live = Live(tmp_path / "store")
        await live.run(live.manager.create_queue("orders"))
        await live.run(live.manager.create_queue("tx", transactional=True))
        queues = [live.manager.find(name) for name in ("orders", "tx")]
        sent: dict[int, bytes] = {}
        found: dict[Queue, list[tuple[int, bytes]]] = {queue: [] for queue in queues}
        position = dict.fromkeys(queues, 0)
        rounds = 0
        sending = asyncio.ensure_future(traffic(live, Random(5), sent, queues[0]))
        try:
            while not sending.done() or any(
                position[queue] <= live.manager.ledger.sequence for queue in queues
            ):
                for queue in queues:
                    rows, position[queue] = await follow(live, queue, position[queue])
                    found[queue] += rows
                rounds += 1
                await asyncio.sleep(0)  # an empty stretch does not wait for anything
            await sending
            assert rounds > 3
            assert found[queues[0]] == sorted(sent.items())
            held = sorted(key & SEQUENCE for key in queues[1].core.positions.keys())  # noqa: SIM118
            assert [sequence for sequence, _ in found[queues[1]]] == held
            assert [bounds_of(live.manager.ledger, queue).late for queue in queues] == [0, 0]
            assert live.reader.figures.damaged == 0
        finally:
            sending.cancel()
            live.close()

    asyncio.run(asyncio.wait_for(main(), 100))


def test_a_reader_that_follows_knows_of_what_came_behind_it(tmp_path: Path) -> None:
    """Messages move to and fro: whatever it did not see is counted."""

    async def main() -> None:
        live = Live(tmp_path / "store")
        rng = Random(9)
        orders = await live.run(live.manager.create_queue("orders"))
        sub = live.manager.open(SUB, Access.MOVE).queue
        plain = live.manager.open("orders", Access.SEND)
        seen: set[int] = set()
        position = 0
        for number in range(120):
            completion = plain.send(Message(body=b"%d" % number, delivery=rng.randrange(2)))
            await live.run(completion)
            key = orders.core.positions.first()
            if key is not None and rng.random() < 0.6:
                done: list[int] = []
                assert move(orders.core, key, sub.core, done.append)
                while not done:
                    live.turn()
                    await asyncio.sleep(0)
            if rng.random() < 0.3:
                rows, position = await follow(live, sub, position)
                seen |= {sequence for sequence, _ in rows}
        rows, position = await follow(live, sub, position)
        seen |= {sequence for sequence, _ in rows}
        there = {key & SEQUENCE for key in sub.core.positions.keys()}  # noqa: SIM118 - no mapping
        assert seen <= there
        assert len(there - seen) == sub.core.out_of_order > 0
        live.close()

    asyncio.run(asyncio.wait_for(main(), 100))
