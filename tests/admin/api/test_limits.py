"""What requests of one caller cost in memory: bodies under way, and answers kept for repeated requests."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
import tracemalloc
from contextlib import ExitStack

from msmq_fast.admin.api.repeats import MOST, MOST_BYTES, Repeats
from msmq_fast.admin.api.router import MOST_BYTES as MOST_BODIES
from msmq_fast.admin.application import MAX_BODY
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server


def test_bodies_under_way_are_bounded_in_all(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "bodies"})
    head = (
        "POST /api/v1/queues/bodies/messages HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {MAX_BODY - 1}\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        lines = []
        for _ in range(MOST_BODIES // MAX_BODY + 1):
            line = stack.enter_context(socket.create_connection((server.host, server.port("admin")), 10))
            line.sendall(head)
            lines.append(line)
        refused = lines[-1].recv(4096)
        assert b" 429 " in refused.splitlines()[0]
        assert ok(server, "GET", "/queues/{}", "bodies")["messages"] == 0  # small requests go on
    ends = time.monotonic() + 20
    while True:  # the bodies of closed connections count no more
        with socket.create_connection((server.host, server.port("admin")), 10) as line:
            line.sendall(head + b" " * (MAX_BODY - 1))
            if b" 400 " in line.recv(4096).splitlines()[0]:
                return
        assert time.monotonic() < ends


def test_kept_answers_are_bounded_in_number_and_in_bytes() -> None:
    now = 0.0
    performed: list[int] = []
    repeats = Repeats(lambda: now)

    async def ask(key: int, request: str, answer: str) -> object:
        async def perform() -> str:
            performed.append(key)
            return answer

        return await repeats.run("S-1", str(key), [request], perform)

    async def ask_all() -> None:
        for key in range(MOST + 10):
            await ask(key, "x" * 100_000, "y")
        performed.clear()
        assert await ask(MOST + 9, "x" * 100_000, "") == "y"
        assert performed == []  # it is kept
        await ask(0, "x" * 100_000, "y")
        assert performed == [0]  # it was forgotten
        for key in range(40):
            await ask(10_000 + key, "x", "z" * (MOST_BYTES // 16))

    tracemalloc.start()
    try:
        asyncio.run(ask_all())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1.5 * MOST_BYTES


def test_the_largest_message_can_be_sent_and_a_larger_request_is_refused(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "largest"})
    body = base64.b64encode(bytes(4_000_000)).decode()
    ok(server, "POST", "/queues/{}/messages", "largest", body={"body_b64": body})
    assert ok(server, "GET", "/queues/{}", "largest")["messages"] == 1
    refused = call(server, "POST", "/queues/{}/messages", "largest", body={"body_b64": body * 2})
    assert (refused.status, refused.code) == (413, "TOO_LARGE")
