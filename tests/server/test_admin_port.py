"""The admin port of a running server: not for web pages; limits of connections; what it logs."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator

import pytest

from tests.support.http.admin import refusals
from tests.support.processes.servers import Server, data_directory, until

READS = ("/metrics", "/api/v1/queues", "/api/v1/outgoing", "/api/v1/readers", "/api/v1/server/stats")
OTHER = "127.0.54.31"


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with data_directory() as data:
        server = Server(
            data,
            environment={
                "MSMQ_FAST_SERVER__NAME": "ORDERS01",
                "MSMQ_FAST_LISTEN__ADMIN__MAX_CONNECTIONS": "8",
                "MSMQ_FAST_LIMITS__FIRST_BYTE_TIMEOUT": "1",
                "MSMQ_FAST_LOG__REFUSALS_PER_SECOND": "1000",
            },
        )
        try:
            yield server.start()
        finally:
            server.kill()


def ask(server: Server, path: str, **headers: str) -> tuple[int, str]:
    """Status and body of a GET."""
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=10)
    with contextlib.closing(connection):
        connection.request(
            "GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.mark.parametrize("path", READS)
def test_reads_are_refused_to_pages_of_other_sites_and_under_other_names(running: Server, path: str) -> None:
    for site in ("cross-site", "same-site"):
        assert ask(running, path, Sec_Fetch_Site=site)[0] == 403
    for host in ("evil.example", "evil.example:1802", "127.0.0.1.evil.example", "10.0.0.1", "[::2]:1802"):
        status, body = ask(running, path, Host=host)
        assert status == 403
        assert "orders" not in body.lower()
    for host in ("localhost", "localhost:1802", "127.0.0.1:1802", "[::1]", "orders01", "ORDERS01:1802"):
        assert ask(running, path, Host=host)[0] == 200
    for site in ("none", "same-origin"):
        assert ask(running, path, Sec_Fetch_Site=site)[0] == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_name_whatever_host_they_like(running: Server, path: str) -> None:
    assert ask(running, path, Host="10.244.0.7:1802") == (200, "ok\n")


def test_a_mistyped_url_is_no_warning(running: Server) -> None:
    before = running.log.read_text().count("warning")
    assert ask(running, "/v1/bulk/bonds")[0] == 404
    assert ask(running, "/v1/queue")[0] == 404
    assert refusals(running)["bulk request: NOT_FOUND"] == 1
    assert running.log.read_text().count("warning") == before


def test_a_malformed_request_is_logged_with_its_address(running: Server) -> None:
    with socket.create_connection((running.host, running.port("admin")), 10, (OTHER, 0)) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    until(lambda: f"refused admin request: malformed ({OTHER})" in running.log.read_text())


def test_silent_connections_make_room_and_end(running: Server) -> None:
    with contextlib.ExitStack() as stack:
        address = (running.host, running.port("admin"))
        silent = [stack.enter_context(socket.create_connection(address, 10)) for _ in range(20)]
        assert ask(running, "/livez")[0] == 200
        began = time.monotonic()
        for connection in silent:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
        assert time.monotonic() - began < 8
    counted = refusals(running)
    assert counted["admin connection: made room for another connection"] >= 12
    assert counted["admin connection: no byte received in time"] >= 1


def test_a_client_that_was_of_use_stays(running: Server) -> None:
    with contextlib.ExitStack() as stack:
        address = (running.host, running.port("admin"))
        useful = stack.enter_context(socket.create_connection(address, 10))
        for _ in range(2):
            useful.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in useful.recv(4096)
            for _ in range(12):
                stack.enter_context(socket.create_connection(address, 10))
            assert ask(running, "/livez")[0] == 200
