"""Reading in bulk without a network: `python -m bench.bulk [--json]`.

A queue of recoverable messages on a fresh store; the processor time of the thread that makes columns of them,
and the parts of an Arrow stream, for packets on disk (in the page cache) and in memory, and for the feed.
`look` is what the event loop does for it.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TypeVar

from msmq_fast._native.columncells import Encoded
from msmq_fast._native.columnevents import EventEncoder
from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnrows import scan
from msmq_fast._native.columnstore import Contents
from msmq_fast._native.lmdbthreads import LmdbWriter
from msmq_fast.bulk.reader import BYTES, CLASSES, HEADS_BYTES, KINDS, ROWS, TRANSPORTS
from msmq_fast.packet import Message
from msmq_fast.packet.base import INFINITE
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.arrow import arrow_schema, record_batch
from msmq_fast.protocol.columns import EVENT_COLUMNS, Column, chosen
from msmq_fast.protocol.properties import Delivery
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.store.completion import Completion
from msmq_fast.store.store import Store, StoreOptions

T = TypeVar("T")

__all__ = ["Figure", "measure"]

EVER: Final = 1 << 56
BATCH: Final = 1000
CHOICES: Final = {
    "core": chosen("core"),
    "core without body": chosen("core", body=False),
    "all": chosen("all", security=True),
    "body": chosen("arrival_seq,body"),
}


@dataclass(frozen=True)
class Figure:
    """Nanoseconds a row: `look` on the loop, `encode` and `stream` on the thread; `rate` in rows/s."""

    what: str
    packets: str
    rows: int
    look: float
    encode: float
    stream: float
    megabytes: float

    @property
    def rate(self) -> float:
        return 1e9 / (self.encode + self.stream)


class Filled:
    """A store with one queue of `count` messages; `cache` bytes of packets stay in memory."""

    def __init__(self, directory: Path, count: int, body: int, cache: int) -> None:
        options = StoreOptions(map_size=32 << 30, force_place=True)
        self.store = Store.open(directory, now_s=int(time.time()), random=random.Random(1), options=options)
        settings = QueueManagerSettings(computer_name="HOST", cache_bytes=cache)
        self.manager = QueueManager(self.store, settings, SystemClock(), random.Random(2))
        self.store.writer.before_seal.connect(self.manager.before_submit)
        self.manager.start()
        self.queue: Queue = self.run(self.manager.create_queue("orders"))
        packet = Message(
            body=random.Random(3).randbytes(body),
            label="order number",
            destination=parse_format_name(r"DIRECT=OS:HOST\private$\orders"),
            delivery=Delivery.RECOVERABLE,
            time_to_reach_queue=INFINITE,
        ).to_packet()
        handle = self.manager.open("orders", Access.SEND)
        for _ in range(count // BATCH):
            self.run(handle.send_packets([packet] * BATCH))

    def run(self, completion: Completion[T]) -> T:
        """The result, when it is durable."""
        writer = self.store.writer
        assert isinstance(writer, LmdbWriter)
        while not completion.done:
            writer.flush()
            select.select([writer.fileno()], [], [], 1)
            writer.complete()
        return completion.result()


class Clock:
    """Seconds of this thread, by what it did."""

    def __init__(self) -> None:
        self.look = self.encode = self.stream = 0.0
        self.rows = self.bytes = 0

    def figure(self, what: str, packets: str) -> Figure:
        per_row = 1e9 / max(self.rows, 1)
        return Figure(
            what,
            packets,
            self.rows,
            self.look * per_row,
            self.encode * per_row,
            self.stream * per_row,
            self.bytes / (self.encode + self.stream) / 1e6,
        )

    def streamed(self, columns: Sequence[Column], encoded: Encoded) -> None:
        begun = time.thread_time()
        part = record_batch(arrow_schema(columns), encoded).serialize()
        self.stream += time.thread_time() - begun
        self.rows += encoded.rows
        self.bytes += part.size


def _messages(filled: Filled, contents: Contents, columns: Sequence[Column]) -> Clock:
    pairs = [(column.name, column.kind) for column in columns]
    queue, clock = filled.queue, Clock()
    constants = {"qm_guid": str(filled.manager.guid), "queue": queue.name, "queue_guid": str(queue.guid)}
    encoder = MessageEncoder(contents, pairs, constants | {"queue_kind": "queue"}, CLASSES)
    budget = BYTES if any(column.name == "body" for column in columns) else HEADS_BYTES
    position = 0
    while True:
        begun = time.thread_time()
        rows = scan(queue.core, position, EVER, ROWS, budget)
        looked = time.thread_time()
        encoded = encoder.encode(rows)
        clock.look += looked - begun
        clock.encode += time.thread_time() - looked
        clock.streamed(columns, encoded)
        position = rows.next
        if rows.finished:
            return clock


def _events(filled: Filled, contents: Contents) -> Clock:
    pairs = [(column.name, column.kind) for column in EVENT_COLUMNS]
    constants: dict[str, str | int | None] = {"qm_guid": str(filled.manager.guid), "incarnation": 1}
    name = (filled.queue.name, str(filled.queue.guid), "queue")
    encoder = EventEncoder(contents, pairs, constants, CLASSES, KINDS, TRANSPORTS, lambda _: name)
    clock, position = Clock(), 1
    while True:
        begun = time.thread_time()
        encoded = encoder.encode(position, EVER, ROWS)
        clock.encode += time.thread_time() - begun
        clock.streamed(EVENT_COLUMNS, encoded)
        position = encoded.next
        if encoded.finished:
            return clock


def measure(count: int, body: int, turns: int) -> Iterator[Figure]:
    """The best of some turns for each choice of columns."""
    for packets, cache in (("disk", 0), ("memory", 1 << 40)):
        with tempfile.TemporaryDirectory(prefix="bench-bulk-") as directory:
            filled = Filled(Path(directory), count, body, cache)
            contents = Contents(filled.store.tables)
            for what, columns in CHOICES.items():
                clocks = [_messages(filled, contents, columns) for _ in range(turns)]
                yield min(clocks, key=lambda clock: clock.encode + clock.stream).figure(what, packets)
            if packets == "disk":
                clocks = [_events(filled, contents) for _ in range(turns)]
                yield min(clocks, key=lambda clock: clock.encode + clock.stream).figure("events", packets)
            contents.close()
            filled.store.close()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--body", type=int, default=1024, help="bytes (1024)")
    parser.add_argument("--turns", type=int, default=5, help="of which the best counts (5)")
    arguments = parser.parse_args()
    if not arguments.json:
        print("| columns | packets | rows/s | ns a row: look | encode | stream | MB/s |")
        print("|---|---|---|---|---|---|---|")
    for figure in measure(arguments.messages, arguments.body, arguments.turns):
        if arguments.json:
            print(json.dumps(asdict(figure) | {"rate": round(figure.rate)}))
            continue
        times = f"{figure.look:.0f} | {figure.encode:.0f} | {figure.stream:.0f}"
        print(
            f"| {figure.what} | {figure.packets} | {figure.rate:,.0f} | {times} | {figure.megabytes:,.0f} |"
        )


if __name__ == "__main__":
    main()
