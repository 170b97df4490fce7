"""The TCP listener for programs: tokens, TLS, and strangers who say nothing."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, certify, command, data_directory

CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
{extra}
[limits]
handshake_timeout = 1
[[users]]
name = "billing"
token_file = '{token}'
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "token").write_text("s3cret-token\n")
    with data_directory() as data:
        running = Server(data, "--config", str(tmp_path / "msmq.toml"))
        try:
            yield running
        finally:
            running.kill()


def configure(tmp_path: Path, extra: str = "") -> None:
    (tmp_path / "msmq.toml").write_text(CONFIG.format(extra=extra, token=tmp_path / "token"))


def stats(server: Server, token: str | None, scheme: str = "tcp") -> subprocess.CompletedProcess[bytes]:
    environment = {} if token is None else {"MSMQ_FAST_TOKEN": token}
    endpoint = f"{scheme}://127.0.0.1:{server.port('app-tcp')}"
    return command("stats", "--json", "--endpoint", endpoint, environment=environment)


def test_a_token_opens_the_door_and_nothing_else_does(server: Server, tmp_path: Path) -> None:
    configure(tmp_path)
    server.start()
    assert stats(server, "s3cret-token").returncode == 0
    for token in ("wrong", "", None):
        refused = stats(server, token)
        assert refused.returncode == 6
        assert b"MQ_ERROR_ACCESS_DENIED" in refused.stderr
        assert refused.stderr.count(b"\n") == 1
    assert "s3cret" not in server.log.read_text()


def test_a_stranger_who_says_nothing_is_cut_off(server: Server, tmp_path: Path) -> None:
    configure(tmp_path)
    server.start()
    with socket.create_connection(("127.0.0.1", server.port("app-tcp")), timeout=5) as silent:
        assert silent.recv(1) == b""
    assert server.ok("stats")[0]["refusals"] == {"app connection: handshake timeout": 1}


@pytest.mark.needs("openssl")
def test_tls(server: Server, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=DNS:localhost")
    configure(tmp_path, f"tls_certificate = '{certificate}'\ntls_key = '{key}'")
    server.start()
    target = f"127.0.0.1:{server.port('app-tcp')}"
    handshake = subprocess.run(
        ["openssl", "s_client", "-connect", target, "-CAfile", certificate, "-brief"],
        input=b"",
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert b"Verification: OK" in handshake.stderr
    assert stats(server, "s3cret-token").returncode == 5  # in the clear


@pytest.mark.needs("openssl")
def test_the_command_line_over_tls_with_a_token(server: Server, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")
    configure(tmp_path, f"tls_certificate = '{certificate}'\ntls_key = '{key}'")
    server.environment["MSMQ_FAST_SECURITY__EVERYONE_CREATES_QUEUES"] = "true"
    server.start()
    trusting = {
        "MSMQ_FAST_ENDPOINT": f"tls://127.0.0.1:{server.port('app-tcp')}",
        "MSMQ_FAST_TOKEN_FILE": str(tmp_path / "token"),
        "SSL_CERT_FILE": str(certificate),
    }
    assert command("queue", "create", "orders", environment=trusting).returncode == 0
    sent = command("send", "orders", "--body", "hello", "--recoverable", environment=trusting)
    assert sent.returncode == 0
    received = command("receive", "orders", "--json", environment=trusting)
    assert b'"body_b64": "aGVsbG8="' in received.stdout
    for change, code, word in (
        ({"SSL_CERT_FILE": "/dev/null"}, 5, b"is not trusted"),
        ({"MSMQ_FAST_TOKEN_FILE": "", "MSMQ_FAST_TOKEN": "wrong"}, 6, b"MQ_ERROR_ACCESS_DENIED"),
        ({"MSMQ_FAST_TOKEN_FILE": str(tmp_path / "none")}, 2, b"No such file"),
    ):
        refused = command("queue", "list", environment=trusting | change)
        assert refused.returncode == code
        assert word in refused.stderr
        assert refused.stderr.count(b"\n") == 1


def test_strangers_do_not_fill_the_log(server: Server, tmp_path: Path) -> None:
    configure(tmp_path, "[log]\nrefusals_per_second = 1")
    server.start()
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", server.port("app-tcp")), timeout=5) as stranger:
            stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while stranger.recv(4096):
                pass
    assert server.ok("stats")[0]["refusals"] == {"app connection: broken off": 50}
    assert server.log.read_text().count("closed: ") < 20
