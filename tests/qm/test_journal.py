"""Journals of queues and the system journal (X-22, X-23, X-35, X-60, X-61, X-65)."""

from __future__ import annotations

from array import array

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import (
    AccessDenied,
    MSMQError,
    QueueNotFound,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
)
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.security.acl import Ace, AceType, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import QueueRight
from msmq_fast.security.token import ANONYMOUS_TOKEN
from msmq_fast.store import decode
from msmq_fast.store.schema import EventKind, Table
from tests.qm.acknowledgments import HERE, classes
from tests.support.worlds.queue_manager import World

JOURNAL = r".\private$\orders;JOURNAL"
SYSTEM_JOURNAL = r".\system$;JOURNAL"


@pytest.fixture
def world() -> World:
    return World()


def kinds(world: World, queue: int) -> list[int]:
    """What the feed says of the messages of one queue."""
    events = [
        event
        for key, value in sorted(world.writer.tables.tables[Table.FEED].items())
        for event in decode.feed(key, value)
    ]
    return [event.kind for event in events if event.queue == queue and event.lookup_id]


# ---- the queue


@pytest.mark.rule("X-23", "DM-056", "DU-10", "X-50")
def test_a_queue_has_a_journal_by_every_name(world: World) -> None:
    queue = world.create()
    journal = world.manager.find(JOURNAL)
    assert journal.kind is QueueKind.JOURNAL
    assert world.manager.find("orders;journal") is journal
    assert world.manager.find(r"DIRECT=OS:HOST\private$\orders;JOURNAL") is journal
    name = str(queue.format_name(world.manager.guid))
    assert world.manager.find(f"{name};JOURNAL") is journal
    assert str(journal.format_name(world.manager.guid)) == f"{name};JOURNAL"
    world.crash()
    again = world.manager.find(JOURNAL)
    assert (again.ordinal, again.guid) == (journal.ordinal, journal.guid)


@pytest.mark.rule("X-23", "DM-068")
def test_a_journal_goes_with_its_queue(world: World) -> None:
    queue = world.create(journaling=True)
    world.send(b"one")
    world.receive()
    journal = world.manager.find(JOURNAL)
    world.finish(world.manager.delete_queue("orders"))
    with pytest.raises(QueueNotFound):
        world.manager.find(JOURNAL)
    world.run()
    tables = world.writer.tables.tables
    assert not [key for key in tables[Table.POSITION] if decode.position_key(key)[0] == journal.ordinal]
    stored = {decode.queue_key(key) for key in tables[Table.QUEUE]}
    assert not stored & {queue.ordinal, journal.ordinal}
    assert not tables[Table.CONTENT]


@pytest.mark.rule("X-23")
def test_a_deletion_that_was_under_way_takes_the_journal_along(world: World) -> None:
    world.create(journaling=True)
    world.send(b"one")
    world.receive()
    world.manager.delete_queue("orders")
    world.writer.submit()
    world.writer.complete_all()
    world.crash()
    tables = world.writer.tables.tables
    assert not tables[Table.POSITION]
    assert not tables[Table.CONTENT]
    with pytest.raises(QueueNotFound):
        world.manager.find(JOURNAL)


@pytest.mark.rule("DM-086")
def test_nothing_is_sent_to_a_journal_and_nothing_about_it_is_changed(world: World) -> None:
    world.create()
    with pytest.raises(UnsupportedAccessMode):
        world.manager.open(JOURNAL, Access.SEND)
    with pytest.raises(UnsupportedFormatNameOperation):
        world.manager.set_properties(world.manager.find(JOURNAL), label="x")
    with pytest.raises(UnsupportedFormatNameOperation):
        world.manager.delete_queue(JOURNAL)


@pytest.mark.rule("X-23")
def test_the_descriptor_of_the_queue_says_who_reads_its_journal(world: World) -> None:
    queue = world.create()
    everyone = ANONYMOUS_TOKEN.user

    def allow(rights: QueueRight) -> None:
        acl = Acl((Ace.build(AceType.ACCESS_ALLOWED, int(rights), everyone),))
        given = SecurityDescriptor.build(None, None, acl)
        world.finish(world.manager.set_properties(queue, security=given))

    allow(QueueRight.RECEIVE_MESSAGE | QueueRight.PEEK_MESSAGE)
    with pytest.raises(AccessDenied):
        world.manager.open(JOURNAL, Access.RECEIVE, token=ANONYMOUS_TOKEN)
    allow(QueueRight.RECEIVE_JOURNAL_MESSAGE | QueueRight.PEEK_MESSAGE)
    world.manager.open(JOURNAL, Access.RECEIVE, token=ANONYMOUS_TOKEN).close()


# ---- target journaling


