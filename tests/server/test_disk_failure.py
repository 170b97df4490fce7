"""Disks that fail under the server: what is acknowledged then, and how the server goes on or ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory, sync_shim, until

LIMIT = 1 << 20  # bytes that a file may have; a write beyond it fails


class LimitedServer(Server):
    """A server whose files cannot grow beyond LIMIT: the full disk."""

    program = (
        sys.executable,
        "-c",
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT}, {LIMIT}));"
        "from msmq_fast.cli.main import main; sys.exit(main())",
    )


@pytest.fixture
def data() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


@pytest.mark.needs("cc")
def test_a_sync_that_fails_stops_the_server_with_one_line(data: Path, tmp_path: Path) -> None:
    trigger = tmp_path / "fail"
    server = Server(data, environment={"LD_PRELOAD": sync_shim(tmp_path), "FAILING_SYNC": str(trigger)})
    try:
        server.start()
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "kept", "--recoverable")
        trigger.touch()
        failed = server.run("send", "orders", "--body", "not kept", "--recoverable")
        assert failed.returncode not in (0, 2)
        assert failed.stderr.count(b"\n") == 1
        assert server.process is not None
        assert server.process.wait(20) == 1
        assert server.log.read_text().count("the disk failed: ") == 1
        assert "Traceback" not in server.log.read_text()
    finally:
        server.kill()
    healthy = Server(data).start()
    try:
        assert "a2VwdA==" in [message["body_b64"] for message in healthy.messages("orders")]
    finally:
        healthy.kill()


@pytest.mark.rule("DM-211", "DM-212")
@pytest.mark.parametrize("log", ["true", "false"])
def test_a_full_disk_refuses_and_goes_on(data: Path, log: str) -> None:
    environment = {"DISK_CHECK_INTERVAL": "0.1", "LOG": log, "LOG_SIZE": "1 MiB"}
    server = LimitedServer(
        data, environment={f"MSMQ_FAST_STORE__{name}": value for name, value in environment.items()}
    )
    try:
        server.start()
        server.ok("queue", "create", "orders")
        server.ok("send", "orders", "--body", "kept", "--recoverable")
        failed = server.run("send", "orders", "--body", "x" * 60_000, "--recoverable", "--count", "100")
        assert failed.returncode == 6
        assert failed.stderr.count(b"\n") == 1
        until(lambda: "the server accepts no messages" in server.log.read_text())
        until(lambda: server.run("send", "orders", "--body", "again", "--recoverable").returncode == 0)
        server.stop()
        server.start()
        bodies = [message["body_b64"] for message in server.messages("orders")]
        assert (bodies[0], bodies[-1]) == ("a2VwdA==", "YWdhaW4=")
    finally:
        server.kill()
