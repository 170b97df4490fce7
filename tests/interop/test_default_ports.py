"""Ports nobody has to configure: 1801 for sessions, 3527 for pings, on both sides."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.support.mqqb import wire
from tests.support.processes.pair import collect
from tests.support.processes.servers import Server, command, data_directory

PING = b"\x00\x00HU" + (4).to_bytes(4, "little") + wire.PEER.bytes_le


class Unconfigured(Server):
    """As it comes, but for the addresses and the admin port."""

    free_ports = ("--admin-port",)


@pytest.fixture
def pair() -> Iterator[tuple[Server, Server]]:
    with data_directory() as first, data_directory() as second:
        a, b = Unconfigured(first, host="127.0.0.85"), Unconfigured(second, host="127.0.0.86")
        try:
            yield a, b
        finally:
            a.kill()
            b.kill()


@pytest.mark.rule("QB-002", "QB-004")
def test_a_sender_finds_the_port_of_the_receiver(pair: tuple[Server, Server]) -> None:
    a, b = (server.start() for server in pair)
    assert b.ready["mqqb"] == "127.0.0.86:1801"
    b.ok("queue", "create", "inbox")
    a.ok("send", r"DIRECT=TCP:127.0.0.86\private$\inbox", "--body", "x", "--recoverable")
    assert len(collect(b, "inbox", 1)) == 1


@pytest.mark.rule("QB-013", "QB-014", "QB-015", "QB-016", "QB-017")
def test_pings_are_answered_at_their_port_and_to_where_they_came_from(pair: tuple[Server, Server]) -> None:
    a, b = pair
    a.flags = ("--ping-port", "off")
    b.start()
    assert b.ready["ping"] == "127.0.0.86:3527"
    with socket.socket(type=socket.SOCK_DGRAM) as asker, socket.socket(type=socket.SOCK_DGRAM) as other:
        for sender in (asker, other):
            sender.bind(("127.0.0.85", 0))
            sender.settimeout(5)
        asker.sendto(PING, ("127.0.0.86", 3527))
        answer, source = asker.recvfrom(100)
        assert source == ("127.0.0.86", 3527)
        assert (len(answer), answer[4:8]) == (24, PING[4:8])
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.recvfrom(100)
    assert command("ping", "127.0.0.86").returncode == 0
    a.start()
    assert "ping" not in a.ready
    assert command("ping", "127.0.0.85", "--timeout", "0.3").returncode == 4


@pytest.mark.rule("QB-013", "QB-164")
def test_a_ping_leaves_by_udp_before_the_connection(pair: tuple[Server, Server]) -> None:
    a, b = pair
    a.environment["MSMQ_FAST_MQQB__PING"] = "on"
    with socket.create_server((b.host, 1801)) as sessions, socket.socket(type=socket.SOCK_DGRAM) as pings:
        pings.bind((b.host, 3527))
        sessions.settimeout(10)
        pings.settimeout(10)
        a.start()
        a.ok("send", rf"DIRECT=TCP:{b.host}\private$\inbox", "--body", "x")
        request, asker = pings.recvfrom(100)
        assert (len(request), request[2:4]) == (24, b"HU")
        assert request[8:] == UUID(a.ready["guid"]).bytes_le
        assert asker[1] not in (1801, 3527)
        sessions.setblocking(False)
        with pytest.raises(BlockingIOError):
            sessions.accept()
        pings.sendto(request[:8] + wire.PEER.bytes_le, asker)
        sessions.settimeout(10)
        opened, _ = sessions.accept()
        opened.settimeout(10)
        with opened, opened.makefile("rb") as stream:
            assert not stream.read(572)[57] & 1  # SE: a ping was sent


@pytest.mark.rule("QB-079")
def test_a_repetition_is_known_after_a_kill(pair: tuple[Server, Server]) -> None:
    _, b = pair
    b.start()
    b.ok("queue", "create", "q")
    for attempt in range(2):
        with socket.create_connection(("127.0.0.86", 1801), timeout=10) as peer:
            peer.sendall(wire.establish() + wire.parameters())
            answer = b""
            while len(answer) < 572 + 32:
                answer += peer.recv(4096)
            messages = [wire.message(n, queue=r"OS:host\private$\q", recoverable=True) for n in (1, 2)]
            peer.sendall(b"".join(messages[: attempt + 1]))
            acknowledged = b""
            while len(acknowledged) < 36 or wire.read_header(acknowledged)[0] < attempt + 1:
                acknowledged = peer.recv(4096)
            if attempt == 0:
                assert len(collect(b, "q", 1)) == 1  # the session acknowledges what is not yet stored
                b.kill()
                b.start()
    ordinals = [str(message["message_id"]).split("\\")[1] for message in collect(b, "q", 1)]
    assert ordinals == ["2"]
