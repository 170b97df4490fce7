"""Batches that are published, and what they hold of quotas meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.fields import Hosts, reply_field
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Acknowledge
from tests.support.worlds.queue_manager import World

REMOTE = r"DIRECT=TCP:10.9.9.9\private$\far"


@pytest.fixture
def world() -> World:
    world = World(stage_lifetime=600.0)
    world.create("plain")
    world.create("exact", transactional=True)
    return world


def messages(world: World, name: str) -> list[Message]:
    """All messages of a queue, in order."""
    queue = world.manager.find(name)
    found: list[Message] = []
    for key in queue.core.positions.keys():  # noqa: SIM118 - no mapping
        queue.core.peek(key, lambda message, _status: found.append(Message.from_packet(message.packet)))
        world.store.reader.complete()
    return found


def used(world: World) -> tuple[int, int]:
    """Bytes in all quotas: of the queues, of the computer."""
    return sum(queue.core.used_bytes for queue in world.manager.queues()), world.manager.ledger.bytes


def held(world: World) -> int:
    """Bytes of messages that are in queues."""
    return sum(queue.core.bytes for queue in world.manager.queues())


def step(world: World, commits: int) -> None:
    """As many commits, with everything that is due in between."""
    for _ in range(commits):
        world.manager.tick()
        world.manager.expire(world.manager.monotonic())
        world.writer.submit()
        world.writer.complete_one()


def packet_admin(world: World) -> dict[str, Any]:
    """Values of a packet that asks for an acknowledgment of its arrival."""
    name = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    field = reply_field(name, Hosts(world.manager.guid, world.manager.guid))
    return {
        "acknowledge": int(Acknowledge.POSITIVE_ARRIVAL),
        "admin_type": field.kind,
        "admin": field.wire,
    }
