"""What a Python program gets: the package's own client, asynchronous and blocking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msmq_fast
from bench.machine import quantile
from bench.measure import Figures, ServerWatch
from bench.server import Server

__all__ = ["on_server"]

_SINGLE = 2_000  # at most so many messages are sent one by one


async def _stream(socket: Path, messages: list[msmq_fast.Message], window: int) -> Figures:
    """One program sends with a Sender while another takes batches from a subscription."""
    received_at = 0.0

    async def consume() -> None:
        nonlocal received_at
        left = len(messages)
        async with (
            await msmq_fast.connect(str(socket)) as connection,
            await connection.open("bench") as queue,
            queue.subscribe(1024, acknowledge=False) as stream,
        ):
            while left > 0:
                left -= len(await stream.batch())
        received_at = time.perf_counter()

    async with await msmq_fast.connect(str(socket)) as connection, await connection.open("bench") as queue:
        consumer = asyncio.create_task(consume())
        begin = time.perf_counter()
        async with queue.sender(window=window) as sender:
            for message in messages:
                await sender.send(message)
        sent = time.perf_counter()
        await consumer
    return {"in_per_s": len(messages) / (sent - begin), "out_per_s": len(messages) / (received_at - begin)}


async def _one_by_one(socket: Path, message: msmq_fast.Message, count: int) -> Figures:
    """Awaits every send, then every receive."""
    times = []
    async with await msmq_fast.connect(str(socket)) as connection, await connection.open("bench") as queue:
        for _ in range(count):
            begin = time.perf_counter()
            await queue.send(message)
            times.append((time.perf_counter() - begin) * 1e6)
        begin = time.perf_counter()
        for _ in range(count):
            await queue.receive(timeout=10)
        receive = (time.perf_counter() - begin) * 1e6 / count
    times.sort()
    return {
        "ack_p50_us": quantile(times, 0.5),
        "ack_p99_us": quantile(times, 0.99),
        "ack_p999_us": quantile(times, 0.999),
        "receive_mean_us": receive,
    }


def _blocking(socket: Path, message: msmq_fast.Message, count: int) -> Figures:
    times = []
    with msmq_fast.sync.connect(str(socket)) as connection, connection.open("bench") as queue:
        for _ in range(count):
            begin = time.perf_counter()
            queue.send(message)
            times.append((time.perf_counter() - begin) * 1e6)
        queue.purge()
    times.sort()
    return {"sync_p50_us": quantile(times, 0.5), "sync_p99_us": quantile(times, 0.99)}


def on_server(*, recoverable: bool, body: int, count: int, window: int) -> Callable[[Server], Figures]:
    """Streams `count` messages in and out at once, then sends and receives some one by one."""
    single = min(count, _SINGLE)
    delivery = msmq_fast.RECOVERABLE if recoverable else msmq_fast.EXPRESS

    def run(server: Server) -> Figures:
        message = msmq_fast.Message(bytes(body), delivery=delivery)
        watch = ServerWatch(server)
        watch.on_event("start")
        figures = asyncio.run(_stream(server.socket, [message] * count, window))
        watch.on_event("stop")
        figures |= watch.figures(figures["out_per_s"])
        figures |= asyncio.run(_one_by_one(server.socket, message, single))
        return figures | _blocking(server.socket, message, single)

    return run
