"""libmqrt over TCP with a token, and over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mqrt.building import Build
from tests.support.processes.servers import Server, certify, data_directory

WORD = "s3cret-word"
CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
{extra}
[security]
everyone_creates_queues = true
[[users]]
name = "billing"
token_file = '{token}'
"""
DENIED, NOT_AVAILABLE = "0xC00E0025\nrefused passed\n", "0xC00E000B\nrefused passed\n"


@pytest.fixture
def tls(tmp_path: Path) -> str:
    """The part of the configuration that turns TLS on."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")
    return f"tls_certificate = '{certificate}'\ntls_key = '{key}'"


@pytest.fixture
def configured(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    token = tmp_path / "token"
    token.write_text(f"{WORD}\n")
    extra = request.getfixturevalue("tls") if request.param == "tls" else ""
    (tmp_path / "msmq.toml").write_text(CONFIG.format(extra=extra, token=token))
    with data_directory() as data:
        running = Server(data, "--config", str(tmp_path / "msmq.toml")).start()
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.needs("cc", "make")
@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("configured", ["plain"], indirect=True)
def test_tcp_with_a_token(checked: Build, configured: Server, tmp_path: Path) -> None:
    endpoint = f"tcp://127.0.0.1:{configured.port('app-tcp')}"
    checked.run(endpoint, ["stream"], MSMQ_FAST_TOKEN=WORD)
    checked.run(endpoint, ["stream"], MSMQ_FAST_TOKEN_FILE=str(tmp_path / "token"))
    assert checked.run(endpoint, ["refused"], MSMQ_FAST_TOKEN=WORD[1:]) == DENIED
    assert checked.run(endpoint, ["refused"], MSMQ_FAST_TOKEN_FILE=str(tmp_path / "none")) == DENIED
    assert checked.run(endpoint, ["refused"]) == DENIED
    for nonsense in (
        "tcp://127.0.0.1",
        "tcp://:1",
        "tcp://127.0.0.1:x",
        "tcp://[::1:5",
        "/none",
        "unix:",
        "x" * 200,
    ):
        assert checked.run(nonsense, ["refused"]) == NOT_AVAILABLE


@pytest.mark.needs("cc", "make", "openssl")
@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("configured", ["tls"], indirect=True)
def test_tls(checked: Build, configured: Server, tmp_path: Path) -> None:
    port = configured.port("app-tcp")
    trusted = {"MSMQ_FAST_TOKEN": WORD, "SSL_CERT_FILE": str(tmp_path / "certificate.pem")}
    checked.run(f"tls://127.0.0.1:{port}", ["stream"], **trusted)
    for endpoint, changed in (
        (f"tls://127.0.0.1:{port}", {"SSL_CERT_FILE": "/dev/null"}),
        (f"tls://localhost:{port}", {}),  # the certificate is for the address
        (f"tcp://127.0.0.1:{port}", {}),
    ):
        assert checked.run(endpoint, ["refused"], **{**trusted, **changed}) == NOT_AVAILABLE
