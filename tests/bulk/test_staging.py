"""Staged publishing over a store in memory: what is visible when, who may publish, what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast._native.packetblock import PacketBlock
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import (
    AccessDenied,
    InsufficientResources,
    OperationCancelled,
    QueueDeleted,
    ServiceNotAvailable,
)
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.bulk.rollforward import Publication
from msmq_fast.qm.bulk.stages import Part
from msmq_fast.qm.bulk.staging import Fenced, Published, StageNotFound
from msmq_fast.store.schema import EventKind, MetaName, Table
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import bodies, counts, opened, packet, publish, put, staged

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


def test_nothing_is_visible_before_the_batch_is_published_and_everything_after(world: World) -> None:
    rows = [("plain", b"1"), ("exact", b"2"), ("plain", b"3"), (REMOTE, b"4"), ("exact", b"5")]
    stage = staged(world, rows)
    assert bodies(world, "plain") == bodies(world, "exact") == bodies(world, REMOTE) == []
    assert publish(world, stages=[stage]) == Published(dup=False, rows=5, last=0)
    assert bodies(world, "plain") == [b"1", b"3"]
    assert bodies(world, "exact") == [b"2", b"5"]
    assert bodies(world, REMOTE) == [b"4"]
    assert counts(world) == (5, 5, 0)


def test_order_is_that_of_the_stages_as_they_are_named(world: World) -> None:
    first = staged(world, [("plain", b"a%d" % n) for n in range(5)], number=1)
    second = staged(world, [("plain", b"b%d" % n) for n in range(5)], number=0)
    publish(world, stages=[second, first])
    assert bodies(world, "plain") == [b"b%d" % n for n in range(5)] + [b"a%d" % n for n in range(5)]


def test_a_batch_of_many_rows_and_units_keeps_its_order(world: World) -> None:
    wanted = [b"%d" % n for n in range(5000)]
    stages = [
        staged(world, [("exact", body) for body in wanted[at : at + 1700]], number=at)
        for at in range(0, 5000, 1700)
    ]
    assert publish(world, stages=stages).rows == 5000
    assert bodies(world, "exact") == wanted


def test_the_same_batch_again_is_a_duplicate_and_its_stages_go(world: World) -> None:
    publish(world, stages=[staged(world, [("plain", b"1")])])
    again = staged(world, [("plain", b"1")], attempt=1)
    assert publish(world, stages=[again]) == Published(dup=True, rows=0, last=0)
    assert bodies(world, "plain") == [b"1"]
    assert counts(world) == (1, 1, 0)
    assert used(world) == (held(world), held(world))


def test_an_older_batch_is_a_duplicate(world: World) -> None:
    publish(world, batch=7, stages=[staged(world, [("plain", b"7")], batch=7)])
    again = publish(world, batch=6, stages=[staged(world, [("plain", b"6")], batch=6)])
    assert again == Published(dup=True, rows=0, last=7)
    assert bodies(world, "plain") == [b"7"]


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_anew(world: World) -> None:
    publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)])
    stage = staged(world, [("plain", b"10")], batch=10)
    with pytest.raises(Fenced, match="epoch 1 of the writer w has ended: epoch 2 has published batch 9"):
        publish(world, epoch=1, batch=10, stages=[stage])
    assert not publish(world, epoch=3, batch=0, stages=[staged(world, [("plain", b"0")])]).dup
    assert bodies(world, "plain") == [b"9", b"0"]


def test_batches_of_another_origin_are_no_repetitions(world: World) -> None:
    """Numbers that are counted elsewhere say nothing of these: such a batch is refused, and not dropped."""
    first = staged(world, [("plain", b"first")])
    publish(world, stages=[first], origin="one")
    world.crash()
    for batch in (0, 1):
        other = staged(world, [("plain", b"other")], batch=batch)
        with pytest.raises(
            Fenced, match="were published from one, up to batch 0: to publish from two, use a greater"
        ):
            publish(world, batch=batch, stages=[other], origin="two")
    assert publish(world, origin="one").dup
    assert publish(world).dup  # who does not say where he counts is taken at his word
    publish(world, batch=1)
    with pytest.raises(Fenced):
        publish(world, batch=2, origin="two")
    stage = staged(world, [("plain", b"anew")])
    assert not publish(world, epoch=1, stages=[stage], origin="two").dup
    assert bodies(world, "plain") == [b"first", b"anew"]


def test_nothing_is_kept_of_a_writer_that_asks_for_that(world: World) -> None:
    for body in (b"1", b"2"):
        assert publish(world, stages=[staged(world, [("plain", body)])], remember=False).rows == 1
    assert bodies(world, "plain") == [b"1", b"2"]
    assert world.store.tables.scan(Table.META, MetaName.WRITER, MetaName.WRITER + b"\xff", 1) == []
    with pytest.raises(StageNotFound):
        publish(world, stages=[32 * "0"], remember=False)


def test_writers_are_forgotten_when_they_publish_nothing_for_long(world: World) -> None:
    """But not those that do."""
    lifetime = world.manager.settings.writer_lifetime
    publish(world, "gone", stages=[staged(world, [("plain", b"1")], "gone")])
    publish(world, "busy", stages=[staged(world, [("plain", b"2")], "busy")])
    world.advance(lifetime / 2)
    publish(world, "busy", batch=1, stages=[staged(world, [("plain", b"3")], "busy", batch=1)])
    world.advance(lifetime / 2 + 3600)
    again = [staged(world, [("plain", b"x")], name) for name in ("gone", "busy")]
    assert not publish(world, "gone", stages=again[:1]).dup
    assert publish(world, "busy", stages=again[1:]).dup


def test_the_fence_outlives_a_crash(world: World) -> None:
    publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)])
    world.crash()
    assert publish(world, epoch=2, batch=9, stages=[staged(world, [("plain", b"9")], batch=9)]).dup
    with pytest.raises(Fenced):
        publish(world, epoch=1, batch=10)
    assert counts(world) == (1, 1, 0)


def test_of_two_attempts_the_published_one_counts(world: World) -> None:
    lost = staged(world, [("plain", b"lost")], attempt=0)
    kept = staged(world, [("plain", b"kept")], attempt=1)
    halfway = opened(world, Part("w", 0, 0, 2))
    put(world, halfway, [("plain", b"halfway")])
    publish(world, stages=[kept])
    assert bodies(world, "plain") == [b"kept"]
    assert counts(world) == (1, 1, 0)
    with pytest.raises(OperationCancelled):
        halfway.finish()
    with pytest.raises(StageNotFound):
        publish(world, batch=1, stages=[lost])
    assert used(world) == (held(world), held(world))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"batch": 1}, "belongs to batch 0 of the writer w and not to batch 1 of w"),
        ({"writer": "other"}, "belongs to batch 0 of the writer w and not to batch 0 of other"),
        ({"twice": True}, "named twice"),
        ({"attempts": True}, "are two uploads of part 0"),
        ({"name": "ABCD"}, "must have 32 hexadecimal digits in lower case"),
        ({"writer": ""}, "1 to 200 printable characters"),
        ({"epoch": -1}, "epoch must be a number from 0 to"),
    ],
)
def test_what_cannot_be_published_together_is_refused_and_stays(
    world: World, words: dict[str, Any], match: str
) -> None:
    stage = staged(world, [("plain", b"1")])
    stages = [stage]
    if words.pop("twice", False):
        stages.append(stage)
    if words.pop("attempts", False):
        stages.append(staged(world, [("plain", b"1")], attempt=1))
    if "name" in words:
        stages.append(words.pop("name"))
    with pytest.raises(ValueError, match=match):
        publish(world, stages=stages, **words)
    assert bodies(world, "plain") == []
    assert publish(world, stages=[stage]).rows == 1


def test_a_stage_that_is_not_there_refuses_the_batch(world: World) -> None:
    stage = staged(world, [("plain", b"1")])
    with pytest.raises(StageNotFound, match="stage " + 32 * "0" + " does not exist"):
        publish(world, stages=[stage, 32 * "0"])
    assert not publish(world, stages=[stage]).dup


def test_only_its_owner_publishes_and_discards_a_stage(world: World) -> None:
    stage = staged(world, [("plain", b"1")], owner="ann")
    with pytest.raises(StageNotFound):
        publish(world, stages=[stage], owner="bob")
    assert world.finish(world.manager.staging.discard([stage], owner="bob")) == 0
    publish(world, stages=[stage], owner="ann")
    with pytest.raises(AccessDenied):
        publish(world, batch=1, owner="bob")


def test_an_empty_batch_moves_the_fence(world: World) -> None:
    assert publish(world, batch=3) == Published(dup=False, rows=0, last=3)
    assert publish(world, batch=3).dup
    empty = staged(world, [], batch=4)
    assert publish(world, batch=4, stages=[empty]) == Published(dup=False, rows=0, last=4)
    assert counts(world) == (0, 0, 0)


# ---- quotas, discarding, expiry


def test_quota_is_taken_by_the_stage_and_given_back(world: World) -> None:
    world.create("small", quota_kb=1)
    stage = staged(world, [("small", bytes(100))])
    before = world.manager.find("small").core.used_bytes
    assert 200 < before < 300
    with pytest.raises(
        InsufficientResources, match=r"row 2: HOST.private\$.small: the queue's quota is used up"
    ):
        staged(world, [("small", bytes(100)) for _ in range(6)], number=1)
    world.run()
    assert world.manager.find("small").core.used_bytes == before
    assert world.finish(world.manager.staging.discard([stage, stage, 32 * "0"])) == 1
    assert used(world) == (0, 0)
    assert counts(world) == (0, 0, 0)


def test_stages_that_nobody_publishes_go_after_their_time(world: World) -> None:
    staged(world, [("plain", b"%d" % n) for n in range(3000)])
    world.advance(300)
    world.crash()
    assert len(world.manager.staging) == 1
    world.advance(299)
    assert len(world.manager.staging) == 1
    world.advance(2)
    assert len(world.manager.staging) == 0
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_a_batch_may_take_longer_than_a_stage_lives_as_long_as_it_goes_on(world: World) -> None:
    """What the first tasks of a long job brought is there when the last one ends, over a restart too."""
    stages = []
    for number in range(4):
        stages.append(staged(world, [("plain", b"%d" % number)], number=number))
        staged(world, [("plain", b"x")], batch=1 + number)
        world.advance(400)
        if number == 2:
            world.crash()
    assert publish(world, stages=stages).rows == 4
    world.advance(600)
    assert len(world.manager.staging) == 0


def test_a_stage_that_is_not_complete_is_gone_after_a_crash(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(3000)])
    world.run()
    assert counts(world)[1] == 2048
    world.crash()
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_a_stage_is_given_up(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(3000)])
    stage.abort()
    stage.abort()
    world.run()
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


def test_giving_up_while_the_end_is_being_written(world: World) -> None:
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"1")])
    done = stage.finish()
    world.writer.submit()
    stage.abort()
    world.run()
    with pytest.raises(OperationCancelled):
        done.result()
    assert counts(world) == (0, 0, 0)
    world.crash()
    assert len(world.manager.staging) == 0


def test_stages_wait_for_a_restart_with_their_quota(world: World) -> None:
    stage = staged(world, [("plain", b"1"), ("exact", b"2"), (REMOTE, b"3")])
    before = used(world)
    world.crash()
    assert used(world) == before
    publish(world, stages=[stage])
    assert used(world) == (held(world), held(world)) == before


# ---- queues that go


def test_a_batch_for_a_queue_that_was_deleted_is_refused(world: World) -> None:
    stage = staged(world, [("plain", b"1"), ("exact", b"2")])
    world.finish(world.manager.delete_queue("plain"))
    for _ in range(2):
        with pytest.raises(QueueDeleted, match="plain, for which the stage"):
            publish(world, stages=[stage])
        world.crash()
    assert bodies(world, "exact") == []
    world.finish(world.manager.staging.discard([stage]))
    assert counts(world) == (0, 0, 0)
    assert used(world) == (0, 0)


@pytest.mark.parametrize("restart", [False, True])
def test_a_queue_that_is_deleted_during_a_publication_takes_its_messages_along(
    world: World, restart: bool
) -> None:
    rows = [("plain" if n % 2 else "exact", b"%d" % n) for n in range(6000)]
    stage = staged(world, rows)
    done = world.manager.staging.publish("w", 0, 0, [stage])
    step(world, 3)
    assert 0 < world.manager.find("plain").core.messages < 3000
    deleted = world.manager.delete_queue("plain")
    if restart:
        step(world, 2)
        world.crash()
    else:
        assert world.finish(done).rows == 6000
        assert deleted.result() is None
    world.run()
    assert bodies(world, "exact") == [b"%d" % n for n in range(0, 6000, 2)]
    assert counts(world) == (3000, 3000, 0)
    assert used(world) == (held(world), held(world))


def step(world: World, commits: int) -> None:
    """As many commits, with everything that is due in between."""
    for _ in range(commits):
        world.manager.tick()
        world.manager.expire(world.manager.monotonic())
        world.writer.submit()
        world.writer.complete_one()


# ---- the messages


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


def packet_admin(world: World) -> dict[str, Any]:
    from msmq_fast.packet.fields import Hosts, reply_field

    name = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    field = reply_field(name, Hosts(world.manager.guid, world.manager.guid))
    return {
        "acknowledge": int(Acknowledge.POSITIVE_ARRIVAL),
        "admin_type": field.kind,
        "admin": field.wire,
    }


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


# ---- several at a time, and the end


@pytest.mark.parametrize(("wishes", "most"), [(False, 2048), (True, 128)])
def test_no_unit_is_great(world: World, wishes: bool, most: int) -> None:
    """What one turn of the loop and one commit do is bounded, by how much work the messages are."""
    world.create("admin")
    stage = opened(world, Part("w", 0, 0, 0))
    put(world, stage, [("plain", b"%d" % n) for n in range(5000)], **(packet_admin(world) if wishes else {}))
    name = world.finish(stage.finish()).stage
    done = world.manager.staging.publish("w", 0, 0, [name])
    core = world.manager.find("plain").core
    before, units = 0, 0
    while not done.done:
        step(world, 1)
        assert core.messages - before <= most
        units += core.messages > before
        before = core.messages
    assert units == -(-5000 // most)


def test_publications_of_several_writers_share_the_store(world: World) -> None:
    great = staged(world, [("plain", b"%d" % n) for n in range(9000)], "great")
    small = staged(world, [("exact", b"1")], "small")
    first = world.manager.staging.publish("great", 0, 0, [great])
    second = world.manager.staging.publish("small", 0, 0, [small])
    while not second.done:
        step(world, 1)
    assert not first.done
    assert world.finish(first).rows == 9000


def test_what_was_discarded_goes_while_others_publish(world: World) -> None:
    gone = staged(world, [("plain", b"x") for _ in range(4000)], "other")
    kept = staged(world, [("plain", b"%d" % n) for n in range(25_000)])
    first = counts(world)[1]
    world.manager.staging.discard([gone])
    done = world.manager.staging.publish("w", 0, 0, [kept])
    while counts(world)[1] == first:
        step(world, 1)
    assert not done.done
    assert world.finish(done).rows == 25_000
    assert counts(world) == (25_000, 25_000, 0)


def test_publications_of_one_writer_take_turns(world: World) -> None:
    stages = [staged(world, [("plain", b"%d" % batch)] * 2000, batch=batch) for batch in range(3)]
    staging = world.manager.staging
    done = [staging.publish("w", 0, batch, [stage]) for batch, stage in enumerate(stages)]
    again = staging.publish("w", 0, 2, [])
    world.run()
    assert [one.result().rows for one in done] == [2000] * 3
    assert again.result().dup
    assert bodies(world, "plain") == [b"0"] * 2000 + [b"1"] * 2000 + [b"2"] * 2000


def test_a_publication_waits_for_the_one_that_a_crash_interrupted(world: World) -> None:
    stage = staged(world, [("plain", b"1")] * 4000)
    world.manager.staging.publish("w", 0, 0, [stage])
    step(world, 2)
    tables = world.writer.crash()
    world.store = type(world.store).in_memory(now_s=1_700_000_000, random=world.random, tables=tables)
    world.manager = type(world.manager)(world.store, world.settings, world.clock, world.random)
    world.manager.start()
    again = world.manager.staging.publish("w", 0, 0, [stage])
    assert not again.done
    assert world.finish(again).dup
    assert len(bodies(world, "plain")) == 4000


def test_a_stop_lets_nobody_wait(world: World) -> None:
    stage = staged(world, [("plain", b"1")])
    half = opened(world, Part("w", 1, 0, 0))
    world.manager.staging.publish("w", 0, 0, [stage])
    waiting = world.manager.staging.publish("w", 0, 1, [])
    world.manager.stop()
    with pytest.raises(ServiceNotAvailable):
        waiting.result()
    with pytest.raises(OperationCancelled):
        half.finish()
    world.writer.complete_all()
    world.crash()
    assert bodies(world, "plain") == [b"1"]


def test_damaged_rows_are_set_aside(world: World) -> None:
    stage = staged(world, [("plain", b"%d" % n) for n in range(3000)])
    table = world.writer.tables.tables[0]
    rows = sorted(key for key in table if key[:4] == b"stg\0")
    assert len(rows) == 4
    table[rows[2]] = table[rows[2]][:-1]
    publish(world, stages=[stage])
    assert world.manager.damage["stage"] == 1
    assert len(bodies(world, "plain")) == 3000 - 1024
    assert used(world) == (held(world), held(world))


def test_a_damaged_record_of_a_publication_is_set_aside() -> None:
    with pytest.raises((ValueError, TypeError)):
        Publication.load(b"\0\0\0\0\0\0\0\1", [1, 2])


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
