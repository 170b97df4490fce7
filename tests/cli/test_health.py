"""`msmq-fast health`: what a container's health check sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, certify, command, data_directory, until


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, host="127.0.56.10")
        try:
            yield running
        finally:
            running.kill()


def health(server: Server, *arguments: str, **variables: str) -> tuple[int, str]:
    environment = {"MSMQ_FAST_SERVER__DATA": str(server.data), **server.environment}
    environment |= {f"MSMQ_FAST_SERVER__{name.upper()}": text for name, text in variables.items()}
    done = command("health", *arguments, environment=environment)
    return done.returncode, (done.stdout + done.stderr).decode()


def test_it_follows_readyz_at_any_address_and_without_a_ping_port(server: Server) -> None:
    server.environment |= {
        "MSMQ_FAST_LISTEN__ADMIN__HOST": "127.0.56.10",
        "MSMQ_FAST_STORE__DISK_CHECK_INTERVAL": "0.1",
    }
    server.flags = ("--ping-port", "off")
    server.start()
    port = str(server.port("admin"))
    assert health(server, admin_port=port) == (0, f"127.0.56.10:{port}: ready\n")
    assert server.stop() == 0
    code, shown = health(server, admin_port=port)
    assert code == 5
    assert shown.count("\n") == 1
    server.environment["MSMQ_FAST_STORE__DISK_LOW"] = "60 TiB"
    server.start()
    port = str(server.port("admin"))
    until(lambda: health(server, admin_port=port)[0] == 6, what="an unhealthy server")
    code, shown = health(server, "--json", admin_port=port)
    assert (code, json.loads(shown)["ready"]) == (6, False)
    assert "disk" in json.loads(shown)["reason"]


def test_a_wildcard_address_is_asked_over_the_loopback(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__ADMIN__HOST"] = "0.0.0.0"  # noqa: S104
    server.start()
    port = server.port("admin")
    assert health(server, admin_port=str(port)) == (0, f"127.0.0.1:{port}: ready\n")


def test_without_an_admin_port_the_socket_for_programs_is_asked(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__ADMIN__PORT"] = "off"
    server.flags = ("--admin-port", "off")
    server.start()
    assert health(server) == (0, f"{server.data / 'app.sock'}: ready\n")
    assert server.stop() == 0
    code, shown = health(server)
    assert code == 5
    assert shown.count("\n") == 1
    assert health(server, app_socket="off")[0] == 2


@pytest.mark.needs("openssl")
def test_over_tls(server: Server, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=DNS:queues.example.net")
    server.environment |= {
        "MSMQ_FAST_LISTEN__ADMIN__TLS_CERTIFICATE": str(certificate),
        "MSMQ_FAST_LISTEN__ADMIN__TLS_KEY": str(key),
    }
    server.start()
    assert health(server, admin_port=str(server.port("admin")))[0] == 0
