"""Moves between a queue and its subqueues."""

from __future__ import annotations

import errno

import pytest

from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.qm.transactions import begin, fill, take
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, body

SUB = ".\\private$\\orders;sub"
OTHER = ".\\private$\\orders;other"


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def mover(world: World, name: str = SUB) -> OpenQueue:
    return world.manager.open(name, Access.MOVE)


def peek(world: World, name: str = SUB):  # type: ignore[no-untyped-def]
    return world.finish(world.reader(name).receive(0, peek=True).completion)


@pytest.mark.rule("DM-142", "DM-143", "DM-146", "X-53", "DM-029", "ST-1")
@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_a_moved_message_keeps_its_identity(delivery: int, cache: int) -> None:
    world = World(cache_bytes=cache)
    queue = world.create()
    world.send(b"before", delivery=delivery)
    key = world.send(b"one", delivery=delivery, priority=5, label="label")
    before = peek(world, "orders")
    world.advance(60)
    target, source = mover(world), world.reader()
    world.finish(source.move(key, target))
    assert world.bodies() == [b"before"]
    moved = peek(world)
    assert moved.lookup_id == key
    assert moved.packet == before.packet
    assert (moved.arrival_seq, moved.arrived_us, moved.content_id) == (
        before.arrival_seq,
        before.arrived_us,
        before.content_id,
    )
    assert (moved.abort_count, moved.move_count) == (0, 1)
    assert (queue.messages, target.queue.messages) == (1, 1)
    assert queue.bytes + target.queue.bytes == world.manager.ledger.bytes
    world.finish(world.reader(SUB).move(key, mover(world, OTHER)))
    world.finish(world.reader(OTHER).move(key, mover(world, "orders")))
    assert world.bodies() == [b"one", b"before"]
    assert peek(world, "orders").move_count == 3


@pytest.mark.rule("DM-029", "X-72")
def test_a_move_resets_how_often_a_message_was_aborted() -> None:
    world = World()
    world.create("orders", transactional=True)
    fill(world, b"one")
    transaction = begin(world)
    take(world, transaction)
    world.finish(transaction.abort())
    before = peek(world, "orders")
    assert (before.abort_count, before.move_count) == (1, 0)
    world.finish(world.reader("orders").move(before.lookup_id, mover(world)))
    assert (peek(world).abort_count, peek(world).move_count) == (0, 1)
    world.crash()
    assert (peek(world).abort_count, peek(world).move_count) == (0, 1)


@pytest.mark.rule("DM-146", "DU-11")
def test_what_is_stored_of_a_move(world: World) -> None:
    from msmq_fast.store import decode

    key = world.send(b"one")
    target = mover(world)
    world.advance(60)
    world.finish(world.reader().move(key, target))
    (value,) = world.store.tables.tables[1].values()
    record = decode.position(value)
    assert (record.move_count, record.abort_count, record.last_move_s) == (1, 0, WALL + 60)
    world.crash()
    assert peek(world).move_count == 1
    assert peek(world).lookup_id == key


@pytest.mark.rule("DU-11", "DM-142")
def test_a_move_happens_once_or_not_at_all(world: World) -> None:
    """Whatever the moment of a crash, there is exactly one message."""
    key = world.send(b"one")
    target = mover(world)
    world.run()
    moved = world.reader().move(key, target)
    assert not moved.done
    world.crash()
    assert world.bodies() == [b"one"]
    world.finish(world.reader().move(key, mover(world)))
    world.crash()
    assert world.bodies() == []
    assert world.bodies(SUB) == [b"one"]


@pytest.mark.rule("DU-11")
def test_a_move_that_the_store_does_not_keep(world: World) -> None:
    key = world.send(b"one")
    target, queue = mover(world), world.manager.find("orders")
    world.run()
    size = queue.bytes
    moved = world.reader().move(key, target)
    world.writer.fail_commit(1, errno.ENOSPC)
    world.run()
    with pytest.raises(errors.MessageStorageFailed):
        moved.result()
    assert world.bodies() == [b"one"]
    assert (queue.bytes, queue.core.used_bytes, queue.core.sub_bytes, queue.core.moving_bytes) == (
        size,
        size,
        0,
        0,
    )
    assert world.manager.ledger.bytes == size
    assert world.finish(world.reader().receive(0).completion).move_count == 0


