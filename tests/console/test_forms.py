"""Forms that are too large: refused before they are parsed, while others go on."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from msmq_fast.console.forms import SMALL
from tests.support.http.console import Browser
from tests.support.processes.servers import Server, data_directory

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA")
        try:
            yield running.start()
        finally:
            running.kill()


def post(server: Server, path: str, size: int | None, sent: bytes, cookie: str = "", kind: str = FORM) -> int:
    """Send a form, which states `size` bytes or else is chunked; return the status of the answer."""
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with closing(connection):
        connection.putrequest("POST", f"/ui{path}", skip_host=True)
        connection.putheader("Host", "localhost")
        connection.putheader("Sec-Fetch-Site", "same-origin")
        connection.putheader("Content-Type", kind)
        connection.putheader("Cookie", cookie)
        if size is None:
            connection.putheader("Transfer-Encoding", "chunked")
            connection.endheaders()
            connection.send(b"%x\r\n%b\r\n0\r\n\r\n" % (len(sent), sent))
        else:
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            connection.send(sent)
        return connection.getresponse().status


@pytest.mark.parametrize("path", ["/login", "/logout", "/theme"])
def test_a_stranger_sends_small_forms_only(server: Server, path: str) -> None:
    small = b"next=" + b"x" * (SMALL - 5)
    assert post(server, path, SMALL, small) in (303, 403)
    assert post(server, path, SMALL + 1, b"") == 413  # before the form arrives
    assert post(server, path, None, b"a=1") == 413
    assert post(server, path, 3, b"a=1", kind="multipart/form-data; boundary=x") == 413


def test_eight_megabytes_of_fields_do_not_stop_the_server(server: Server) -> None:
    began = time.monotonic()
    for _ in range(20):
        assert post(server, "/login", 8 << 20, b"") == 413
        assert Browser(server).ask("GET", "/login").status == 200
    assert time.monotonic() - began < 10
