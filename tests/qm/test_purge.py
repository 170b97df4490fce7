"""Purging and deleting: out of sight at once, out of the store bit by bit, and who is told what."""

from __future__ import annotations

from collections import Counter

import pytest

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.memorystore import MemoryReader, MemoryWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store import decode
from tests.support.timing import processor_time
from tests.support.worlds.queue_manager import World

POSITION, CONTENT, FEED = 1, 2, 3


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def events(world: World) -> list[decode.FeedEvent]:
    found = world.store.tables.tables[FEED]
    return [event for key in sorted(found) for event in decode.feed(key, found[key])]


@pytest.mark.rule("DM-033")
@pytest.mark.parametrize("outcome", ["abort", "commit"])
def test_what_a_transaction_puts_back_after_a_purge_is_reported_as_purged(world: World, outcome: str) -> None:
    world.create("admin")
    world.create("bills", transactional=True)
    sending, receiving = world.manager.transactions.begin(), world.manager.transactions.begin()
    admin = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
    message = Message(body=b"x", admin_queue=admin, acknowledge=Acknowledge(14))
    TransactedQueue(world.sender("bills"), sending).send(message)
    world.finish(sending.commit())
    reader = world.reader("bills")
    world.finish(TransactedQueue(reader, receiving).receive(0).completion)
    world.finish(reader.purge())
    assert world.manager.find("admin").messages == 0
    world.finish(getattr(receiving, outcome)())
    world.run()
    answer = world.finish(world.reader("admin").receive(0).completion)
    expected = MessageClass.NACK_Q_PURGED if outcome == "abort" else MessageClass.ACK_RECEIVE
    assert Message.from_packet(answer.packet).message_class == expected


@pytest.mark.rule("DM-093", "X-56")
def test_a_message_that_was_out_during_a_purge_does_not_come_back(world: World) -> None:
    """It counts as locked then: nothing up to the marker's sequence returns, with or without a crash."""
    world.send(b"x", delivery=1)
    world.send(b"y", delivery=0)
    reader = world.reader()
    requests = [reader.receive(0), reader.receive(0)]
    got = [world.finish(request.completion) for request in requests]
    world.finish(reader.purge())
    queue = world.manager.find("orders")
    queue.core.requeue(got)
    world.send(b"later")
    assert world.bodies() == [b"later"]
    assert Counter(event.kind for event in events(world))[7] == 2
    assert world.manager.ledger.bytes == queue.bytes
    world.crash()
    assert world.bodies() == [b"later"]


def test_a_message_given_back_after_a_purge_that_it_came_after_survives(world: World) -> None:
    world = World(purge_batch=1)
    world.create()
    for _ in range(5):
        world.send(b"old")
    world.reader().purge()
    sent = world.sender().send(Message(body=b"new", delivery=1))
    world.writer.complete_all()
    assert sent.done
    request = world.reader().receive(0)
    world.writer.complete_all()
    queue = world.manager.find("orders")
    assert queue.purged_to > 0, "the marker still stands"
    queue.core.requeue([request.completion.result()])
    world.writer.complete_all()
    assert queue.purged_to > 0
    world.crash()
    assert world.bodies() == [b"new"]


