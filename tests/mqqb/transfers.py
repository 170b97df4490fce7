"""Outgoing queues and the session that transfers their messages."""

from __future__ import annotations

import struct
from uuid import UUID

from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.transfer import Connect
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, Source, sent

OTHER = UUID("11111111-2222-3333-4444-555555555555")


class Outgoing(Source):
    """An outgoing queue with a target that remembers what it was told."""

    def __init__(self, host: Host, target: Target, packets: list[bytes]) -> None:
        super().__init__(host.core(outgoing=True), direct=target.guid == NULL_GUID)
        self.hops: tuple[Target, ...] = (target,)
        self.told: list[tuple[Progress, str]] = []
        self.at_home = True
        self.for_answers = False
        self.answers_for = ""
        self.waits: list[float] = []
        self.homecomings = 0
        self.later: Target | None = None  # where it leads when it is asked anew
        host.put(self, packets)

    def relocate(self) -> bool:
        before, self.hops = self.hops, (self.later,) if self.later is not None else self.hops
        return self.hops != before

    @property
    def answers_only(self) -> bool:
        return self.for_answers

    def scheduled(self, wait: float) -> None:
        self.waits.append(wait)

    def come_home(self) -> bool:
        self.homecomings += 1
        return self.at_home

    def progress(self, progress: Progress, address: str, detail: str) -> None:
        self.told.append((progress, address))


class Bench:
    """An endpoint whose effects are collected."""

    def __init__(self, *, ping_first: bool = False, **context: object) -> None:
        self.host = Host(**context)  # type: ignore[arg-type]
        self.effects: list[object] = []
        self.woken: list[Session] = []
        self.ended: list[tuple[str, CloseReason | None]] = []
        self.endpoint = Endpoint(
            self.host.session_context,
            self.effects.append,
            0.0,
            ping_first=ping_first,
            on_close=lambda s: self.ended.append((s.peer_address, s.reason)),
        )
        self.transfer = self.endpoint.transfer

    def queue(
        self, host: str, numbers: range = range(1, 2), guid: UUID = NULL_GUID, **fields: object
    ) -> Outgoing:
        packets = [wire.message(n, source=OWN, **fields) for n in numbers]  # type: ignore[arg-type]
        return Outgoing(self.host, Target(host, guid), packets)

    def take(self) -> list[object]:
        effects = list(self.effects)
        self.effects.clear()
        return effects

    def connect(self, now: float, peer: UUID = wire.PEER) -> Session:
        """Let the pending Connect succeed and the peer shake hands."""
        (effect,) = self.take()
        assert isinstance(effect, Connect)
        session = self.endpoint.connected(effect.link, now, self.woken.append)
        assert session is not None
        (request,) = sent(session)
        stamp = struct.unpack_from("<I", request, 52)[0]
        session.receive(
            wire.establish(client=OWN, server=peer, stamp=stamp) + wire.parameters(500, 20_000), now
        )
        assert session.state is SessionState.OPEN
        return session

    def accepted(self, address: str, now: float, peer: UUID = wire.PEER) -> Session:
        session = self.endpoint.accept(address, now)
        session.receive(wire.establish(client=peer) + wire.parameters(500, 20_000), now)
        return session


def ordinals(session: Session) -> list[int]:
    return [wire.ordinal(p) for p in sent(session) if wire.kind(p) == "MSG"]


def ping(flags: int, cookie: int, guid: UUID = wire.PEER, signature: int = 0x5548) -> bytes:
    return struct.pack("<HHI", flags, signature, cookie) + guid.bytes_le
