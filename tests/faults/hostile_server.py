"""A server process under attack, with a witness beside it and its counters at hand."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from tests.faults.hostile_attack import Case, identified
from tests.support.hostile.attacked import Scene, attacked
from tests.support.hostile.fields import hostile_packets, hostile_session_packets
from tests.support.hostile.hostile_model import Position
from tests.support.packet.samples import OTHER
from tests.support.processes.servers import until

OWN = UUID(str(OTHER))  # what the sample packets name as their queue manager
QUEUES = ("queue", "q", "probe")

LIMITS = {
    "MSMQ_FAST_SERVER__GUID": str(OWN),
    "MSMQ_FAST_LISTEN__MQQB__MAX_CONNECTIONS_PER_ADDRESS": "100000",
    "MSMQ_FAST_LISTEN__MQQB__MAX_CONNECTIONS": "100000",
    "MSMQ_FAST_LIMITS__NETWORK_CONNECTIONS": "100000",
    "MSMQ_FAST_LIMITS__NETWORK_PER_ADDRESS": "100000",
}


@dataclass
class Target(Scene):
    """The server under attack, and what it counts."""

    def refusals(self, what: str = "session") -> Counter[str]:
        """Refusals of one kind by reason, since the start of the test."""
        prefix = f"{what}: "
        counted = self.stats()["refusals"]
        return Counter({key[len(prefix) :]: n for key, n in counted.items() if key.startswith(prefix)})

    def settled(self, sessions: int = 1) -> None:
        """Wait until only the witness has a session."""
        until(lambda: self.stats()["sessions"] == sessions, timeout=30, what="the end of hostile sessions")

    def resident(self) -> int:
        """Anonymous memory of the server, in bytes."""
        return self.server.resident


@contextlib.contextmanager
def target(**settings: str) -> Iterator[Target]:
    """A fresh server with its queues and a witness that is already at work."""
    with attacked(queues=QUEUES, environment=LIMITS | settings) as scene:
        yield Target(scene.server, scene.witness)


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