@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.rule("DM-202", "X-60", "DM-144", "DU-03")
def test_what_is_received_goes_to_the_journal(world: World, delivery: int) -> None:
    queue = world.create(journaling=True)
    journal = world.manager.find(JOURNAL)
    waiting = world.reader(JOURNAL).receive(None)
    world.send(b"first", delivery=delivery, priority=5, time_to_be_received=60)
    assert world.receive(peek=True) == b"first"
    assert not waiting.completion.done
    world.receive()
    message = waiting.completion.result()
    assert Message.from_packet(message.packet).body == b"first"
    assert message.lookup_id >> 56 == 2  # priority 5
    assert queue.messages == journal.messages == 0
    assert journal.core.arrived_total == 1
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("X-60", "X-23")
def test_journaling_can_be_turned_on_and_off(world: World) -> None:
    queue = world.create()
    for number, on in enumerate((False, True, False, True)):
        world.finish(world.manager.set_properties(queue, journaling=on))
        world.send(b"%d" % number)
        world.receive()
    assert world.bodies(JOURNAL) == [b"1", b"3"]
    world.crash()
    assert world.bodies(JOURNAL) == [b"1", b"3"]
    world.send(b"4")
    world.receive()
    assert world.bodies(JOURNAL) == [b"1", b"3", b"4"]


@pytest.mark.rule("X-60")
def test_a_purge_an_expiry_and_a_deletion_are_not_journaled(world: World) -> None:
    queue = world.create(journaling=True)
    world.send(b"old", time_to_be_received=10)
    world.advance(11)
    world.send(b"unwanted")
    world.finish(world.manager.purge(queue))
    assert world.bodies(JOURNAL) == []


@pytest.mark.rule("X-60", "DM-146")
def test_a_journal_copy_does_not_expire(world: World) -> None:
    world.create(journaling=True)
    world.send(b"kept", time_to_be_received=10)
    world.receive()
    world.advance(100)
    assert world.bodies(JOURNAL) == [b"kept"]
    world.crash()
    world.advance(100)
    assert world.bodies(JOURNAL) == [b"kept"]
    reader = world.reader(JOURNAL)
    request = reader.receive(0)
    request.cancel()  # the message comes back to the journal, still without an end
    world.run()
    world.advance(100)
    assert world.bodies(JOURNAL) == [b"kept"]


@pytest.mark.rule("X-60", "KV-05")
def test_the_stored_content_changes_hands(world: World) -> None:
    world.create(journaling=True)
    world.send(b"x" * 1000)
    before = dict(world.writer.tables.tables[Table.CONTENT])
    world.receive()
    assert world.writer.tables.tables[Table.CONTENT] == before
    world.receive(JOURNAL)
    assert not world.writer.tables.tables[Table.CONTENT]


@pytest.mark.rule("X-60")
def test_every_way_of_receiving_is_journaled(world: World) -> None:
    queue = world.create(journaling=True)
    got: list[bytes] = []
    reader = world.reader()
    # Fused: the reader is there before the message.
    early = reader.receive(None)
    world.send(b"fused")
    assert early.completion.done
    # By lookup identifier, its packet on the disk.
    key = world.send(b"looked up")
    world.crash()
    reader = world.reader()
    world.finish(reader.lookup(key, Lookup.CURRENT))
    # By an acknowledged delivery.
    subscription = reader.subscribe(
        lambda messages: got.extend(m.lookup_id for m in messages), 10, acknowledge=True
    )
    world.send(b"delivered")
    world.finish(subscription.ack(list(got)))
    # By a plain subscription.
    reader.unsubscribe(subscription)
    reader.subscribe(lambda messages: None, 10, acknowledge=False)
    world.send(b"streamed")
    assert world.bodies(JOURNAL) == [b"fused", b"looked up", b"delivered", b"streamed"]
    assert world.manager.find("orders").core.messages == 0
    assert queue.ordinal == world.manager.find("orders").ordinal


@pytest.mark.rule("DM-131")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_receive_by_lookup_id_is_journaled_and_acknowledged(world: World, delivery: int) -> None:
    world.create(journaling=True)
    world.create("admin")
    requests = {
        "admin_queue": parse_format_name(HERE),
        "acknowledge": Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
    }
    world.send(b"first", delivery=delivery, **requests)
    key = world.send(b"second", delivery=delivery, **requests)
    world.finish(world.reader().lookup(key, Lookup.CURRENT))
    world.run()
    assert world.bodies() == [b"first"]
    assert world.bodies(JOURNAL) == [b"second"]
    assert classes(world) == [MessageClass.ACK_RECEIVE]


def test_a_message_that_goes_back_leaves_no_copy(world: World) -> None:
    """The receive was durable, the reader gone."""
    world.create(journaling=True)
    reader = world.reader()
    request = reader.receive(None)
    world.sender().send(Message(body=b"back", delivery=1))
    world.manager.tick()
    world.manager.before_submit()
    world.writer.submit()
    request.cancel()
    world.run()
    assert world.bodies() == [b"back"]
    world.crash()
    assert world.bodies() == [b"back"]
    assert world.bodies(JOURNAL) == []
    assert world.receive() == b"back"
    assert world.bodies(JOURNAL) == [b"back"]


# ---- quota


