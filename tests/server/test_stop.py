"""How a server ends: what a clean stop gives back, and what ends a stop that does not come to its end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.servers import Server, data_directory, sync_shim, until


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """`request.param` is the drain timeout in seconds."""
    with data_directory() as data:
        seconds = getattr(request, "param", 60)
        running = Server(data, environment={"MSMQ_FAST_SERVER__DRAIN_TIMEOUT": str(seconds)})
        try:
            yield running
        finally:
            running.kill()


def send(server: Server) -> tuple[int, int]:
    """Send one message and take it: its arrival number and the ordinal of its identifier."""
    server.ok("send", "orders", "--body", "x", "--recoverable")
    (message,) = server.messages("orders")
    return message["arrival_seq"], int(message["message_id"].split("\\")[1])


def private_number(server: Server, name: str) -> int:
    return int(server.ok("queue", "create", name)[0]["format_name"].split("\\")[1], 16)


@pytest.mark.rule("QB-081", "QB-326")
def test_a_clean_stop_skips_no_numbers_and_a_kill_gives_none_out_again(server: Server) -> None:
    server.start()
    first_queue = private_number(server, "orders")
    first = send(server)
    assert first[1] > 0  # 0 stands for none
    assert server.stop() == 0
    server.start()
    second = send(server)
    assert second == (first[0] + 1, first[1] + 1)
    assert private_number(server, "second") == first_queue + 1
    server.kill()
    server.start()
    third = send(server)
    assert third[0] > second[0]
    assert third[1] > second[1]
    assert private_number(server, "third") > first_queue + 1


@pytest.fixture
def stuck(server: Server, tmp_path: Path) -> Iterator[Server]:
    """A server whose disk does not end a sync, with one message that is kept and one that waits for the disk;
    it was told to stop.
    """
    hang = tmp_path / "hang"
    server.environment |= {"LD_PRELOAD": sync_shim(tmp_path), "HANGING_SYNC": str(hang)}
    server.environment["MSMQ_FAST_STORE__INLINE_COMMIT_US"] = "0"  # else the loop itself may hang in the sync
    server.start()
    server.ok("queue", "create", "orders")
    server.ok("send", "orders", "--body", "kept", "--recoverable")
    hang.touch()
    waiting = subprocess.Popen(
        [*server.program, "send", "orders", "--body", "x", "--recoverable", "--endpoint", server.endpoint],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    until(lambda: server.ok("stats")[0]["app_connections"] >= 2, what="the connection of the sender")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.5)
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.7)
    yield server
    shown, complaint = waiting.communicate(timeout=10)
    assert waiting.returncode == 5  # told that the connection is gone, not that the message is kept
    assert shown == b""
    assert complaint.count(b"\n") == 1
    hang.unlink()
    server.start()
    assert server.messages("orders")[0]["body_b64"] == "a2VwdA=="


@pytest.mark.needs("cc")
def test_a_second_signal_ends_a_stop_that_waits_for_the_disk(stuck: Server) -> None:
    assert stuck.process is not None
    stuck.process.send_signal(signal.SIGTERM)
    assert stuck.process.wait(20) == 1
    assert "second signal: ending at once" in stuck.log.read_text()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("server", [2], indirect=True)
def test_a_stop_ends_when_its_time_is_over(stuck: Server) -> None:
    assert stuck.process is not None
    started = time.monotonic()
    assert stuck.process.wait(20) == 1
    assert time.monotonic() - started < 15  # and not the 60 that are the default
    assert "draining took too long: ending at once" in stuck.log.read_text()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("server", [2], indirect=True)
def test_the_last_sync_of_a_stop_may_not_end_either(server: Server, tmp_path: Path, signals: int) -> None:
    """Nothing waits for the disk but the stop itself, which marks the store as closed."""
    hang = tmp_path / "hang"
    server.environment |= {"LD_PRELOAD": sync_shim(tmp_path), "HANGING_SYNC": str(hang)}
    if signals == 2:
        server.environment["MSMQ_FAST_SERVER__DRAIN_TIMEOUT"] = "60"
    server.start()
    server.ok("queue", "create", "orders")
    hang.touch()
    assert server.process is not None
    for _ in range(signals):
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "SIGTERM: draining" in server.log.read_text(), what="the first signal")
    assert server.process.wait(20) == 1
    assert "ending at once" in server.log.read_text()
    hang.unlink()
    server.start()
    assert len(server.ok("queue", "list")) == 1
