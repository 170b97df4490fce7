"""SIGHUP: what can be reloaded is, the rest is named, and the server lives."""

from __future__ import annotations

import contextlib
import http.client
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.config.sections import SECTIONS, keys_of
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

[mqqb]
window = 32
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
            log_of(server, f"SIGHUP: configuration read again from {file}; changed: log.level, queues, users")
            assert as_alice(server, "new new new", certificate, tmp_path).returncode == Exit.OK
            old = as_alice(server, "old old old", certificate, tmp_path)
            assert (old.returncode, b"token" in old.stderr) == (Exit.REFUSED, True), old
            assert b"is not trusted" in as_alice(server, "new new new", first, tmp_path).stderr
            server.ok("queue", "show", "declared")
            log_of(server, "SIGHUP: these keys changed and need a restart: mqqb.window")

            file.write_text("[server]\nprot = 1\n")
            hang_up(server)
            log_of(server, f"SIGHUP: not reloaded: {file}:2:")
            assert as_alice(server, "new new new", certificate, tmp_path).returncode == Exit.OK

            file.write_text(SECOND.format(directory=tmp_path))
            certificate.write_text("damaged")
            hang_up(server)
            log_of(server, "SIGHUP: not reloaded: listen.app.tls_certificate:")
            (message,) = server.ok("receive", "kept")
            assert message["delivery"] == "express"
            assert server.stop() == 0
        finally:
            server.kill()


ROUTED = """
[mqqb]
retry_interval = 0.2
[listen.app]
max_connections = 3
[[queues]]
name = "orders"
{queue}
[[routes]]
destination = "*"
via = "{hop}"
"""
FAR = "PRIVATE=2c3b6b1d-6c51-4f4e-8b0a-b0d7a31f2f10\\1"


@contextlib.contextmanager
def serving(file: Path) -> Iterator[Server]:
    with data_directory() as data:
        server = Server(data, "--config", str(file)).start()
        try:
            yield server
            assert server.stop() == 0
        finally:
            server.kill()


def reloaded(server: Server) -> dict[str, Any]:
    (answer,) = server.ok("config", "reload")
    return answer


def leads_to(server: Server, hop: str) -> bool:
    (queue,) = server.ok("outgoing", "list")
    return bool(queue["next_hops"] == [hop])


