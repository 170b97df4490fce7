"""How a server ends: what a clean stop gives back, and what ends a stop that does not come to its end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client import RECOVERABLE, Message, SendInDoubt, connect
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
    assert stuck.ended() == 1
    assert "second signal: ending at once" in stuck.log.read_text()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("server", [2], indirect=True)
def test_a_stop_ends_when_its_time_is_over(stuck: Server) -> None:
    assert stuck.process is not None
    started = time.monotonic()
    assert stuck.ended() == 1
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
    assert server.stop() == 0  # with the key pairs that a first start generates and stores
    server.log.unlink()
    server.start()
    hang.touch()
    assert server.process is not None
    for _ in range(signals):
        server.process.send_signal(signal.SIGTERM)
        until(lambda: "SIGTERM: draining" in server.log.read_text(), what="the first signal")
    assert server.ended() == 1
    assert "ending at once" in server.log.read_text()
    hang.unlink()
    server.start()
    assert len(server.ok("queue", "list")) == 1


# The disk hangs at the first signal, and a message arrives before the server reads its sockets again.
BETWEEN = """
import logging, os, sys, time
from msmq_fast.cli.main import main

def hang(record):
    if record.getMessage() == "SIGTERM: draining":
        open(os.environ["HANGING_SYNC"], "w").close()
        while not os.path.exists(os.environ["ARRIVED"]):
            time.sleep(0.002)
    return True

logging.getLogger("msmq_fast.server").addFilter(hang)
sys.exit(main())
"""


@pytest.mark.needs("cc")
def test_a_message_that_arrives_with_the_signal_does_not_hang_the_loop(
    server: Server, tmp_path: Path
) -> None:
    hang, arrived = tmp_path / "hang", tmp_path / "arrived"
    server.program = (sys.executable, "-c", BETWEEN)
    server.environment |= {
        "LD_PRELOAD": sync_shim(tmp_path),
        "HANGING_SYNC": str(hang),
        "ARRIVED": str(arrived),
        "MSMQ_FAST_STORE__INLINE_COMMIT_US": "1000000",  # the disk is never too slow for the loop
    }
    server.start()
    process = server.process
    assert process is not None

    async def run() -> None:
        async with connect(server.endpoint) as connection:
            await connection.admin.queues.create("orders")
            queue = await connection.open("orders")
            for _ in range(8):
                await queue.send(Message(b"kept", delivery=RECOVERABLE))
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(until, hang.exists, what="the first signal")
            late = asyncio.create_task(queue.send(Message(b"late", delivery=RECOVERABLE)))
            for _ in range(20):
                await asyncio.sleep(0)
            arrived.touch()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(late), 0.5)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(SendInDoubt):
                await asyncio.wait_for(late, 20)

    asyncio.run(run())
    assert server.ended() == 1
    assert "second signal: ending at once" in server.log.read_text()
    hang.unlink()
    server.program = Server.program
    server.start()
    assert [message["body_b64"] for message in server.messages("orders")][:8] == ["a2VwdA=="] * 8
