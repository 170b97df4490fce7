"""SIGHUP: what can be reloaded is, the rest is named, and the server lives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.servers import Server, certify, command, data_directory, until

FIRST = """
[listen.app]
port = 0
tls_certificate = "{directory}/server.pem"
tls_key = "{directory}/server.key"

[[users]]
name = "alice"
token = "old old old"

[log]
level = "info"
"""
SECOND = (
    FIRST.replace("old old old", "new new new").replace('"info"', '"debug"')
    + """
[[queues]]
name = "declared"

[listen.admin]
max_connections = 77
"""
)


def log_of(server: Server, words: str, count: int = 1) -> None:
    until(lambda: server.log.read_text().count(words) >= count, what=f"{words!r} in the log")


def hang_up(server: Server) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGHUP)


def as_alice(server: Server, token: str, ca: Path, tmp_path: Path) -> subprocess.CompletedProcess[bytes]:
    file = tmp_path / "token"
    file.write_text(token)
    port = server.ready["app-tcp"].rpartition(":")[2]
    return command(
        "queue",
        "list",
        "--endpoint",
        f"tls://127.0.0.1:{port}",
        "--ca-file",
        str(ca),
        "--token-file",
        str(file),
    )


@pytest.mark.needs("openssl")
def test_tokens_certificates_queues_and_the_log_level_are_reloaded(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(FIRST.format(directory=tmp_path))
    key, certificate = tmp_path / "server.key", tmp_path / "server.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")
    first = tmp_path / "first.pem"
    first.write_bytes(certificate.read_bytes())
    with data_directory() as data:
        server = Server(data, "--config", str(file)).start()
        try:
            server.ok("queue", "create", "kept")
            server.ok("send", "kept", "--body", "express")
            assert as_alice(server, "old old old", first, tmp_path).returncode == Exit.OK

            file.write_text(SECOND.format(directory=tmp_path))
            certify(key, certificate, "subjectAltName=IP:127.0.0.1")
            hang_up(server)
            log_of(server, "SIGHUP: configuration read again")
            assert as_alice(server, "new new new", certificate, tmp_path).returncode == Exit.OK
            old = as_alice(server, "old old old", certificate, tmp_path)
            assert (old.returncode, b"token" in old.stderr) == (Exit.REFUSED, True), old
            assert b"is not trusted" in as_alice(server, "new new new", first, tmp_path).stderr
            server.ok("queue", "show", "declared")
            log_of(server, "these keys changed and need a restart: listen.admin.max_connections")

            file.write_text("[server]\nprot = 1\n")
            hang_up(server)
            log_of(server, f"SIGHUP: not reloaded: {file}:2:")
            assert as_alice(server, "new new new", certificate, tmp_path).returncode == Exit.OK

            file.write_text(SECOND.format(directory=tmp_path))
            certificate.write_text("damaged")
            hang_up(server)
            log_of(server, "SIGHUP: certificate kept as it was: listen.app.tls_certificate:")
            (message,) = server.ok("receive", "kept")
            assert message["delivery"] == "express"
            assert server.stop() == 0
        finally:
            server.kill()


def test_a_terminal_that_closes_while_the_server_starts_does_not_end_it() -> None:
    """The signal arrives before there is a handler."""
    program = """
import os, signal, sys
from msmq_fast.cli.commands import serve
real = serve._serve
def hung_up(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    return 17
serve._serve = hung_up
from msmq_fast.cli.main import main
sys.exit(main(["serve"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (17, b"")
