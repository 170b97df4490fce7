"""A server process under attack, with a witness beside it and its counters at hand."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.faults.hostile import hostile_packets, hostile_session_packets
from tests.faults.hostile_attack import Case, identified
from tests.faults.hostile_model import Position
from tests.packet.samples import OTHER
from tests.server.processes import Server, data_directory, until

ROOT = Path(__file__).parents[2]
OWN = UUID(str(OTHER))  # what the sample packets name as their queue manager
SLOWEST = 15.0  # seconds that the witness may ever wait on a loaded machine
QUEUES = ("queue", "q", "probe", "witness")

LIMITS = {
    "MSMQ_FAST_SERVER__GUID": str(OWN),
    "MSMQ_FAST_LIMITS__SESSIONS_PER_ADDRESS": "100000",
    "MSMQ_FAST_LIMITS__CONNECTIONS": "100000",
}


@dataclass
class Target:
    """The server, and what it counted before the attack."""

    server: Server
    witness: subprocess.Popen[str]
    before: Counter[str] = field(default_factory=Counter)

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.port('admin')}{path}", timeout=30) as got:
            return bytes(got.read())

    def stats(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/v1/stats")))

    def refusals(self, what: str = "session") -> Counter[str]:
        """Refusals of one kind by reason, since the start of the test."""
        prefix = f"{what}: "
        counted = self.stats()["refusals"]
        return Counter({key[len(prefix) :]: n for key, n in counted.items() if key.startswith(prefix)})

    def settled(self, sessions: int = 1) -> None:
        """Wait until only the witness has a session."""
        until(lambda: self.stats()["sessions"] == sessions, timeout=30, what="the end of hostile sessions")

    def witness_sent(self) -> int:
        """Messages that the program of the witness has sent."""
        return int(self.stats()["app_messages_in"])

    def resident(self) -> int:
        """Anonymous memory of the server, in bytes."""
        assert self.server.process is not None
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) * 1024

    def testify(self) -> dict[str, Any]:
        """End the witness; it must have lost nothing and noticed nothing."""
        until(lambda: self.witness_sent() > 5, what="the work of the witness")
        out, _ = self.witness.communicate("", timeout=60)
        seen: dict[str, Any] = json.loads(out)
        assert seen["trouble"] == []
        for what, count in seen["sent"].items():
            assert count > 1, what
            assert seen["received"][what] == list(range(1, count + 1)), what
        assert max(seen["slowest"].values()) < SLOWEST, seen["slowest"]
        return seen

    def log_is_clean(self) -> None:
        """Hostile input is refused; it never surprises the code."""
        log = self.server.log.read_text()
        at = log.find("Traceback")
        assert at < 0, log[max(at - 500, 0) : at + 3000]


@contextlib.contextmanager
def target(**settings: str) -> Iterator[Target]:
    """A fresh server with its queues and a witness that is already at work."""
    with data_directory() as data:
        server = Server(data, environment=LIMITS | settings).start()
        witness: subprocess.Popen[str] | None = None
        try:
            for queue in QUEUES:
                server.ok("queue", "create", queue)
            witness = subprocess.Popen(
                [
                    sys.executable,
                    str(ROOT / "tests/faults/hostile_witness.py"),
                    server.host,
                    str(server.port("mqqb")),
                    server.endpoint,
                    "witness",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            assert witness.stdout is not None
            assert witness.stdout.readline() == "ready\n"
            found = Target(server, witness)
            until(lambda: found.stats()["sessions"] == 1, what="the session of the witness")
            yield found
            found.log_is_clean()
            assert server.stop() == 0
        finally:
            if witness is not None:
                witness.kill()
                witness.wait(10)
            server.kill()


def corpus(now: int) -> list[Case]:
    """Every hostile packet in an open session, some of them earlier, and every packet of the handshake in
    every state."""
    cases: list[Case] = []

    def add(name: str, position: Position, packet: bytes) -> None:
        cases.append(Case.of(name, position, packet, OWN, len(cases)))

    for number, (name, packet) in enumerate(hostile_packets()):
        add(name, Position.OPEN, identified(packet, number, now))
        if number % 20 == 0:
            add(name, Position.NEW, packet)
            add(name, Position.GREETED, packet)
    for name, packet in hostile_session_packets():
        for position in Position:
            add(name, position, packet)
    return cases
