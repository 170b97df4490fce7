"""Two server processes on ::1 exchange messages over MS-MQQB."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.pair import collect, drained
from tests.support.processes.servers import Server, data_directory, preloaded, until

TARGET = r"DIRECT=OS:six.test\private$\inbox"


def free_ports() -> tuple[int, int]:
    """TCP ports that are free on ::1."""
    with socket.socket(socket.AF_INET6) as first, socket.socket(socket.AF_INET6) as second:
        first.bind(("::1", 0))
        second.bind(("::1", 0))
        return int(first.getsockname()[1]), int(second.getsockname()[1])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """There is one loopback address only, so each has a port of its own and is told that of the other. A host
    takes ::1 for itself, so the other one is called by a name.
    """
    ports = free_ports()
    shim = preloaded(Path(__file__).with_name("six_names.c"), tmp_path)
    with data_directory() as first, data_directory() as second:
        servers = [
            Server(
                data,
                *("--port", str(own), "--name", name),
                host="::1",
                environment={"LD_PRELOAD": shim, "MSMQ_FAST_MQQB__PEER_PORT": str(other)},
            )
            for data, own, other, name in (
                (first, *ports, "ALPHA"),
                (second, *reversed(ports), "BETA"),
            )
        ]
        try:
            yield servers[0], servers[1]
        finally:
            for server in servers:
                server.kill()


@pytest.mark.needs("cc", rights=["ipv6"])
def test_messages_and_acknowledgments_go_over_ipv6_both_ways(pair: tuple[Server, Server]) -> None:
    for server in pair:
        server.start()
        assert server.ready["mqqb"].startswith("[::1]:")
        server.ok("queue", "create", "inbox")
    for sender, receiver in (pair, reversed(pair)):
        sender.ok("send", TARGET, "--body", "six", "--count", "20")
        sender.ok("send", TARGET, "--body", "six", "--recoverable", "--count", "100")
        received = collect(receiver, "inbox", 120)
        assert len(received) == 120
        assert {message["source_machine"] for message in received} == {sender.ready["guid"]}
        until(lambda sender=sender: drained(sender), what="the acknowledgments")
        assert sender.run("ping", f"[::1]:{receiver.port('ping')}").returncode == 0