@pytest.mark.rule("DM-094", "DU-08")
def test_events_of_purged_messages_name_them(world: World) -> None:
    world = World(cache_bytes=0)
    world.create()
    identifiers = set()
    for number in range(6):
        handle = world.sender()
        message = handle.stamp(Message(body=b"x", delivery=number % 2, message_id=number))
        message.source_machine = type(message.source_machine)(int=number // 2 + 1)
        identifiers.add((message.source_machine.bytes_le, message.message_id))
        world.finish(handle.send_packets([message.to_packet()]))
    world.crash()
    world.finish(world.reader().purge())
    purged = {(event.source, event.ordinal) for event in events(world) if event.kind == 7}
    assert len(purged) == 3, "the recoverable ones"
    assert purged < identifiers
    assert {event.flags for event in events(world) if event.kind == 7} == {1}
    assert world.manager.ledger.sources.live == 1


def test_every_event_of_a_message_that_is_on_disk_only_names_it(world: World) -> None:
    world = World(cache_bytes=0)
    world.create()
    world.send(b"expired", time_to_be_received=5)
    world.send(b"removed")
    removed = world.manager.find("orders").core.positions.last()
    world.crash()
    world.advance(6)
    assert world.manager.find("orders").core.remove(removed)
    world.run()
    last = events(world)[-2:]
    assert [event.kind for event in last] == [5, 4]
    assert {event.source for event in last} == {world.manager.guid.bytes_le}
    assert len({event.ordinal for event in last}) == 2


@pytest.mark.rule("DM-093")
def test_a_purge_with_everything_under_way(world: World) -> None:
    """Available, locked, on its way out, not durable yet, expiring: each goes when it can."""
    for number in range(20):
        world.send(b"%d" % number, priority=number % 8, delivery=number % 3 > 0, time_to_be_received=50)
    got: list[Received] = []
    subscription = world.reader().subscribe(got.extend, 4, acknowledge=True)
    request = world.reader().receive(0)
    world.sender().send(Message(body=b"pending", delivery=1))
    queue = world.manager.find("orders")
    done = world.reader().purge()
    assert queue.core.positions.available == 0
    world.clock.advance(60)
    world.finish(done)
    subscription.release([message.lookup_id for message in got])
    world.run()
    assert request.completion.done
    assert world.bodies() == []
    ledger = world.manager.ledger
    assert (queue.bytes, queue.messages, queue.core.used_bytes, ledger.bytes, ledger.cached_bytes) == (0,) * 5
    assert not world.store.tables.tables[POSITION]
    assert not world.store.tables.tables[CONTENT]
    assert queue.purged_to == 0
    assert ledger.sources.live == 1


def test_one_batch_of_deletions_is_under_way_at_a_time(world: World) -> None:
    world = World(purge_batch=10)
    world.create()
    for number in range(45):
        world.send(b"%d" % number)
    world.reader().purge()
    world.writer.complete_all()
    for left in (35, 25, 15, 5, 0):
        for _ in range(5):
            world.manager.expire(world.manager.monotonic())
        assert world.manager.next_deadline() is None, "the commit wakes the loop"
        world.writer.complete_all()
        assert len(world.store.tables.tables[POSITION]) == left


def test_deadlines_of_purged_messages_are_harmless(world: World) -> None:
    world = World(purge_batch=2)
    world.create()
    for number in range(30):
        world.send(b"%d" % number, time_to_be_received=10, delivery=number % 2)
    world.reader().purge()
    world.clock.advance(20)
    world.manager.tick()
    world.manager.expiry.expire(world.clock.monotonic())
    for number in range(30):
        world.send(b"%d" % number, time_to_be_received=10)
    world.run()
    assert len(world.bodies()) == 30
    world.advance(11)
    assert world.bodies() == []


@pytest.mark.parametrize("delete", [False, True])
def test_a_million_messages_do_not_stall_the_loop(delete: bool) -> None:
    """TOY-19: neither the call nor any of the turns behind it takes long."""
    count = 1_000_000
    writer = MemoryWriter()
    ledger = Ledger(bytes(16), writer, MemoryReader(writer.tables))
    ledger.feed = False
    ledger.tick(1_700_000_000_000_000)
    ledger.reserved(1 << 30)
    core = QueueCore(ledger, 100)
    packet = Message(body=b"x", sent_time=1_700_000_000).to_packet()
    for _ in range(count // 1000):
        core.enqueue_packets([packet] * 1000)
    assert core.messages == count
    core.take(100, 1 << 30, ledger.new_owner())
    with processor_time() as spent:
        removed = core.abandon() if delete else core.purge()
    slowest = spent.seconds
    assert removed == count - (0 if delete else 100)
    assert core.messages == count - removed
    left = ledger.pending_deletes
    assert left == removed
    while left:
        with processor_time() as spent:
            left = ledger.reap(1000)
        slowest = max(slowest, spent.seconds)
    assert slowest < 0.05
    assert ledger.bytes == core.used_bytes


@pytest.mark.rule("REC-07", "DM-018", "DU-08")
def test_what_was_locked_during_a_purge_is_gone_after_a_crash(world: World) -> None:
    world.send(b"held")
    world.reader().subscribe(lambda _: None, 1, acknowledge=True)
    world.finish(world.reader().purge())
    assert world.manager.find("orders").purged_to > 0, "the marker stands until it is released"
    world.send(b"later")
    world.crash()
    world.run()
    assert world.bodies() == [b"later"]
    assert len(world.store.tables.tables[POSITION]) == 1
    assert [event.kind for event in events(world)].count(7) == 1


@pytest.mark.rule("DU-04")
def test_what_is_put_back_writes_nothing(world: World) -> None:
    key = world.send(b"x")
    subscription = world.reader().subscribe(lambda _: None, 1, acknowledge=True)
    batches = world.writer.statistics()["batches"]
    subscription.close()
    assert world.writer.pending_ops == 0
    world.run()
    assert world.writer.statistics()["batches"] == batches
    assert world.manager.find("orders").core.positions.first() == key


@pytest.mark.rule("DM-094")
def test_a_purge_leaves_alone_what_is_not_in_the_queue(world: World) -> None:
    """What a transaction has sent and not committed; its subqueues; its journal."""
    world.create("bills", transactional=True, journaling=True)
    manager = world.manager
    done = manager.transactions.begin()
    TransactedQueue(world.sender("bills"), done).send(Message(body=b"moved"))
    TransactedQueue(world.sender("bills"), done).send(Message(body=b"read"))
    TransactedQueue(world.sender("bills"), done).send(Message(body=b"purged"))
    world.finish(done.commit())
    moved, *_ = manager.find("bills").core.positions.keys()
    world.finish(world.reader("bills").move(moved, manager.open("bills;later", Access.MOVE)))
    assert world.receive("bills") == b"read"
    opened = manager.transactions.begin()
    TransactedQueue(world.sender("bills"), opened).send(Message(body=b"sent"))
    assert world.finish(world.reader("bills").purge()) == 1
    world.run()
    assert world.bodies("bills") == []
    assert world.bodies("bills;later") == [b"moved"]
    assert world.bodies("bills;journal") == [b"read"]
    world.finish(opened.commit())
    assert world.bodies("bills") == [b"sent"]
    world.crash()
    assert [world.bodies(f"bills{part}") for part in ("", ";later", ";journal")] == [
        [b"sent"],
        [b"moved"],
        [b"read"],
    ]


@pytest.mark.rule("DM-093", "DU-11")
def test_a_marker_that_outlives_a_start_does_not_take_what_is_moved_behind_it() -> None:
    """As before the start: a message keeps its LookupIdentifier, which lies before the marker."""
    world = World(purge_batch=1)
    world.create()
    key = world.send(b"kept")
    for number in range(4):
        world.send(b"%d" % number)
    aside, back = ".\\private$\\orders;aside", ".\\private$\\orders"
    target = world.manager.open(aside, Access.MOVE)
    world.finish(world.reader().move(key, target))
    world.manager.purge(world.manager.find("orders"))
    world.writer.submit()
    world.writer.complete_one()
    tables = world.writer.crash()
    world.store = type(world.store).in_memory(now_s=1_700_000_000, random=world.random, tables=tables)
    world.manager = QueueManager(world.store, world.settings, world.clock, world.random)
    world.manager.start()
    world.writer.complete_all()
    assert world.manager.find("orders").purged_to
    moved = world.manager.open(aside, Access.RECEIVE).move(key, world.manager.open(back, Access.MOVE))
    world.writer.submit()
    world.writer.complete_one()
    moved.result()
    world.crash()
    assert world.bodies() == [b"kept"]
