"""Limits of what strangers may use up: each refusal is counted with its reason, and room comes back."""

from __future__ import annotations

import contextlib
import os
import socket
import struct

import pytest

from tests.support.http.admin import refusals
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, until


@pytest.mark.rule("QB-064")
def test_sessions_beyond_the_limit_of_an_address_are_refused_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__MQQB__MAX_CONNECTIONS_PER_ADDRESS"] = "2"
    server.start()
    kept = [establish(server)[0] for _ in range(2)]
    assert server.run("ping", f"127.0.0.1:{server.port('ping')}").returncode == 6
    connection, answer = establish(server)
    assert answer[18] & 0x10  # InternalHeader.CS: refused
    assert connection.recv(1) == b""
    connection.close()
    assert refusals(server) == {"session: session limit of the address": 1}
    kept.pop().close()
    until(lambda: not establish(server)[1][18] & 0x10, what="a free place")
    kept.pop().close()


def establish(server: Server) -> tuple[socket.socket, bytes]:
    """Connect and open a session; the connection and the answers: 572 bytes if it was refused, else 604."""
    connection = socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=5)
    base = struct.pack("<BBH4sII", 0x10, 0, 0x0B, b"LIOR", 572, 0xFFFFFFFF)
    connection.sendall(
        base
        + struct.pack("<HH16s16sIHH", 0, 2, os.urandom(16), bytes(16), 0, 0x0310, 0)
        + bytes(512)
        + wire.parameters(500, 20_000)
    )
    answer = b""
    while len(answer) < 572 or (len(answer) < 604 and not answer[18] & 0x10):
        chunk = connection.recv(604 - len(answer))
        assert chunk
        answer += chunk
    return connection, answer


def test_five_hundred_hosts_behind_one_nat_are_let_in(server: Server) -> None:
    """Each has two sessions, since peers reach it by its name and by its address."""
    server.start()
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            connection, answer = establish(server)
            stack.enter_context(connection)
            assert not answer[18] & 0x10
        assert server.run("ping", f"127.0.0.1:{server.port('ping')}").returncode == 0
    assert refusals(server) == {}


def test_a_handshake_that_does_not_come_is_cut_off_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_LIMITS__HANDSHAKE_TIMEOUT"] = "0.3"
    server.start()
    with socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=5) as silent:
        silent.settimeout(5)
        assert silent.recv(1) == b""
    assert refusals(server) == {"session: handshake timeout": 1}


def test_a_malformed_packet_is_named_in_the_log(server: Server) -> None:
    server.start()
    with socket.create_connection(("127.0.0.1", server.port("mqqb")), timeout=5) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stranger.recv(1) == b""
    assert refusals(server) == {"session: malformed packet": 1}
    written = "malformed packet (127.0.0.1 BaseHeader.VersionNumber is not 0x10)"
    assert written in server.log.read_text()


def test_connections_beyond_the_limit_are_refused_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__MQQB__MAX_CONNECTIONS"] = "2"
    server.start()
    kept = [establish(server)[0] for _ in range(2)]
    connection, answer = establish(server)
    assert answer[18] & 0x10
    connection.close()
    assert refusals(server) == {"session: session limit": 1}
    assert "session limit" in server.log.read_text()
    for connection in kept:
        connection.close()
    until(lambda: not establish(server)[1][18] & 0x10, what="a free place")


def test_programs_beyond_the_limit_are_refused_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__APP__MAX_CONNECTIONS"] = "3"
    server.start()
    kept = []
    for _ in range(3):
        program = socket.socket(socket.AF_UNIX)
        program.settimeout(5)
        program.connect(server.endpoint.removeprefix("unix:"))
        kept.append(program)
    one_more = server.run("queue", "list")
    assert one_more.returncode == 5
    assert one_more.stderr.count(b"\n") == 1
    for program in kept:
        program.close()
    until(lambda: server.run("queue", "list").returncode == 0, what="a free place")
    assert refusals(server)["app connection: too many connections"] >= 1
