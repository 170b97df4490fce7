"""Staged publishing over HTTP: `python -m bench.stage [--json]`.

A client process of its own brings Arrow batches into stages of a fresh server and publishes them, while
another program sends one recoverable message after the other: what that one notices is the price for
everybody else.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from bench.machine import quantile
from bench.server import Server, ServerError
from msmq_fast import sync
from msmq_fast.client import Access, Message
from msmq_fast.client.bulk.client import BulkClient

__all__ = ["Figure", "measure"]

ROWS: Final = 4096  # of a batch
WRITER: Final = "bench"
_CONNECT_S: Final = 60.0
SCHEMA: Final = pa.schema([("body", pa.binary())])


@dataclass(frozen=True)
class Figure:
    """One step: seconds, messages a second, microseconds of processor time of the server for each, and how
    long a message of the program beside it took to be durable, in milliseconds.
    """

    what: str
    messages: int
    seconds: float
    rate: float
    cpu_us: float
    live: int
    live_p50: float
    live_p99: float
    live_max: float


def _batch(body: int) -> pa.RecordBatch:
    noise = random.Random(1)
    return pa.record_batch(
        [pa.array([noise.randbytes(body) for _ in range(ROWS)], pa.binary())], schema=SCHEMA
    )


def _stage(endpoint: str, batch: int, messages: int, body: int) -> str:
    """In a process of its own: the name of a stage."""
    rows = _batch(body)
    with BulkClient(endpoint) as client:
        content = (rows.slice(0, min(ROWS, messages - at)) for at in range(0, messages, ROWS))
        return client.stage(WRITER, batch, 0, 0, SCHEMA, content, queue="bench").stage


@contextmanager
def _beside(socket: Path) -> Iterator[list[float]]:
    """How long messages take, one after the other, meanwhile: at least one, however short the block is."""
    found: list[float] = []
    connected, ended = threading.Event(), threading.Event()

    def send() -> None:
        with sync.connect(f"unix:{socket}") as connection, connection.open("live", Access.SEND) as queue:
            message = Message(b"x" * 100, delivery=1)
            queue.send(message)  # what belongs to the connection is not counted
            connected.set()
            while not (found and ended.is_set()):
                begun = time.perf_counter()
                queue.send(message)
                found.append((time.perf_counter() - begun) * 1e3)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        if not connected.wait(_CONNECT_S):
            raise ServerError(f"no message was sent within {_CONNECT_S:g} s")
        yield found
    finally:
        ended.set()
        sending.join()


def _timed(server: Server, what: str, messages: int, work: Callable[[], object]) -> Figure:
    before = server.sample().cpu_s
    with _beside(server.socket) as live:
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
    live.sort()
    return Figure(
        what,
        messages,
        seconds,
        messages / seconds,
        (server.sample().cpu_s - before) / messages * 1e6,
        len(live),
        quantile(live, 0.5),
        quantile(live, 0.99),
        live[-1],
    )


def measure(messages: int, body: int, directory: Path) -> list[Figure]:
    """Staging and publishing, the second time: the first one warms up."""
    spawn = multiprocessing.get_context("spawn")
    with Server(directory, queues=("bench", "live")) as server, spawn.Pool(1) as pool:
        endpoint = f"msmq+bulk://127.0.0.1:{server.admin_port}"
        figures: list[Figure] = []
        with BulkClient(endpoint) as client:
            for batch in range(2):
                names: list[str] = []

                def stage(batch: int = batch, names: list[str] = names) -> None:
                    names.append(pool.apply(_stage, (endpoint, batch, messages, body)))

                def publish(batch: int = batch, names: list[str] = names) -> None:
                    assert client.publish(WRITER, 0, batch, names).rows == messages

                figures = [
                    _timed(server, "stage", messages, stage),
                    _timed(server, "publish", messages, publish),
                ]
        return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=400_000)
    parser.add_argument("--body", type=int, default=1024, metavar="BYTES")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where the data directory is made")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    figures = measure(options.messages, options.body, options.dir)
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=1))
        return
    for one in figures:
        done = f"{one.what:8} {one.messages:,} in {one.seconds:.2f} s: {one.rate:,.0f}/s, {one.cpu_us:.1f} µs"
        beside = f"p50 {one.live_p50:6.2f}, p99 {one.live_p99:6.2f}, longest {one.live_max:6.1f} ms"
        print(f"{done}   {one.live:,} messages beside it: {beside}")


if __name__ == "__main__":
    main()
