"""Two endpoints, connections that break and disks that lag: seeded, in virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from uuid import UUID

import pytest

from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.timing import earliest
from tests.mqqb.transfers import Outgoing
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

A = UUID("aaaaaaaa-0000-0000-0000-000000000001")
B = UUID("bbbbbbbb-0000-0000-0000-000000000002")


class Side:
    """One queue manager in the simulator."""

    def __init__(self, guid: UUID, address: str, peer: str) -> None:
        self.guid = guid
        self.address = address
        self.host = Host(guid)
        self.effects: list[object] = []
        self.endpoint = Endpoint(self.host.session_context, self.effects.append, 0.0)
        self.outgoing = Outgoing(self.host, Target(peer), [])
        self.sent: list[int] = []

    def send(self, numbers: range, random: Random) -> None:
        packets = [
            wire.message(n, source=self.guid, recoverable=True, body=bytes(random.randint(0, 300)))
            for n in numbers
        ]
        self.sent += numbers
        self.host.put(self.outgoing, packets)


@dataclass
class Pipe:
    """A TCP connection: bytes under way in both directions."""

    ends: tuple[Session, Session]
    flying: tuple[bytearray, bytearray]

    def step(self, random: Random, now: float) -> None:
        for index in (0, 1):
            session, other = self.ends[index], self.ends[1 - index]
            session.pump(now)
            self.flying[index].extend(b"".join(session.data_to_send()))
            count = random.randint(0, 2_500)
            data = bytes(self.flying[index][:count])
            del self.flying[index][:count]
            if data and other.alive:
                other.receive(data, now)
        if any(not end.alive for end in self.ends) or random.random() < 0.06:
            for end in self.ends:
                end.close(CloseReason.DISCONNECTED, now)

    @property
    def alive(self) -> bool:
        return all(end.alive for end in self.ends)


def simulate(seed: int, count: int) -> tuple[Side, Side, int]:
    random = Random(seed)
    sides = (Side(A, "10.0.0.1", "10.0.0.2"), Side(B, "10.0.0.2", "10.0.0.1"))
    pipes: list[Pipe] = []
    connections, now, left = 0, 1.0, [count, count]
    for _ in range(20_000):
        now += random.choice([0.001, 0.01, 0.1])
        for index, side in enumerate(sides):
            other = sides[1 - index]
            side.host.ledger.tick(int((2_000 + now) * 1_000_000))
            if left[index] and random.random() < 0.3:
                number = min(left[index], random.randint(1, 30))
                start = count - left[index] + 1
                side.send(range(start, start + number), random)
                left[index] -= number
            if side.outgoing.head()[1]:
                side.endpoint.transfer.submit(side.outgoing, now)
            for effect in side.effects:
                assert isinstance(effect, Connect)
                if random.random() < 0.2:
                    side.endpoint.transfer.failed(effect.link, "refused", now)
                    continue
                dialled = side.endpoint.connected(effect.link, now)
                assert dialled is not None
                accepted = other.endpoint.accept(side.address, now)
                pipes.append(Pipe((dialled, accepted), (bytearray(), bytearray())))
                connections += 1
            side.effects.clear()
            deadline = earliest(
                side.endpoint.next_deadline(), *(s.next_deadline() for s in side.endpoint.sessions)
            )
            if deadline is not None and deadline <= now:
                side.endpoint.expire(now)
                for session in list(side.endpoint.sessions):
                    session.expire(now)
            if random.random() < 0.4:
                side.host.writer.submit()
            if random.random() < 0.4:
                side.host.writer.complete_all()
        for pipe in pipes:
            pipe.step(random, now)
        pipes = [pipe for pipe in pipes if pipe.alive]
        if not any(left) and all(side.outgoing.core.messages == 0 for side in sides):
            break
        if not pipes and random.random() < 0.3:
            now += 5.0
    for side in sides:
        side.host.commit()
    return (*sides, connections)


@pytest.mark.rule("QB-008", "QB-199", "QB-224", "QB-298", "QB-337")
@pytest.mark.parametrize("seed", range(12))
def test_every_message_arrives_once_and_in_order(seed: int) -> None:
    first, second, _ = simulate(seed, 150)
    for sender, receiver in ((first, second), (second, first)):
        arrived = receiver.host.messages()
        assert arrived == sender.sent
        assert sender.outgoing.core.messages == 0
        faults = sender.endpoint.session_context.counts.closed
        assert not {reason for reason in faults if reason.is_refusal}


def test_the_simulation_breaks_connections() -> None:
    assert sum(simulate(seed, 150)[2] for seed in range(4)) > 20
