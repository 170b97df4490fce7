"""A real server for tests of the Spark side: sends, receives, kills, restores; `killharness.Target`."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msmq_fast
from msmq_fast import sync
from tests.support.processes.servers import Server, data_directory

SECONDS_TO_COME_BACK = 20.0


class RealServer:
    """One server process; it keeps its ports over kills."""

    def __init__(self, data: Path, *flags: str, environment: dict[str, str] | None = None) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.admin_port: int = probe.getsockname()[1]
        fast = {"MSMQ_FAST_BULK__SHARE": "0"} | (environment or {})
        self.process = Server(data, "--admin-port", str(self.admin_port), *flags, environment=fast)
        self.process.start()
        self._connection: sync.Connection | None = None
        self._queues: dict[str, sync.Queue] = {}

    @property
    def url(self) -> str:
        return f"msmq+bulk://127.0.0.1:{self.admin_port}"

    def connection(self) -> sync.Connection:
        """Kept until it breaks."""
        if self._connection is None:
            deadline = time.monotonic() + SECONDS_TO_COME_BACK
            while True:
                try:
                    self._connection = sync.connect(self.process.endpoint).__enter__()
                    break
                except (OSError, msmq_fast.ConnectionLost):
                    assert time.monotonic() < deadline, "the server does not come back"
                    time.sleep(0.02)
        return self._connection

    def create(self, name: str, **properties: Any) -> None:
        self.connection().admin.queues.create(name, **properties)

    def send(self, queue: str, bodies: list[bytes], **properties: Any) -> bool:
        """Recoverable messages in one go; False when the server went away meanwhile."""
        try:
            if queue not in self._queues:
                self._queues[queue] = self.connection().open(queue, msmq_fast.Access.SEND)
            recoverable = {"delivery": msmq_fast.RECOVERABLE, **properties}
            self._queues[queue].send_many([msmq_fast.Message(body, **recoverable) for body in bodies])
        except (msmq_fast.ConnectionLost, OSError):
            self.forget()
            return False
        return True

    @contextlib.contextmanager
    def receiving(self, queue: str) -> Iterator[sync.Queue]:
        opened = self.connection().open(queue, msmq_fast.Access.RECEIVE)
        try:
            yield opened
        finally:
            opened.close()

    def receive(self, queue: str) -> bytes:
        with self.receiving(queue) as opened:
            return bytes(opened.receive(timeout=0).body)

    def count(self, queue: str) -> int:
        return self.connection().admin.queues.get(queue).messages

    def forget(self) -> None:
        """The connection is broken, or is going to be."""
        connection, self._connection = self._connection, None
        self._queues.clear()
        if connection is not None:
            with contextlib.suppress(OSError, msmq_fast.ConnectionLost):
                connection.close()

    def kill(self) -> None:
        """SIGKILL, and start again on the same port."""
        self.process.kill()
        self.process.start()

    def stop(self) -> None:
        self.forget()
        if self.process.process is not None and self.process.process.poll() is None:
            self.process.stop()


@contextlib.contextmanager
def running(*flags: str, **options: Any) -> Iterator[RealServer]:
    with data_directory() as data:
        server = RealServer(data, *flags, **options)
        try:
            yield server
        finally:
            server.forget()
            server.process.kill()
