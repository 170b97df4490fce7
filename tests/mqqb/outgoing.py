"""Outgoing queues and what is put into them."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from tests.support.mqqb import wire
from tests.support.worlds.channels import context
from tests.support.worlds.hosts import OWN, Host

OTHER = UUID("11111111-2222-3333-4444-555555555555")


def outgoing(host: Host, name: str) -> tuple[OutgoingQueue, OutgoingChannel]:
    host.ordinals += 1
    queue = OutgoingQueue(host.ledger, host.ordinals, UUID(int=9), parse_format_name(name), history_length=10)
    return queue, OutgoingChannel(queue, context())


def put(host: Host, queue: OutgoingQueue, *numbers: int) -> None:
    queue.core.enqueue_packets([wire.message(n, source=OWN) for n in numbers])
    host.commit()


def opened(host: Host, endpoint: Endpoint, effects: list[object]) -> Session:
    effect = effects.pop()
    assert isinstance(effect, Connect)
    session = endpoint.connected(effect.link, 10.0)
    assert session is not None
    session.receive(wire.establish(client=OWN, server=wire.PEER, stamp=10_000) + wire.parameters(), 10.0)
    return session