@pytest.mark.rule("DM-142", "DM-205")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_move_wakes_who_waits_at_the_target(world: World, delivery: int) -> None:
    reader = world.reader(SUB)
    waiting, cursor = reader.receive(None), reader.open_cursor()
    peeking = cursor.peek(None)
    key = world.send(b"one", delivery=delivery)
    world.finish(world.reader().move(key, mover(world)))
    assert body(peeking.completion.result()) == b"one"
    assert body(waiting.completion.result()) == b"one"


@pytest.mark.rule("DM-147")
def test_what_is_not_moved(world: World) -> None:
    key = world.send(b"one")
    world.create("others")
    source, target = world.reader(), mover(world)
    elsewhere, itself = mover(world, "others"), mover(world, "orders")
    for goal in (elsewhere, itself, mover(world, ".\\private$\\others;sub")):
        with pytest.raises(errors.InvalidParameter):
            source.move(key, goal)
    for goal in (world.reader(SUB), world.sender()):
        with pytest.raises(errors.AccessDenied):
            source.move(key, goal)
    for wrong in (0, key + 1, 1 << 63, -1, 1 << 64):
        with pytest.raises(errors.MessageNotFound):
            source.move(wrong, target)
    for opened in (world.manager.open("orders", Access.PEEK), world.sender(), itself):
        with pytest.raises(errors.AccessDenied):
            opened.move(key, target)
    holder = world.reader()
    world.finish(holder.begin(0).completion)
    with pytest.raises(errors.MessageLocked):
        source.move(key, target)
    holder.close()
    target.close()
    with pytest.raises(errors.InvalidHandle):
        source.move(key, target)
    assert world.bodies() == [b"one"]


@pytest.mark.rule("X-57", "DM-093")
def test_a_message_cannot_be_moved_twice_at_once(world: World) -> None:
    key = world.send(b"one")
    source = world.reader()
    moved = source.move(key, mover(world))
    with pytest.raises(errors.MessageLocked):
        source.move(key, mover(world, OTHER))
    with pytest.raises(errors.IOTimeout):
        world.receive()
    world.finish(moved)
    assert world.receive(SUB) == b"one"


@pytest.mark.rule("DM-093", "DU-08")
@pytest.mark.parametrize("crash", [False, True])
def test_a_purge_of_the_target_does_not_swallow_what_comes_later(world: World, crash: bool) -> None:
    """A message keeps the number of its arrival, which is before the purge."""
    key = world.send(b"one")
    target = mover(world)
    purged = world.reader(SUB).purge()
    moved = world.reader().move(key, target)
    world.writer.submit()
    world.writer.complete_all()
    purged.result()
    moved.result()
    if crash:
        world.crash()
        target = mover(world)
    world.run()
    assert world.bodies(SUB) == [b"one"]
    reader = world.reader(SUB)
    request = reader.receive(0)
    request.cancel()
    world.run()
    assert world.bodies(SUB) == [b"one"]
    world.crash()
    assert world.bodies(SUB) == [b"one"]
    assert world.finish(world.reader(SUB).purge()) == 1
    world.crash()
    assert world.bodies() == []


@pytest.mark.rule("DM-093")
@pytest.mark.parametrize("delivery", [0, 1])
def test_a_moved_message_that_is_out_during_a_purge_does_not_come_back(world: World, delivery: int) -> None:
    key = world.send(b"one", delivery=delivery)
    world.finish(world.reader(SUB).purge())
    world.finish(world.reader().move(key, mover(world)))
    reader = world.reader(SUB)
    core = reader.queue.core
    out = world.finish(reader.receive(0).completion)
    core.requeue([out])
    world.run()
    assert world.bodies(SUB) == [b"one"]
    out = world.finish(reader.receive(0).completion)
    world.finish(reader.purge())
    core.requeue([out])
    world.run()
    assert world.bodies(SUB) == []
    assert world.manager.ledger.bytes == 0


