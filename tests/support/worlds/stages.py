"""Stages without HTTP and Arrow: packets as the decoder of an upload would give them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from msmq_fast._native.framing import parse
from msmq_fast._native.packetblock import PacketBlock
from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.queuebase import Received
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.fields import destination_field
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.stages import OpenStage, Part
from msmq_fast.qm.bulk.staging import Published
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.store.schema import Table
from tests.support.worlds.queue_manager import World

Row = tuple[str, bytes]


def template(world: World, name: str) -> tuple[Queue, dict[str, Any]]:
    """A queue, and what its packets have in common."""
    handle = world.manager.open(name, Access.SEND)
    queue = handle.queue
    field = destination_field(handle.format_name)
    handle.close()
    common = {
        "source": world.manager.guid.bytes_le,
        "destination_manager": NULL_GUID.bytes_le,
        "dest_type": field.kind,
        "destination": field.wire,
        "sent_time": world.manager.ledger.now_s,
        "delivery": 1,
    }
    if queue.transactional or queue.core.outgoing:
        common["transaction"] = bytes(20)
    return queue, common


def packet(world: World, name: str, body: bytes, **values: Any) -> tuple[Queue, bytes]:
    """A packet for a queue, without identifier."""
    queue, common = template(world, name)
    return queue, build_user_message(body=body, **(common | values))


def opened(world: World, part: Part, **options: Any) -> OpenStage:
    world.manager.tick()
    return world.manager.staging.open(part, **options)


def put(world: World, stage: OpenStage, rows: list[Row], **values: Any) -> None:
    names = list(dict.fromkeys(name for name, _ in rows))
    queues, common = zip(*(template(world, name) for name in names), strict=True) if names else ((), ())
    places = array("I", (names.index(name) for name, _ in rows))
    packets = [
        build_user_message(body=body, **(common[place] | values))
        for place, (_, body) in zip(places, rows, strict=True)
    ]
    stage.put(PacketBlock(packets), places, list(queues))


def staged(
    world: World,
    rows: list[Row],
    writer: str = "w",
    batch: int = 0,
    number: int = 0,
    attempt: int = 0,
    **options: Any,
) -> str:
    """The name of a stage with these rows."""
    stage = opened(world, Part(writer, batch, number, attempt), **options)
    put(world, stage, rows)
    done = world.finish(stage.finish())
    assert done.rows == len(rows)
    return str(done.stage)


def counts(world: World) -> tuple[int, int, int]:
    """Records of positions, contents, and of META that belong to stages or publications."""
    tables = world.store.tables
    meta = [key for key, _ in tables.scan(Table.META, b"", None, 100_000) if key[:4] in (b"stg\0", b"pub\0")]
    return tables.count(Table.POSITION), tables.count(Table.CONTENT), len(meta)


def publish(
    world: World,
    writer: str = "w",
    epoch: int = 0,
    batch: int = 0,
    stages: Sequence[str] = (),
    owner: str = "",
    **options: Any,
) -> Published:
    done = world.manager.staging.publish(writer, epoch, batch, stages, owner=owner, **options)
    world.run()
    return done.result()


def bodies(world: World, name: str) -> list[bytes]:
    """All bodies of a queue, in order, without taking anything; as World.bodies, for many."""
    core = world.manager.find(name).core
    found: list[bytes] = []

    def looked(message: Received | None, _: int) -> None:
        assert message is not None
        found.append(bytes(parse(message.packet).body))

    for key in core.positions.keys():  # noqa: SIM118 - no mapping
        core.peek(key, looked)
        world.store.reader.complete()
    return found
