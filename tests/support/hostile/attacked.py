"""A server process under attack, and a witness beside it that checks five things.

An attack test is a few lines:

    with attacked("[mqqb]\nrouter = true\n", queues=("orders",)) as scene:
        flood(scene.server)
        print(scene.check())

`check()` ends the witness and asserts that (1) messages flowed and none was lost, (2) deadlines fired, (3)
new peers got their OrderAcks, (4) `/readyz` and the local CLI answer; all of them while the attack ran and
once more after it. Leaving the block asserts (5): SIGTERM ends the server with 0. For the details see
`hostile_witness.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.hostile import hostile_witness
from tests.support.processes.servers import Server, data_directory

ROOT = Path(__file__).parents[3]
PATIENCE = 15.0
"""Seconds that nothing may take longer than, on a machine that does other things too."""
KINDS = ("peer", "program", "delivery", "deadline", "newcomer", "connect", "readyz")
"""What the witness does; see hostile_witness.py."""
_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20


@dataclass(frozen=True)
class Resources:
    """What a server process uses."""

    resident: int  # bytes of anonymous memory
    cpu: float  # seconds since its start
    descriptors: int

    @classmethod
    def of(cls, server: Server) -> Resources:
        assert server.process is not None
        process = Path(f"/proc/{server.process.pid}")
        fields = process.joinpath("stat").read_text().rpartition(")")[2].split()
        cpu = (int(fields[11]) + int(fields[12])) / _TICKS
        return cls(server.resident, cpu, len(os.listdir(process / "fd")))


@dataclass(frozen=True)
class Report:
    """What the witness saw, and what the attack cost.

    `took` has, for each of KINDS, count, p50, p99 and max in seconds.
    """

    took: dict[str, dict[str, float]]
    sent: dict[str, int]
    lost: dict[str, int]
    retried: int  # connections of new peers that were refused or cut off, and tried again
    trouble: list[str]
    seconds: float
    cpu: float
    before: Resources
    after: Resources

    @property
    def grown(self) -> int:
        """Bytes of anonymous memory more than before."""
        return self.after.resident - self.before.resident

    def slowest(self) -> float:
        """Seconds of the slowest thing."""
        return max(each["max"] for each in self.took.values())

    def __str__(self) -> str:
        times = ", ".join(
            "{} {:.0f}/{:.0f}/{:.0f} ({})".format(
                what, *(each[name] * 1000 for name in ("p50", "p99", "max")), each["count"]
            )
            for what, each in sorted(self.took.items())
        )
        return (
            f"p50/p99/max ms (count): {times}; lost {sum(self.lost.values())} of {sum(self.sent.values())}; "
            f"new peers retried {self.retried}; {self.cpu:.1f} CPU s in {self.seconds:.1f} s; "
            f"memory {self.before.resident / _MIB:.1f} to {self.after.resident / _MIB:.1f} MiB; "
            f"descriptors {self.before.descriptors} to {self.after.descriptors}"
        )


class Witness:
    """The process beside the attack, from its start to its report."""

    def __init__(self, server: Server, *, patience: float = PATIENCE) -> None:
        self._server = server
        for queue in (hostile_witness.QUEUE, hostile_witness.LATE, hostile_witness.TOLD):
            server.ok("queue", "create", queue)
        server.ok("queue", "create", hostile_witness.STREAMS, "--transactional")
        self._process = subprocess.Popen(
            [
                sys.executable,
                str(ROOT / "tests/support/hostile/hostile_witness.py"),
                server.host,
                str(server.port("mqqb")),
                str(server.port("admin")),
                server.endpoint,
                str(patience),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        try:
            assert self._process.stdout.readline() == "ready\n", "the witness does not get to work"
        except BaseException:
            self.kill()
            raise
        self._began = time.monotonic()
        self._before = Resources.of(server)

    def check(self, *, slowest: float = PATIENCE) -> Report:
        """End it; asserts the first four of the five things. Nothing may have taken longer than `slowest`."""
        took, after = time.monotonic() - self._began, Resources.of(self._server)
        out, _ = self._process.communicate("", timeout=120)
        shown = self._server.run("queue", "list", "--json")
        assert shown.returncode == 0, shown
        report = Report(
            **json.loads(out),
            seconds=took,
            cpu=after.cpu - self._before.cpu,
            before=self._before,
            after=after,
        )
        assert report.trouble == [], f"{report.trouble}; {report}"
        assert not any(report.lost.values()), report
        for what in KINDS:
            assert report.took.get(what, {"count": 0})["count"] > 0, f"{what}; {report}"
        assert report.slowest() < slowest, report
        log_is_clean(self._server)
        return report

    def kill(self) -> None:
        """End it without a word."""
        self._process.kill()
        self._process.wait(10)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def log_is_clean(server: Server) -> None:
    """Hostile input is refused; it never surprises the code."""
    log = server.log.read_text()
    at = log.find("Traceback")
    assert at < 0, log[max(at - 500, 0) : at + 3000]


@dataclass
class Scene:
    """The server and the witness of one attack."""

    server: Server
    witness: Witness

    def check(self, *, slowest: float = PATIENCE) -> Report:
        """See Witness.check."""
        return self.witness.check(slowest=slowest)

    def get(self, path: str) -> bytes:
        """A page of the admin port."""
        url = f"http://{self.server.host}:{self.server.port('admin')}{path}"
        with urllib.request.urlopen(url, timeout=30) as got:
            return bytes(got.read())

    def stats(self) -> dict[str, Any]:
        """The counters of the server."""
        return dict(json.loads(self.get("/api/v1/server/stats")))


@contextlib.contextmanager
def attacked(
    config: str = "",
    *flags: str,
    host: str = "127.0.0.1",
    queues: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    patience: float = PATIENCE,
    program: tuple[str, ...] = Server.program,
) -> Iterator[Scene]:
    """A fresh server with this configuration file and these queues (NAME, or NAME and flags), and a witness
    that is at work.

    At the end the server must stop on SIGTERM with 0, and its log must have no traceback.
    """
    with data_directory() as data, contextlib.ExitStack() as stack:
        file = data.parent / "server.toml"
        file.write_text(config)
        environment = {"MSMQ_FAST_LISTEN__ADMIN__HOST": host, **(environment or {})}
        server = Server(data, "--config", str(file), *flags, host=host, environment=environment)
        server.program = program
        stack.callback(server.kill)
        server.start()
        for queue in queues:
            server.ok("queue", "create", *queue.split())
        witness = Witness(server, patience=patience)
        stack.callback(witness.kill)
        yield Scene(server, witness)
        log_is_clean(server)
        code = server.stop(timeout=30)
        assert code == 0, f"SIGTERM ended the server with {code}"
