"""Peers and programs that stop in the middle: they are cut off or made to wait, counted, and cost little."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from uuid import UUID

import pytest

from msmq_fast import RECOVERABLE, Access, Message, sync
from msmq_fast.protocol.frames import Frame, pack_frame
from tests.server.sockets import receive_exactly
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, data_directory, until

MIB = 1 << 20
BODY = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        limits = {
            "MSMQ_FAST_LIMITS__SLOW_READER_TIMEOUT": "1",
            "MSMQ_FAST_LIMITS__SLOW_WRITER_TIMEOUT": "1",
            "MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.2",
        }
        running = Server(data, environment=limits)
        try:
            yield running
        finally:
            running.kill()


def refusals(server: Server) -> dict[str, int]:
    return dict(server.ok("stats")[0]["refusals"])


def test_a_peer_that_leaves_a_packet_unfinished_is_cut_off_and_counted(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "q")
    with socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=10) as peer:
        peer.sendall(wire.establish())
        receive_exactly(peer, 572)
        peer.sendall(wire.parameters())
        receive_exactly(peer, 32)
        peer.sendall(wire.message(1, queue=r"OS:host\private$\q", body=b"x" * 100_000)[:50_000])
        while peer.recv(4096):
            pass
    assert refusals(server) == {"session: peer writes too slowly": 1}
    assert server.ok("queue", "show", "q")[0]["messages"] == 0
    assert "peer writes too slowly" in server.log.read_text()


class Deaf:
    """A host that accepts sessions and then reads nothing more."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.77", 0))
        self.sessions = 0
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                request = receive_exactly(connection, 572)
                client, stamp = UUID(bytes_le=request[20:36]), int.from_bytes(request[52:56], "little")
                connection.sendall(wire.establish(client, wire.PEER, stamp))
                parameters = receive_exactly(connection, 32)
                connection.sendall(parameters)
                self._kept.append(connection)
                self.sessions += 1

    def close(self) -> None:
        self.listener.close()
        for connection in self._kept:
            connection.close()


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    host = Deaf()
    try:
        yield host
    finally:
        host.close()


def test_a_peer_that_does_not_read_is_cut_off_and_its_messages_wait(server: Server, deaf: Deaf) -> None:
    server.environment["MSMQ_FAST_MQQB__PEER_PORT"] = str(deaf.port)
    server.start()
    server.ok("queue", "create", "other")
    before = server.resident
    target = r"DIRECT=TCP:127.0.0.77\private$\q"
    with sync.connect(server.endpoint) as connection, connection.open(target, Access.SEND) as queue:
        for _ in range(100):
            queue.send(Message(BODY, delivery=RECOVERABLE))
    until(lambda: refusals(server).get("session: peer reads too slowly", 0) >= 2, 20, "two sessions cut off")
    assert deaf.sessions >= 2  # it is tried again
    server.ok("send", "other", "--body", "x", "--recoverable")
    assert len(server.messages("other")) == 1
    assert server.ok("outgoing", "show", target)[0]["messages"] == 100
    # 64 MiB of body cache, 32 MiB of the redo log, one window under way
    assert server.resident - before < 128 * MIB
    assert "peer reads too slowly" in server.log.read_text()


def deep(server: Server, count: int) -> None:
    """Put `count` messages of 1 MiB into the queue `large`."""
    server.ok("queue", "create", "large")
    with sync.connect(server.endpoint) as connection, connection.open("large", Access.SEND) as queue:
        for _ in range(count):
            queue.send(Message(BODY, delivery=RECOVERABLE))


def program(server: Server, *frames: bytes) -> socket.socket:
    """A program that opens the queue `large`, asks for messages, and then reads no more."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server.endpoint.removeprefix("unix:"))
    connection.sendall(pack_frame(Frame.HELLO, 1, {"version": 1}) + pack_frame(Frame.OPEN, 2, ["large", 1]))
    connection.sendall(b"".join(frames))
    return connection


@pytest.mark.parametrize("kind", ["receive", "subscribe", "lookup"])
def test_a_program_that_asks_for_much_and_does_not_read_costs_little(server: Server, kind: str) -> None:
    server.start()
    deep(server, 120)
    before = server.resident
    frames = {
        "receive": [pack_frame(Frame.RECEIVE, 10 + n, [1, None]) for n in range(120)],
        "subscribe": [pack_frame(Frame.SUBSCRIBE, 10, [1, 1000, False])],
        "lookup": [pack_frame(Frame.LOOKUP, 10 + n, [1, 0, 4, True]) for n in range(120)],
    }[kind]
    with program(server, *frames):
        left = [120, 0]
        until(lambda: left.append(server.ok("queue", "show", "large")[0]["messages"]) or left[-1] == left[-2])
        assert left[-1] >= 120 - 24  # the others were not even taken
        assert server.resident - before < 48 * MIB
        other = server.messages("large", 1)  # nobody else waits for it
        assert len(other) == 1
    assert server.ok("stats")[0]["app_connections"] <= 2


def test_a_program_that_stops_in_the_middle_of_a_frame_delays_nobody(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "large")
    frame = pack_frame(Frame.SEND, 3, [1, 0, [[BODY, "", 1]]])
    with program(server, frame[: len(frame) // 2]):
        server.ok("send", "large", "--body", "x", "--recoverable")
        assert len(server.messages("large")) == 1
    until(lambda: server.ok("stats")[0]["app_connections"] == 1, what="the end of the connection")
    assert server.ok("queue", "show", "large")[0]["messages"] == 0
