"""Programs that connect over TCP with TLS and a token, and programs without a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.processes import dotnet
from tests.support.processes.servers import Server, certify, data_directory

CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
tls_certificate = '{folder}/certificate.pem'
tls_key = '{folder}/key.pem'
[[users]]
name = "billing"
token_file = '{folder}/token'
"""

pytestmark = [
    pytest.mark.long(seconds=5),
    pytest.mark.needs("mcs", "mono", "openssl"),
    pytest.mark.parametrize("runtime", [dotnet.MONO, dotnet.NET]),
]


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    certify(folder / "key.pem", folder / "certificate.pem", "subjectAltName=DNS:localhost")
    (folder / "token").write_text("s3cret-token\n")
    (folder / "msmq.toml").write_text(CONFIG.format(folder=folder))
    return folder


@pytest.fixture(scope="module")
def tls_server(credentials: Path) -> Iterator[Server]:
    with data_directory() as data:
        server = Server(data, "--config", str(credentials / "msmq.toml"))
        server.environment["MSMQ_FAST_SECURITY__EVERYONE_CREATES_QUEUES"] = "true"
        server.start()
        yield server
        server.kill()


def run(server: Server, program: Path, runtime: str, queue: str, **environment: str) -> tuple[int, str]:
    """Run a scenario over TLS; returns its exit code and its complaint."""
    settings: Mapping[str, str] = {
        "MSMQ_FAST_ENDPOINT": f"tls://localhost:{server.port('app-tcp')}",
        **environment,
    }
    process = dotnet.start(
        server, dotnet.command_for(runtime, program), "SendReceive", queue, settings=settings
    )
    complaint = process.communicate(timeout=60)[1]
    return process.returncode, complaint


def test_tls_with_a_token(
    tls_server: Server, scenarios: dict[str, Path], credentials: Path, runtime: str
) -> None:
    program = scenarios["System.Messaging"]
    authority = str(credentials / "certificate.pem")
    token = {"MSMQ_FAST_TOKEN": "s3cret-token"}
    assert run(tls_server, program, runtime, f"{runtime}-a", MSMQ_FAST_CA=authority, **token) == (0, "")
    of_file = {"MSMQ_FAST_TOKEN_FILE": str(credentials / "token")}
    assert run(tls_server, program, runtime, f"{runtime}-b", MSMQ_FAST_CA=authority, **of_file) == (0, "")
    wrong = {"MSMQ_FAST_TOKEN": "wrong"}
    code, complaint = run(tls_server, program, runtime, "c", MSMQ_FAST_CA=authority, **wrong)
    assert code == 1
    assert "MQ_ERROR_ACCESS_DENIED" in complaint
    code, complaint = run(tls_server, program, runtime, "c", **token)
    assert code == 1
    assert "cannot connect to the queue manager at tls://localhost" in complaint


def test_no_server(tls_server: Server, scenarios: dict[str, Path], tmp_path: Path, runtime: str) -> None:
    program = scenarios["System.Messaging"]
    for endpoint, text in (
        (f"unix:{tmp_path}/none.sock", "MQ_ERROR_SERVICE_NOT_AVAILABLE"),
        ("http://localhost:1", "it must be a path, unix:/path, tcp://host:port or tls://host:port"),
    ):
        code, complaint = run(tls_server, program, runtime, "d", MSMQ_FAST_ENDPOINT=endpoint)
        assert code == 1
        assert text in complaint