def test_routes_change_for_messages_that_wait(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(ROUTED.format(hop="127.0.56.91", queue=""))
    with serving(file) as server:
        server.ok("send", FAR, "--body", "x", "--recoverable")
        until(lambda: leads_to(server, "127.0.56.91"), what="the first route")
        file.write_text(ROUTED.format(hop="127.0.56.92", queue=""))
        answer = reloaded(server)
        assert (answer["changed"], answer["restart"]) == (["routes"], [])
        until(lambda: leads_to(server, "127.0.56.92"), what="the second route")
        assert reloaded(server)["changed"] == []


def test_addresses_that_are_not_allowed_any_more_lose_their_sessions(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("")

    def dial(server: Server, source: str) -> socket.socket:
        target = (server.host, server.port("mqqb"))
        return socket.create_connection(target, 10, source_address=(source, 0))

    with serving(file) as server, contextlib.ExitStack() as open_ones:
        blocked, allowed = (
            open_ones.enter_context(dial(server, each)) for each in ("127.0.56.81", "127.0.56.82")
        )
        file.write_text('[mqqb]\nallow = "127.0.56.82"\n')
        assert reloaded(server)["changed"] == ["mqqb.allow"]
        assert blocked.recv(1) == b""
        assert open_ones.enter_context(dial(server, "127.0.56.81")).recv(1) == b""
        allowed.setblocking(False)
        with pytest.raises(BlockingIOError):  # still open: there is nothing to read
            allowed.recv(1)
        assert server.ok("stats")[0]["refusals"]["session: address not allowed"] == 2


def test_limits_of_connections_change(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text(ROUTED.format(hop="127.0.56.91", queue=""))
    with serving(file) as server, contextlib.ExitStack() as open_ones:

        def hold() -> socket.socket:
            connection = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(10)
            connection.connect(str(server.data / "app.sock"))
            return connection

        held = [hold(), hold()]
        file.write_text(ROUTED.format(hop="127.0.56.91", queue="").replace("= 3", "= 5"))
        assert reloaded(server)["changed"] == ["listen.app.max_connections"]
        held += [hold() for _ in range(4)]
        # Five may be open, and the command that reloaded may have been the fifth for a moment.
        closed = select.select(held, [], [], 10)[0]
        assert len(held) - len(closed) > 3
        for connection in held:
            connection.close()
        until(lambda: server.run("stats").returncode == Exit.OK, what="room again")


@pytest.mark.parametrize(
    ("key", "listener", "data", "reason"),
    [
        ("first_byte_timeout", "mqqb", b"", "session: no byte received in time"),
        ("handshake_timeout", "mqqb", b"\x10", "session: handshake timeout"),
        ("handshake_timeout", "app-tcp", b"\0", "app connection: handshake timeout"),
    ],
)
def test_times_for_beginning_change(
    tmp_path: Path, key: str, listener: str, data: bytes, reason: str
) -> None:
    file = tmp_path / "server.toml"
    settings = "[listen.app]\nport = 0\n[limits]\nfirst_byte_timeout = 60\nhandshake_timeout = 60\n"
    file.write_text(settings)
    with serving(file) as server:
        host, port = server.ready[listener].split(",")[0].rsplit(":", 1)
        with socket.create_connection((host, int(port)), 20) as older:
            file.write_text(settings.replace(f"{key} = 60", f"{key} = 0.3"))
            assert reloaded(server)["changed"] == [f"limits.{key}"]
            with socket.create_connection((host, int(port)), 20) as slow:
                slow.sendall(data)
                assert slow.recv(1) == b""
            if key == "first_byte_timeout":
                assert older.recv(1) == b""
        assert reason in server.ok("stats")[0]["refusals"]


def test_a_certificate_in_another_file(tmp_path: Path) -> None:
    certify(tmp_path / "server.key", tmp_path / "server.pem", "subjectAltName=IP:127.0.0.1")
    certify(tmp_path / "other.key", tmp_path / "other.pem", "subjectAltName=IP:127.0.0.1")
    file = tmp_path / "server.toml"
    file.write_text(FIRST.format(directory=tmp_path))
    with serving(file) as server:
        file.write_text(FIRST.format(directory=tmp_path).replace("/server.", "/other."))
        assert reloaded(server)["changed"] == ["listen.app.tls_certificate", "listen.app.tls_key"]
        assert as_alice(server, "old old old", tmp_path / "other.pem", tmp_path).returncode == Exit.OK


def test_a_configuration_that_cannot_be_used_changes_nothing_and_says_why(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    good = ROUTED.format(hop="127.0.56.91", queue="")
    file.write_text(good)
    with serving(file) as server:
        server.ok("send", FAR, "--body", "x", "--recoverable")
        until(lambda: leads_to(server, "127.0.56.91"), what="the route")
        file.write_text(good.replace(".91", ".92") + "[log]\nlevel = 5\n[sever]\n")
        done = server.run("config", "reload")
        assert (done.returncode, done.stdout) == (Exit.REFUSED, b"")
        assert f"{file}:13: log.level: expected one of".encode() in done.stderr
        assert f'{file}:14: unknown section "sever"; did you mean "server"?'.encode() in done.stderr
        file.write_text(ROUTED.format(hop="127.0.56.92", queue="transactional = true"))
        done = server.run("config", "reload")
        assert (done.returncode, done.stdout) == (Exit.REFUSED, b"")
        assert b'queue "orders" exists and is not transactional; this cannot be changed' in done.stderr
        assert leads_to(server, "127.0.56.91")


def metrics(server: Server) -> dict[str, float]:
    """The figures of reloads."""
    host, port = server.ready["admin"].split(",")[0].rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
    finally:
        connection.close()
    rows = (line.rsplit(" ", 1) for line in lines if line.startswith("msmq_fast_config_"))
    return {name.removeprefix("msmq_fast_config_"): float(value) for name, value in rows}


def test_metrics_tell_what_came_of_reloads(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("")
    with serving(file) as server:
        assert metrics(server) == {
            'reloads_total{result="applied"}': 0,
            'reloads_total{result="rejected"}': 0,
            "last_reload_successful": 1,
            "restart_keys": 0,
        }
        file.write_text("[mqqb]\nwindow = 32\nping = true\n")
        assert reloaded(server)["restart"] == ["mqqb.window", "mqqb.ping"]
        file.write_text("[mqqb]\nwindow = 0\n")
        assert server.run("config", "reload").returncode == Exit.REFUSED
        assert metrics(server) == {
            'reloads_total{result="applied"}': 1,
            'reloads_total{result="rejected"}': 1,
            "last_reload_successful": 0,
            "restart_keys": 2,
        }


def test_only_administrators_reload(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('[listen.app]\nport = 0\n[[users]]\nname = "alice"\ntoken = "a token of alice"\n')
    token = tmp_path / "token"
    token.write_text("a token of alice")
    with serving(file) as server:
        port = server.ready["app-tcp"].rpartition(":")[2]
        endpoint = ("--endpoint", f"tcp://127.0.0.1:{port}", "--token-file", str(token))
        done = command("config", "reload", *endpoint)
        assert (done.returncode, done.stdout) == (Exit.REFUSED, b"")
        assert b"reload the configuration" in done.stderr


def test_each_live_key_has_a_part_that_takes_it_over() -> None:
    """What this file tests; a key that is marked as live needs a test here."""
    live = {
        f"{name}.{key}"
        for name, section in SECTIONS.items()
        for key, entry in keys_of(section).items()
        if entry.metadata["live"]
    }
    assert {name for name in live if not name.startswith(("listen.", "limits."))} == {
        "mqqb.allow",
        "mqqb.routers",
        "log.level",
        "log.format",
        "log.refusals_per_second",
    }
    assert {name.rpartition(".")[2] for name in live if name.startswith("listen.")} == {
        "max_connections",
        "max_connections_per_address",
        "tls_certificate",
        "tls_key",
    }


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
