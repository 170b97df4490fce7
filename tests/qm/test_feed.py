"""What the event feed tells: every change of a message and of a queue once, in order, with what a reader
needs to follow it.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast._native.operations import withdraw
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store.decode import EventKind, FeedEvent
from msmq_fast.store.schema import Transport
from tests.support.worlds.queue_manager import World, body

AWAY = r"DIRECT=TCP:10.0.0.9\private$\there"


def told(world: World, after: int = 0) -> list[FeedEvent]:
    """Events behind number `after`."""
    world.run()
    return list(world.manager.events.feed.read(after + 1))


def last(world: World) -> int:
    return world.manager.events.feed.bounds()[1] - 1


def kinds(events: list[FeedEvent]) -> list[EventKind]:
    return [EventKind(event.kind) for event in events]


def send_in_transaction(world: World, name: str, *bodies: bytes) -> None:
    transaction = world.manager.transactions.begin()
    handle = TransactedQueue(world.manager.open(name, Access.SEND), transaction)
    for text in bodies:
        handle.send(Message(body=text))
    world.finish(transaction.commit())


def test_the_life_of_a_message() -> None:
    world = World()
    queue = world.create(journaling=True)
    before = last(world)
    key = world.send(b"one", delivery=1)
    world.receive()
    arrived, journaled, received = told(world, before)
    assert kinds([arrived, journaled, received]) == [
        EventKind.ARRIVED,
        EventKind.JOURNALED,
        EventKind.RECEIVED,
    ]
    assert queue.journal is not None
    assert (arrived.queue, arrived.lookup_id) == (queue.ordinal, key)
    assert arrived.arrival_seq == key & (1 << 56) - 1
    assert journaled.queue == queue.journal.ordinal
    assert {event.source for event in (arrived, journaled, received)} == {world.manager.guid.bytes_le}
    assert len({(event.source, event.ordinal) for event in (arrived, journaled, received)}) == 1
    assert {event.flags for event in (arrived, journaled, received)} == {Transport.LOCAL}
    assert {event.reason for event in (arrived, journaled, received)} == {0}


def test_expired_purged_and_deleted_messages_say_why() -> None:
    world = World()
    queue = world.create()
    before = last(world)
    world.send(b"short", time_to_be_received=10, journal=Journal.DEADLETTER)
    world.advance(11)
    world.send(b"purged")
    world.finish(world.manager.purge(queue))
    world.send(b"deleted")
    world.finish(world.manager.delete_queue("orders"))
    events = told(world, before)
    reasons = [(EventKind(event.kind), event.reason) for event in events]
    assert reasons == [
        (EventKind.ARRIVED, 0),
        (EventKind.DEAD_LETTERED, MessageClass.NACK_RECEIVE_TIMEOUT),
        (EventKind.EXPIRED, MessageClass.NACK_RECEIVE_TIMEOUT),
        (EventKind.ARRIVED, 0),
        (EventKind.PURGED, MessageClass.NACK_Q_PURGED),
        (EventKind.ARRIVED, 0),
        (EventKind.QUEUE_DELETED, 0),
        (EventKind.QUEUE_DELETED, 0),
        (EventKind.PURGED, MessageClass.NACK_Q_DELETED),
    ]


def test_acknowledgments_carry_their_class() -> None:
    world = World()
    world.create()
    world.create("answers")
    before = last(world)
    world.send(
        b"please",
        acknowledge=Acknowledge.POSITIVE_ARRIVAL | Acknowledge.NEGATIVE_RECEIVE,
        admin_queue=parse_format_name(r"DIRECT=OS:HOST\private$\answers"),
        time_to_be_received=10,
    )
    world.advance(11)
    answers = [event for event in told(world, before) if event.kind in (EventKind.ACKED, EventKind.NACKED)]
    assert [(event.kind, event.message_class, event.reason) for event in answers] == [
        (EventKind.ACKED, MessageClass.ACK_REACH_QUEUE, 0),
        (EventKind.NACKED, MessageClass.NACK_RECEIVE_TIMEOUT, MessageClass.NACK_RECEIVE_TIMEOUT),
    ]


def test_an_aborted_transaction_tells_of_every_message_that_is_back() -> None:
    world = World()
    queue = world.create(transactional=True)
    send_in_transaction(world, "orders", b"a", b"b")
    before = last(world)
    for count in (1, 2):
        transaction = world.manager.transactions.begin()
        handle = TransactedQueue(world.reader(), transaction)
        assert body(world.finish(handle.receive(0).completion)) == b"a"
        assert body(world.finish(handle.receive(0).completion)) == b"b"
        world.finish(transaction.abort())
        events = [event for event in told(world, before) if event.abort_count == count]
        assert kinds(events) == [EventKind.ABORTED_RETURN] * 2
        assert {event.queue for event in events} == {queue.ordinal}
    transaction = world.manager.transactions.begin()
    handle = TransactedQueue(world.reader(), transaction)
    world.finish(handle.receive(0).completion)
    world.finish(transaction.commit())
    received = told(world, before)[-1]
    assert (received.kind, received.abort_count) == (EventKind.RECEIVED, 2)


def test_an_aborted_transaction_of_very_many_is_told_in_several_commits() -> None:
    world = World()
    world.create(transactional=True)
    send_in_transaction(world, "orders", *[b"x"] * 20_000)
    transaction = world.manager.transactions.begin()
    core = world.manager.find("orders").core
    while transaction.operations.dequeued < 20_000:
        transaction.locked_many(core, core.take(20_000, 1 << 30, transaction.owner))
        world.run()
    before = last(world)
    world.finish(transaction.abort())
    events = told(world, before)
    assert kinds(events) == [EventKind.ABORTED_RETURN] * 20_000
    largest = max(len(value) for value in world.writer.tables.tables[3].values())
    assert largest < 3 << 20


def test_messages_that_a_vanished_reader_did_not_get_are_told_of() -> None:
    world = World()
    world.create()
    key = world.send(b"one", delivery=1)
    before = last(world)
    core = world.manager.find("orders").core
    core.receive_bulk(1, 1 << 20, lambda messages, _: None, wanted=lambda: False)
    assert kinds(told(world, before)) == [EventKind.RECEIVED, EventKind.RETURNED]
    assert {event.lookup_id for event in told(world, before)} == {key}
    assert world.receive() == b"one"


def test_messages_of_outgoing_queues_have_their_place_in_the_sequence() -> None:
    world = World()
    before = last(world)
    send_in_transaction(world, AWAY, b"a", b"b", b"c")
    world.finish(world.manager.open(AWAY, Access.SEND).send(Message(body=b"loose", delivery=1)))
    created, *sent = told(world, before)
    (outgoing,) = world.manager.outgoing()
    assert (created.kind, created.source) == (EventKind.QUEUE_CREATED, outgoing.guid.bytes_le)
    assert kinds(sent) == [EventKind.SENT] * 4
    assert [event.sequence_number for event in sent] == [1, 2, 3, 0]
    assert [event.previous_number for event in sent] == [0, 1, 2, 0]
    assert len({event.sequence_id for event in sent[:3]}) == 1
    assert sent[0].sequence_id >> 32 > 1_600_000_000
    assert {event.flags for event in sent} == {Transport.MQQB}


def test_moves_say_where_from() -> None:
    world = World()
    queue = world.create()
    key = world.send(b"one", delivery=1)
    before = last(world)
    aside = world.manager.open(r"DIRECT=OS:HOST\private$\orders;aside", Access.MOVE)
    world.finish(world.reader().move(key, aside))
    created, moved = told(world, before)
    assert (created.kind, moved.kind) == (EventKind.QUEUE_CREATED, EventKind.MOVED)
    assert (moved.queue, moved.origin, moved.lookup_id) == (created.queue, queue.ordinal, key)


def test_what_an_operator_takes_out_or_moves_away_has_left_its_queue() -> None:
    world = World()
    queue = world.create()
    keys = [world.send(text, delivery=1) for text in (b"one", b"two")]
    before = last(world)
    assert queue.core.remove(keys[0])
    with world.store.unit():
        assert withdraw(queue.core, [keys[1]], EventKind.MOVED) == 1
    removed, moved = told(world, before)
    assert (removed.kind, removed.queue, removed.lookup_id) == (EventKind.REMOVED, queue.ordinal, keys[0])
    assert (moved.kind, moved.queue, moved.lookup_id) == (EventKind.MOVED, queue.ordinal, keys[1])
    assert moved.origin == 0


def test_starts_and_stops_and_queues() -> None:
    world = World()
    assert EventKind.STARTED in kinds(told(world))
    assert [event.kind for event in told(world)].index(EventKind.STARTED) == 0
    before = last(world)
    queue = world.create(guid=UUID(int=77))
    created = told(world, before)
    assert [(event.kind, event.queue, event.source) for event in created[:1]] == [
        (EventKind.QUEUE_CREATED, queue.ordinal, UUID(int=77).bytes_le)
    ]
    assert len(created) == 2, "its journal has events of its own"
    before = last(world)
    world.manager.stop()
    assert kinds(told(world, before)) == [EventKind.STOPPED]


def test_deleted_queues_keep_their_names_until_no_event_means_them() -> None:
    world = World(purge_batch=2)
    ordinal = world.create("gone").ordinal
    for _ in range(5):
        world.send(b"x", "gone")
    world.manager.delete_queue("gone")
    world.manager.store.writer.submit()
    world.writer.complete_one()
    assert world.manager.events.names.gone()[ordinal].name == r"HOST\private$\gone"
    world.crash()
    name = world.manager.events.names.gone()[ordinal]
    assert (name.name, name.kind) == (r"HOST\private$\gone", "queue")
    events = [event for event in told(world) if event.queue == ordinal]
    assert kinds(events)[-6:] == [EventKind.QUEUE_DELETED, *[EventKind.PURGED] * 5]
    # What is about it stays as long as its last event.
    world.advance(1000)
    world.create("later")
    while world.manager.events.trim(500, 1 << 30, 1):
        assert ordinal in world.manager.events.names.gone()
        world.run()
    world.run()
    assert [event for event in told(world) if event.queue == ordinal] == []
    assert ordinal not in world.manager.events.names.gone()
    world.crash()
    assert ordinal not in world.manager.events.names.gone()


def test_a_feed_that_is_off_tells_nothing_and_remembers_no_names() -> None:
    world = World(feed=False)
    world.create("gone")
    world.send(b"x", "gone")
    world.finish(world.manager.delete_queue("gone"))
    world.manager.stop()
    world.run()
    assert told(world) == []
    assert world.manager.events.names.gone() == {}


@pytest.mark.parametrize("kept", [None, 40])
def test_old_events_are_dropped_but_not_what_a_reader_waits_for(kept: int | None) -> None:
    world = World()
    world.create()
    for _ in range(50):
        world.send(b"x")
    world.advance(10_000)
    feed, subscriptions = world.manager.events.feed, world.manager.events.subscriptions
    first, following = feed.bounds()
    assert following - first > 50
    if kept is not None:
        world.finish(subscriptions.create("reader", kept))
    while world.manager.events.trim(100, 1 << 30, 7):
        world.run()
    world.run()
    first, _ = feed.bounds()
    assert first == (kept or following - 1), "the newest record stays"


def test_each_of_several_messages_that_come_back_is_told_of_although_its_journal_copy_is_taken_back() -> None:
    """A lake subtracts what came back from what was received: one event less is one message lost there."""
    world = World()
    world.create(journaling=True)
    keys = [world.send(text, delivery=1) for text in (b"one", b"two", b"three")]
    before = last(world)
    core = world.manager.find("orders").core
    core.receive_bulk(3, 1 << 20, lambda messages, _: None, wanted=lambda: False)
    events = told(world, before)
    assert [event.lookup_id for event in events if event.kind == EventKind.RETURNED] == keys
    assert world.bodies() == [b"one", b"two", b"three"]
    assert world.bodies(r".\private$\orders;JOURNAL") == []