@pytest.mark.rule("X-35", "X-23")
def test_a_full_journal_drops_the_copy_and_lets_the_receive_succeed(world: World) -> None:
    world.create(journaling=True, journal_quota_kb=2)
    size = len(Message(body=b"x" * 900, destination=None).to_packet())
    assert 2 * size < 2048 + 900
    for number in range(3):
        world.send(b"%d" % number + b"x" * 800)
        assert world.receive()[:1] == b"%d" % number
    assert [text[:1] for text in world.bodies(JOURNAL)] == [b"0", b"1"]
    world.receive(JOURNAL)
    world.send(b"3" + b"x" * 800)
    world.receive()
    assert [text[:1] for text in world.bodies(JOURNAL)] == [b"1", b"3"]


@pytest.mark.rule("X-35")
def test_the_boundary_of_the_journal_quota(world: World) -> None:
    queue = world.create(journaling=True)
    journal = world.manager.find(JOURNAL)
    world.send(b"x" * 100)
    size = queue.bytes
    journal.core.quota_bytes = size - 1
    world.receive()
    assert journal.messages == 0
    world.send(b"x" * 100)
    journal.core.quota_bytes = size
    world.receive()
    assert (journal.messages, journal.bytes) == (1, size)


@pytest.mark.rule("X-35")
def test_journals_count_against_the_quota_of_the_queue_manager() -> None:
    world = World(quota_kb=2)
    world.create(journaling=True)
    world.send(b"x" * 1200)
    world.receive()
    with pytest.raises(MSMQError):
        world.send(b"x" * 1200)
    world.receive(JOURNAL)
    world.send(b"x" * 1200)


# ---- source journaling


@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.rule("X-61", "X-22")
def test_a_local_delivery_leaves_a_copy_in_the_system_journal(world: World, delivery: int) -> None:
    world.create()
    world.send(b"plain", delivery=delivery)
    world.send(b"dead letter only", delivery=delivery, journal=Journal.DEADLETTER)
    world.send(b"journaled", delivery=delivery, journal=Journal.JOURNAL)
    assert world.bodies(SYSTEM_JOURNAL) == [b"journaled"]
    assert world.receive(SYSTEM_JOURNAL) == b"journaled"
    assert [world.receive() for _ in range(3)] == [b"plain", b"dead letter only", b"journaled"]


@pytest.mark.rule("X-61", "X-22")
def test_the_system_journal_has_a_quota_and_the_copy_beyond_it_is_dropped() -> None:
    world = World(journal_quota_kb=1)
    world.create()
    world.send(b"x" * 500, journal=Journal.JOURNAL)
    world.send(b"y" * 500, journal=Journal.JOURNAL)
    assert world.bodies(SYSTEM_JOURNAL) == [b"x" * 500]
    assert len(world.bodies()) == 2


@pytest.mark.rule("X-61", "DM-203", "QB-194", "QB-201")
@pytest.mark.parametrize("delivery", [0, 1])
def test_what_the_next_queue_manager_keeps_goes_to_the_system_journal(world: World, delivery: int) -> None:
    """Outgoing: not when it is sent, but when the session acknowledges it."""
    name = r"DIRECT=OS:elsewhere\private$\orders"
    world.send(b"journaled", name, delivery=delivery, journal=Journal.JOURNAL)
    world.send(b"plain", name, delivery=delivery)
    assert world.bodies(SYSTEM_JOURNAL) == []
    core = world.manager.find(name).core
    taken = core.take(10, 1 << 20, 99)
    core.acked(array("Q", [message.lookup_id for message in taken]), 99)
    world.run()
    assert world.bodies(SYSTEM_JOURNAL) == [b"journaled"]
    world.crash()
    assert world.bodies(SYSTEM_JOURNAL) == ([b"journaled"] if delivery else [])
    assert world.manager.find(name).core.messages == 0


@pytest.mark.rule("QB-294")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=OS:elsewhere\private$\order_queue$",
        r"DIRECT=TCP:10.9.9.9\private$\admin_queue$",
        "PRIVATE=4f1d3c2b-8a6e-4d4f-9c01-020304050607\\3",
    ],
)
def test_messages_to_internal_queues_are_not_journaled(world: World, name: str) -> None:
    world.send(b"x", name, journal=Journal.JOURNAL)
    core = world.manager.find(name).core
    taken = core.take(10, 1 << 20, 99)
    core.acked(array("Q", [message.lookup_id for message in taken]), 99)
    world.run()
    assert world.bodies(SYSTEM_JOURNAL) == []


def test_the_feed_tells_of_journal_copies(world: World) -> None:
    queue = world.create(journaling=True)
    world.send(b"x", journal=Journal.JOURNAL)
    world.receive()
    assert kinds(world, queue.ordinal) == [EventKind.ARRIVED, EventKind.RECEIVED]
    assert kinds(world, world.manager.find(JOURNAL).ordinal) == [EventKind.JOURNALED]
    assert kinds(world, world.manager.find(SYSTEM_JOURNAL).ordinal) == [EventKind.JOURNALED]


def test_a_store_without_journals_gets_them(world: World) -> None:
    world.create(journaling=True)
    journal = world.manager.find(JOURNAL)
    world.manager.records.unit(lambda: world.manager.records.delete_queue(journal.ordinal))
    world.run()
    world.crash()
    world.send(b"x")
    world.receive()
    assert world.bodies(JOURNAL) == [b"x"]
