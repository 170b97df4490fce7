"""A server that has been idle: what arrives next is stamped and judged by the time at which it arrives."""

from __future__ import annotations

import socket
import time

import pytest

from msmq_fast import Access, Message, sync
from tests.server.sockets import receive_exactly
from tests.support.mqqb import wire
from tests.support.processes.servers import Server
from tests.support.srmp.independent import post
from tests.support.srmp.partner import request
from tests.support.srmp.serving import serving

IDLE = 1.7  # seconds: more than one, whatever fraction of a second the last reading of the clock had


def after_a_silence() -> int:
    """Wait without a word to the server; returns the second that has just begun."""
    now = time.time()
    wake = int(now + IDLE) + 1
    time.sleep(wake + 0.02 - now)
    return wake


def test_a_message_of_a_program_lives_as_long_as_it_says(server: Server) -> None:
    """The time to be received counts from the arrival, not from what the server did before it."""
    server.start()
    server.ok("queue", "create", "q")
    with sync.connect(server.ready["app"]) as connection, connection.open("q") as queue:
        for _ in range(2):
            second = after_a_silence()
            queue.send(Message(b"short", time_to_be_received=1))
            time.sleep(0.2)  # within the second that it lives
            received = queue.receive(timeout=0)
            assert received.body == b"short"
            assert second <= received.arrived_time <= time.time()


@pytest.mark.long(seconds=5)
def test_a_message_of_another_queue_manager_is_stamped_when_it_arrives(server: Server) -> None:
    server.start()
    server.ok("queue", "create", "q")
    app = sync.connect(server.ready["app"])
    peer = socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=10)
    with app as connection, peer, connection.open("q", Access.RECEIVE) as queue:
        peer.sendall(wire.establish())
        receive_exactly(peer, 572)
        peer.sendall(wire.parameters())
        receive_exactly(peer, 32)
        second = after_a_silence()
        peer.sendall(wire.message(1, queue=r"OS:host\private$\q", body=b"short"))
        received = queue.receive(timeout=10)
        assert second <= received.arrived_time <= time.time()


@pytest.mark.long(seconds=5)
def test_a_message_over_http_is_stamped_when_it_arrives() -> None:
    with serving("") as server:
        server.ok("queue", "create", "q")
        with sync.connect(server.ready["app"]) as connection, connection.open("q", Access.RECEIVE) as queue:
            port = server.port("http")
            second = after_a_silence()
            status, _ = post(port, request(f"http://127.0.0.1:{port}/msmq/private$/q"))
            assert status == 200
            received = queue.receive(timeout=10)
            assert second <= received.arrived_time <= time.time()
