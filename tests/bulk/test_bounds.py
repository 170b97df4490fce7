"""The watermark: what arrives later stands above it, and what comes behind it is counted."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from msmq_fast._native.columnrows import scan
from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.access import Access
from msmq_fast.qm.bulk.bounds import bounds_of, plan
from msmq_fast.qm.queues.kinds import kind_of
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.queue_manager import World

SUB = r".\private$\orders;sub"
SEQUENCE = (1 << 56) - 1


@pytest.fixture
def world() -> World:
    world = World()
    world.create()
    return world


def settled(world: World) -> int:
    return int(world.finish(world.manager.bounds.settled()))


def begin_send(world: World, body: bytes, **values: Any) -> None:
    """Send, and let nothing become durable."""
    values.setdefault("delivery", 1)
    world.sender().send(Message(body=body, **values))


def seen(world: World, stop: int, name: str = "orders") -> list[int]:
    rows = scan(world.manager.find(name).core, 0, stop, 10_000, 1 << 30)
    return [key & SEQUENCE for key in rows.keys()]  # noqa: SIM118 - no mapping


def test_it_stands_behind_what_is_durable(world: World) -> None:
    key = world.send(b"one")
    assert settled(world) == (key & SEQUENCE) + 1
    assert world.manager.bounds.watermark == (key & SEQUENCE) + 1
    key = world.send(b"two", delivery=0)
    assert settled(world) == (key & SEQUENCE) + 1


def test_what_is_pending_stands_above_it_and_later_ones_wait(world: World) -> None:
    before = settled(world)
    begin_send(world, b"pending")
    begin_send(world, b"express", delivery=0)
    waiting = world.manager.bounds.settled()
    assert not waiting.done
    assert world.manager.bounds.watermark == before
    assert seen(world, before) == []
    world.run()
    assert waiting.result() > before
    assert len(seen(world, waiting.result())) == 2


def test_several_batches_are_passed_one_by_one(world: World) -> None:
    """A message of a later batch never stands below what an earlier one has settled."""
    begin_send(world, b"first")
    first = world.manager.bounds.settled()
    world.writer.submit()  # on its way
    begin_send(world, b"second")
    second = world.manager.bounds.settled()
    world.writer.complete_one()
    world.writer.complete()
    assert seen(world, first.result()) == [first.result() - 1]
    world.run()
    assert second.result() == first.result() + 1


def test_a_message_that_is_refused_does_not_hold_it_up(world: World) -> None:
    before = settled(world)
    world.writer.fail_commit(1, errno.ENOSPC)
    begin_send(world, b"no room")
    waiting = world.manager.bounds.settled()
    world.run()
    assert waiting.result() > before
    assert seen(world, waiting.result()) == []


@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_that_is_moved_behind_it_is_late(world: World, delivery: int) -> None:
    key = world.send(b"one", delivery=delivery)
    queue = world.manager.find("orders")
    target = world.manager.open(SUB, Access.MOVE)
    stop = settled(world)
    assert bounds_of(world.manager.ledger, target.queue).late == 0
    world.finish(world.reader().move(key, target))
    assert bounds_of(world.manager.ledger, target.queue).late == 1
    assert bounds_of(world.manager.ledger, queue).late == 0
    assert seen(world, stop, SUB) == [key & SEQUENCE]
    # One that nobody could have looked for is not late.
    key = world.send(b"two", delivery=delivery)
    world.finish(world.reader().move(key, target))
    assert target.queue.core.out_of_order == 1


def test_a_move_is_late_when_it_can_be_seen_and_not_before(world: World) -> None:
    key = world.send(b"one")
    target = world.manager.open(SUB, Access.MOVE)
    settled(world)
    moving = world.reader().move(key, target)
    assert (target.queue.core.out_of_order, seen(world, SEQUENCE, SUB)) == (0, [])
    world.finish(moving)
    assert (target.queue.core.out_of_order, len(seen(world, SEQUENCE, SUB))) == (1, 1)


@pytest.mark.parametrize("delivery", [0, 1])
def test_a_message_that_is_given_back_is_late(world: World, delivery: int) -> None:
    key = world.send(b"back", delivery=delivery)
    core = world.manager.find("orders").core
    received: list[Received] = []
    core.receive_bulk(1, 1 << 20, lambda messages, _: received.extend(messages))
    stop = settled(world)
    assert (len(received), seen(world, stop)) == (1, [])
    core.requeue(received)
    assert core.out_of_order == (1 if delivery == 0 else 0)  # as soon as it can be seen
    world.run()
    assert (core.out_of_order, seen(world, stop)) == (1, [key & SEQUENCE])


def test_locked_messages_stay_in_sight(world: World) -> None:
    """An abort behind the watermark brings back nothing that a reader has not seen."""
    key = world.send(b"one")
    stop = settled(world)
    handle = world.reader()
    request = handle.begin(0)
    world.finish(request.completion)
    assert seen(world, stop) == [key & SEQUENCE]
    world.finish(handle.end(key, delete=False))
    assert seen(world, stop) == [key & SEQUENCE]
    assert world.manager.find("orders").core.out_of_order == 0


def test_what_is_taken_before_it_is_durable_is_never_seen(world: World) -> None:
    """A reader that waits gets a message with the commit that keeps it: until then nobody knows of it."""
    request = world.reader().receive(None)
    begin_send(world, b"for him who waits")
    world.manager.before_submit()
    positions = world.manager.find("orders").core.positions
    assert (positions.live, positions.pending) == (1, 0)
    assert seen(world, SEQUENCE) == []
    assert world.finish(request.completion).lookup_id
    assert seen(world, settled(world)) == []


def test_a_great_transaction_appears_at_once(world: World) -> None:
    """Its sequences are given out ahead, and it is gathered in slices: the watermark waits for all of it."""
    world.create("tx", transactional=True)
    transaction = world.manager.transactions.begin()
    handle = TransactedQueue(world.sender("tx"), transaction)
    count = 3000  # more than are committed in one go
    for number in range(count):
        handle.send(Message(body=b"%d" % number))
    done = transaction.commit()
    world.manager.bounds.settled()
    begin_send(world, b"beside it")
    assert world.manager.transactions.slicing
    while not done.done:
        assert seen(world, world.manager.bounds.watermark, "tx") == []
        world.manager.tick()
        world.manager.expire(world.manager.monotonic())
        world.manager.before_submit()
        world.writer.complete_all()
    assert len(seen(world, settled(world), "tx")) == count
    assert world.manager.find("tx").core.out_of_order == 0


def test_what_the_bounds_say(world: World) -> None:
    keys = [world.send(bytes(100), priority=priority) for priority in (0, 7, 3)]
    stop = settled(world)
    queue = world.manager.find("orders")
    found = bounds_of(world.manager.ledger, queue)
    assert (found.name, found.kind, found.guid) == (r"HOST\private$\orders", "queue", str(queue.guid))
    assert (found.first, found.messages, found.bytes) == (keys[0] & SEQUENCE, 3, queue.core.bytes)
    empty = bounds_of(world.manager.ledger, world.manager.find(r".\private$\orders;JOURNAL"))
    assert (empty.kind, empty.first, empty.messages) == ("journal", stop, 0)
    names = {r".\system$;deadletter": "deadletter", r".\system$;deadxact": "xact_deadletter"}
    assert {name: kind_of(world.manager.find(name)) for name in names} == names
    outgoing = world.manager.outgoing_queues.to(parse_format_name(r"DIRECT=OS:elsewhere\private$\q"))
    assert kind_of(outgoing) == "outgoing"
    assert bounds_of(world.manager.ledger, outgoing).name == r"DIRECT=OS:elsewhere\private$\q"


def test_a_plan_ends_at_the_watermark_and_covers_its_stretch(world: World) -> None:
    for number in range(10):
        world.send(b"x", priority=number % 8)
    stop = settled(world)
    begin_send(world, b"later", delivery=0)
    queue = world.manager.find("orders")
    planned = plan(world.manager.ledger, queue, 0, SEQUENCE, parts=3)
    assert (planned.rows, planned.stop) == (10, stop)
    assert (planned.ranges[0].start, planned.ranges[0].rows) == (0, 3)
    assert planned.ranges[-1].stop == stop
    assert sum(part.bytes for part in planned.ranges) == planned.bytes
    short = plan(world.manager.ledger, queue, 0, SEQUENCE, max_rows=4)
    assert (short.rows, len(seen(world, short.stop))) == (4, 4)
    none = plan(world.manager.ledger, queue, stop, stop + 5)
    assert (none.ranges, none.stop, none.rows) == ((), stop, 0)
