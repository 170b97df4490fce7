"""Hostile clients of the HTTP port, on real sockets, while a witness goes on posting messages."""

from __future__ import annotations

import contextlib
import errno
import random
import re
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from tests.support.hostile.attacked import Witness
from tests.support.processes.servers import Server, until
from tests.support.srmp.independent import Sink, answer, post
from tests.support.srmp.partner import Program, request
from tests.support.srmp.serving import serving

CONFIG = """
[server]
name = "MACHINE2"

[[queues]]
name = "q"

[srmp]
unfinished = "32 MiB"

[listen.http]
max_connections = 1200
max_connections_per_address = 1200

[limits]
slow_writer_timeout = 2
first_byte_timeout = 4
"""
URL = "http://machine2/msmq/private$/q"
HEAD = b"POST /msmq/private$/q HTTP/1.1\r\nHost: machine2\r\nContent-Type: text/xml\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """At the end the witness of all hostile tests says what it saw, and the server must stop in order."""
    with serving(CONFIG) as running, contextlib.ExitStack() as stack:
        others = Witness(running)
        stack.callback(others.kill)
        yield running
        print(others.check())
        assert running.stop(timeout=30) == 0


@pytest.fixture(scope="module")
def port(server: Server) -> int:
    return server.port("http")


@pytest.fixture
def witness(server: Server, port: int) -> Iterator[Program]:
    """A client whose message gets through afterwards, over a connection that stood all the time."""
    with contextlib.closing(Program(server)) as program, _connect(port) as connection:
        program.messages("q")
        connection.sendall(request(URL, b"before"))
        assert answer(connection)[0] == 200
        yield program
        connection.sendall(request(URL, b"witness"))
        assert answer(connection)[0] == 200
        assert program.messages("q", 5)


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 20)


def _said(port: int, raw: bytes, *, half_close: bool = False) -> bytes:
    """Everything that is answered until the connection ends."""
    with _connect(port) as connection:
        received = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(raw)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                received += data
        return received


def _refusals(server: Server) -> dict[str, int]:
    (found,) = server.ok("stats")
    return {name: count for name, count in found["refusals"].items() if name.startswith("http")}


NO_HTTP = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"LIOR" * 100,
    b"POST /msmq/private$/q HTTP/1.1\r\n\r\n",
    HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    HEAD + b"Content-Length: -3\r\n\r\nabc",
    HEAD + b"X\x00: y\r\n\r\n",
    HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
    HEAD + b"X: y\r\n" * 1000 + b"\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n",
    HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
]
UNFINISHED = (b"LIOR" * 100, HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n")


@pytest.mark.parametrize("raw", NO_HTTP, ids=range(len(NO_HTTP)))
def test_what_is_no_http_is_never_answered_with_400(
    server: Server, port: int, witness: Program, raw: bytes
) -> None:
    before = sum(_refusals(server).values())
    said = _said(port, raw, half_close=True)
    assert b" 400 " not in said
    assert sum(_refusals(server).values()) == before + (0 if raw in UNFINISHED else 1)


def test_a_body_that_is_too_long_is_rejected_for_good(port: int, witness: Program) -> None:
    """Before it has come, so that its sender stops; the answer is seen though the sender goes on."""
    status, headers = post(port, HEAD + b"Content-Length: %d\r\n\r\n" % (5 << 20))
    assert (status, b"connection: close" in [each.lower() for each in headers]) == (400, True)
    with _connect(port) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (5 << 20))
        for _ in range(20):
            connection.sendall(bytes(1 << 18))
        assert answer(connection)[0] == 400


@pytest.mark.rule("SR-224")
def test_how_large_a_message_may_be(server: Server, port: int, witness: Program) -> None:
    assert post(port, request(URL, bytes(4_000_000)))[0] == 200
    assert post(port, request(URL, bytes((4 << 20) + 1)))[0] == 400


def test_other_methods_and_paths(port: int, witness: Program) -> None:
    with _connect(port) as connection:
        for method, path, expected in (
            (b"GET", b"/msmq/private$/q", 405),
            (b"POST", b"/elsewhere", 404),
            (b"PUT", b"/msmq/q", 405),
            (b"POST", b"/", 404),
        ):
            connection.sendall(b"%b %b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy" % (method, path))
            status, headers = answer(connection)
            assert status == expected
            assert (b"allow: post" in [each.lower() for each in headers]) == (expected == 405)


def test_folded_chunked_expected_pipelined_and_half_closed(
    server: Server, port: int, witness: Program
) -> None:
    whole = request(URL, b"one")
    head, _, body = whole.partition(b"\r\n\r\n")
    folded = re.sub(rb"; type=text/xml", b";\r\n type=text/xml", head) + b"\r\n\r\n" + body
    plain = re.sub(rb"Content-Length: \d+\r\n", b"", head, count=1)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:100], body[100:], b""))
    chunked = plain + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    said = _said(port, folded + chunked + request(URL, b"three") * 5, half_close=True)
    assert said.count(b"HTTP/1.1 200 OK\r\n") == said.count(b"HTTP/1.1 ") == 7, said


def test_repeated_fields_with_two_meanings(port: int, witness: Program) -> None:
    whole = request(URL, b"x")
    length = re.search(rb"Content-Length: (\d+)", whole)
    assert length is not None
    same = whole.replace(b"\r\n", b"\r\n" + length[0] + b"\r\n", 1)
    assert post(port, same)[0] == 200
    both = whole.replace(b"\r\n", b"\r\nTransfer-Encoding: chunked\r\n", 1)
    assert b" 400 " not in _said(port, both, half_close=True)
    assert b" 200 " not in _said(port, both.replace(b"POST", b"post"), half_close=True)


def test_receipts_are_no_way_to_post_to_other_hosts(server: Server, port: int, witness: Program) -> None:
    """A service of the same network, and a name that leads to it, are not connected to; the sender is."""
    asked = "<deliveryReceiptRequest><sendTo>{}</sendTo></deliveryReceiptRequest>"
    services = '<services se:mustUnderstand="1"><durable/>{}</services>'
    with socket.create_server(("127.0.55.77", 0)) as inside, Sink() as own:
        inside.setblocking(False)
        there = inside.getsockname()[1]
        targets = [
            f"http://127.0.55.77:{there}/msmq/private$/x",
            f"http://127.0.55.77:{there}/msmq/../v1/agent/service/register",
            f"http://[::ffff:127.0.55.77]:{there}/msmq/x",
            f"http://127.0.55.77:{there}/msmq/x;at=127.0.55.77",
            own.url("private$/receipts"),
        ]
        for target in targets:
            wanted = services.format(asked.format(target))
            assert post(port, request(URL, b"x", headers=wanted))[0] == 200
        own.wait(1)
        with pytest.raises(BlockingIOError):
            inside.accept()
    refusals = server.ok("stats")[0]["refusals"]
    assert refusals["message: receipt to a host other than the sender"] == 4


def test_a_wrong_boundary_and_documents_that_are_none(port: int, witness: Program) -> None:
    whole = request(URL, b"x")
    with _connect(port) as connection:
        for raw in (
            whole.replace(b"53287", b"53288", 1),
            whole.replace(b"boundary=", b"border=", 1),
            whole.replace(b"<se:Header>", b"<se:Head1r>", 1),
            HEAD + b"Content-Length: 3\r\n\r\nabc",
        ):
            connection.sendall(raw)
            assert answer(connection)[0] == 400


def _xml(port: int, envelope: bytes) -> int:
    return post(port, HEAD + b"Content-Length: %d\r\n\r\n" % len(envelope) + envelope, timeout=20)[0]


def test_bombs_of_xml(server: Server, port: int, witness: Program) -> None:
    before = server.resident
    laughs = b"".join(b'<!ENTITY e%d "%b">' % (i, b"&e%d;" % (i - 1) * 10) for i in range(1, 12))
    assert _xml(port, b'<!DOCTYPE a [<!ENTITY e0 "ha">' + laughs + b"]><a>&e11;</a>") == 400
    assert _xml(port, b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>') == 400
    attributes = b" ".join(b'a%d=""' % number for number in range(400_000))
    assert _xml(port, b"<a " + attributes + b"/>") == 400
    assert _xml(port, b"<a>" * 100_000) == 400
    assert _xml(port, b"<a/>" * 500_000) == 400
    assert server.resident < before + (64 << 20)


def test_slow_requests_are_cut_off_and_idle_connections_are_not(
    server: Server, port: int, witness: Program
) -> None:
    with contextlib.ExitStack() as stack:
        idle = stack.enter_context(_connect(port))
        silent = [stack.enter_context(_connect(port)) for _ in range(3)]
        for connection, begin in zip(
            silent, (b"POS", HEAD, HEAD + b"Content-Length: 9\r\n\r\na"), strict=True
        ):
            connection.sendall(begin)
        drip = stack.enter_context(_connect(port))
        drip.settimeout(0.3)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            drip.sendall(HEAD + b"X: ")
            while time.monotonic() < began + 15:
                drip.sendall(b"y")
                with contextlib.suppress(TimeoutError):
                    if not drip.recv(100):
                        break
        assert time.monotonic() - began < 10, "a byte now and then is no progress"
        for connection in silent:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(100) == b""
        idle.sendall(request(URL, b"x"))
        assert answer(idle)[0] == 200


def test_a_client_that_takes_no_answers(server: Server, port: int, witness: Program) -> None:
    """Its requests are not read any more; nothing piles up for it."""
    before = server.resident
    with _connect(port) as connection:
        connection.setblocking(False)
        raw = b"GET /msmq/q HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
        began = went = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < went + 1:
                try:
                    connection.send(raw)
                    went = time.monotonic()
                except BlockingIOError:
                    time.sleep(0.01)
                assert went < began + 15, "it is read for ever"
    assert server.resident < before + (16 << 20)


def test_announced_bodies_do_not_use_up_memory(server: Server, port: int, witness: Program) -> None:
    """32 MiB are let in; the others are told to try again."""
    before = server.resident
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(_connect(port)) for _ in range(24)]
        statuses = []
        for connection in connections:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (4 << 20))
        for connection in connections:
            connection.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                statuses.append(answer(connection)[0])
        assert statuses == [500] * 16
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(bytes(1 << 20))
        assert server.resident < before + (64 << 20)
    until(lambda: post(port, request(URL, bytes(200_000)))[0] == 200)


def _abort(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _spoiled(chance: random.Random, whole: bytes) -> bytes:
    match chance.randrange(7):
        case 0:
            return whole[: chance.randrange(len(whole))]
        case 1:
            at = chance.randrange(len(whole))
            return whole[:at] + chance.randbytes(chance.randrange(1, 9)) + whole[at + 1 :]
        case 2:
            return chance.choice(NO_HTTP)[:2000]
        case 3:
            return whole * 2 + whole[: len(whole) // 2]
        case 4:
            return re.sub(rb"Content-Length: (\d+)", b"Content-Length: %d" % chance.randrange(1 << 33), whole)
        case 5:
            return whole.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % chance.randrange(99), 1)
        case _:
            at = chance.randrange(len(whole))
            return whole[:at] + whole[at + chance.randrange(1, 60) :]


def _flood(server: Server, port: int, count: int, seed: int) -> None:
    chance = random.Random(seed)
    whole = request(URL, b"some body")
    with _connect(port) as witness:
        for number in range(count):
            try:
                with _connect(port) as connection:
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(_spoiled(chance, whole))
                    if chance.random() < 0.5:
                        _abort(connection)
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL:  # ports run out faster than they come back
                    raise
                time.sleep(0.2)
            if number % 200 == 0:
                witness.sendall(request(URL, b"witness"))
                assert answer(witness)[0] == 200
                server.messages("q")


def test_spoiled_requests(server: Server, port: int, witness: Program) -> None:
    _flood(server, port, 600, 1)


def test_the_same_message_over_two_connections(server: Server, port: int, witness: Program) -> None:
    witness.messages("q")
    raw = request(URL, b"once")
    for _ in range(50):
        with _connect(port) as one, _connect(port) as two:
            one.sendall(raw)
            two.sendall(raw)
            assert (answer(one)[0], answer(two)[0]) == (200, 200)
    assert len(witness.messages("q")) == 1
    for _ in range(2):
        assert post(port, request(URL, b"another"))[0] == 200


@pytest.mark.long(seconds=7)
def test_a_thousand_idle_connections(server: Server, port: int, witness: Program) -> None:
    before = server.resident
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(_connect(port))
        assert post(port, request(URL, b"x"))[0] == 200
        assert server.resident < before + (48 << 20)
        for _ in range(300):
            stack.enter_context(_connect(port))
        assert post(port, request(URL, b"x"))[0] == 200
        until(lambda: _refusals(server).get("http connection: made room for another connection"))
        until(lambda: _refusals(server).get("http connection: no byte received in time"), timeout=30)


@pytest.mark.long(seconds=300)
@pytest.mark.timeout(900)
def test_a_hundred_thousand_spoiled_requests(server: Server, port: int) -> None:
    _flood(server, port, 5_000, 2)
    before = server.resident
    for seed in range(3, 22):
        _flood(server, port, 5_000, seed)
    assert server.resident < before + (32 << 20)
