"""Five hundred honest hosts behind one address, as behind a NAT: no default limit is in their way."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
from collections.abc import Iterator
from uuid import UUID

import pytest

from msmq_fast.rpc.idl.qmcomm import QMCOMM
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, data_directory, until
from tests.support.rpc import wire as rpc

HOSTS = 500
NAT = "127.0.42.50"


@pytest.fixture(scope="module", autouse=True)
def _descriptors() -> Iterator[None]:
    """This process holds a socket for each connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, host="127.0.42.51").start()
        try:
            running.ok("queue", "create", "orders")
            yield running
        finally:
            running.kill()


@contextlib.contextmanager
def connections(server: Server, listener: str, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                socket.create_connection((server.host, server.port(listener)), 20, source_address=(NAT, 0))
            )
            for _ in range(count)
        ]


def receive(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = peer.recv(size - len(data))
        assert more, "the connection was closed"
        data += more
    return data


def guid(number: int) -> UUID:
    return UUID(int=0x500_0000 + number)


def test_each_keeps_a_session_and_sends_messages(server: Server) -> None:
    with connections(server, "mqqb", HOSTS) as peers:
        for number, peer in enumerate(peers):
            peer.sendall(wire.establish(guid(number)) + wire.parameters())
        for peer in peers:
            receive(peer, 572 + 32)
        for round_ in (1, 2):
            for number, peer in enumerate(peers):
                queue = r"OS:localhost\private$\orders"
                peer.sendall(wire.message(round_, queue=queue, recoverable=True, source=guid(number)))
            for peer in peers:
                receive(peer, 36)  # a SessionAck
        until(lambda: server.ok("queue", "show", "orders")[0]["messages"] == 2 * HOSTS)
        assert server.ok("stats")[0]["refusals"] == {}


def ping_socket(server: Server) -> socket.socket:
    """A UDP socket behind the NAT, at another port than the server's: a datagram from that has no answer."""
    while True:
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.bind((NAT, 0))
        if peer.getsockname()[1] != server.port("ping"):
            peer.settimeout(20)
            return peer
        peer.close()


def test_each_has_an_answer_to_its_ping(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(HOSTS // 100):
            peers = []
            for number in range(100):  # as many as the socket of the server has room for
                peer = stack.enter_context(ping_socket(server))
                request = struct.pack("<HHI16s", 0, 0x5548, number, bytes(16))
                peer.sendto(request, (server.host, server.port("ping")))
                peers.append(peer)
            assert all(len(peer.recv(100)) == 24 for peer in peers)


@pytest.mark.parametrize("listener", ["rpc", "qm2qm"])
def test_each_reads_over_two_connections(server: Server, listener: str) -> None:
    """A reader has a connection for calls and another one for what it waits for."""
    with connections(server, listener, 2 * HOSTS) as peers:
        for peer in peers:
            peer.sendall(rpc.pdu(rpc.BIND, 1, rpc.bind_body([(0, (str(QMCOMM.uuid), 1, 0), [rpc.NDR])])))
        for peer in peers:
            assert receive(peer, 24)[2] == rpc.BIND_ACK
        assert server.ok("stats")[0]["refusals"] == {}
