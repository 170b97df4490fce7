"""Staged publishing by a real server over HTTP: killed while it publishes, and many messages beside live
traffic.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from random import Random

import pyarrow as pa
import pytest

from msmq_fast import sync
from msmq_fast.client import Access, Message
from msmq_fast.client.bulk.client import BulkClient
from tests.support.http import bulk as api
from tests.support.processes.servers import Server, data_directory, until

SCHEMA = pa.schema([("body", pa.string()), ("queue", pa.string())])
QUEUES = ("plain", "exact")
MOST_DELAY = 0.25  # seconds by which a publication may hold up anybody else


@contextlib.contextmanager
def running() -> Iterator[Server]:
    with data_directory() as data:
        server = Server(data).start()
        try:
            server.ok("queue", "create", "plain")
            server.ok("queue", "create", "exact", "--transactional")
            yield server
        finally:
            server.kill()


def rows(count: int, first: int = 0) -> Iterator[pa.RecordBatch]:
    for at in range(first, first + count, 4096):
        numbers = range(at, min(at + 4096, first + count))
        bodies = [str(number) for number in numbers]
        queues = [QUEUES[number % 2] for number in numbers]
        yield pa.record_batch([pa.array(bodies), pa.array(queues)], schema=SCHEMA)


def stage(server: Server, batch: int, part: int, content: Iterator[pa.RecordBatch]) -> str:
    with api.client(server, timeout_ms=120_000) as client:
        return client.stage("w", batch, part, 0, SCHEMA, content).stage


def queued(client: BulkClient) -> int:
    return sum(queue.messages for queue in client.bounds(list(QUEUES)).queues)


def numbers(client: BulkClient, queue: str) -> list[int]:
    """What is in a queue, in its order."""
    bounds = client.bounds([queue])
    batches = client.rows(queue, 0, bounds.next, columns="arrival_seq,body")
    table = pa.Table.from_batches(list(batches)).sort_by("arrival_seq")
    return [int(body.decode("utf-16-le")) for body in table["body"].to_pylist()]


def kill_while_publishing(server: Server, batch: int, count: int, pause: float) -> None:
    """Stage, publish, kill, start; ask again until it is published."""
    first = batch * count
    half = count // 2
    stages = [
        stage(server, batch, 0, rows(half, first)),
        stage(server, batch, 1, rows(count - half, first + half)),
    ]
    failed = threading.Event()

    def publish() -> None:
        try:
            with api.client(server) as client:
                client.publish("w", 0, batch, stages)
        except Exception:
            failed.set()

    with api.client(server) as looking:
        publishing = threading.Thread(target=publish)
        before = queued(looking)
        publishing.start()
        with contextlib.suppress(AssertionError):
            until(lambda: queued(looking) > before or not publishing.is_alive(), 5)
        time.sleep(pause)
        server.kill()
        publishing.join()
    server.start()
    with api.client(server) as client:
        client.publish("w", 0, batch, stages)
        assert client.publish("w", 0, batch, stages).dup
        for at, queue in enumerate(QUEUES):
            assert numbers(client, queue) == list(range(at, (batch + 1) * count, 2))


def test_killed_while_it_publishes_it_goes_on_after_the_restart() -> None:
    with running() as server:
        kill_while_publishing(server, 0, 12_000, 0.0)


@pytest.mark.long(seconds=80)
def test_killed_again_and_again() -> None:
    random = Random(11)
    with running() as server:
        for batch in range(12):
            kill_while_publishing(server, batch, 30_000, random.uniform(0.0, 0.4))


def delays(server: Server, ended: threading.Event) -> list[float]:
    """How long each durable message of a sender takes that waits for each."""
    found: list[float] = []
    with sync.connect(server.endpoint) as connection, connection.open("live", Access.SEND) as queue:
        while not ended.is_set():
            begun = time.perf_counter()
            queue.send(Message(b"x" * 100, delivery=1))
            found.append(time.perf_counter() - begun)
    return found


def beside_live_traffic(count: int) -> list[float]:
    """The delays of a sender while so many messages are published."""
    with running() as server:
        server.ok("queue", "create", "live")
        name = stage(server, 0, 0, rows(count))
        ended = threading.Event()
        found: list[float] = []
        sending = threading.Thread(target=lambda: found.extend(delays(server, ended)))
        sending.start()
        try:
            with api.client(server, timeout_ms=300_000) as client:
                begun = time.perf_counter()
                assert client.publish("w", 0, 0, [name]).rows == count
                took = time.perf_counter() - begun
                assert queued(client) == count
        finally:
            ended.set()
            sending.join()
        found.sort()
        print(
            f"\npublished {count} messages in {took:.2f} s; {len(found)} durable messages beside it took"
            f" {found[len(found) // 2] * 1e3:.1f} ms (median), {found[len(found) * 99 // 100] * 1e3:.1f} ms"
            f" (p99), {found[-1] * 1e3:.1f} ms (longest)"
        )
        return found


def least_delay(count: int) -> float:
    """The longest delay of one of three attempts: other work of the machine does not hold up all of them."""
    longest = MOST_DELAY
    for _ in range(3):
        longest = min(longest, beside_live_traffic(count)[-1])
        if longest < MOST_DELAY:
            break
    return longest


def test_a_publication_holds_up_nobody() -> None:
    assert least_delay(50_000) < MOST_DELAY


@pytest.mark.long(seconds=60)
def test_a_million_messages_hold_up_nobody() -> None:
    assert least_delay(1_000_000) < MOST_DELAY


def test_stages_that_wait_are_counted(bulk_server: Server, bulk: BulkClient) -> None:
    def waiting() -> tuple[str, str]:
        lines = dict(line.rsplit(" ", 1) for line in api.metrics(bulk_server).splitlines() if line[:1] != "#")
        return lines["msmq_fast_stages"], lines["msmq_fast_staged_bytes"]

    before = waiting()
    bulk_server.ok("queue", "create", "plain")
    bulk_server.ok("queue", "create", "exact", "--transactional")
    name = bulk.stage("counted", 0, 0, 0, SCHEMA, rows(10)).stage
    assert float(waiting()[0]) == float(before[0]) + 1
    assert float(waiting()[1]) > float(before[1]) + 1000
    bulk.discard([name])
    assert waiting() == before
