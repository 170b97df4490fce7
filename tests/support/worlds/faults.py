"""Faults of a domain controller in the middle of operations, and messages that flow meanwhile."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msmq_fast import RECOVERABLE, Access, Message, sync
from tests.support.processes import forking
from tests.support.processes.samba import DomainController
from tests.support.processes.servers import NO_HTTP, Server, inherited, until

__all__ = ["FAULTS", "Pending", "Traffic", "broken", "interrupted", "unanswered"]

FAULTS: Final = ("killed", "hangs", "clock")
HOURS: Final = 3 * 3_600  # seconds by which the clock is wrong
_PORTS: Final = (389, 636)


class Pending:
    """A command that runs. `end` returns its exit code, its output and its complaint."""

    def __init__(self, *arguments: str, environment: dict[str, str]) -> None:
        self._process = forking.start(
            *arguments,
            environment={**inherited(), **NO_HTTP, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._began = time.monotonic()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def end(self, timeout: float) -> tuple[int, bytes, bytes]:
        """Raises subprocess.TimeoutExpired if the command takes longer, counted from its start."""
        with self._process:
            try:
                left = max(0.1, timeout - (time.monotonic() - self._began))
                shown, complaint = self._process.communicate(timeout=left)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise
        return self._process.returncode, shown, complaint


def asked(server: Server, *arguments: str) -> Pending:
    """A client verb that runs against a server."""
    return Pending(*arguments, environment={"MSMQ_FAST_ENDPOINT": server.endpoint})


def unanswered(address: str) -> bool:
    """Whether something that a client has sent to the domain controller waits there to be read."""
    (number,) = struct.unpack("=I", socket.inet_aton(address))
    places = {f"{number:08X}:{port:04X}" for port in _PORTS}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues, *_ = line.split()
        if local in places and state == "01" and int(queues.partition(":")[2], 16):
            return True
    return False


@contextlib.contextmanager
def broken(fault: str, controller: DomainController) -> Iterator[None]:
    """The domain controller has a fault within the block, and none after it."""
    with interrupted(fault, controller):
        yield


@contextlib.contextmanager
def interrupted(
    fault: str, controller: DomainController, *begun: tuple[Server, tuple[str, ...]]
) -> Iterator[list[Pending]]:
    """The same, while commands run: yields those that `begun` names, (server, words) each. A controller that
    is killed or hangs has got a question of theirs and does not answer it.
    """
    if fault == "clock":
        controller.clock(HOURS)
    else:
        controller.pause(True)
    running = [asked(server, *words) for server, words in begun]
    if fault != "clock" and running:
        until(lambda: unanswered(controller.address) or not any(one.runs for one in running), timeout=30)
    if fault == "killed":
        controller.kill()
    try:
        yield running
    finally:
        if fault == "killed":
            controller.start()
        elif fault == "hangs":
            controller.pause(False)
        else:
            controller.clock(0)


class Traffic:
    """Messages that need no directory: to a private queue of each server, and from the first server to the
    last one. `slowest` is the longest time in seconds that one took from before it was sent until it was
    received.
    """

    def __init__(self, *servers: Server) -> None:
        self._servers = servers
        self._ended = threading.Event()
        self._problems: list[str] = []
        self._threads: list[threading.Thread] = []
        self.slowest = 0.0
        self.count = 0
        for server in servers:
            server.run("queue", "create", "traffic")
        first, last = servers[0], servers[-1]
        last.run("queue", "create", "passing")
        self._ways = [(one, r".\private$\traffic", one, r".\private$\traffic") for one in servers]
        self._ways.append((first, rf"DIRECT=TCP:{last.host}\private$\passing", last, r".\private$\passing"))

    @contextlib.contextmanager
    def flowing(self) -> Iterator[Traffic]:
        """Messages flow within the block. Fails at its end if one got lost or no way was used."""
        self.slowest, self.count, self._problems = 0.0, 0, []
        self._ended.clear()
        self._threads = [threading.Thread(target=self._run, args=way) for way in self._ways]
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            for thread in self._threads:
                thread.join(60)
        assert not self._problems, self._problems
        assert self.count >= len(self._ways)

    def _run(self, source: Server, name: str, target: Server, queue: str) -> None:
        try:
            with (
                sync.connect(source.endpoint) as sending,
                sync.connect(target.endpoint) as receiving,
                sending.open(name, Access.SEND) as out,
                receiving.open(queue, Access.RECEIVE) as inward,
            ):
                while not self._ended.is_set():
                    began = time.monotonic()
                    out.send(Message(body=b"x", delivery=RECOVERABLE))
                    inward.receive(timeout=30)
                    self.slowest = max(self.slowest, time.monotonic() - began)
                    self.count += 1
                    self._ended.wait(0.05)
        except Exception as error:  # of another thread: the test says it
            self._problems.append(f"{source.data.name} to {name}: {type(error).__name__}: {error}")