@pytest.mark.rule("DM-093", "ST-1")
@pytest.mark.parametrize("which", ["orders", SUB])
def test_a_purge_while_a_move_is_under_way(world: World, which: str) -> None:
    """The move is not undone; what is in the purged queue when it is durable goes."""
    key = world.send(b"one")
    target = mover(world)
    world.run()
    moved = world.reader().move(key, target)
    purged = world.reader(which).purge()
    world.finish(purged)
    moved.result()
    world.run()
    assert world.bodies() == []
    assert world.bodies(SUB) == ([b"one"] if which == "orders" else [])
    queue = world.manager.find("orders")
    assert queue.core.moving_bytes == queue.core.used_bytes == 0
    assert queue.core.sub_bytes == target.queue.bytes == world.manager.ledger.bytes
    bodies = world.bodies(SUB)
    world.crash()
    assert [world.receive(SUB)] == bodies if bodies else world.manager.ledger.bytes == 0


@pytest.mark.rule("X-57")
@pytest.mark.parametrize("commit", [True, False])
def test_what_was_purged_while_a_transaction_moves_it(commit: bool) -> None:
    world = World()
    world.create(transactional=True)
    fill(world, b"one", b"two")
    transaction = begin(world)
    (key, _) = world.manager.find("orders").core.positions.keys()
    TransactedQueue(world.reader(), transaction).move(key, mover(world))
    world.finish(world.reader().purge())
    with pytest.raises(errors.IOTimeout):
        world.receive(peek=True)
    world.finish(transaction.commit() if commit else transaction.abort())
    for _ in range(2):
        assert world.bodies() == []
        assert not commit or world.bodies(SUB) == [b"one"]
        world.crash()


@pytest.mark.rule("DM-213", "X-04", "DM-146")
@pytest.mark.parametrize("delivery", [0, 1])
@pytest.mark.parametrize("crash", [False, True])
def test_a_moved_message_expires_at_its_time(world: World, delivery: int, crash: bool) -> None:
    target = mover(world)
    key = world.send(b"one", delivery=delivery, time_to_be_received=60)
    world.finish(world.reader().move(key, target))
    if crash:
        world.crash()
    world.advance(30)
    if delivery or not crash:
        assert world.bodies(SUB) == [b"one"]
        queue = world.manager.find(SUB)
        world.advance(60)
        assert queue.messages == 0
        assert world.manager.ledger.bytes == 0


@pytest.mark.rule("DM-068", "DM-147")
def test_the_family_is_deleted_while_a_move_is_under_way(world: World) -> None:
    key = world.send(b"one")
    target = mover(world)
    world.run()
    moved = world.reader().move(key, target)
    world.finish(world.manager.delete_queue("orders"))
    moved.result()
    world.run()
    assert world.manager.ledger.bytes == 0
    assert world.store.tables.tables[1] == world.store.tables.tables[2] == {}


@pytest.mark.rule("DM-142", "DM-101")
def test_moved_messages_stand_in_the_order_of_their_arrival(world: World) -> None:
    keys = [world.send(b"%d" % number, priority=number % 3) for number in range(9)]
    target, source = mover(world), world.reader()
    for key in sorted(keys, key=lambda key: key * 7919 % 101):
        world.finish(source.move(key, target))
    assert target.queue.core.positions.keys() == sorted(keys)
    reader = world.reader(SUB)
    first = world.finish(reader.lookup(0, Lookup.FIRST, peek=True))
    assert first.lookup_id == min(keys)


@pytest.mark.rule("DM-141")
def test_a_cursor_at_the_source_has_lost_a_moved_message(world: World) -> None:
    key = world.send(b"one")
    world.send(b"two")
    cursor = world.reader().open_cursor()
    world.finish(cursor.peek(0).completion)
    world.finish(world.reader().move(key, mover(world)))
    with pytest.raises(errors.MessageAlreadyReceived):
        cursor.peek(0)
    assert body(world.finish(cursor.peek_next(0).completion)) == b"two"
