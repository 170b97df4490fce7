"""Streams that do not go well: slow readers, clients that leave, servers that stop or lack pyarrow."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client.bulk.client import NoArrow, Truncated, Unavailable
from tests.support.http import bulk as api
from tests.support.processes.servers import Server, until

BODY = 100_000  # bytes of a message
COUNT = 400
LIMITS = """
[bulk]
streams = 2
share = 0
max_stage_bytes = "1 MiB"
[limits]
slow_reader_timeout = 1
[queue_manager]
cache = "1 MiB"
"""
ALL = f"GET /v1/bulk/rows?queue=big&from=0&to={1 << 40} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@pytest.fixture(scope="module")
def full() -> Iterator[Server]:
    """40 MB in the queue `big`, little patience, room for two streams."""
    with api.serving(LIMITS) as server:
        server.ok("queue", "create", "big")
        server.ok("send", "big", "--body", "x" * BODY, "--recoverable", "--count", str(COUNT))
        yield server


def metric(server: Server, name: str) -> float:
    text = api.metrics(server)
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def slow(server: Server) -> socket.socket:
    """Asks for everything and reads nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(20)
    reader.connect(("127.0.0.1", server.port("admin")))
    reader.sendall(ALL)
    return reader


def test_a_client_that_does_not_read_costs_little_memory_and_is_cut_off(full: Server) -> None:
    assert next(api.client(full).rows("big", 0, 1 << 40)).num_rows  # pyarrow is in memory from here on
    until(lambda: metric(full, "msmq_fast_bulk_streams ") == 0, what="the end of the first stream")
    before, peak = full.resident, 0
    broken = metric(full, "msmq_fast_bulk_broken_streams_total")

    def ended() -> bool:
        nonlocal peak
        peak = max(peak, full.resident)
        return metric(full, "msmq_fast_bulk_streams ") == 0

    with slow(full) as reader:
        until(lambda: metric(full, "msmq_fast_bulk_streams ") == 1, what="the stream")
        until(ended, what="the end of the stream")
        assert metric(full, "msmq_fast_bulk_broken_streams_total") == broken + 1
        assert peak - before < 30e6  # of 40 MB
        received = bytearray()
        while part := reader.recv(1 << 20):
            received += part
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert not received.endswith(b"0\r\n\r\n")
    assert len(received) < BODY * COUNT
    assert "the client read nothing for 1 s" in full.log.read_text()


def test_a_client_that_leaves_ends_its_stream(full: Server) -> None:
    broken = metric(full, "msmq_fast_bulk_broken_streams_total")
    for _ in range(5):
        rows = api.client(full).rows("big", 0, 1 << 40)
        assert next(rows).num_rows
        rows.close()
    until(lambda: metric(full, "msmq_fast_bulk_broken_streams_total") == broken + 5, what="five ends")
    assert metric(full, "msmq_fast_bulk_streams ") == 0
    assert api.table(api.client(full).rows("big", 0, 1 << 40)).num_rows == COUNT


def test_more_readers_than_streams_wait_for_their_turn(full: Server) -> None:
    counts: list[int] = []

    def read() -> None:
        counts.append(
            api.table(api.client(full).rows("big", 0, 1 << 40, columns="arrival_seq,body")).num_rows
        )

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert counts == [COUNT] * 6


def test_a_stage_that_is_too_large(full: Server) -> None:
    batch = api.stream_of([(b"x" * BODY, "")] * 20)
    path = "/stage?writer=w&batch=1&part=0&attempt=0&queue=big"
    answer = api.ask(full, "POST", path, body=batch, headers={"Content-Type": api.ARROW})
    api.refused(answer, 413, "TOO_LARGE", "bulk.max_stage_bytes")


def test_a_stage_that_does_not_come(full: Server) -> None:
    with socket.create_connection(("127.0.0.1", full.port("admin")), timeout=20) as stalled:
        path = "/v1/bulk/stage?writer=w&batch=1&part=0&attempt=0&queue=big"
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {api.ARROW}\r\nContent-Length: 9"
        stalled.sendall(head.encode() + b"\r\n\r\n\xff\xff")
        assert b"no data for 1 s" in stalled.recv(4096)


def test_a_server_that_dies_or_stops_breaks_streams_off(full: Server) -> None:
    """Last here: it restarts the server."""
    rows = api.client(full).rows("big", 0, 1 << 40)
    assert next(rows).num_rows
    full.kill()
    with pytest.raises(Truncated, match="broke off"):
        list(rows)
    with pytest.raises(Unavailable):
        api.client(full).bounds()
    full.start()
    rows = api.client(full).rows("big", 0, 1 << 40)
    assert next(rows).num_rows
    assert full.stop(timeout=10) == 0
    with pytest.raises(Truncated):
        list(rows)


def test_without_pyarrow_everything_else_works(tmp_path: Path) -> None:
    with api.serving(PYTHONPATH=api.without_pyarrow(tmp_path / "lacking")) as server:
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "x", "--recoverable", "--count", "3")
        client = api.client(server)
        bounds = client.bounds(["orders"])
        assert bounds.queues[0].messages == 3
        assert client.plan("orders", 0, bounds.next).rows == 3
        lease = client.lease("s", "orders")
        assert client.ack("s", "orders", lease.stop).removed == 3
        assert client.subscribe("x").name == "x"
        assert client.stage("w", 1, 0, 0, api.messages_schema(), [], queue="orders").rows == 0
        for call in (
            lambda: client.rows("orders", 0, 1),
            lambda: client.events(1, 2),
            lambda: client.leased("s", "orders", 1, 1),
        ):
            with pytest.raises(NoArrow, match=r"install msmq-fast\[bulk\]"):
                call()
