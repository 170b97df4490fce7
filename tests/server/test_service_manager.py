"""What systemd and podman learn of the server: a real datagram socket as $NOTIFY_SOCKET."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.server.runtime.notify import ServiceManager
from tests.support.http.admin import http
from tests.support.processes.servers import Server, data_directory

WATCHDOG_S = 0.5
# The second look of the stall watch waits for the test, which holds the other end of the FIFO.
BLOCKING = """
import os, sys
from msmq_fast.server.runtime import stalls
calls = 0
def expire(self, now, look=stalls.StallWatch.expire):
    global calls
    calls += 1
    if calls == 2:
        open(os.environ["BLOCK_ON"]).read()
    look(self, now)
stalls.StallWatch.expire = expire
from msmq_fast.cli.main import main
sys.exit(main())
"""


class Listener:
    """The service manager's end."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0"))
        self._socket.settimeout(20)

    def next(self) -> list[str]:
        """The lines of the next datagram."""
        return self._socket.recv(4096).decode().splitlines()

    def until(self, line: str) -> list[list[str]]:
        """All datagrams up to the one with `line`."""
        seen = [self.next()]
        while line not in seen[-1]:
            seen.append(self.next())
        return seen

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes in this time, beside what is there already."""
        self._socket.setblocking(False)
        try:
            while True:
                self._socket.recv(4096)
        except BlockingIOError:
            pass
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(4096)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(20)
        return False

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener(server: Server) -> Iterator[Listener]:
    path = str(server.data.parent / "notify")
    heard = Listener(path)
    server.environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
    yield heard
    heard.close()


def test_ready_is_said_once_every_listener_accepts(server: Server, listener: Listener) -> None:
    server.start()
    assert listener.next() == ["STATUS=opening the store"]
    assert listener.next() == ["READY=1", "STATUS=ready"]
    assert http(server, "/readyz") == (200, "ok\n")
    assert server.run("queue", "list").returncode == 0


def test_a_server_that_cannot_start_is_never_ready(server: Server, listener: Listener) -> None:
    server.data.write_text("a file")
    with pytest.raises(AssertionError, match="no ready line"):
        server.start()
    assert listener.next() == ["STATUS=opening the store"]
    assert listener.silent(0.01)


def test_the_watchdog_hears_the_loop_twice_in_its_time(server: Server, listener: Listener) -> None:
    server.start()
    listener.until("WATCHDOG=1")
    began = time.monotonic()
    for _ in range(6):
        listener.until("WATCHDOG=1")
    assert 2 * WATCHDOG_S < time.monotonic() - began < 6 * WATCHDOG_S


def test_a_loop_that_hangs_misses_the_watchdog(server: Server, listener: Listener) -> None:
    fifo = server.data.parent / "block"
    os.mkfifo(fifo)
    server.environment |= {"BLOCK_ON": str(fifo)}
    server.program = (sys.executable, "-c", BLOCKING)
    server.start()
    listener.until("WATCHDOG=1")
    with fifo.open("w"):  # returns when the loop has opened its end; it reads until this one is closed
        assert listener.silent(2 * WATCHDOG_S)
    assert listener.until("WATCHDOG=1")
    assert server.stop() == 0


def test_a_reload_has_a_beginning_and_an_end(server: Server, listener: Listener, tmp_path: Path) -> None:
    config = tmp_path / "msmq.toml"
    config.write_text('[log]\nlevel = "info"\n')
    server.flags = ("--config", str(config))
    server.start()
    listener.until("READY=1")
    assert server.process is not None
    for text in ('[log]\nlevel = "debug"\n', "[log]\nlevel = 1\n"):  # the second one is rejected
        config.write_text(text)
        before = time.monotonic_ns() // 1000
        server.process.send_signal(signal.SIGHUP)
        (line, since) = next(lines for lines in iter(listener.next, []) if "WATCHDOG=1" not in lines)
        assert line == "RELOADING=1"
        name, _, microseconds = since.partition("=")
        assert name == "MONOTONIC_USEC"
        assert before <= int(microseconds) <= time.monotonic_ns() // 1000
        assert listener.next() == ["READY=1"]
    assert server.log.read_text().count("not reloaded") == 1


def test_the_end_is_announced(server: Server, listener: Listener) -> None:
    server.start()
    listener.until("READY=1")
    assert server.stop() == 0
    assert listener.until("STOPPING=1")[-1] == ["STOPPING=1", "STATUS=draining"]


def test_the_status_gives_the_reason_of_readyz(server: Server, listener: Listener) -> None:
    server.environment |= {"MSMQ_FAST_STORE__DISK_LOW": "60 TiB"}
    server.start()
    seen = listener.until("READY=1")[-1]
    assert seen == ["READY=1", "STATUS=disk space is low"]


def test_an_abstract_socket(server: Server) -> None:
    name = f"@msmq-fast-{os.getpid()}"
    heard = Listener(name)
    server.environment = {"NOTIFY_SOCKET": name}
    server.start()
    heard.until("READY=1")
    assert server.stop() == 0
    seen = [line for lines in heard.until("STOPPING=1") for line in lines]
    assert "WATCHDOG=1" not in seen  # none was asked for
    heard.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("/nowhere/notify", "No such file or directory"),
        ("vsock:2:1", "expected a path or an abstract socket"),
    ],
)
def test_a_socket_that_cannot_be_reached_is_named_once(server: Server, address: str, why: str) -> None:
    server.environment = {"NOTIFY_SOCKET": address}
    server.start()
    assert server.stop() == 0
    (line,) = [line for line in server.log.read_text().splitlines() if "service manager" in line]
    assert line.endswith(f"cannot notify the service manager at {address}: {why}")


def test_the_watchdog_of_another_process_is_left_alone() -> None:
    with data_directory() as data:
        path = str(data.parent / "notify")
        heard = Listener(path)
        environment = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1", "HOME": "/"}
        manager = ServiceManager(environment, lambda: 0.0, lambda: None)
        assert environment == {"HOME": "/"}  # what the server starts does not speak for it
        manager.ready()
        manager.expire(0.0)
        manager.stopping()
        assert heard.next() == ["READY=1", "STATUS=ready"]
        assert heard.next() == ["STOPPING=1", "STATUS=draining"]
        manager.close()
        heard.close()


def test_what_finds_no_room_is_sent_later_and_the_loop_does_not_wait() -> None:
    now = 0.0
    reason: str | None = None
    with data_directory() as data:
        path = str(data.parent / "notify")
        heard = Listener(path)
        manager = ServiceManager(
            {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000000"}, lambda: now, lambda: reason
        )
        filling = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while True:
                filling.sendto(b"of another service", path)
        manager.ready()
        manager.expire(now)
        reason = "two\nlines"
        assert manager.next_deadline() == 0.1
        assert heard.silent(0.01)
        now = 0.1
        manager.expire(now)
        assert [heard.next() for _ in range(3)] == [
            ["READY=1", "STATUS=ready"],
            ["WATCHDOG=1"],
            ["WATCHDOG=1", "STATUS=two lines"],
        ]
        assert manager.next_deadline() == 5.1
        filling.close()
        heard.close()
        now = 5.1
        manager.expire(now)  # the other end is gone: the server goes on
        assert manager.next_deadline() is None
