"""The ping port: requests are answered, other responders are not."""

from __future__ import annotations

import socket
import struct

import pytest

from tests.support.processes.servers import Server, data_directory

pytestmark = pytest.mark.smoke

REQUEST = struct.pack("<HHI16s", 0, 0x5548, 77, bytes(16))


def answers(server: Server, address: str, port: int, count: int) -> int:
    """How many of `count` pings from this address and port are answered before the one of another address."""
    target = (server.host, server.port("ping"))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        sender.bind((address, port))
        for _ in range(count):
            sender.sendto(REQUEST, target)
        other.bind(("127.0.54.250", 0))
        other.settimeout(10)
        other.sendto(REQUEST, target)
        assert other.recv(100)[4:8] == REQUEST[4:8]  # so the server has seen those before it
        sender.setblocking(False)
        received = 0
        try:
            while sender.recv(100):
                received += 1
        except BlockingIOError:
            return received
    raise AssertionError("an empty answer")


@pytest.mark.parametrize("ping_port", ["0", "3527"])
def test_a_datagram_from_a_ping_port_is_not_answered(ping_port: str) -> None:
    with data_directory() as data:
        server = Server(data, "--ping-port", ping_port, host="127.0.54.1")
        server.environment |= {"MSMQ_FAST_LIMITS__PINGS_PER_ADDRESS": "50"}
        try:
            server.start()
            assert answers(server, "127.0.54.9", 3527, 3) == 0
            assert answers(server, "127.0.54.9", server.port("ping"), 3) == 0
            assert answers(server, "127.0.54.9", 0, 3) == 3
            assert answers(server, "127.0.54.10", 0, 200) < 100
            assert answers(server, "127.0.54.11", 0, 3) == 3
        finally:
            server.kill()
