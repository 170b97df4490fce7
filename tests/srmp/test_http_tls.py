"""The HTTPS port: who may speak to it, and which certificate it shows."""

from __future__ import annotations

import contextlib
import socket
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.srmp.certificates import issue
from tests.support.processes.servers import Server, data_directory
from tests.support.srmp.independent import answer
from tests.support.srmp.partner import Program, request

CONFIG = """
[server]
name = "MACHINE2"
[listen.https]
port = 0
tls_certificate = "{first}"
tls_key = "{first}"
tls_more_certificates = ["{second}"]
{more}

[[queues]]
name = "q"
"""


@contextlib.contextmanager
def serving(more: str = "") -> Iterator[tuple[Server, Path]]:
    with data_directory() as data:
        folder = data.parent
        for name in ("first", "second", "client"):
            issue(folder / name, f"{name}.example")
        text = CONFIG.format(
            first=folder / "first/server.pem",
            second=folder / "second/server.pem",
            more=more.format(client=folder / "client/authority.pem"),
        )
        (folder / "server.toml").write_text(text)
        server = Server(data, "--config", str(folder / "server.toml"))
        try:
            yield server.start(), folder
        finally:
            server.kill()


def trusting(folder: Path, name: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=folder / name / "authority.pem")


def post(server: Server, context: ssl.SSLContext, name: str) -> int:
    with (
        socket.create_connection(("127.0.0.1", server.port("https")), 10) as plain,
        context.wrap_socket(plain, server_hostname=name) as connection,
    ):
        connection.sendall(request("https://machine2/msmq/private$/q", b"hello"))
        return answer(connection)[0]


@pytest.mark.rule("SR-003")
def test_messages_over_tls() -> None:
    with serving() as (server, folder), contextlib.closing(Program(server)) as program:
        assert "http" not in server.ready, "switched off"
        for name in ("first", "second"):
            assert post(server, trusting(folder, name), f"{name}.example") == 200
        assert len(program.messages("q", 5)) == 2
        with pytest.raises(ssl.SSLCertVerificationError):
            post(server, trusting(folder, "second"), "first.example")
        old = trusting(folder, "first")
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that they are deprecated is the point
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            post(server, old, "first.example")
        with socket.create_connection(("127.0.0.1", server.port("https")), 10) as plain:
            plain.sendall(request("https://machine2/msmq/private$/q", b"hello"))
            with contextlib.suppress(ConnectionError):
                assert b"HTTP/" not in plain.recv(1000), "in the clear"
        assert post(server, trusting(folder, "first"), "first.example") == 200


@pytest.mark.rule("SR-003")
def test_clients_must_have_a_certificate() -> None:
    with serving('tls_client_ca = "{client}"') as (server, folder):
        for name in ("first", "second"):
            context = trusting(folder, name)
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
                post(server, context, f"{name}.example")
            context.load_cert_chain(folder / "second/server.pem")
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
                post(server, context, f"{name}.example")
            context = trusting(folder, name)
            context.load_cert_chain(folder / "client/server.pem")
            assert post(server, context, f"{name}.example") == 200


def test_nothing_listens_by_default(tmp_path: Path) -> None:
    with data_directory() as data:
        server = Server(data)
        try:
            server.start()
            assert not {"http", "https"} & set(server.ready)
        finally:
            server.kill()
