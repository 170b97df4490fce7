"""Servers as real processes: start, wait for the ready line, run commands against them, stop or kill."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.processes import forking

READY_TIMEOUT = 20.0
NO_HTTP: Mapping[str, str] = {"MSMQ_FAST_LISTEN__HTTP__PORT": "off"}  # not all at port 80
QUICK: Mapping[str, str] = {
    **NO_HTTP,
    "MSMQ_FAST_PROTECTION__RSA_BITS": "1024",  # a first start makes four key pairs
}


def inherited() -> dict[str, str]:
    """What processes get of the environment: nothing that would configure them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MSMQ_FAST_")}


def command(
    *arguments: str,
    environment: dict[str, str] | None = None,
    stdin: bytes | None = None,
    timeout: float = 30,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run `msmq-fast` to its end."""
    process = forking.start(
        *arguments,
        environment={**inherited(), **NO_HTTP, **(environment or {})},
        stdin=None if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=None if cwd is None else str(cwd),
    )
    with process:
        try:
            shown, complaint = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, shown, complaint)


class Server:
    """One server process on a data directory of its own."""

    program: tuple[str, ...] = forking.PROGRAM
    defaults: Mapping[str, str] = QUICK
    free_ports: tuple[str, ...] = (
        "--port",
        "--ping-port",
        "--admin-port",
        "--rpc-port",
        "--qm2qm-port",
        "--epm-port",
    )

    def __init__(
        self, data: Path, *flags: str, host: str = "127.0.0.1", environment: dict[str, str] | None = None
    ):
        self.data = data
        self.host = host
        self.flags = flags
        self.environment = environment or {}
        self.process: subprocess.Popen[bytes] | None = None
        self.ready: dict[str, str] = {}
        self.log = data.parent / f"{data.name}.log"

    def start(self, timeout: float = READY_TIMEOUT) -> Server:
        """Start, and return when the ready line is there."""
        defaults = ["--host", self.host, "--data", str(self.data)]
        for flag in self.free_ports:
            if flag not in self.flags:
                defaults += [flag, "0"]
        with self.log.open("ab") as log:
            arguments = ["serve", *defaults, *self.flags]
            environment = {**inherited(), **self.defaults, **self.environment}
            if self.program == forking.PROGRAM:
                self.process = forking.start(
                    *arguments, environment=environment, stdout=subprocess.PIPE, stderr=log
                )
            else:
                self.process = subprocess.Popen(
                    [*self.program, *arguments], stdout=subprocess.PIPE, stderr=log, env=environment
                )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        line, deadline = b"", time.monotonic() + timeout
        while not line.endswith(b"\n"):
            line += self.process.stdout.read() or b""
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"no ready line, got {line!r}\n{self.log.read_text()}")
            time.sleep(0.01)
        words = line.decode().split()
        assert words[0] == "ready", line
        self.ready = dict(word.split("=", 1) for word in words[1:])
        return self

    def port(self, listener: str) -> int:
        """The port of the first address of a listener in the ready line."""
        found = re.search(r":(\d+)(?:,|$)", self.ready[listener])
        assert found is not None, self.ready
        return int(found[1])

    def stop(self, timeout: float = 20) -> int:
        """SIGTERM; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.ended(timeout)
        self._close()
        return code

    def ended(self, timeout: float = 20) -> int:
        """Wait until the process has ended, and return its exit code. If it does not end, the error tells
        what it logged and what its threads wait for.
        """
        assert self.process is not None
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            threads = [
                f"{name.parent.name} {name.read_text().strip()}: {(name.parent / 'wchan').read_text()}"
                for name in Path(f"/proc/{self.process.pid}/task").glob("*/comm")
            ]
            told = "\n".join([f"no end after {timeout} s", *threads, self.log.read_text()])
            raise AssertionError(told) from None

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._close()

    def _close(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def resident(self) -> int:
        """Anonymous memory of the process in bytes."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024

    @property
    def endpoint(self) -> str:
        return f"unix:{self.data / 'app.sock'}"

    def run(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """A client verb against this server."""
        return command(*arguments, environment={"MSMQ_FAST_ENDPOINT": self.endpoint}, stdin=stdin)

    def ok(self, *arguments: str, stdin: bytes | None = None) -> list[Any]:
        """A client verb with --json that must succeed; its JSON lines."""
        done = self.run(*arguments, "--json", stdin=stdin)
        assert done.returncode == 0, (arguments, done)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def messages(self, queue: str, count: int = 100_000) -> list[dict[str, Any]]:
        """Receive what is there."""
        done = self.run("receive", queue, "--count", str(count), "--json")
        assert done.returncode in (0, 4), done
        return [json.loads(line) for line in done.stdout.splitlines()]


def without_capability(name: str) -> tuple[str, ...]:
    """The value of Server.program for a server that lacks a capability, also where root runs the tests."""
    drop = () if os.geteuid() else ("setpriv", "--bounding-set", f"-{name}", "--inh-caps", f"-{name}")
    return (*drop, *forking.PROGRAM)


@contextlib.contextmanager
def data_directory() -> Iterator[Path]:
    """A directory with a path short enough for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="msmq-") as directory:
        yield Path(directory) / "data"


def preloaded(source: Path, directory: Path) -> str:
    """Compile a C file into `directory`; the value for LD_PRELOAD."""
    shim = directory / f"{source.stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
    return str(shim)


def sync_shim(directory: Path) -> str:
    """The value for LD_PRELOAD that makes syncs fail or hang, as failing_sync.c says."""
    return preloaded(Path(__file__).with_name("failing_sync.c"), directory)


def certify(key: Path, certificate: Path, extension: str) -> None:
    """A key and a certificate that it signed itself."""
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost"
    arguments = [*request.split(), "-addext", extension, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def until(condition: Any, timeout: float = 10.0, what: str = "the condition") -> Any:
    """Wait until `condition()` is true, and return it."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what} did not come true within {timeout} s"
        time.sleep(0.02)
