"""The messages of a published batch: transactions, identifiers, journals, receipts, events, packets."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast._native.packetblock import PacketBlock
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.bulk.stages import Part
from msmq_fast.store.schema import EventKind
from tests.bulk.publications import REMOTE, messages, packet_admin, used, world
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import bodies, counts, opened, packet, publish, put, staged

__all__ = ["world"]


def test_rows_are_transactions_of_their_own_or_one_together(world: World) -> None:
    rows = [("exact", b"1"), (REMOTE, b"a"), ("exact", b"2"), ("exact", b"3"), (REMOTE, b"b")]
    publish(world, stages=[staged(world, rows)])
    headers = [message.transaction for message in messages(world, "exact")]
    assert [(header.first, header.last) for header in headers if header] == [(True, True)] * 3
    assert len({header.transaction_id for header in headers if header}) == 3
    publish(world, batch=1, stages=[staged(world, rows, batch=1, whole=True)])
    headers = [message.transaction for message in messages(world, "exact")[3:]]
    assert [(header.first, header.last) for header in headers if header] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    far = [message.transaction for message in messages(world, REMOTE)[2:]]
    assert [(header.first, header.last) for header in far if header] == [(True, False), (False, True)]
    assert len({header.transaction_id for header in headers + far if header}) == 1
    assert bodies(world, "exact") == [b"1", b"2", b"3"] * 2


def test_messages_get_identifiers_of_this_queue_manager(world: World) -> None:
    publish(world, stages=[staged(world, [("plain", b"1"), ("plain", b"2")])])
    sent = world.send(b"3", "plain")
    found = messages(world, "plain")
    assert [message.source_machine for message in found] == [world.manager.guid] * 3
    assert len({message.message_id for message in found}) == 3
    assert sent
    assert all(found[at].message_id < found[at + 1].message_id for at in range(2))


def test_express_messages_are_kept_until_they_are_received(world: World) -> None:
    stage = staged_with(world, [("plain", b"1")], delivery=0)
    publish(world, stages=[stage])
    world.crash()
    assert [(message.body, message.delivery) for message in messages(world, "plain")] == [(b"1", 0)]
    assert world.receive("plain") == b"1"
    assert counts(world) == (0, 0, 0)


def test_priorities_hold_and_the_journal_gets_its_copies(world: World) -> None:
    world.create("kept", journaling=True)
    publish(world, stages=[staged_with(world, [("kept", b"low")], priority=1)])
    publish(world, batch=1, stages=[staged_with(world, [("kept", b"high")], batch=1, priority=6)])
    assert [world.receive("kept"), world.receive("kept")] == [b"high", b"low"]
    assert bodies(world, "kept;journal") == [b"high", b"low"]


def staged_with(world: World, rows: list[tuple[str, bytes]], batch: int = 0, **values: Any) -> str:
    stage = opened(world, Part("w", batch, 0, 0))
    put(world, stage, rows, **values)
    return str(world.finish(stage.finish()).stage)


def test_who_asked_for_it_is_told_of_the_arrival(world: World) -> None:
    world.create("admin")
    stage = opened(world, Part("w", 0, 0, 0))
    field = packet_admin(world)
    put(world, stage, [("plain", b"%d" % n) for n in range(200)], **field)
    name = world.finish(stage.finish()).stage
    assert bodies(world, "admin") == []
    publish(world, stages=[name])
    assert {message.message_class for message in messages(world, "admin")} == {MessageClass.ACK_REACH_QUEUE}
    assert len(messages(world, "admin")) == 200


def test_the_feed_tells_as_of_a_local_send(world: World) -> None:
    before = world.store.writer.next_entry(3)
    publish(world, stages=[staged(world, [("plain", b"1"), (REMOTE, b"2")])])
    events = [event.kind for event in feed(world, before)]
    assert events.count(EventKind.ARRIVED) == events.count(EventKind.SENT) == 1


def feed(world: World, first: int) -> list[Any]:
    from msmq_fast.store import decode
    from msmq_fast.store.schema import NUMBER_KEY, Table

    rows = world.store.tables.scan(Table.FEED, NUMBER_KEY.pack(first), None, 1000)
    return [event for key, value in rows for event in decode.feed(key, value)]


def test_what_goes_to_other_computers_is_numbered_as_it_is_published(world: World) -> None:
    first = staged(world, [(REMOTE, b"1"), (REMOTE, b"2")])
    sequence = world.manager.find(REMOTE).core.sequence
    second = staged(world, [(REMOTE, b"3")], batch=1)
    publish(world, stages=[first])
    publish(world, batch=1, stages=[second])
    assert bodies(world, REMOTE) == [b"1", b"2", b"3"]
    assert sequence.next_number == 4
    world.crash()
    assert world.manager.find(REMOTE).core.sequence.next_number == 4


def test_a_block_gives_each_packet_and_counts_them() -> None:
    block = PacketBlock([b"ab", b"", b"c"])
    assert (list(block), len(block), block.nbytes) == ([b"ab", b"", b"c"], 3, 3)
    assert list(PacketBlock([])) == []
    with pytest.raises(IndexError):
        block[-1]


def test_a_message_of_several_chunks_among_others_of_its_block_is_kept_whole(world: World) -> None:
    wanted = [b"before", bytes(range(256)) * 1000, b"behind"]
    publish(world, stages=[staged(world, [("plain", body) for body in wanted])])
    world.crash()
    assert bodies(world, "plain") == wanted


def test_rows_that_are_no_packets_are_refused(world: World) -> None:
    from array import array

    stage = opened(world, Part("w", 0, 0, 0))
    queue, good = packet(world, "plain", b"1")
    with pytest.raises(ValueError, match="not a UserMessage packet"):
        stage.put(PacketBlock([good, good[:-4]]), array("I", (0, 0)), [queue])
    world.run()
    assert used(world) == (0, 0)
    assert counts(world) == (0, 0, 0)
