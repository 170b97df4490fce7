"""Two server processes on addresses of their own and one port number."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.support.processes.servers import Server, data_directory, until


def free_port() -> int:
    """A port that is free on both addresses."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.2", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.3", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free on both addresses")


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    port = str(free_port())
    environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"}
    with data_directory() as first, data_directory() as second:
        a = Server(first, "--port", port, "--name", "ALPHA", host="127.0.0.2", environment=environment)
        b = Server(second, "--port", port, "--name", "BETA", host="127.0.0.3", environment=environment)
        try:
            yield a, b
        finally:
            a.kill()
            b.kill()


def drained(server: Server) -> bool:
    return all(queue["messages"] == 0 for queue in server.ok("outgoing", "list"))


def collect(server: Server, queue: str, count: int) -> list[dict[str, object]]:
    received: list[dict[str, object]] = []

    def enough() -> bool:
        received.extend(server.messages(queue))
        return len(received) >= count

    until(enough, 20, f"{count} messages in {queue}")
    return received
