"""`msmq-fast snapshot`: a copy of the running store, from outside."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast import sync
from msmq_fast.protocol.errors import InvalidParameter
from tests.support.processes.servers import Server, data_directory, inherited, until

BODY = "x" * 100_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as directory:
        running = Server(directory).start()
        try:
            running.ok("queue", "create", "orders")
            running.ok("send", "orders", "--body", BODY, "--recoverable", "--count", "20")
            yield running
        finally:
            running.kill()


@pytest.fixture
def target(server: Server) -> Iterator[Path]:
    path = server.data.parent / "snapshot"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def complaint(server: Server, *arguments: str) -> str:
    done = server.run("snapshot", *arguments)
    assert done.returncode in (2, 6), done
    text = done.stderr.decode()
    assert text.count("\n") == 1, text
    return text


def test_what_is_restored_from_a_snapshot_is_what_was_there(server: Server, target: Path) -> None:
    (shown,) = server.ok("snapshot", str(target))
    assert shown["snapshot"] == str(target)
    assert shown["bytes"] == (target / "data.mdb").stat().st_size
    assert target.stat().st_mode & 0o077 == 0
    other = server.data.parent / "other"
    assert server.run("restore", str(target), "--data", str(other)).returncode == 0
    shutil.copy(server.data / "secrets.key", other)  # which no copy of the store holds
    restored = Server(other).start()
    try:
        (queue,) = restored.ok("queue", "show", "orders")
        assert queue["messages"] == 20
        (stats,) = restored.ok("stats")
        assert stats["incarnation"] == shown["incarnation"] + 1
    finally:
        restored.stop()
        shutil.rmtree(other)


def test_each_mistake_gets_one_clear_line(server: Server, target: Path) -> None:
    target.mkdir()
    assert "exists already" in complaint(server, str(target))
    assert "is not a directory" in complaint(server, str(server.log / "below"))
    assert "65536 or more" in complaint(server, str(target / "x"), "--rate", "10")
    assert "invalid rate" in complaint(server, str(target / "x"), "--rate", "fast")
    with (
        sync.connect(server.endpoint) as connection,
        pytest.raises(InvalidParameter, match="not a full path"),
    ):
        connection.admin.snapshot("somewhere")


def slow(server: Server, target: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "msmq_fast", "snapshot", str(target), "--rate", "100 kB"],
        env=inherited() | {"MSMQ_FAST_ENDPOINT": server.endpoint},
        stderr=subprocess.PIPE,
    )


def test_one_snapshot_at_a_time_and_none_is_left_of_an_interrupted_one(server: Server, target: Path) -> None:
    with slow(server, target) as making, sync.connect(server.endpoint) as connection:
        far = until(connection.admin.snapshot_progress, what="a snapshot under way")
        assert 0 <= far[0] < far[1]
        assert "another snapshot" in complaint(server, f"{target}-2")
        os.kill(making.pid, signal.SIGINT)
        assert making.wait(10) == 130
        until(lambda: connection.admin.snapshot_progress() is None, what="the end of the snapshot")
    assert not target.exists()
    server.ok("snapshot", str(target))


def test_a_stop_does_not_wait_for_a_snapshot(server: Server, target: Path) -> None:
    """Last here: it ends the server."""
    with slow(server, target) as making:
        with sync.connect(server.endpoint) as watching:
            until(watching.admin.snapshot_progress, what="a snapshot under way")
        assert server.stop(timeout=10) == 0
        assert making.wait(10) in (5, 6)
    assert not target.exists()
