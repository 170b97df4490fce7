"""Stages without HTTP and Arrow: packets as the decoder of an upload would give them."""

from __future__ import annotations

from array import array
from typing import Any

from msmq_fast._native.framing import build_user_message
from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.fields import destination_field
from msmq_fast.qm.access import Access
from msmq_fast.qm.queue import Queue
from msmq_fast.qm.stages import OpenStage, Part
from msmq_fast.store.schema import Table
from tests.qm.world import World

Row = tuple[str, bytes]


def packet(world: World, name: str, body: bytes, **values: Any) -> tuple[Queue, bytes]:
    """A packet for a queue, without identifier."""
    handle = world.manager.open(name, Access.SEND)
    queue = handle.queue
    field = destination_field(handle.format_name)
    handle.close()
    values.setdefault("delivery", 1)
    if queue.transactional or queue.core.outgoing:
        values["transaction"] = bytes(20)
    built = build_user_message(
        source=world.manager.guid.bytes_le,
        destination_manager=NULL_GUID.bytes_le,
        dest_type=field.kind,
        destination=field.wire,
        sent_time=world.manager.ledger.now_s,
        body=body,
        **values,
    )
    return queue, built


def opened(world: World, part: Part, **options: Any) -> OpenStage:
    world.manager.tick()
    return world.manager.staging.open(part, **options)


def put(world: World, stage: OpenStage, rows: list[Row], **values: Any) -> None:
    queues: list[Queue] = []
    packets: list[bytes] = []
    targets = array("I")
    for name, body in rows:
        queue, built = packet(world, name, body, **values)
        if queue not in queues:
            queues.append(queue)
        targets.append(queues.index(queue))
        packets.append(built)
    stage.put(packets, targets, queues)


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
