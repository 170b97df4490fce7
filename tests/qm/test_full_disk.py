"""A store that is full for a while: what was to go goes later, what was reported stays true."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.store import decode
from tests.support.worlds.queue_manager import World, body

POSITION, CONTENT, FEED = 1, 2, 3


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def full(world: World) -> None:
    """The next commit finds no room."""
    world.writer.submit()
    world.writer.complete_one(errno.ENOSPC)


def settle(world: World) -> None:
    """Room again, and time for another attempt."""
    world.advance(2)
    world.run()


def events(world: World) -> list[decode.FeedEvent]:
    found = world.store.tables.tables[FEED]
    return [event for key in sorted(found) for event in decode.feed(key, found[key])]


@pytest.mark.rule("KV-G3")
def test_a_message_that_finds_no_room_is_refused_with_message_storage_failed(world: World) -> None:
    sent = world.sender().send(Message(body=b"x", delivery=1))
    full(world)
    with pytest.raises(errors.MessageStorageFailed) as refused:
        sent.result()
    assert (refused.value.name, refused.value.code) == ("MQ_ERROR_MESSAGE_STORAGE_FAILED", 0xC00E002A)


@pytest.mark.rule("DU-03")
def test_an_acknowledged_removal_is_repeated(world: World) -> None:
    keys = [world.send(b"1"), world.send(b"2")]
    got: list[Received] = []
    subscription = world.reader().subscribe(got.extend, 2, acknowledge=True)
    removed = subscription.ack(keys)
    full(world)
    with pytest.raises(errors.MessageStorageFailed):
        removed.result()
    assert world.bodies() == []
    assert len(world.store.tables.tables[POSITION]) == 2
    assert world.manager.ledger.removals.failed == 2
    settle(world)
    assert not world.store.tables.tables[POSITION]
    assert not world.store.tables.tables[CONTENT]
    assert [event.kind for event in events(world)][-2:] == [3, 3]
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("DU-16")
def test_an_expired_message_goes_later(world: World) -> None:
    world.send(b"x", time_to_be_received=5)
    world.clock.advance(6)
    world.manager.expire(world.manager.monotonic())
    full(world)
    assert world.bodies() == []
    settle(world)
    assert not world.store.tables.tables[POSITION]
    assert events(world)[-1].kind == 5
    assert world.manager.ledger.sources.live == 1


@pytest.mark.rule("DU-08")
def test_a_purge_whose_batches_find_no_room_ends_before_its_marker_does(world: World) -> None:
    world = World(purge_batch=4)
    world.create()
    for number in range(10):
        world.send(b"%d" % number)
    done = world.reader().purge()
    world.writer.complete_all()
    assert done.result() == 10
    for _ in range(3):
        world.clock.advance(2)
        world.manager.expire(world.manager.monotonic())
        full(world)
        assert len(world.store.tables.tables[POSITION]) == 10
        assert world.manager.ledger.pending_deletes == 10
        assert world.manager.find("orders").purged_to > 0
    assert world.manager.next_deadline() > world.clock.seconds, "no attempts without pause"
    world.manager.expire(world.manager.monotonic())
    assert not world.writer.needs_commit
    settle(world)
    assert not world.store.tables.tables[POSITION]
    assert [event.kind for event in events(world)].count(7) == 10
    assert world.manager.find("orders").purged_to == 0


@pytest.mark.rule("DU-08")
def test_a_released_message_of_a_purged_queue_does_not_outlive_the_marker(world: World) -> None:
    keys = [world.send(b"held")]
    subscription = world.reader().subscribe(lambda _: None, 1, acknowledge=True)
    world.finish(world.reader().purge())
    subscription.release(keys)
    world.manager.expire(world.manager.monotonic())
    full(world)
    world.manager.expire(world.manager.monotonic())
    world.writer.complete_all()
    world.crash()
    assert world.bodies() == []


def test_a_queue_whose_record_was_not_kept_does_not_exist(world: World) -> None:
    created = world.manager.create_queue("other")
    full(world)
    with pytest.raises(errors.MessageStorageFailed):
        created.result()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("other")
    world.create("other")
    world.send(b"x", "other")
    world.crash()
    assert world.bodies("other") == [b"x"]


@pytest.mark.rule("DU-02")
def test_no_message_is_kept_before_the_record_of_its_outgoing_queue(world: World) -> None:
    name = r"DIRECT=OS:there\private$\q"
    sender = world.sender(name)
    first = sender.send(Message(body=b"lost", delivery=1))
    full(world)
    with pytest.raises(errors.MessageStorageFailed):
        first.result()
    second = sender.send(Message(body=b"kept", delivery=1))
    world.writer.submit()
    world.writer.complete_one()
    assert second.done
    world.crash()
    assert world.bodies(name) == [b"kept"]


@pytest.mark.rule("DU-09")
def test_a_deletion_is_repeated(world: World) -> None:
    world.send(b"x")
    deleted = world.manager.delete_queue("orders")
    full(world)
    with pytest.raises(errors.MessageStorageFailed):
        deleted.result()
    settle(world)
    assert not world.store.tables.tables[POSITION]
    world.crash()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find("orders")


@pytest.mark.rule("DU-17")
def test_a_property_that_was_not_kept_is_written_again(world: World) -> None:
    queue = world.manager.find("orders")
    changed = world.manager.set_properties(queue, label="new")
    full(world)
    assert changed.exception() is not None
    settle(world)
    world.crash()
    assert world.manager.find("orders").label == "new"


def test_a_receive_that_was_not_kept_gives_nothing_back_to_a_purged_queue(world: World) -> None:
    world.send(b"x")
    request = world.reader().receive(0)
    purged = world.reader().purge()
    full(world)
    assert request.completion.exception() is not None
    assert purged.exception() is not None
    assert world.bodies() == []
    settle(world)
    assert not world.store.tables.tables[POSITION]
    assert world.manager.ledger.bytes == 0


def test_nothing_is_lost_when_room_comes_back(world: World) -> None:
    world.send(b"kept")
    request = world.reader().receive(0)
    full(world)
    assert request.completion.exception() is not None
    assert world.bodies() == [b"kept"]
    assert body(world.finish(world.reader().receive(0).completion)) == b"kept"


@pytest.mark.rule("DM-119")
def test_a_message_that_cannot_be_put_back_yet_is_put_back_later(world: World) -> None:
    """Its removal is durable, its reader gone, and there is no room: the process keeps it meanwhile."""
    key = world.send(b"x")
    request = world.reader().receive(0)
    world.writer.submit()
    request.cancel()
    world.writer.complete_one()
    full(world)
    assert world.bodies() == []
    for _ in range(3):
        world.clock.advance(2)
        world.manager.expire(world.manager.monotonic())
        full(world)
        world.manager.expire(world.manager.monotonic())
        assert not world.writer.needs_commit, "no attempts without pause"
    settle(world)
    assert world.bodies() == [b"x"]
    assert world.manager.ledger.returned == 0
    world.crash()
    assert world.manager.find("orders").core.positions.first() == key


@pytest.mark.rule("DU-03", "X-60")
def test_nothing_follows_from_a_message_whose_commit_has_failed_unheard(tmp_path: Path) -> None:
    """A reader takes it with the next commit, between the end of its own and the word of that."""
    tables = LmdbTables(tmp_path, map_size=1 << 26)
    writer, reader = LmdbWriter(tables), LmdbReader(tables)
    ledger = Ledger(bytes(16), writer, reader)
    ledger.reserved(1 << 40)
    ledger.tick(2_000_000_000)
    orders, journal = QueueCore(ledger, 1), QueueCore(ledger, 2)
    orders.journal = journal
    kept: list[int] = []
    received: list[int] = []
    orders.enqueue_packets([Message(body=b"x", delivery=1).to_packet()], kept.append)
    writer.fail_batch(errno.ENOSPC)
    writer.submit()
    while writer.busy:
        pass
    assert orders.receive_bulk(1, 1 << 20, lambda _messages, status: received.append(status), True) == 1
    writer.submit()
    while not received:
        writer.complete()
    assert (kept, received) == ([errno.ENOSPC], [errno.ENOSPC])
    assert journal.positions.live == 0
    assert (tables.count(POSITION), ledger.bytes) == (0, 0)
    reader.close()
    writer.close()
    tables.close()


@pytest.mark.rule("DM-119")
def test_a_subqueue_waits_for_what_was_given_back_to_it(world: World) -> None:
    """The message is in no queue until there is room, and the subqueue looks empty."""
    aside = ".\\private$\\orders;aside"
    key = world.send(b"x")
    target = world.manager.open(aside, Access.MOVE)
    world.finish(world.reader().move(key, target))
    target.close()
    reader = world.reader(aside)
    request = reader.receive(0)
    world.writer.submit()
    reader.close()
    assert request.completion.exception() is not None
    world.writer.complete_one()
    for seconds in (0, 9.6, 0.5):  # the last time nothing is tried again, but subqueues are looked at
        full(world)
        world.clock.advance(seconds)
        world.manager.tick()
        world.manager.expire(world.manager.monotonic())
    settle(world)
    assert world.bodies(aside) == [b"x"]
