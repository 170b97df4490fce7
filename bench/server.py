"""One `msmq-fast serve` process on a directory of its own, and what it says about itself."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from bench.process import Sample, sample

__all__ = ["Server", "ServerError"]

_HOST, _HOST_BESIDE = "127.0.0.1", "127.0.0.2"
_PREFIX = "msmq-bench-"


class ServerError(Exception):
    """The server, or a command of it, failed; the text says how."""


def _free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


class Server:
    """A server and its directory; as a context manager it starts, waits for `ready`, stops and removes both.

    `parent` is the directory in which the data directory is made (a real disk, or the figures mean nothing).
    A second server stands `beside` the first: on the same ports, as queue managers do, but of another
    loopback address. `program` is what is run instead of `python -m msmq_fast`, with the same arguments; a
    server beside another runs the program of that one.
    """

    def __init__(
        self,
        parent: Path,
        *,
        queues: Sequence[str] = ("bench",),
        settings: str = "",
        beside: Server | None = None,
        program: Sequence[str] = (),
    ) -> None:
        self.parent = parent
        self.program = list(program) or (_command() if beside is None else beside.program)
        self._http = () if "http_port" in settings else ("--http-port", "off")  # not at port 80
        self._root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self.data = self._root / "data"
        self.socket = self._root / "app.sock"
        self._beside = beside
        self._name = "BENCH" if beside is None else "BESIDE"
        self.host = _HOST if beside is None else _HOST_BESIDE
        self.port, self.ping_port, self.admin_port = 0, 0, 0
        self.ready_s = 0.0
        self.listening: dict[str, str] = {}  # the addresses of each listener, as the ready line has them
        self._process: subprocess.Popen[str] | None = None
        self._created: set[str] = set()  # transactional queues
        self._log = self._root / "log"
        self._config = self._root / "server.toml"
        declared = "".join(f'[[queues]]\nname = "{queue}"\n' for queue in queues)
        self._config.write_text(settings + "\n" + declared)

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process is not None:
                self.stop(check=kind is None)
        finally:
            self.remove()

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self._config

    @property
    def log(self) -> Path:
        """The file that the log is written to."""
        return self._log

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> str:
        """HOST:PORT of MS-MQQB."""
        return f"{self.host}:{self.port}"

    def start(self, *, timeout: float = 120) -> None:
        """Starts the process; `ready_s` is the time to its `ready` line. Raises ServerError."""
        if self._beside is None:
            self.port, self.ping_port = _free_port(), _free_port(socket.SOCK_DGRAM)
        else:
            self.port, self.ping_port = self._beside.port, self._beside.ping_port
        self.admin_port = _free_port()
        command = [
            *self.program,
            *("serve", "--config", str(self._config), "--data", str(self.data), "--host", self.host),
            *("--port", str(self.port), "--ping-port", str(self.ping_port), "--name", self._name),
            *("--admin-port", str(self.admin_port), "--app-socket", str(self.socket), *self._http),
        ]
        begin = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], timeout)
        line = self._process.stdout.readline() if readable else ""
        self.ready_s = time.perf_counter() - begin
        if not line.startswith("ready"):
            what = "ended" if readable else f"said nothing within {timeout:g} s"
            self._process.kill()
            self._process.wait()
            self._process = None
            raise ServerError(f"the server {what} instead of getting ready; its log ends:\n{self.log_tail()}")
        self.listening = dict(word.split("=", 1) for word in line.split()[1:])

    def stop(self, *, check: bool = True, timeout: float = 120) -> float:
        """SIGTERM, then waits; returns the seconds it took. Raises ServerError if it did not exit with 0."""
        assert self._process is not None
        process, self._process = self._process, None
        begin = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerError(f"still running {timeout:g} s after SIGTERM") from None
        if check and code:
            raise ServerError(f"exit code {code}; its log ends:\n{self.log_tail()}")
        return time.perf_counter() - begin

    def remove(self) -> None:
        """Removes the data directory and what lies beside it."""
        shutil.rmtree(self._root, ignore_errors=True)

    def run(self, *arguments: str, timeout: float = 600) -> str:
        """Output of an `msmq-fast` command on this server's data. Raises ServerError if it fails."""
        done = subprocess.run(
            [*_command(), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | {"MSMQ_FAST_ENDPOINT": f"unix:{self.socket}"},
        )
        if done.returncode:
            raise ServerError(f"msmq-fast {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def create_transactional(self, queue: str) -> None:
        """Creates a transactional queue, unless this method did before."""
        if queue not in self._created:
            self.run("queue", "create", queue, "--transactional")
            self._created.add(queue)

    def sample(self) -> Sample:
        """What /proc says about the server now."""
        return sample(self.pid)

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics without labels, by name."""
        with urllib.request.urlopen(f"http://{_HOST}:{self.admin_port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name and not name.startswith("#") and "{" not in name:
                found[name] = float(value)
        return found

    def log_tail(self, lines: int = 12) -> str:
        """The last lines of the server's log."""
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])


def _command() -> list[str]:
    return [sys.executable, "-m", "msmq_fast"]
